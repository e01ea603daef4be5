-- Operators who are signed in to the dashboard. A row ends with its key, at its time, or when they sign out.

CREATE TABLE api_sessions (
    -- SHA-256 of what the browser keeps, in lowercase digits. That has 256 random bits, so no slow hash is needed.
    hash       TEXT    NOT NULL PRIMARY KEY,
    -- The key that opened it.
    key_id     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    CONSTRAINT session_hash_is_64_hex_digits CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')
) STRICT;

CREATE INDEX api_sessions_by_key ON api_sessions (key_id, created_at);
