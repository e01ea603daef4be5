-- present_until: when the last client of a user on a torrent is gone, unless it is heard of: the interval that it was told
-- and the grace after its last announce. NULL in rows from before: as long as clients are counted.
-- history: 1 ever announced before having everything, 2 turned out by the site and not back since.
--
-- Every statement can be repeated, since one that changes a table commits at once; and MySQL has no ADD COLUMN IF NOT
-- EXISTS.
SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_accounts ADD COLUMN present_until BIGINT NULL, ADD COLUMN history BIGINT NOT NULL DEFAULT 0', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_accounts' AND column_name = 'present_until'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
