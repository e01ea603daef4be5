-- What is known of a client only as a sum: what runs brought that were put away, and what entries without totals brought,
-- packed into a few bytes. Empty: nothing, as of most clients, and in all rows from before.
--
-- Every statement can be repeated, since one that changes a table commits at once; and MySQL has no ADD COLUMN IF NOT
-- EXISTS.
SET @add_sums = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE ledger_clients ADD COLUMN sums VARBINARY(255) NOT NULL DEFAULT ''''',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_clients' AND column_name = 'sums'
);
PREPARE add_sums FROM @add_sums;
EXECUTE add_sums;
DEALLOCATE PREPARE add_sums;
