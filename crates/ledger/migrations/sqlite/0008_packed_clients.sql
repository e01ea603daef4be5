-- clients: the clients of a user on a torrent with their runs, packed. Here as text: the columns of the former tables,
-- which the program reads, and replaces by fewer bytes with the next entry.

-- Consumers of older versions, which may still be running, cannot read this, and wait until they are stopped.
UPDATE ledger_consumers SET applied = CAST(x'ffffffffffffffffffff' || applied AS BLOB);

ALTER TABLE ledger_accounts ADD COLUMN clients BLOB NOT NULL DEFAULT x'';

INSERT INTO ledger_accounts (user_id, torrent_id, peer_id, client, clients)
SELECT user_id, torrent_id, '', '', CAST(group_concat(line, '') AS BLOB)
FROM (
    SELECT user_id, torrent_id,
        'c' || client || ' ' || presence || ' ' || latest_ts || ' ' || latest_ms || ' ' || latest_seq || ' '
            || settled_until || ' ' || hex(sums) || ';' AS line
    FROM ledger_clients
    UNION ALL
    SELECT user_id, torrent_id,
        'r' || client || ' ' || run || ' ' || node || ' ' || uploaded_low || ' ' || uploaded_high || ' '
            || downloaded_low || ' ' || downloaded_high || ' ' || first_ts || ' ' || last_ts || ' ' || is_settled || ' '
            || hex(told) || ';'
    FROM ledger_runs
)
GROUP BY user_id, torrent_id
ON CONFLICT (user_id, torrent_id) DO UPDATE SET clients = excluded.clients;

DROP TABLE ledger_clients;
DROP TABLE ledger_runs;
