-- The ledger: what every user and every torrent moved.
--
-- Amounts are whole bytes, exact far beyond 64 bits, and kept as text. What multipliers add stands apart, in
-- hundredths of a byte (..._x100): a user is credited uploaded + bonus_uploaded_x100 / 100. Times are in seconds since
-- 1970. Numbers of clients, nodes and counters are 64 bits without a sign, kept as signed ones.

CREATE TABLE ledger_users (
    id INTEGER NOT NULL PRIMARY KEY,
    uploaded TEXT NOT NULL DEFAULT '0',
    downloaded TEXT NOT NULL DEFAULT '0',
    bonus_uploaded_x100 TEXT NOT NULL DEFAULT '0',
    bonus_downloaded_x100 TEXT NOT NULL DEFAULT '0',
    seeding_s INTEGER NOT NULL DEFAULT 0,
    leeching_s INTEGER NOT NULL DEFAULT 0,
    completed_count INTEGER NOT NULL DEFAULT 0,
    first_seen INTEGER,
    last_seen INTEGER
);

CREATE TABLE ledger_torrents (
    id INTEGER NOT NULL PRIMARY KEY,
    uploaded TEXT NOT NULL DEFAULT '0',
    downloaded TEXT NOT NULL DEFAULT '0',
    bonus_uploaded_x100 TEXT NOT NULL DEFAULT '0',
    bonus_downloaded_x100 TEXT NOT NULL DEFAULT '0',
    seeding_s INTEGER NOT NULL DEFAULT 0,
    leeching_s INTEGER NOT NULL DEFAULT 0,
    completed_count INTEGER NOT NULL DEFAULT 0,
    first_seen INTEGER,
    last_seen INTEGER
);

-- A user on a torrent. left_bytes, peer_id and client are those of the latest entry.
CREATE TABLE ledger_accounts (
    user_id INTEGER NOT NULL,
    torrent_id INTEGER NOT NULL,
    uploaded TEXT NOT NULL DEFAULT '0',
    downloaded TEXT NOT NULL DEFAULT '0',
    bonus_uploaded_x100 TEXT NOT NULL DEFAULT '0',
    bonus_downloaded_x100 TEXT NOT NULL DEFAULT '0',
    seeding_s INTEGER NOT NULL DEFAULT 0,
    leeching_s INTEGER NOT NULL DEFAULT 0,
    completed_count INTEGER NOT NULL DEFAULT 0,
    first_seen INTEGER,
    last_seen INTEGER,
    left_bytes INTEGER,
    seeding_clients INTEGER NOT NULL DEFAULT 0,
    leeching_clients INTEGER NOT NULL DEFAULT 0,
    completed_at INTEGER,
    latest_ts INTEGER NOT NULL DEFAULT 0,
    latest_ms INTEGER NOT NULL DEFAULT 0,
    latest_seq INTEGER NOT NULL DEFAULT 0,
    peer_id TEXT NOT NULL,
    client TEXT NOT NULL,
    PRIMARY KEY (user_id, torrent_id)
) WITHOUT ROWID;

-- A client of a user on a torrent. presence: 0 gone, 1 seeding, 2 leeching.
CREATE TABLE ledger_clients (
    user_id INTEGER NOT NULL,
    torrent_id INTEGER NOT NULL,
    client INTEGER NOT NULL,
    presence INTEGER NOT NULL,
    latest_ts INTEGER NOT NULL,
    latest_ms INTEGER NOT NULL,
    latest_seq INTEGER NOT NULL,
    settled_until INTEGER NOT NULL,
    PRIMARY KEY (user_id, torrent_id, client)
) WITHOUT ROWID;

-- One run of a client, as one node heard it: where its counters were lowest and highest, and when.
CREATE TABLE ledger_runs (
    user_id INTEGER NOT NULL,
    torrent_id INTEGER NOT NULL,
    client INTEGER NOT NULL,
    run INTEGER NOT NULL,
    node INTEGER NOT NULL,
    uploaded_low INTEGER NOT NULL,
    uploaded_high INTEGER NOT NULL,
    downloaded_low INTEGER NOT NULL,
    downloaded_high INTEGER NOT NULL,
    first_ts INTEGER NOT NULL,
    last_ts INTEGER NOT NULL,
    is_settled INTEGER NOT NULL,
    PRIMARY KEY (user_id, torrent_id, client, run, node)
) WITHOUT ROWID;

-- Which entries each consumer has applied last: committed together with the amounts.
CREATE TABLE ledger_consumers (
    name TEXT NOT NULL,
    lane TEXT NOT NULL,
    fenced INTEGER NOT NULL DEFAULT 0,
    forgotten_at INTEGER,
    applied BLOB NOT NULL DEFAULT x'',
    applied_max_ms INTEGER NOT NULL DEFAULT 0,
    applied_max_seq INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, lane)
);

-- Dead letters that were applied, by their origin: wherever they were moved since, they count once.
CREATE TABLE ledger_letters (
    origin_ms INTEGER NOT NULL,
    origin_seq INTEGER NOT NULL,
    applied_at INTEGER NOT NULL,
    PRIMARY KEY (origin_ms, origin_seq)
);

-- Times in which bytes count more or less than they are. scope: site, torrent or user.
CREATE TABLE ledger_multipliers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    subject INTEGER NOT NULL,
    upload_percent INTEGER NOT NULL,
    download_percent INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER,
    note TEXT NOT NULL
);

-- One row. multipliers_version: raised whenever a multiplier is added or removed. resume: the last entry that
-- consumers applied which are no longer listed.
CREATE TABLE ledger_state (
    id INTEGER NOT NULL PRIMARY KEY,
    multipliers_version INTEGER NOT NULL,
    resume_ms INTEGER NOT NULL,
    resume_seq INTEGER NOT NULL
);

INSERT INTO ledger_state VALUES (1, 0, 0, 0);
