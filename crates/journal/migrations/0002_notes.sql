-- What the processes on a journal tell each other, by name: which views are paused, who keeps to it, what was skipped.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO notes (name, value) SELECT view, 'paused' FROM paused;
DROP TABLE paused;
