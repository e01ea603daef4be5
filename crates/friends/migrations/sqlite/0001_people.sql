-- Who knows whom, who may see what, and what was last known of each person. Users are named by their ids and need not
-- be in the table users. A site may write people_friendships, people_privacy and people_never with its own SQL while
-- the server runs; the other tables are the server's.

-- Each pair once, the lower id first.
CREATE TABLE people_friendships (
    user_a INTEGER NOT NULL,
    user_b INTEGER NOT NULL,
    since  INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
    PRIMARY KEY (user_a, user_b),
    CONSTRAINT ids_are_positive_and_the_lower_comes_first CHECK (user_a > 0 AND user_a < user_b)
) STRICT, WITHOUT ROWID;

CREATE INDEX people_friendships_by_second ON people_friendships (user_b, user_a);

-- What people have chosen. Who has no row has not chosen.
CREATE TABLE people_privacy (
    user_id   INTEGER NOT NULL PRIMARY KEY,
    status    TEXT    NOT NULL,
    last_seen TEXT    NOT NULL,
    CONSTRAINT user_id_is_positive CHECK (user_id > 0),
    CONSTRAINT status_is_a_visibility CHECK (status IN ('everyone', 'friends', 'nobody')),
    CONSTRAINT last_seen_is_a_visibility CHECK (last_seen IN ('everyone', 'friends', 'nobody'))
) STRICT;

-- Who never sees anything of a person.
CREATE TABLE people_never (
    user_id INTEGER NOT NULL,
    viewer  INTEGER NOT NULL,
    PRIMARY KEY (user_id, viewer),
    CONSTRAINT ids_are_positive CHECK (user_id > 0 AND viewer > 0)
) STRICT, WITHOUT ROWID;

-- What should be known of a person after a crash. Times in seconds since 1970.
CREATE TABLE people_presence (
    user_id        INTEGER NOT NULL PRIMARY KEY,
    here           INTEGER NOT NULL,
    -- What the person says of themselves.
    declared       TEXT,
    declared_text  TEXT,
    declared_until INTEGER,
    last_seen      INTEGER,
    hidden_since   INTEGER,
    public_version INTEGER NOT NULL,
    own_version    INTEGER NOT NULL
) STRICT;

CREATE INDEX people_presence_here ON people_presence (user_id) WHERE here;

-- Numbers that are given out in the order of commits.
CREATE TABLE people_counters (
    name   TEXT    NOT NULL PRIMARY KEY,
    newest INTEGER NOT NULL
) STRICT;
INSERT INTO people_counters (name, newest) VALUES ('history', 0);

-- Who came, who went, whose status changed. at_ms in milliseconds since 1970.
CREATE TABLE people_history (
    id          INTEGER NOT NULL PRIMARY KEY,
    user_id     INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('arrived', 'left', 'transition')),
    from_status TEXT,
    to_status   TEXT,
    cause       TEXT,
    device      TEXT
) STRICT;

CREATE INDEX people_history_by_user ON people_history (user_id, id);
CREATE INDEX people_history_comings ON people_history (id) WHERE kind IN ('arrived', 'left');

-- How far somebody has told the history on.
CREATE TABLE people_cursors (
    name     TEXT    NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT;

-- What changed, in order, whoever changed it. An entry too many does no harm. The server trims it.
CREATE TABLE people_changes (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    kind   TEXT    NOT NULL CHECK (kind IN ('friends', 'privacy')),
    user_a INTEGER NOT NULL,
    -- The other friend; 0 for privacy.
    user_b INTEGER NOT NULL
) STRICT;

-- INSERT OR REPLACE deletes only a row of the same key, which the insert then names.
CREATE TRIGGER people_friendships_inserted AFTER INSERT ON people_friendships BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('friends', NEW.user_a, NEW.user_b);
END;
CREATE TRIGGER people_friendships_deleted AFTER DELETE ON people_friendships BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('friends', OLD.user_a, OLD.user_b);
END;
CREATE TRIGGER people_friendships_updated AFTER UPDATE ON people_friendships
    WHEN OLD.user_a <> NEW.user_a OR OLD.user_b <> NEW.user_b BEGIN
    INSERT INTO people_changes (kind, user_a, user_b)
        VALUES ('friends', OLD.user_a, OLD.user_b), ('friends', NEW.user_a, NEW.user_b);
END;

CREATE TRIGGER people_privacy_inserted AFTER INSERT ON people_privacy BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('privacy', NEW.user_id, 0);
END;
CREATE TRIGGER people_privacy_deleted AFTER DELETE ON people_privacy BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('privacy', OLD.user_id, 0);
END;
CREATE TRIGGER people_privacy_updated AFTER UPDATE ON people_privacy BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('privacy', NEW.user_id, 0);
    INSERT INTO people_changes (kind, user_a, user_b)
        SELECT 'privacy', OLD.user_id, 0 WHERE OLD.user_id <> NEW.user_id;
END;

CREATE TRIGGER people_never_inserted AFTER INSERT ON people_never BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('privacy', NEW.user_id, 0);
END;
CREATE TRIGGER people_never_deleted AFTER DELETE ON people_never BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('privacy', OLD.user_id, 0);
END;
CREATE TRIGGER people_never_updated AFTER UPDATE ON people_never BEGIN
    INSERT INTO people_changes (kind, user_a, user_b) VALUES ('privacy', NEW.user_id, 0);
    INSERT INTO people_changes (kind, user_a, user_b)
        SELECT 'privacy', OLD.user_id, 0 WHERE OLD.user_id <> NEW.user_id;
END;
