-- Who has an account on a torrent. Not by the time of the latest entry: every announce would have to move it.
--
-- The statement can be repeated; MySQL has no CREATE INDEX IF NOT EXISTS.
SET @add_index = (
    SELECT IF(count(*) = 0,
              'CREATE INDEX ledger_accounts_by_torrent ON ledger_accounts (torrent_id)',
              'DO 0')
    FROM information_schema.statistics
    WHERE table_schema = database() AND table_name = 'ledger_accounts' AND index_name = 'ledger_accounts_by_torrent'
);
PREPARE add_index FROM @add_index;
EXECUTE add_index;
DEALLOCATE PREPARE add_index;
