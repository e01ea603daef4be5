-- Cheating earns nothing: time is wall clock, a torrent is completed once, and what all clients of a user claim
-- together is bounded.
-- repeated_count: completions after a user's first of a torrent. time_spent: when the clients of a user seeded and
-- leeched a torrent, as packed spans; empty in rows from before. bucket_*: since when and until
-- when the token bucket of a user was refilled (zero: never used), and the bytes spent of it.
ALTER TABLE ledger_users ADD COLUMN repeated_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_torrents ADD COLUMN repeated_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_accounts ADD COLUMN repeated_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_accounts ADD COLUMN time_spent BYTEA NOT NULL DEFAULT '';
ALTER TABLE ledger_users ADD COLUMN bucket_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_users ADD COLUMN bucket_ts BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_users ADD COLUMN bucket_up BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_users ADD COLUMN bucket_down BIGINT NOT NULL DEFAULT 0;

-- Of what was completed before, the first time counts.
UPDATE ledger_accounts SET repeated_count = completed_count - 1, completed_count = 1 WHERE completed_count > 1;
UPDATE ledger_users SET
    repeated_count = (SELECT COALESCE(SUM(a.repeated_count), 0) FROM ledger_accounts a WHERE a.user_id = ledger_users.id),
    completed_count = (SELECT COALESCE(SUM(a.completed_count), 0) FROM ledger_accounts a WHERE a.user_id = ledger_users.id)
WHERE completed_count > 0;
UPDATE ledger_torrents SET
    repeated_count = (SELECT COALESCE(SUM(a.repeated_count), 0) FROM ledger_accounts a WHERE a.torrent_id = ledger_torrents.id),
    completed_count = (SELECT COALESCE(SUM(a.completed_count), 0) FROM ledger_accounts a WHERE a.torrent_id = ledger_torrents.id)
WHERE completed_count > 0;
