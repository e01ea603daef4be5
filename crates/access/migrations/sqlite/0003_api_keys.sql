-- Keys of the API. A revoked key stays, so that the audit trail's ids keep their names.

CREATE TABLE api_keys (
    -- The first part of the key's text; not secret.
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL,
    -- SHA-256 of the whole text, in lowercase digits. The text has 160 random bits, so no slow hash is needed.
    hash         TEXT    NOT NULL,
    -- Any of verify, read and admin, with commas.
    scopes       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    -- To the minute.
    last_used_at INTEGER,
    revoked_at   INTEGER,
    CONSTRAINT key_id_is_8_hex_digits CHECK (length(id) = 8 AND id NOT GLOB '*[^0-9a-f]*'),
    CONSTRAINT key_hash_is_64_hex_digits CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')
) STRICT;

-- Has a row once there has been a key: the first start makes one, no later start does.
CREATE TABLE api_keys_begun (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1)
) STRICT;
