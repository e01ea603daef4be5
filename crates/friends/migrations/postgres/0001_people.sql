-- Who knows whom, who may see what, and what was last known of each person. Users are named by their ids and need not
-- be in the table users. A site may write people_friendships, people_privacy and people_never with its own SQL while
-- the server runs; the other tables are the server's.

-- Each pair once, the lower id first.
CREATE TABLE people_friendships (
    user_a BIGINT NOT NULL,
    user_b BIGINT NOT NULL,
    since  BIGINT NOT NULL DEFAULT (extract(epoch FROM now())::BIGINT),
    PRIMARY KEY (user_a, user_b),
    CONSTRAINT ids_are_positive_and_the_lower_comes_first CHECK (user_a > 0 AND user_a < user_b)
);

CREATE INDEX people_friendships_by_second ON people_friendships (user_b, user_a);

-- What people have chosen. Who has no row has not chosen.
CREATE TABLE people_privacy (
    user_id   BIGINT NOT NULL PRIMARY KEY,
    status    TEXT   NOT NULL,
    last_seen TEXT   NOT NULL,
    CONSTRAINT user_id_is_positive CHECK (user_id > 0),
    CONSTRAINT status_is_a_visibility CHECK (status IN ('everyone', 'friends', 'nobody')),
    CONSTRAINT last_seen_is_a_visibility CHECK (last_seen IN ('everyone', 'friends', 'nobody'))
);

-- Who never sees anything of a person.
CREATE TABLE people_never (
    user_id BIGINT NOT NULL,
    viewer  BIGINT NOT NULL,
    PRIMARY KEY (user_id, viewer),
    CONSTRAINT ids_are_positive CHECK (user_id > 0 AND viewer > 0)
);

-- What should be known of a person after a crash. Times in seconds since 1970.
CREATE TABLE people_presence (
    user_id        BIGINT  NOT NULL PRIMARY KEY,
    here           BOOLEAN NOT NULL,
    -- What the person says of themselves.
    declared       TEXT,
    declared_text  TEXT,
    declared_until BIGINT,
    last_seen      BIGINT,
    hidden_since   BIGINT,
    public_version BIGINT  NOT NULL,
    own_version    BIGINT  NOT NULL
);

CREATE INDEX people_presence_here ON people_presence (user_id) WHERE here;

-- Numbers that are given out in the order of commits: whoever takes some locks the row until then.
CREATE TABLE people_counters (
    name   TEXT   NOT NULL PRIMARY KEY,
    newest BIGINT NOT NULL
);
INSERT INTO people_counters (name, newest) VALUES ('history', 0);

-- Who came, who went, whose status changed. at_ms in milliseconds since 1970.
CREATE TABLE people_history (
    id          BIGINT NOT NULL PRIMARY KEY,
    user_id     BIGINT NOT NULL,
    at_ms       BIGINT NOT NULL,
    kind        TEXT   NOT NULL CHECK (kind IN ('arrived', 'left', 'transition')),
    from_status TEXT,
    to_status   TEXT,
    cause       TEXT,
    device      TEXT
);

CREATE INDEX people_history_by_user ON people_history (user_id, id);
CREATE INDEX people_history_comings ON people_history (id) WHERE kind IN ('arrived', 'left');

-- How far somebody has told the history on.
CREATE TABLE people_cursors (
    name     TEXT   NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);

-- What changed, whoever changed it. An entry too many does no harm. The server trims it.
--
-- Numbers from a sequence are taken before the commit, so a transaction that commits late has lower numbers than some
-- that were read already. Hence each entry has the id of its transaction: a follower keeps the snapshot of its last
-- look, and what is new is what that snapshot did not contain. Nobody waits for anybody.
CREATE TABLE people_changes (
    seq    BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid    XID8   NOT NULL DEFAULT pg_current_xact_id(),
    kind   TEXT   NOT NULL CHECK (kind IN ('friends', 'privacy')),
    user_a BIGINT NOT NULL,
    -- The other friend; 0 for privacy.
    user_b BIGINT NOT NULL
);

CREATE INDEX people_changes_by_transaction ON people_changes (xid);

