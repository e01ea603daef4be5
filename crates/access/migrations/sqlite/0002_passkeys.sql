-- The whitelist (W1, W2) where there is no Redis: passkeys that may announce although no user has them.
--
-- A refresh builds a generation aside, in as many transactions as it takes, and one transaction makes it the one that
-- counts. So readers always see one whole set.

CREATE TABLE whitelist_generations (
    -- Never given twice: a builder that was given up must not find another's set under its number.
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    -- building: until it counts. kept: it counts, or did before the last refresh. dropped: its passkeys are being
    -- deleted.
    state      TEXT    NOT NULL DEFAULT 'building' CHECK (state IN ('building', 'kept', 'dropped')),
    -- When its builder last gave a sign of life.
    touched_at INTEGER NOT NULL DEFAULT (unixepoch()),
    -- Passkeys up to this one are deleted already.
    cleared_to TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE whitelist_passkeys (
    generation INTEGER NOT NULL,
    passkey    TEXT    NOT NULL CONSTRAINT passkey_is_8_to_64_lower_hex_digits
        CHECK (length(passkey) BETWEEN 8 AND 64 AND passkey NOT GLOB '*[^0-9a-f]*'),
    PRIMARY KEY (generation, passkey)
) WITHOUT ROWID, STRICT;

CREATE TABLE whitelist_state (
    only_row            INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    current_generation  INTEGER NOT NULL,
    -- What the last refresh replaced.
    previous_generation INTEGER,
    -- The number of the last entry in passkey_changes.
    newest_change       INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO whitelist_generations (id, state) VALUES (1, 'kept');
INSERT INTO whitelist_state (only_row, current_generation) VALUES (1, 1);

-- What was done to the whitelist by us, wherever it is kept, in order and without gaps: numbers are given out by
-- whitelist_state, whose row is locked until the commit. Written after the set has changed; its writers trim it.
CREATE TABLE passkey_changes (
    seq     INTEGER NOT NULL PRIMARY KEY,
    -- all: any passkey may have changed.
    kind    TEXT    NOT NULL CHECK (kind IN ('add', 'remove', 'all')),
    passkey TEXT,
    CHECK ((kind = 'all') = (passkey IS NULL))
) STRICT;
