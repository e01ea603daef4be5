-- When this database was made, in milliseconds since 1970: entries of the journal that are older belong to whatever was
-- there before, and are not credited. 0 in databases that are older than this table: nothing is too old for them.
CREATE TABLE installation (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    created_ms INTEGER NOT NULL
);
INSERT INTO installation (id, created_ms)
SELECT 1, CASE
    WHEN EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM torrents) THEN 0
    ELSE CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
END;
