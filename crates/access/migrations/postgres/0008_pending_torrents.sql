-- Torrents that await approval, the newest of them first: the queue of a site's staff.
CREATE INDEX torrents_by_approval ON torrents (approved, created_at, id);
