-- Who may announce. A site may write these three tables with its own SQL while the tracker runs.

CREATE TABLE users (
    -- Never given twice, even after a removal: accounts outlive users.
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    passkey    TEXT    NOT NULL UNIQUE COLLATE NOCASE,
    enabled    INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
    CONSTRAINT id_is_positive CHECK (id > 0),
    CONSTRAINT passkey_is_8_to_64_hex_digits
        CHECK (length(passkey) BETWEEN 8 AND 64 AND passkey NOT GLOB '*[^0-9a-fA-F]*'),
    CONSTRAINT enabled_is_0_or_1 CHECK (enabled IN (0, 1))
) STRICT;

CREATE TABLE torrents (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    infohash    TEXT    NOT NULL UNIQUE COLLATE NOCASE,
    -- A hybrid torrent's second name: the SHA-256 of its v2 info dictionary, whole or its first 40 digits.
    infohash_v2 TEXT,
    name        TEXT    NOT NULL DEFAULT '',
    -- 0 where it is not known.
    total_bytes INTEGER NOT NULL DEFAULT 0,
    enabled     INTEGER NOT NULL DEFAULT 1,
    created_at  INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
    CONSTRAINT id_is_positive CHECK (id > 0),
    CONSTRAINT infohash_is_40_hex_digits
        CHECK (length(infohash) = 40 AND infohash NOT GLOB '*[^0-9a-fA-F]*'),
    CONSTRAINT infohash_v2_is_40_or_64_hex_digits
        CHECK (infohash_v2 IS NULL
               OR (length(infohash_v2) IN (40, 64) AND infohash_v2 NOT GLOB '*[^0-9a-fA-F]*')),
    CONSTRAINT total_bytes_is_not_negative CHECK (total_bytes >= 0),
    CONSTRAINT enabled_is_0_or_1 CHECK (enabled IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX torrents_by_infohash_v2 ON torrents (lower(substr(infohash_v2, 1, 40)));

CREATE TABLE clients (
    -- The first bytes of a peer id: ASCII text as it stands (-TR3), or hex: and digits for anything else.
    prefix  TEXT    NOT NULL PRIMARY KEY,
    name    TEXT    NOT NULL DEFAULT '',
    allowed INTEGER NOT NULL DEFAULT 1,
    CONSTRAINT prefix_is_1_to_20_bytes CHECK (length(prefix) BETWEEN 1 AND 44),
    CONSTRAINT allowed_is_0_or_1 CHECK (allowed IN (0, 1))
) STRICT;

-- What changed, in order, whoever changed it. A follower reads what lies behind the number it knows, looks up the
-- subject and takes its present state, so an entry too many does no harm. The server trims it.
CREATE TABLE access_changes (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT    NOT NULL CHECK (kind IN ('user', 'torrent', 'client')),
    -- The id of the user or torrent; 0 for clients, whose list is short and read whole.
    subject INTEGER NOT NULL
) STRICT;

CREATE TRIGGER users_inserted AFTER INSERT ON users BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('user', NEW.id);
END;
CREATE TRIGGER users_deleted AFTER DELETE ON users BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('user', OLD.id);
END;
CREATE TRIGGER users_updated AFTER UPDATE ON users BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('user', NEW.id);
    INSERT INTO access_changes (kind, subject) SELECT 'user', OLD.id WHERE OLD.id <> NEW.id;
END;
-- INSERT OR REPLACE and UPDATE OR REPLACE delete the row in their way without firing its delete trigger.
CREATE TRIGGER users_replaced_by_insert BEFORE INSERT ON users BEGIN
    INSERT INTO access_changes (kind, subject)
        SELECT 'user', id FROM users WHERE passkey = NEW.passkey AND id IS NOT NEW.id;
END;
CREATE TRIGGER users_replaced_by_update BEFORE UPDATE ON users BEGIN
    INSERT INTO access_changes (kind, subject)
        SELECT 'user', id FROM users WHERE passkey = NEW.passkey AND id <> OLD.id;
END;

CREATE TRIGGER torrents_inserted AFTER INSERT ON torrents BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('torrent', NEW.id);
END;
CREATE TRIGGER torrents_deleted AFTER DELETE ON torrents BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('torrent', OLD.id);
END;
CREATE TRIGGER torrents_updated AFTER UPDATE ON torrents BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('torrent', NEW.id);
    INSERT INTO access_changes (kind, subject) SELECT 'torrent', OLD.id WHERE OLD.id <> NEW.id;
END;
CREATE TRIGGER torrents_replaced_by_insert BEFORE INSERT ON torrents BEGIN
    INSERT INTO access_changes (kind, subject)
        SELECT 'torrent', id FROM torrents WHERE infohash = NEW.infohash AND id IS NOT NEW.id;
    INSERT INTO access_changes (kind, subject)
        SELECT 'torrent', id FROM torrents
        WHERE lower(substr(infohash_v2, 1, 40)) = lower(substr(NEW.infohash_v2, 1, 40)) AND id IS NOT NEW.id;
END;
CREATE TRIGGER torrents_replaced_by_update BEFORE UPDATE ON torrents BEGIN
    INSERT INTO access_changes (kind, subject)
        SELECT 'torrent', id FROM torrents WHERE infohash = NEW.infohash AND id <> OLD.id;
    INSERT INTO access_changes (kind, subject)
        SELECT 'torrent', id FROM torrents
        WHERE lower(substr(infohash_v2, 1, 40)) = lower(substr(NEW.infohash_v2, 1, 40)) AND id <> OLD.id;
END;

-- One name means one torrent, whichever of the two columns it stands in.
CREATE TRIGGER torrents_share_no_name_on_insert AFTER INSERT ON torrents BEGIN
    SELECT RAISE(ABORT, 'another torrent has this infohash as its infohash_v2') FROM torrents
        WHERE lower(substr(infohash_v2, 1, 40)) = lower(NEW.infohash) AND id <> NEW.id;
    SELECT RAISE(ABORT, 'another torrent has this infohash_v2 as its infohash') FROM torrents
        WHERE infohash = substr(NEW.infohash_v2, 1, 40) AND id <> NEW.id;
END;
CREATE TRIGGER torrents_share_no_name_on_update AFTER UPDATE ON torrents BEGIN
    SELECT RAISE(ABORT, 'another torrent has this infohash as its infohash_v2') FROM torrents
        WHERE lower(substr(infohash_v2, 1, 40)) = lower(NEW.infohash) AND id <> NEW.id;
    SELECT RAISE(ABORT, 'another torrent has this infohash_v2 as its infohash') FROM torrents
        WHERE infohash = substr(NEW.infohash_v2, 1, 40) AND id <> NEW.id;
END;

CREATE TRIGGER clients_inserted AFTER INSERT ON clients BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('client', 0);
END;
CREATE TRIGGER clients_deleted AFTER DELETE ON clients BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('client', 0);
END;
CREATE TRIGGER clients_updated AFTER UPDATE ON clients BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('client', 0);
END;
