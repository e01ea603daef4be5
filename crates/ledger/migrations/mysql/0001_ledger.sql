-- The ledger: what every user and every torrent moved.
--
-- Amounts are whole bytes, exact far beyond 64 bits. What multipliers add stands apart, in
-- hundredths of a byte (..._x100): a user is credited uploaded + bonus_uploaded_x100 / 100. Times are in seconds since
-- 1970. Numbers of clients, nodes and counters are 64 bits without a sign, kept as signed ones.

-- Repeatable: MariaDB commits at each statement.

CREATE TABLE IF NOT EXISTS ledger_users (
    id BIGINT NOT NULL PRIMARY KEY,
    uploaded DECIMAL(40, 0) NOT NULL DEFAULT 0,
    downloaded DECIMAL(40, 0) NOT NULL DEFAULT 0,
    bonus_uploaded_x100 DECIMAL(40, 0) NOT NULL DEFAULT 0,
    bonus_downloaded_x100 DECIMAL(40, 0) NOT NULL DEFAULT 0,
    seeding_s BIGINT NOT NULL DEFAULT 0,
    leeching_s BIGINT NOT NULL DEFAULT 0,
    completed_count BIGINT NOT NULL DEFAULT 0,
    first_seen BIGINT,
    last_seen BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS ledger_torrents (
    id BIGINT NOT NULL PRIMARY KEY,
    uploaded DECIMAL(40, 0) NOT NULL DEFAULT 0,
    downloaded DECIMAL(40, 0) NOT NULL DEFAULT 0,
    bonus_uploaded_x100 DECIMAL(40, 0) NOT NULL DEFAULT 0,
    bonus_downloaded_x100 DECIMAL(40, 0) NOT NULL DEFAULT 0,
    seeding_s BIGINT NOT NULL DEFAULT 0,
    leeching_s BIGINT NOT NULL DEFAULT 0,
    completed_count BIGINT NOT NULL DEFAULT 0,
    first_seen BIGINT,
    last_seen BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- A user on a torrent. left_bytes, peer_id and client are those of the latest entry.
CREATE TABLE IF NOT EXISTS ledger_accounts (
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    uploaded DECIMAL(40, 0) NOT NULL DEFAULT 0,
    downloaded DECIMAL(40, 0) NOT NULL DEFAULT 0,
    bonus_uploaded_x100 DECIMAL(40, 0) NOT NULL DEFAULT 0,
    bonus_downloaded_x100 DECIMAL(40, 0) NOT NULL DEFAULT 0,
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
    peer_id VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    client VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (user_id, torrent_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- A client of a user on a torrent. presence: 0 gone, 1 seeding, 2 leeching.
CREATE TABLE IF NOT EXISTS ledger_clients (
    user_id BIGINT NOT NULL,
    torrent_id BIGINT NOT NULL,
    client BIGINT NOT NULL,
    presence BIGINT NOT NULL,
    latest_ts BIGINT NOT NULL,
    latest_ms BIGINT NOT NULL,
    latest_seq BIGINT NOT NULL,
    settled_until BIGINT NOT NULL,
    PRIMARY KEY (user_id, torrent_id, client)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- One run of a client, as one node heard it: where its counters were lowest and highest, and when.
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
    PRIMARY KEY (user_id, torrent_id, client, run, node)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Which entries each consumer has applied last: committed together with the amounts.
CREATE TABLE IF NOT EXISTS ledger_consumers (
    name VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    lane VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    fenced BIGINT NOT NULL DEFAULT 0,
    forgotten_at BIGINT,
    applied MEDIUMBLOB NOT NULL,
    applied_max_ms BIGINT NOT NULL DEFAULT 0,
    applied_max_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (name, lane)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Dead letters that were applied, by their origin: wherever they were moved since, they count once.
CREATE TABLE IF NOT EXISTS ledger_letters (
    origin_ms BIGINT NOT NULL,
    origin_seq BIGINT NOT NULL,
    applied_at BIGINT NOT NULL,
    PRIMARY KEY (origin_ms, origin_seq)
) ENGINE = InnoDB;

-- Times in which bytes count more or less than they are. scope: site, torrent or user.
CREATE TABLE IF NOT EXISTS ledger_multipliers (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    scope VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subject BIGINT NOT NULL,
    upload_percent BIGINT NOT NULL,
    download_percent BIGINT NOT NULL,
    starts_at BIGINT NOT NULL,
    ends_at BIGINT,
    note VARCHAR(500) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- One row. multipliers_version: raised whenever a multiplier is added or removed. resume: the last entry that
-- consumers applied which are no longer listed.
CREATE TABLE IF NOT EXISTS ledger_state (
    id BIGINT NOT NULL PRIMARY KEY,
    multipliers_version BIGINT NOT NULL,
    resume_ms BIGINT NOT NULL,
    resume_seq BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

INSERT IGNORE INTO ledger_state VALUES (1, 0, 0, 0);
