-- The ledger: what every user and every torrent moved.
--
-- Amounts are whole bytes, exact far beyond 64 bits. What multipliers add stands apart, in
-- hundredths of a byte (..._x100): a user is credited uploaded + bonus_uploaded_x100 / 100. Times are in seconds since
-- 1970. Numbers of clients, nodes and counters are 64 bits without a sign, kept as signed ones.

CREATE TABLE ledger_users (
    id BIGINT NOT NULL PRIMARY KEY,
    uploaded NUMERIC(40, 0) NOT NULL DEFAULT 0,
    downloaded NUMERIC(40, 0) NOT NULL DEFAULT 0,
    bonus_uploaded_x100 NUMERIC(40, 0) NOT NULL DEFAULT 0,
    bonus_downloaded_x100 NUMERIC(40, 0) NOT NULL DEFAULT 0,
    seeding_s BIGINT NOT NULL DEFAULT 0,
    leeching_s BIGINT NOT NULL DEFAULT 0,
    completed_count BIGINT NOT NULL DEFAULT 0,
    first_seen BIGINT,
    last_seen BIGINT
) WITH (fillfactor = 80);

CREATE TABLE ledger_torrents (
    id BIGINT NOT NULL PRIMARY KEY,
    uploaded NUMERIC(40, 0) NOT NULL DEFAULT 0,
    downloaded NUMERIC(40, 0) NOT NULL DEFAULT 0,
    bonus_uploaded_x100 NUMERIC(40, 0) NOT NULL DEFAULT 0,
    bonus_downloaded_x100 NUMERIC(40, 0) NOT NULL DEFAULT 0,
    seeding_s BIGINT NOT NULL DEFAULT 0,
    leeching_s BIGINT NOT NULL DEFAULT 0,
    completed_count BIGINT NOT NULL DEFAULT 0,
    first_seen BIGINT,
    last_seen BIGINT
) WITH (fillfactor = 80);

-- A user on a torrent. left_bytes, peer_id and client are those of the latest entry.
CREATE TABLE ledger_accounts (
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    uploaded NUMERIC(40, 0) NOT NULL DEFAULT 0,
    downloaded NUMERIC(40, 0) NOT NULL DEFAULT 0,
    bonus_uploaded_x100 NUMERIC(40, 0) NOT NULL DEFAULT 0,
    bonus_downloaded_x100 NUMERIC(40, 0) NOT NULL DEFAULT 0,
    seeding_s BIGINT NOT NULL DEFAULT 0,
    leeching_s BIGINT NOT NULL DEFAULT 0,
    completed_count BIGINT NOT NULL DEFAULT 0,
    first_seen BIGINT,
    last_seen BIGINT,
    left_bytes BIGINT,
    seeding_clients BIGINT NOT NULL DEFAULT 0,
    leeching_clients BIGINT NOT NULL DEFAULT 0,
    completed_at BIGINT,
    latest_ts BIGINT NOT NULL DEFAULT 0,
    latest_ms BIGINT NOT NULL DEFAULT 0,
    latest_seq BIGINT NOT NULL DEFAULT 0,
    peer_id TEXT NOT NULL,
    client TEXT NOT NULL,
    PRIMARY KEY (user_id, torrent_id)
) WITH (fillfactor = 80);

-- A client of a user on a torrent. presence: 0 gone, 1 seeding, 2 leeching.
CREATE TABLE ledger_clients (
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    client BIGINT NOT NULL,
    presence BIGINT NOT NULL,
    latest_ts BIGINT NOT NULL,
    latest_ms BIGINT NOT NULL,
    latest_seq BIGINT NOT NULL,
    settled_until BIGINT NOT NULL,
    PRIMARY KEY (user_id, torrent_id, client)
) WITH (fillfactor = 80);

-- One run of a client, as one node heard it: where its counters were lowest and highest, and when.
CREATE TABLE ledger_runs (
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
    PRIMARY KEY (user_id, torrent_id, client, run, node)
) WITH (fillfactor = 80);

-- Which entries each consumer has applied last: committed together with the amounts.
CREATE TABLE ledger_consumers (
    name TEXT NOT NULL,
    lane TEXT NOT NULL,
    fenced BIGINT NOT NULL DEFAULT 0,
    forgotten_at BIGINT,
    applied BYTEA NOT NULL DEFAULT '',
    applied_max_ms BIGINT NOT NULL DEFAULT 0,
    applied_max_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (name, lane)
) WITH (fillfactor = 80);

-- Dead letters that were applied, by their origin: wherever they were moved since, they count once.
CREATE TABLE ledger_letters (
    origin_ms BIGINT NOT NULL,
    origin_seq BIGINT NOT NULL,
    applied_at BIGINT NOT NULL,
    PRIMARY KEY (origin_ms, origin_seq)
) WITH (fillfactor = 80);

-- Times in which bytes count more or less than they are. scope: site, torrent or user.
CREATE TABLE ledger_multipliers (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope TEXT NOT NULL,
    subject BIGINT NOT NULL,
    upload_percent BIGINT NOT NULL,
    download_percent BIGINT NOT NULL,
    starts_at BIGINT NOT NULL,
    ends_at BIGINT,
    note TEXT NOT NULL
);

-- One row. multipliers_version: raised whenever a multiplier is added or removed. resume: the last entry that
-- consumers applied which are no longer listed.
CREATE TABLE ledger_state (
    id BIGINT NOT NULL PRIMARY KEY,
    multipliers_version BIGINT NOT NULL,
    resume_ms BIGINT NOT NULL,
    resume_seq BIGINT NOT NULL
) WITH (fillfactor = 80);

INSERT INTO ledger_state VALUES (1, 0, 0, 0);
