-- How much at once, what awaits approval, and which ports are banned. A site may write these with its own SQL as well.

-- Torrents that the user may leech at once. NULL: as configured (limits.leeches_per_user_max). -1: any number.
-- 0: none, so that they can only seed.
ALTER TABLE users ADD COLUMN leech_slots BIGINT
    CONSTRAINT user_leech_slots_are_a_number CHECK (leech_slots BETWEEN -1 AND 1000000);

-- Peers that may leech the torrent at once, likewise (limits.leeches_per_torrent_max).
ALTER TABLE torrents ADD COLUMN leech_slots BIGINT
    CONSTRAINT torrent_leech_slots_are_a_number CHECK (leech_slots BETWEEN -1 AND 1000000);

-- False while it awaits approval: it may be announced, but nobody is given peers.
ALTER TABLE torrents ADD COLUMN approved BOOLEAN NOT NULL DEFAULT TRUE;

CREATE TABLE banned_ports (
    -- From the first to the last, both included. Ranges may overlap.
    first_port BIGINT NOT NULL,
    last_port  BIGINT NOT NULL,
    -- Why, for people.
    reason     TEXT   NOT NULL DEFAULT '',
    PRIMARY KEY (first_port, last_port),
    CONSTRAINT ports_are_1_to_65535 CHECK (first_port BETWEEN 1 AND last_port AND last_port <= 65535)
);

-- In the log they stand with the clients: both lists are short and read whole.
CREATE TRIGGER banned_ports_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON banned_ports
    FOR EACH STATEMENT EXECUTE FUNCTION access_clients_changed();
