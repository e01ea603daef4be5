-- The whitelist (W1, W2) where there is no Redis: passkeys that may announce although no user has them.
--
-- A refresh builds a generation aside, in as many transactions as it takes, and one transaction makes it the one that
-- counts. So readers always see one whole set.

CREATE TABLE whitelist_generations (
    -- Never given twice: a builder that was given up must not find another's set under its number.
    id         BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- building: until it counts. kept: it counts, or did before the last refresh. dropped: its passkeys are being
    -- deleted.
    state      TEXT   NOT NULL DEFAULT 'building' CHECK (state IN ('building', 'kept', 'dropped')),
    -- When its builder last gave a sign of life.
    touched_at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp())::BIGINT),
    -- Passkeys up to this one are deleted already.
    cleared_to TEXT   COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE whitelist_passkeys (
    generation BIGINT NOT NULL,
    passkey    TEXT   COLLATE "C" NOT NULL CONSTRAINT passkey_is_8_to_64_lower_hex_digits
        CHECK (length(passkey) BETWEEN 8 AND 64 AND ltrim(passkey, '0123456789abcdef') = ''),
    PRIMARY KEY (generation, passkey)
);

CREATE TABLE whitelist_state (
    only_row            BOOLEAN NOT NULL DEFAULT TRUE PRIMARY KEY CHECK (only_row),
    current_generation  BIGINT  NOT NULL,
    -- What the last refresh replaced.
    previous_generation BIGINT,
    -- The number of the last entry in passkey_changes.
    newest_change       BIGINT  NOT NULL DEFAULT 0
);

INSERT INTO whitelist_generations (state) VALUES ('kept');
INSERT INTO whitelist_state (current_generation) SELECT id FROM whitelist_generations;

-- What was done to the whitelist by us, wherever it is kept, in order and without gaps: numbers are given out by
-- whitelist_state, whose row is locked until the commit. Written after the set has changed; its writers trim it.
CREATE TABLE passkey_changes (
    seq     BIGINT NOT NULL PRIMARY KEY,
    -- all: any passkey may have changed.
    kind    TEXT   NOT NULL CHECK (kind IN ('add', 'remove', 'all')),
    passkey TEXT   COLLATE "C",
    CHECK ((kind = 'all') = (passkey IS NULL))
);
