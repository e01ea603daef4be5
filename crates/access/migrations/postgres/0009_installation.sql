-- When this database was made, in milliseconds since 1970: entries of the journal that are older belong to whatever was
-- there before, and are not credited. 0 in databases that are older than this table: nothing is too old for them.
CREATE TABLE installation (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    created_ms BIGINT NOT NULL
);
INSERT INTO installation (id, created_ms)
SELECT 1, CASE
    WHEN EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM torrents) THEN 0
    ELSE floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT
END;
