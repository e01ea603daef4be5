-- Cheating earns nothing: time is wall clock, a torrent is completed once, and what all clients of a user claim
-- together is bounded.
-- repeated_count: completions after a user's first of a torrent. time_spent: when the clients of a user seeded and
-- leeched a torrent, as packed spans; empty in rows from before. bucket_*: since when and until
-- when the token bucket of a user was refilled (zero: never used), and the bytes spent of it.
--
-- Every statement can be repeated, since one that changes a table commits at once; and MySQL has no ADD COLUMN IF NOT
-- EXISTS.
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_users ADD COLUMN repeated_count BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_users' AND column_name = 'repeated_count'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_torrents ADD COLUMN repeated_count BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_torrents' AND column_name = 'repeated_count'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_accounts ADD COLUMN repeated_count BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_accounts' AND column_name = 'repeated_count'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_accounts ADD COLUMN time_spent VARBINARY(1024) NOT NULL DEFAULT ''''', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_accounts' AND column_name = 'time_spent'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_users ADD COLUMN bucket_since BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_users' AND column_name = 'bucket_since'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_users ADD COLUMN bucket_ts BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_users' AND column_name = 'bucket_ts'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_users ADD COLUMN bucket_up BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_users' AND column_name = 'bucket_up'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_users ADD COLUMN bucket_down BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_users' AND column_name = 'bucket_down'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;

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
