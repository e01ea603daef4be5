-- The whitelist (W1, W2) where there is no Redis: passkeys that may announce although no user has them.
--
-- A refresh builds a generation aside, in as many transactions as it takes, and one transaction makes it the one that
-- counts. So readers always see one whole set.
--
-- Every statement can be repeated, since each that changes a table commits what came before it.

CREATE TABLE IF NOT EXISTS whitelist_generations (
    -- Never given twice: a builder that was given up must not find another's set under its number.
    id         BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    -- building: until it counts. kept: it counts, or did before the last refresh. dropped: its passkeys are being
    -- deleted.
    state      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'building',
    -- When its builder last gave a sign of life.
    touched_at BIGINT      NOT NULL DEFAULT (unix_timestamp()),
    -- Passkeys up to this one are deleted already.
    cleared_to VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    CONSTRAINT generation_state_is_known CHECK (state IN ('building', 'kept', 'dropped'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS whitelist_passkeys (
    generation BIGINT      NOT NULL,
    passkey    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (generation, passkey),
    CONSTRAINT passkey_is_8_to_64_lower_hex_digits CHECK (passkey REGEXP '^[0-9a-f]{8,64}$')
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS whitelist_state (
    only_row            TINYINT NOT NULL PRIMARY KEY,
    current_generation  BIGINT  NOT NULL,
    -- What the last refresh replaced.
    previous_generation BIGINT,
    -- The number of the last entry in passkey_changes.
    newest_change       BIGINT  NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

INSERT IGNORE INTO whitelist_generations (id, state) VALUES (1, 'kept');
INSERT IGNORE INTO whitelist_state (only_row, current_generation) VALUES (1, 1);

-- What was done to the whitelist by us, wherever it is kept, in order and without gaps: numbers are given out by
-- whitelist_state, whose row is locked until the commit. Written after the set has changed; its writers trim it.
CREATE TABLE IF NOT EXISTS passkey_changes (
    seq     BIGINT      NOT NULL PRIMARY KEY,
    -- all: any passkey may have changed.
    kind    VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    passkey VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    CONSTRAINT passkey_change_is_known CHECK (kind IN ('add', 'remove', 'all')),
    CONSTRAINT passkey_change_names_one_or_all CHECK ((kind = 'all') = (passkey IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
