-- One row for each torrent on which a user has clients, or had until lately.
-- standing: 0 seeding, 1 leeching, 2 stopped (remembered so that no older entry brings it back)
-- at: the last announce of a client in that standing, in seconds since 1970
-- clients: what was last heard of each client, 29 bytes each
CREATE TABLE activity (
    passkey TEXT NOT NULL,
    info_hash BLOB NOT NULL,
    standing INTEGER NOT NULL,
    at INTEGER NOT NULL,
    clients BLOB NOT NULL,
    PRIMARY KEY (passkey, info_hash)
) STRICT, WITHOUT ROWID;

-- Lists, newest first.
CREATE INDEX activity_listed ON activity (passkey, standing, at, info_hash);

-- What is too old.
CREATE INDEX activity_due ON activity (at);
