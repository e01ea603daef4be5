-- The display name of a user, for people: NULL where there is none.
ALTER TABLE users ADD COLUMN name TEXT
    CONSTRAINT user_name_is_1_to_100_characters CHECK (char_length(name) BETWEEN 1 AND 100);

-- Made by "rollcall sandbox", and removed by "rollcall sandbox clear".
ALTER TABLE users ADD COLUMN sandbox BOOLEAN NOT NULL DEFAULT FALSE;

-- Ids 900000001 to 900000999 belong to the sandbox: automatic ids are taken neither from them nor from behind them
-- because of them.
CREATE OR REPLACE FUNCTION access_newest_id(highest BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN highest = 900000000 THEN 900000999 ELSE highest END
$$;
SELECT setval('users_id_seq', 900000999) FROM users_id_seq WHERE last_value BETWEEN 900000000 AND 900000999;
SELECT setval('torrents_id_seq', 900000999) FROM torrents_id_seq WHERE last_value BETWEEN 900000000 AND 900000999;

CREATE OR REPLACE FUNCTION access_users_inserted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO access_changes (kind, subject) SELECT 'user', id FROM added;
    PERFORM access_keep_ahead('users_id_seq',
        access_newest_id((SELECT max(id) FROM added WHERE id NOT BETWEEN 900000001 AND 900000999)));
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION access_users_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO access_changes (kind, subject) SELECT 'user', id FROM added UNION SELECT 'user', id FROM gone;
    PERFORM access_keep_ahead('users_id_seq',
        access_newest_id((SELECT max(id) FROM added WHERE id NOT BETWEEN 900000001 AND 900000999)));
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION access_torrents_inserted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    -- The plan is kept for the session: one made for an empty table would read all of a large one.
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    INSERT INTO access_changes (kind, subject) SELECT 'torrent', id FROM added;
    PERFORM access_keep_ahead('torrents_id_seq',
        access_newest_id((SELECT max(id) FROM added WHERE id NOT BETWEEN 900000001 AND 900000999)));
    -- One name means one torrent, whichever of the two columns it stands in.
    IF EXISTS (SELECT 1 FROM added JOIN torrents AS other
               ON lower(left(other.infohash_v2, 40)) = lower(added.infohash) AND other.id <> added.id) THEN
        RAISE unique_violation USING MESSAGE = 'another torrent has this infohash as its infohash_v2';
    END IF;
    IF EXISTS (SELECT 1 FROM added JOIN torrents AS other
               ON lower(other.infohash) = lower(left(added.infohash_v2, 40)) AND other.id <> added.id) THEN
        RAISE unique_violation USING MESSAGE = 'another torrent has this infohash_v2 as its infohash';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION access_torrents_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    INSERT INTO access_changes (kind, subject) SELECT 'torrent', id FROM added UNION SELECT 'torrent', id FROM gone;
    PERFORM access_keep_ahead('torrents_id_seq',
        access_newest_id((SELECT max(id) FROM added WHERE id NOT BETWEEN 900000001 AND 900000999)));
    IF EXISTS (SELECT 1 FROM added JOIN torrents AS other
               ON lower(left(other.infohash_v2, 40)) = lower(added.infohash) AND other.id <> added.id) THEN
        RAISE unique_violation USING MESSAGE = 'another torrent has this infohash as its infohash_v2';
    END IF;
    IF EXISTS (SELECT 1 FROM added JOIN torrents AS other
               ON lower(other.infohash) = lower(left(added.infohash_v2, 40)) AND other.id <> added.id) THEN
        RAISE unique_violation USING MESSAGE = 'another torrent has this infohash_v2 as its infohash';
    END IF;
    RETURN NULL;
END $$;
