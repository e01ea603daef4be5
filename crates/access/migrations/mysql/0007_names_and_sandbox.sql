-- Every statement can be repeated, since each that changes a table commits what came before it; and MySQL has no ADD
-- COLUMN IF NOT EXISTS.

-- name: the display name of a user, for people: NULL where there is none.
-- sandbox: made by "rollcall sandbox", and removed by "rollcall sandbox clear".
SET @add_user_name = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE users ADD COLUMN name VARCHAR(100) NULL, ADD COLUMN sandbox BOOLEAN NOT NULL DEFAULT FALSE, ADD CONSTRAINT user_name_is_1_to_100_characters CHECK (char_length(name) BETWEEN 1 AND 100), ADD CONSTRAINT user_sandbox_is_0_or_1 CHECK (sandbox IN (0, 1))',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'users' AND column_name = 'sandbox'
);
PREPARE add_user_name FROM @add_user_name;
EXECUTE add_user_name;
DEALLOCATE PREPARE add_user_name;

-- The highest ids so far. AUTO_INCREMENT would go on behind the ids of the sandbox, 900000001 to 900000999.
SET @add_newest_ids = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE access_counter ADD COLUMN newest_user_id BIGINT NOT NULL DEFAULT 0, ADD COLUMN newest_torrent_id BIGINT NOT NULL DEFAULT 0',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'access_counter' AND column_name = 'newest_user_id'
);
PREPARE add_newest_ids FROM @add_newest_ids;
EXECUTE add_newest_ids;
DEALLOCATE PREPARE add_newest_ids;
UPDATE access_counter SET
    newest_user_id = greatest(newest_user_id, coalesce((
        SELECT auto_increment - 1 FROM information_schema.tables
        WHERE table_schema = database() AND table_name = 'users'), 0)),
    newest_torrent_id = greatest(newest_torrent_id, coalesce((
        SELECT auto_increment - 1 FROM information_schema.tables
        WHERE table_schema = database() AND table_name = 'torrents'), 0));
-- What information_schema says may be old.
UPDATE access_counter SET
    newest_user_id = greatest(newest_user_id, coalesce((SELECT max(id) FROM users), 0)),
    newest_torrent_id = greatest(newest_torrent_id, coalesce((SELECT max(id) FROM torrents), 0));

DROP TRIGGER IF EXISTS users_inserted;
CREATE TRIGGER users_inserted AFTER INSERT ON users FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1,
        newest_user_id = IF(NEW.id BETWEEN 900000001 AND 900000999, newest_user_id, greatest(newest_user_id, NEW.id));
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', NEW.id FROM access_counter;
END;
DROP TRIGGER IF EXISTS users_updated;
CREATE TRIGGER users_updated AFTER UPDATE ON users FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1,
        newest_user_id = IF(NEW.id BETWEEN 900000001 AND 900000999, newest_user_id, greatest(newest_user_id, NEW.id));
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', NEW.id FROM access_counter;
    IF OLD.id <> NEW.id THEN
        UPDATE access_counter SET newest = newest + 1;
        INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'user', OLD.id FROM access_counter;
    END IF;
END;
DROP TRIGGER IF EXISTS torrents_inserted;
CREATE TRIGGER torrents_inserted AFTER INSERT ON torrents FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1,
        newest_torrent_id = IF(NEW.id BETWEEN 900000001 AND 900000999, newest_torrent_id, greatest(newest_torrent_id, NEW.id));
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
DROP TRIGGER IF EXISTS torrents_updated;
CREATE TRIGGER torrents_updated AFTER UPDATE ON torrents FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1,
        newest_torrent_id = IF(NEW.id BETWEEN 900000001 AND 900000999, newest_torrent_id, greatest(newest_torrent_id, NEW.id));
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
