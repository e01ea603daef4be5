-- clients: the clients of a user on a torrent with their runs, packed. Here as text: the columns of the former tables,
-- which the program reads, and replaces by fewer bytes with the next entry.
--
-- Every statement can be repeated, since one that changes a table commits at once; and MySQL has no ADD COLUMN IF NOT
-- EXISTS.

-- Consumers of older versions, which may still be running, cannot read this, and wait until they are stopped.
UPDATE ledger_consumers SET applied = concat(x'ffffffffffffffffffff', applied)
WHERE left(applied, 10) <> x'ffffffffffffffffffff';

SET @add_column = (
    SELECT IF(count(*) = 0, 'ALTER TABLE ledger_accounts ADD COLUMN clients MEDIUMBLOB NOT NULL', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'ledger_accounts' AND column_name = 'clients'
);
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;

-- Missing if this was interrupted at its end: then the clients are packed.
CREATE TABLE IF NOT EXISTS ledger_clients (
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    client BIGINT NOT NULL,
    presence BIGINT NOT NULL,
    latest_ts BIGINT NOT NULL,
    latest_ms BIGINT NOT NULL,
    latest_seq BIGINT NOT NULL,
    settled_until BIGINT NOT NULL,
    sums VARBINARY(255) NOT NULL DEFAULT '',
    PRIMARY KEY (user_id, torrent_id, client)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS ledger_runs (
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    client BIGINT NOT NULL,
    run BIGINT NOT NULL,
    node BIGINT NOT NULL,
    uploaded_low BIGINT NOT NULL,
    uploaded_high BIGINT NOT NULL,
    downloaded_low BIGINT NOT NULL,
    downloaded_high BIGINT NOT NULL,
    first_ts BIGINT NOT NULL,
    last_ts BIGINT NOT NULL,
    is_settled BIGINT NOT NULL,
    told VARBINARY(255) NOT NULL DEFAULT '',
    PRIMARY KEY (user_id, torrent_id, client, run, node)
) ENGINE = InnoDB;

SET SESSION group_concat_max_len = 16777215;
INSERT INTO ledger_accounts (user_id, torrent_id, peer_id, client, clients)
SELECT user_id, torrent_id, '', '', packed FROM (
    SELECT user_id, torrent_id, group_concat(line SEPARATOR '') AS packed
    FROM (
        SELECT user_id, torrent_id,
            concat('c', client, ' ', presence, ' ', latest_ts, ' ', latest_ms, ' ', latest_seq, ' ', settled_until, ' ',
                hex(sums), ';') AS line
        FROM ledger_clients
        UNION ALL
        SELECT user_id, torrent_id,
            concat('r', client, ' ', run, ' ', node, ' ', uploaded_low, ' ', uploaded_high, ' ', downloaded_low, ' ',
                downloaded_high, ' ', first_ts, ' ', last_ts, ' ', is_settled, ' ', hex(told), ';')
        FROM ledger_runs
    ) AS columns_as_text
    GROUP BY user_id, torrent_id
) AS former
ON DUPLICATE KEY UPDATE clients = IF(ledger_accounts.clients = '', VALUES(clients), ledger_accounts.clients);

DROP TABLE ledger_clients;
DROP TABLE ledger_runs;
