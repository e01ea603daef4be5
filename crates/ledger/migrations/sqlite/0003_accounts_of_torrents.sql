-- Who has an account on a torrent. Not by the time of the latest entry: every announce would have to move it.
CREATE INDEX ledger_accounts_by_torrent ON ledger_accounts (torrent_id);
