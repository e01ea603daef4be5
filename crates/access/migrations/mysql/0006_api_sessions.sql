-- Operators who are signed in to the dashboard. A row ends with its key, at its time, or when they sign out.
--
-- Every statement can be repeated, since each that changes a table commits what came before it.

CREATE TABLE IF NOT EXISTS api_sessions (
    -- SHA-256 of what the browser keeps, in lowercase digits. That has 256 random bits, so no slow hash is needed.
    hash       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    -- The key that opened it.
    key_id     VARCHAR(8)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at BIGINT      NOT NULL,
    expires_at BIGINT      NOT NULL,
    KEY api_sessions_by_key (key_id, created_at),
    CONSTRAINT session_hash_is_64_hex_digits CHECK (hash REGEXP '^[0-9a-f]{64}$')
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
