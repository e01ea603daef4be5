-- Who knows whom, who may see what, and what was last known of each person. Users are named by their ids and need not
-- be in the table users. A site may write people_friendships, people_privacy and people_never with its own SQL while
-- the server runs (not with TRUNCATE, which fires no trigger here: DELETE does); the other tables are the server's.
--
-- Every statement can be repeated, since each that changes a table commits what came before it.

-- Each pair once, the lower id first.
CREATE TABLE IF NOT EXISTS people_friendships (
    user_a BIGINT NOT NULL,
    user_b BIGINT NOT NULL,
    since  BIGINT NOT NULL DEFAULT (unix_timestamp()),
    PRIMARY KEY (user_a, user_b),
    KEY people_friendships_by_second (user_b, user_a),
    CONSTRAINT friend_ids_are_positive_and_the_lower_comes_first CHECK (user_a > 0 AND user_a < user_b)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- What people have chosen. Who has no row has not chosen.
CREATE TABLE IF NOT EXISTS people_privacy (
    user_id   BIGINT      NOT NULL PRIMARY KEY,
    status    VARCHAR(16) CHARACTER SET ascii NOT NULL,
    last_seen VARCHAR(16) CHARACTER SET ascii NOT NULL,
    CONSTRAINT privacy_user_id_is_positive CHECK (user_id > 0),
    CONSTRAINT privacy_status_is_a_visibility CHECK (status IN ('everyone', 'friends', 'nobody')),
    CONSTRAINT privacy_last_seen_is_a_visibility CHECK (last_seen IN ('everyone', 'friends', 'nobody'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Who never sees anything of a person.
CREATE TABLE IF NOT EXISTS people_never (
    user_id BIGINT NOT NULL,
    viewer  BIGINT NOT NULL,
    PRIMARY KEY (user_id, viewer),
    CONSTRAINT never_ids_are_positive CHECK (user_id > 0 AND viewer > 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- What should be known of a person after a crash. Times in seconds since 1970.
CREATE TABLE IF NOT EXISTS people_presence (
    user_id        BIGINT      NOT NULL PRIMARY KEY,
    here           BOOLEAN     NOT NULL,
    -- What the person says of themselves.
    declared       VARCHAR(16) CHARACTER SET ascii,
    declared_text  TEXT,
    declared_until BIGINT,
    last_seen      BIGINT,
    hidden_since   BIGINT,
    public_version BIGINT      NOT NULL,
    own_version    BIGINT      NOT NULL,
    KEY people_presence_here (here, user_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Numbers that are given out in the order of commits: whoever takes some locks the row until then. Numbers of
-- AUTO_INCREMENT are taken before the commit, so a transaction that commits late would have lower numbers than some that
-- were read already, and whoever follows would never see it. Writers of friendships and privacy wait for each other;
-- readers do not.
CREATE TABLE IF NOT EXISTS people_counters (
    name   VARCHAR(16) CHARACTER SET ascii NOT NULL PRIMARY KEY,
    newest BIGINT      NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
INSERT IGNORE INTO people_counters (name, newest) VALUES ('history', 0), ('changes', 0);

-- Who came, who went, whose status changed. at_ms in milliseconds since 1970.
CREATE TABLE IF NOT EXISTS people_history (
    id          BIGINT      NOT NULL PRIMARY KEY,
    user_id     BIGINT      NOT NULL,
    at_ms       BIGINT      NOT NULL,
    kind        VARCHAR(16) CHARACTER SET ascii NOT NULL,
    from_status VARCHAR(16) CHARACTER SET ascii,
    to_status   VARCHAR(16) CHARACTER SET ascii,
    cause       VARCHAR(64) CHARACTER SET ascii,
    device      VARCHAR(64) CHARACTER SET ascii,
    KEY people_history_by_user (user_id, id),
    KEY people_history_by_kind (kind, id),
    CONSTRAINT history_kind_is_known CHECK (kind IN ('arrived', 'left', 'transition'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- How far somebody has told the history on.
CREATE TABLE IF NOT EXISTS people_cursors (
    name     VARCHAR(64) CHARACTER SET ascii NOT NULL PRIMARY KEY,
    position BIGINT      NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- What changed, in order, whoever changed it. An entry too many does no harm. The server trims it.
CREATE TABLE IF NOT EXISTS people_changes (
    seq    BIGINT      NOT NULL PRIMARY KEY,
    kind   VARCHAR(16) CHARACTER SET ascii NOT NULL,
    user_a BIGINT      NOT NULL,
    -- The other friend; 0 for privacy.
    user_b BIGINT      NOT NULL,
    CONSTRAINT people_change_kind_is_known CHECK (kind IN ('friends', 'privacy'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

DROP TRIGGER IF EXISTS people_friendships_inserted;
CREATE TRIGGER people_friendships_inserted AFTER INSERT ON people_friendships FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'friends', NEW.user_a, NEW.user_b FROM people_counters WHERE name = 'changes';
END;

DROP TRIGGER IF EXISTS people_friendships_deleted;
CREATE TRIGGER people_friendships_deleted AFTER DELETE ON people_friendships FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'friends', OLD.user_a, OLD.user_b FROM people_counters WHERE name = 'changes';
END;

DROP TRIGGER IF EXISTS people_friendships_updated;
CREATE TRIGGER people_friendships_updated AFTER UPDATE ON people_friendships FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'friends', NEW.user_a, NEW.user_b FROM people_counters WHERE name = 'changes';
    IF OLD.user_a <> NEW.user_a OR OLD.user_b <> NEW.user_b THEN
        UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
        INSERT INTO people_changes (seq, kind, user_a, user_b)
            SELECT newest, 'friends', OLD.user_a, OLD.user_b FROM people_counters WHERE name = 'changes';
    END IF;
END;

DROP TRIGGER IF EXISTS people_privacy_inserted;
CREATE TRIGGER people_privacy_inserted AFTER INSERT ON people_privacy FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'privacy', NEW.user_id, 0 FROM people_counters WHERE name = 'changes';
END;

DROP TRIGGER IF EXISTS people_privacy_deleted;
CREATE TRIGGER people_privacy_deleted AFTER DELETE ON people_privacy FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'privacy', OLD.user_id, 0 FROM people_counters WHERE name = 'changes';
END;

DROP TRIGGER IF EXISTS people_privacy_updated;
CREATE TRIGGER people_privacy_updated AFTER UPDATE ON people_privacy FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'privacy', NEW.user_id, 0 FROM people_counters WHERE name = 'changes';
    IF OLD.user_id <> NEW.user_id THEN
        UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
        INSERT INTO people_changes (seq, kind, user_a, user_b)
            SELECT newest, 'privacy', OLD.user_id, 0 FROM people_counters WHERE name = 'changes';
    END IF;
END;

DROP TRIGGER IF EXISTS people_never_inserted;
CREATE TRIGGER people_never_inserted AFTER INSERT ON people_never FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'privacy', NEW.user_id, 0 FROM people_counters WHERE name = 'changes';
END;

DROP TRIGGER IF EXISTS people_never_deleted;
CREATE TRIGGER people_never_deleted AFTER DELETE ON people_never FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'privacy', OLD.user_id, 0 FROM people_counters WHERE name = 'changes';
END;

DROP TRIGGER IF EXISTS people_never_updated;
CREATE TRIGGER people_never_updated AFTER UPDATE ON people_never FOR EACH ROW BEGIN
    UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
    INSERT INTO people_changes (seq, kind, user_a, user_b)
        SELECT newest, 'privacy', NEW.user_id, 0 FROM people_counters WHERE name = 'changes';
    IF OLD.user_id <> NEW.user_id THEN
        UPDATE people_counters SET newest = newest + 1 WHERE name = 'changes';
        INSERT INTO people_changes (seq, kind, user_a, user_b)
            SELECT newest, 'privacy', OLD.user_id, 0 FROM people_counters WHERE name = 'changes';
    END IF;
END;
