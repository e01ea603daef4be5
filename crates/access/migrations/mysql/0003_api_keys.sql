-- Keys of the API. A revoked key stays, so that the audit trail's ids keep their names.
--
-- Every statement can be repeated, since each that changes a table commits what came before it.

CREATE TABLE IF NOT EXISTS api_keys (
    -- The first part of the key's text; not secret.
    id           VARCHAR(8)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    name         VARCHAR(100) NOT NULL,
    -- SHA-256 of the whole text, in lowercase digits. The text has 160 random bits, so no slow hash is needed.
    hash         VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    -- Any of verify, read and admin, with commas.
    scopes       VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at   BIGINT       NOT NULL,
    -- To the minute.
    last_used_at BIGINT,
    revoked_at   BIGINT,
    CONSTRAINT key_id_is_8_hex_digits CHECK (id REGEXP '^[0-9a-f]{8}$'),
    CONSTRAINT key_hash_is_64_hex_digits CHECK (hash REGEXP '^[0-9a-f]{64}$')
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Has a row once there has been a key: the first start makes one, no later start does.
CREATE TABLE IF NOT EXISTS api_keys_begun (
    only_row BIGINT NOT NULL PRIMARY KEY,
    CONSTRAINT only_row_is_1 CHECK (only_row = 1)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