-- What was taken out of the log: the newest entry among it, and who did so last. A follower whose snapshot contains
-- neither takes everything for changed.
CREATE TABLE people_trimmed (
    only_row   BOOLEAN NOT NULL DEFAULT TRUE PRIMARY KEY CHECK (only_row),
    trimmed_to XID8    NOT NULL,
    trimmed_by XID8    NOT NULL
);
INSERT INTO people_trimmed (trimmed_to, trimmed_by) VALUES ('0', '0');

-- These run with the rights of whoever made the tables, so that a site needs rights on its three tables only.
CREATE FUNCTION people_friends_added() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) SELECT 'friends', user_a, user_b FROM added;
    RETURN NULL;
END $$;
CREATE FUNCTION people_friends_gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) SELECT 'friends', user_a, user_b FROM gone;
    RETURN NULL;
END $$;
CREATE FUNCTION people_friends_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO people_changes (kind, user_a, user_b)
        SELECT 'friends', user_a, user_b FROM added UNION SELECT 'friends', user_a, user_b FROM gone;
    RETURN NULL;
END $$;
CREATE FUNCTION people_privacy_added() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) SELECT DISTINCT 'privacy', user_id, 0 FROM added;
    RETURN NULL;
END $$;
CREATE FUNCTION people_privacy_gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) SELECT DISTINCT 'privacy', user_id, 0 FROM gone;
    RETURN NULL;
END $$;
CREATE FUNCTION people_privacy_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO people_changes (kind, user_a, user_b)
        SELECT 'privacy', user_id, 0 FROM added UNION SELECT 'privacy', user_id, 0 FROM gone;
    RETURN NULL;
END $$;

CREATE FUNCTION people_log_trimmed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE people_trimmed
        SET trimmed_to = greatest(trimmed_to, newest.xid), trimmed_by = pg_current_xact_id()
        FROM (SELECT xid FROM gone ORDER BY xid DESC LIMIT 1) AS newest;
    RETURN NULL;
END $$;

-- TRUNCATE names no rows: whoever follows must take everything for changed.
CREATE FUNCTION people_truncated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE people_trimmed SET trimmed_to = pg_current_xact_id(), trimmed_by = pg_current_xact_id();
    RETURN NULL;
END $$;

CREATE TRIGGER people_friendships_inserted AFTER INSERT ON people_friendships REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION people_friends_added();
CREATE TRIGGER people_friendships_deleted AFTER DELETE ON people_friendships REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION people_friends_gone();
CREATE TRIGGER people_friendships_updated AFTER UPDATE ON people_friendships
    REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION people_friends_updated();
CREATE TRIGGER people_friendships_truncated AFTER TRUNCATE ON people_friendships
    FOR EACH STATEMENT EXECUTE FUNCTION people_truncated();

CREATE TRIGGER people_privacy_inserted AFTER INSERT ON people_privacy REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION people_privacy_added();
CREATE TRIGGER people_privacy_deleted AFTER DELETE ON people_privacy REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION people_privacy_gone();
CREATE TRIGGER people_privacy_updated AFTER UPDATE ON people_privacy REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION people_privacy_updated();
CREATE TRIGGER people_privacy_truncated AFTER TRUNCATE ON people_privacy
    FOR EACH STATEMENT EXECUTE FUNCTION people_truncated();

CREATE TRIGGER people_never_inserted AFTER INSERT ON people_never REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION people_privacy_added();
CREATE TRIGGER people_never_deleted AFTER DELETE ON people_never REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION people_privacy_gone();
CREATE TRIGGER people_never_updated AFTER UPDATE ON people_never REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION people_privacy_updated();
CREATE TRIGGER people_never_truncated AFTER TRUNCATE ON people_never
    FOR EACH STATEMENT EXECUTE FUNCTION people_truncated();

CREATE TRIGGER people_changes_deleted AFTER DELETE ON people_changes REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION people_log_trimmed();
CREATE TRIGGER people_changes_truncated AFTER TRUNCATE ON people_changes
    FOR EACH STATEMENT EXECUTE FUNCTION people_truncated();
