-- Keys of the API. A revoked key stays, so that the audit trail's ids keep their names.

CREATE TABLE api_keys (
    -- The first part of the key's text; not secret.
    id           TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    name         TEXT   NOT NULL,
    -- SHA-256 of the whole text, in lowercase digits. The text has 160 random bits, so no slow hash is needed.
    hash         TEXT   NOT NULL,
    -- Any of verify, read and admin, with commas.
    scopes       TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    -- To the minute.
    last_used_at BIGINT,
    revoked_at   BIGINT,
    CONSTRAINT key_id_is_8_hex_digits CHECK (id ~ '^[0-9a-f]{8}$'),
    CONSTRAINT key_hash_is_64_hex_digits CHECK (hash ~ '^[0-9a-f]{64}$')
);

-- Has a row once there has been a key: the first start makes one, no later start does.
CREATE TABLE api_keys_begun (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1)
);
