-- present_until: when the last client of a user on a torrent is gone, unless it is heard of: the interval that it was told
-- and the grace after its last announce. NULL in rows from before: as long as clients are counted.
-- history: 1 ever announced before having everything, 2 turned out by the site and not back since.
ALTER TABLE ledger_accounts ADD COLUMN present_until BIGINT;
ALTER TABLE ledger_accounts ADD COLUMN history BIGINT NOT NULL DEFAULT 0;
