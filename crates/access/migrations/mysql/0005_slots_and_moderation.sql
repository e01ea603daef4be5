-- How much at once, what awaits approval, and which ports are banned. A site may write these with its own SQL as well;
-- not with TRUNCATE, which fires no trigger here: DELETE does.
--
-- Every statement can be repeated, since each that changes a table commits what came before it; and MySQL has no ADD
-- COLUMN IF NOT EXISTS.

-- Torrents that the user may leech at once. NULL: as configured (limits.leeches_per_user_max). -1: any number.
-- 0: none, so that they can only seed.
SET @add_user_slots = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE users ADD COLUMN leech_slots BIGINT NULL, ADD CONSTRAINT user_leech_slots_are_a_number CHECK (leech_slots BETWEEN -1 AND 1000000)',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'users' AND column_name = 'leech_slots'
);
PREPARE add_user_slots FROM @add_user_slots;
EXECUTE add_user_slots;
DEALLOCATE PREPARE add_user_slots;

-- leech_slots: peers that may leech the torrent at once, likewise (limits.leeches_per_torrent_max).
-- approved: 0 while it awaits approval: it may be announced, but nobody is given peers.
SET @add_torrent_terms = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE torrents ADD COLUMN leech_slots BIGINT NULL, ADD COLUMN approved BOOLEAN NOT NULL DEFAULT TRUE, ADD CONSTRAINT torrent_leech_slots_are_a_number CHECK (leech_slots BETWEEN -1 AND 1000000), ADD CONSTRAINT approved_is_0_or_1 CHECK (approved IN (0, 1))',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'torrents' AND column_name = 'approved'
);
PREPARE add_torrent_terms FROM @add_torrent_terms;
EXECUTE add_torrent_terms;
DEALLOCATE PREPARE add_torrent_terms;

CREATE TABLE IF NOT EXISTS banned_ports (
    -- From the first to the last, both included. Ranges may overlap.
    first_port BIGINT     NOT NULL,
    last_port  BIGINT     NOT NULL,
    -- Why, for people.
    reason     MEDIUMTEXT NOT NULL DEFAULT (''),
    PRIMARY KEY (first_port, last_port),
    CONSTRAINT ports_are_1_to_65535 CHECK (first_port BETWEEN 1 AND last_port AND last_port <= 65535)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- In the log they stand with the clients: both lists are short and read whole.
DROP TRIGGER IF EXISTS banned_ports_inserted;
CREATE TRIGGER banned_ports_inserted AFTER INSERT ON banned_ports FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'client', 0 FROM access_counter;
END;
DROP TRIGGER IF EXISTS banned_ports_deleted;
CREATE TRIGGER banned_ports_deleted AFTER DELETE ON banned_ports FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'client', 0 FROM access_counter;
END;
DROP TRIGGER IF EXISTS banned_ports_updated;
CREATE TRIGGER banned_ports_updated AFTER UPDATE ON banned_ports FOR EACH ROW BEGIN
    UPDATE access_counter SET newest = newest + 1;
    INSERT INTO access_changes (seq, kind, subject) SELECT newest, 'client', 0 FROM access_counter;
END;
