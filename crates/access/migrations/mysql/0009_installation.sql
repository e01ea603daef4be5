-- When this database was made, in milliseconds since 1970: entries of the journal that are older belong to whatever was
-- there before, and are not credited. 0 in databases that are older than this table: nothing is too old for them.
-- Every statement can be repeated, since each that changes a table commits what came before it.
CREATE TABLE IF NOT EXISTS installation (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    created_ms BIGINT NOT NULL
);
INSERT IGNORE INTO installation (id, created_ms)
SELECT 1, CASE
    WHEN EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM torrents) THEN 0
    ELSE CAST(floor(unix_timestamp(now(3)) * 1000) AS SIGNED)
END;
