-- Discounts that an existing site gives. user_id, torrent_id: 0 for all. is_exact: no other discount or multiplier
-- improves on it. ends_at: NULL while it lasts.
--
-- Every statement can be repeated, since one that changes a table commits at once.
CREATE TABLE IF NOT EXISTS ledger_discounts (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    upload_percent BIGINT NOT NULL,
    download_percent BIGINT NOT NULL,
    is_exact BIGINT NOT NULL,
    starts_at BIGINT NOT NULL,
    ends_at BIGINT NULL
) ENGINE=InnoDB;
-- One row. version: raised whenever a discount changes.
CREATE TABLE IF NOT EXISTS ledger_discount_state (
    id BIGINT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
) ENGINE=InnoDB;
INSERT IGNORE INTO ledger_discount_state VALUES (1, 0);
