-- Discounts that an existing site gives. user_id, torrent_id: 0 for all. is_exact: no other discount or multiplier
-- improves on it. ends_at: NULL while it lasts.
CREATE TABLE ledger_discounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    torrent_id INTEGER NOT NULL,
    upload_percent INTEGER NOT NULL,
    download_percent INTEGER NOT NULL,
    is_exact INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER
);
-- One row. version: raised whenever a discount changes.
CREATE TABLE ledger_discount_state (
    id INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
);
INSERT INTO ledger_discount_state VALUES (1, 0);
