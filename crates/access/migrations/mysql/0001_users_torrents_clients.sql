-- Who may announce. A site may write these three tables with its own SQL while the tracker runs; not with TRUNCATE,
-- which fires no trigger here: DELETE does.
--
-- Every statement can be repeated, since each that changes a table commits what came before it.

CREATE TABLE IF NOT EXISTS users (
    -- Never given twice, even after a removal: accounts outlive users.
    id         BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    passkey    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    enabled    BOOLEAN     NOT NULL DEFAULT TRUE,
    created_at BIGINT      NOT NULL DEFAULT (unix_timestamp()),
    UNIQUE KEY users_by_passkey (passkey),
    CONSTRAINT passkey_is_8_to_64_hex_digits CHECK (passkey REGEXP '^[0-9a-fA-F]{8,64}$'),
    CONSTRAINT user_enabled_is_0_or_1 CHECK (enabled IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS torrents (
    id          BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    infohash    VARCHAR(40) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    -- A hybrid torrent's second name: the SHA-256 of its v2 info dictionary, whole or its first 40 digits.
    infohash_v2 VARCHAR(64) CHARACTER SET ascii COLLATE ascii_general_ci,
    name        MEDIUMTEXT  NOT NULL DEFAULT (''),
    -- 0 where it is not known.
    total_bytes BIGINT      NOT NULL DEFAULT 0,
    enabled     BOOLEAN     NOT NULL DEFAULT TRUE,
    created_at  BIGINT      NOT NULL DEFAULT (unix_timestamp()),
    -- The second name as it is announced.
    infohash_v2_short VARCHAR(40) CHARACTER SET ascii COLLATE ascii_general_ci
        GENERATED ALWAYS AS (left(infohash_v2, 40)) STORED,
    UNIQUE KEY torrents_by_infohash (infohash),
    UNIQUE KEY torrents_by_infohash_v2 (infohash_v2_short),
    CONSTRAINT infohash_is_40_hex_digits CHECK (infohash REGEXP '^[0-9a-fA-F]{40}$'),
    CONSTRAINT infohash_v2_is_40_or_64_hex_digits
        CHECK (infohash_v2 REGEXP '^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$'),
    CONSTRAINT total_bytes_is_not_negative CHECK (total_bytes >= 0),
    CONSTRAINT torrent_enabled_is_0_or_1 CHECK (enabled IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS clients (
    -- The first bytes of a peer id: ASCII text as it stands (-TR3), or hex: and digits for anything else. As bytes,
    -- since texts that differ in spaces at their end would be equal.
    prefix  VARBINARY(44) NOT NULL PRIMARY KEY,
    name    MEDIUMTEXT    NOT NULL DEFAULT (''),
    allowed BOOLEAN       NOT NULL DEFAULT TRUE,
    CONSTRAINT prefix_is_1_to_20_bytes CHECK (length(prefix) BETWEEN 1 AND 44),
    CONSTRAINT allowed_is_0_or_1 CHECK (allowed IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- What changed, in order, whoever changed it. A follower reads what lies behind the number it knows, looks up the
-- subject and takes its present state, so an entry too many does no harm. The server trims it.
CREATE TABLE IF NOT EXISTS access_changes (
    seq     BIGINT      NOT NULL PRIMARY KEY,
    kind    VARCHAR(16) CHARACTER SET ascii NOT NULL,
    -- The id of the user or torrent; 0 for clients, whose list is short and read whole.
    subject BIGINT      NOT NULL,
    CONSTRAINT kind_is_known CHECK (kind IN ('user', 'torrent', 'client'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Numbers of AUTO_INCREMENT are taken before the commit, so a transaction that commits late would have lower numbers
-- than some that were read already, and a follower would never see it. This row is locked until the commit, so numbers
-- follow the order of commits, without gaps. Writers of these tables wait for each other; readers do not.
CREATE TABLE IF NOT EXISTS access_counter (
    only_row TINYINT NOT NULL PRIMARY KEY,
    newest   BIGINT  NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
INSERT IGNORE INTO access_counter (only_row, newest) VALUES (1, 0);

DROP TRIGGER IF EXISTS users_inserted;
CREATE TRIGGER users_inserted AFTER INSERT ON users FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', NEW.id FROM access_counter;
END;
DROP TRIGGER IF EXISTS users_deleted;
CREATE TRIGGER users_deleted AFTER DELETE ON users FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', OLD.id FROM access_counter;
END;
DROP TRIGGER IF EXISTS users_updated;
CREATE TRIGGER users_updated AFTER UPDATE ON users FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', NEW.id FROM access_counter;
    IF OLD.id <> NEW.id THEN
        UPDATE access_counter SET newest = newest + 1;
        INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', OLD.id FROM access_counter;
    END IF;
END;
DROP TRIGGER IF EXISTS users_id_is_positive_on_insert;
CREATE TRIGGER users_id_is_positive_on_insert BEFORE INSERT ON users FOR EACH ROW BEGIN
    IF NEW.id < 0 THEN
        SIGNAL SQLSTATE '23000' SET MESSAGE_TEXT = 'an id must be positive';
    END IF;
END;
DROP TRIGGER IF EXISTS users_id_is_positive_on_update;
CREATE TRIGGER users_id_is_positive_on_update BEFORE UPDATE ON users FOR EACH ROW BEGIN
    IF NEW.id <= 0 THEN
        SIGNAL SQLSTATE '23000' SET MESSAGE_TEXT = 'an id must be positive';
    END IF;
END;

DROP TRIGGER IF EXISTS torrents_inserted;
CREATE TRIGGER torrents_inserted AFTER INSERT ON torrents FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'torrent', NEW.id FROM access_counter;
    -- One name means one torrent, whichever of the two columns it stands in.
    IF EXISTS (SELECT 1 FROM torrents AS other WHERE other.infohash_v2_short = NEW.infohash AND other.id <> NEW.id) THEN
        SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062,
            MESSAGE_TEXT = 'another torrent has this infohash as its infohash_v2';
    END IF;
    IF EXISTS (SELECT 1 FROM torrents AS other WHERE other.infohash = left(NEW.infohash_v2, 40) AND other.id <> NEW.id) THEN
        SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062,
            MESSAGE_TEXT = 'another torrent has this infohash_v2 as its infohash';
    END IF;
END;
DROP TRIGGER IF EXISTS torrents_deleted;
CREATE TRIGGER torrents_deleted AFTER DELETE ON torrents FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'torrent', OLD.id FROM access_counter;
END;
DROP TRIGGER IF EXISTS torrents_updated;
CREATE TRIGGER torrents_updated AFTER UPDATE ON torrents FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'torrent', NEW.id FROM access_counter;
    IF OLD.id <> NEW.id THEN
        UPDATE access_counter SET newest = newest + 1;
        INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'torrent', OLD.id FROM access_counter;
    END IF;
    IF EXISTS (SELECT 1 FROM torrents AS other WHERE other.infohash_v2_short = NEW.infohash AND other.id <> NEW.id) THEN
        SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062,
            MESSAGE_TEXT = 'another torrent has this infohash as its infohash_v2';
    END IF;
    IF EXISTS (SELECT 1 FROM torrents AS other WHERE other.infohash = left(NEW.infohash_v2, 40) AND other.id <> NEW.id) THEN
        SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062,
            MESSAGE_TEXT = 'another torrent has this infohash_v2 as its infohash';
    END IF;
END;
DROP TRIGGER IF EXISTS torrents_id_is_positive_on_insert;
CREATE TRIGGER torrents_id_is_positive_on_insert BEFORE INSERT ON torrents FOR EACH ROW BEGIN
    IF NEW.id < 0 THEN
        SIGNAL SQLSTATE '23000' SET MESSAGE_TEXT = 'an id must be positive';
    END IF;
END;
DROP TRIGGER IF EXISTS torrents_id_is_positive_on_update;
CREATE TRIGGER torrents_id_is_positive_on_update BEFORE UPDATE ON torrents FOR EACH ROW BEGIN
    IF NEW.id <= 0 THEN
        SIGNAL SQLSTATE '23000' SET MESSAGE_TEXT = 'an id must be positive';
    END IF;
END;

DROP TRIGGER IF EXISTS clients_inserted;
CREATE TRIGGER clients_inserted AFTER INSERT ON clients FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'client', 0 FROM access_counter;
END;
DROP TRIGGER IF EXISTS clients_deleted;
CREATE TRIGGER clients_deleted AFTER DELETE ON clients FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'client', 0 FROM access_counter;
END;
DROP TRIGGER IF EXISTS clients_updated;
CREATE TRIGGER clients_updated AFTER UPDATE ON clients FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'client', 0 FROM access_counter;
END;
