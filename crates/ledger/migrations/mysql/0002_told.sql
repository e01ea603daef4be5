-- What the entries of a run told besides counters: time, what multipliers added, completions, packed into a few bytes.
-- Empty: nothing, as in all rows from before, and in settled ones.
--
-- Every statement can be repeated, since one that changes a table commits at once; and MySQL has no ADD COLUMN IF NOT
-- EXISTS.
SET @add_told = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE ledger_runs ADD COLUMN told VARBINARY(255) NOT NULL DEFAULT ''''',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_runs' AND column_name = 'told'
);
PREPARE add_told FROM @add_told;
EXECUTE add_told;
DEALLOCATE PREPARE add_told;
