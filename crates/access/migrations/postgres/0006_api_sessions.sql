-- Operators who are signed in to the dashboard. A row ends with its key, at its time, or when they sign out.

CREATE TABLE api_sessions (
    -- SHA-256 of what the browser keeps, in lowercase digits. That has 256 random bits, so no slow hash is needed.
    hash       TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    -- The key that opened it.
    key_id     TEXT   COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT session_hash_is_64_hex_digits CHECK (hash ~ '^[0-9a-f]{64}$')
);

CREATE INDEX api_sessions_by_key ON api_sessions (key_id, created_at);
