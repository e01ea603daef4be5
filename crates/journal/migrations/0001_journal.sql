-- A place is (lane << 61) | (milliseconds << 18) | number within the millisecond, so that the entries of each lane
-- stand in one piece, in order, under a single integer key.

CREATE TABLE entries (
    place  INTEGER PRIMARY KEY,
    fields BLOB NOT NULL
) STRICT;

-- length and unread are counted along: counting rows would read the whole journal.
CREATE TABLE lanes (
    lane     INTEGER PRIMARY KEY,
    -- The last place ever given out, so that ids grow also when everything was deleted.
    last     INTEGER NOT NULL,
    appended INTEGER NOT NULL DEFAULT 0,
    length   INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO lanes (lane, last) VALUES (0, 0), (1, 1 << 61), (2, 2 << 61), (3, 3 << 61);

CREATE TABLE groups (
    id             INTEGER PRIMARY KEY,
    lane           INTEGER NOT NULL REFERENCES lanes (lane),
    name           TEXT NOT NULL,
    last_delivered INTEGER NOT NULL,
    unread         INTEGER NOT NULL,
    UNIQUE (lane, name)
) STRICT;

CREATE TABLE consumers (
    id       INTEGER PRIMARY KEY,
    group_id INTEGER NOT NULL REFERENCES groups (id),
    name     TEXT NOT NULL,
    seen_ms  INTEGER NOT NULL,
    UNIQUE (group_id, name)
) STRICT;

-- What was delivered and not acknowledged. One consumer at a time: the key says so.
CREATE TABLE pending (
    group_id    INTEGER NOT NULL,
    place       INTEGER NOT NULL,
    consumer_id INTEGER NOT NULL,
    PRIMARY KEY (group_id, place)
) STRICT, WITHOUT ROWID;

-- The last batch of each producer: one that is sent again is known by it.
CREATE TABLE producers (
    lane     INTEGER NOT NULL,
    producer TEXT NOT NULL,
    number   INTEGER NOT NULL,
    -- Where the batch ends: the producers with the lowest places have been silent for longest.
    place    INTEGER NOT NULL,
    PRIMARY KEY (lane, producer)
) STRICT, WITHOUT ROWID;

CREATE TABLE paused (
    view TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
