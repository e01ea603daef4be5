-- How much at once, what awaits approval, and which ports are banned. A site may write these with its own SQL as well.

-- Torrents that the user may leech at once. NULL: as configured (limits.leeches_per_user_max). -1: any number.
-- 0: none, so that they can only seed.
ALTER TABLE users ADD COLUMN leech_slots INTEGER
    CONSTRAINT user_leech_slots_are_a_number CHECK (leech_slots BETWEEN -1 AND 1000000);

-- Peers that may leech the torrent at once, likewise (limits.leeches_per_torrent_max).
ALTER TABLE torrents ADD COLUMN leech_slots INTEGER
    CONSTRAINT torrent_leech_slots_are_a_number CHECK (leech_slots BETWEEN -1 AND 1000000);

-- 0 while it awaits approval: it may be announced, but nobody is given peers.
ALTER TABLE torrents ADD COLUMN approved INTEGER NOT NULL DEFAULT 1
    CONSTRAINT approved_is_0_or_1 CHECK (approved IN (0, 1));

CREATE TABLE banned_ports (
    -- From the first to the last, both included. Ranges may overlap.
    first_port INTEGER NOT NULL,
    last_port  INTEGER NOT NULL,
    -- Why, for people.
    reason     TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (first_port, last_port),
    CONSTRAINT ports_are_1_to_65535 CHECK (first_port BETWEEN 1 AND last_port AND last_port <= 65535)
) STRICT;

-- In the log they stand with the clients: both lists are short and read whole.
CREATE TRIGGER banned_ports_inserted AFTER INSERT ON banned_ports BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('client', 0);
END;
CREATE TRIGGER banned_ports_deleted AFTER DELETE ON banned_ports BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('client', 0);
END;
CREATE TRIGGER banned_ports_updated AFTER UPDATE ON banned_ports BEGIN
    INSERT INTO access_changes (kind, subject) VALUES ('client', 0);
END;
