-- Torrents that await approval, the newest of them first: the queue of a site's staff.
--
-- The statement can be repeated; MySQL has no CREATE INDEX IF NOT EXISTS.
SET @add_index = (
    SELECT IF(count(*) = 0,
              'CREATE INDEX torrents_by_approval ON torrents (approved, created_at, id)',
              'DO 0')
    FROM information_schema.statistics
    WHERE table_schema = database() AND table_name = 'torrents' AND index_name = 'torrents_by_approval'
);
PREPARE add_index FROM @add_index;
EXECUTE add_index;
DEALLOCATE PREPARE add_index;
