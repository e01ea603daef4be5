-- clients: the clients of a user on a torrent with their runs, packed. Here as text: the columns of the former tables,
-- which the program reads, and replaces by fewer bytes with the next entry.

LOCK TABLE ledger_consumers, ledger_accounts, ledger_clients, ledger_runs IN ACCESS EXCLUSIVE MODE;

-- Consumers of older versions, which may still be running, cannot read this, and wait until they are stopped.
UPDATE ledger_consumers SET applied = '\xffffffffffffffffffff'::BYTEA || applied;

ALTER TABLE ledger_accounts ADD COLUMN clients BYTEA NOT NULL DEFAULT '';

INSERT INTO ledger_accounts (user_id, torrent_id, peer_id, client, clients)
SELECT user_id, torrent_id, '', '', convert_to(string_agg(line, ''), 'UTF8')
FROM (
    SELECT user_id, torrent_id,
        concat('c', client, ' ', presence, ' ', latest_ts, ' ', latest_ms, ' ', latest_seq, ' ', settled_until, ' ',
            encode(sums, 'hex'), ';') AS line
    FROM ledger_clients
    UNION ALL
    SELECT user_id, torrent_id,
        concat('r', client, ' ', run, ' ', node, ' ', uploaded_low, ' ', uploaded_high, ' ', downloaded_low, ' ',
            downloaded_high, ' ', first_ts, ' ', last_ts, ' ', is_settled, ' ', encode(told, 'hex'), ';')
    FROM ledger_runs
) lines
GROUP BY user_id, torrent_id
ON CONFLICT (user_id, torrent_id) DO UPDATE SET clients = excluded.clients;

DROP TABLE ledger_clients;
DROP TABLE ledger_runs;
