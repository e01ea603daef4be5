//! Tables with the columns of each profile.

use testkit::servers::{MariaDbServer, PostgresServer};

const UNIT3D: &str = "
CREATE TABLE `groups` (id INT AUTO_INCREMENT PRIMARY KEY, slug VARCHAR(64) NOT NULL, download_slots INT NULL,
    is_immune TINYINT(1) NOT NULL DEFAULT 0, is_freeleech TINYINT(1) NOT NULL DEFAULT 0,
    is_double_upload TINYINT(1) NOT NULL DEFAULT 0);
CREATE TABLE freeleech_tokens (user_id INT UNSIGNED NOT NULL, torrent_id INT UNSIGNED NOT NULL);
CREATE TABLE personal_freeleeches (user_id INT UNSIGNED NOT NULL);
CREATE TABLE featured_torrents (torrent_id INT UNSIGNED NOT NULL);
CREATE TABLE users (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, passkey VARCHAR(64) NOT NULL UNIQUE,
    group_id INT NOT NULL, can_download TINYINT(1) NOT NULL DEFAULT 1, uploaded BIGINT UNSIGNED NOT NULL DEFAULT 0,
    downloaded BIGINT UNSIGNED NOT NULL DEFAULT 0, deleted_at TIMESTAMP NULL);
CREATE TABLE torrents (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, info_hash BINARY(20) NOT NULL,
    status SMALLINT NOT NULL DEFAULT 1, free SMALLINT NOT NULL DEFAULT 0, doubleup TINYINT(1) NOT NULL DEFAULT 0,
    size DOUBLE NOT NULL DEFAULT 0, seeders INT NOT NULL DEFAULT 0,
    leechers INT NOT NULL DEFAULT 0, times_completed INT NOT NULL DEFAULT 0, balance BIGINT NOT NULL DEFAULT 0,
    updated_at TIMESTAMP NULL, deleted_at TIMESTAMP NULL);
CREATE TABLE blacklist_clients (id INT AUTO_INCREMENT PRIMARY KEY, peer_id_prefix VARCHAR(20) NOT NULL);
CREATE TABLE history (user_id INT UNSIGNED NOT NULL, torrent_id INT UNSIGNED NOT NULL, agent VARCHAR(64) NOT NULL,
    uploaded BIGINT UNSIGNED NOT NULL, actual_uploaded BIGINT UNSIGNED NOT NULL, client_uploaded BIGINT UNSIGNED NOT NULL,
    downloaded BIGINT UNSIGNED NOT NULL, actual_downloaded BIGINT UNSIGNED NOT NULL,
    client_downloaded BIGINT UNSIGNED NOT NULL, seeder TINYINT(1) NOT NULL, active TINYINT(1) NOT NULL,
    seedtime BIGINT UNSIGNED NOT NULL DEFAULT 0, immune TINYINT(1) NOT NULL DEFAULT 0, completed_at DATETIME NULL,
    created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL, PRIMARY KEY (user_id, torrent_id),
    FOREIGN KEY (user_id) REFERENCES users (id), FOREIGN KEY (torrent_id) REFERENCES torrents (id));
CREATE TABLE peers (user_id INT UNSIGNED NOT NULL, torrent_id INT UNSIGNED NOT NULL, peer_id BINARY(20) NOT NULL,
    ip VARBINARY(16) NOT NULL, port SMALLINT UNSIGNED NOT NULL, agent VARCHAR(64) NOT NULL,
    uploaded BIGINT UNSIGNED NOT NULL, downloaded BIGINT UNSIGNED NOT NULL, `left` BIGINT UNSIGNED NOT NULL,
    seeder TINYINT(1) NOT NULL, active TINYINT(1) NOT NULL, visible TINYINT(1) NOT NULL, connectable TINYINT(1) NOT NULL,
    created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL, PRIMARY KEY (user_id, torrent_id, peer_id),
    FOREIGN KEY (user_id) REFERENCES users (id), FOREIGN KEY (torrent_id) REFERENCES torrents (id));
INSERT INTO `groups` (id, slug, download_slots) VALUES (1, 'user', NULL), (2, 'banned', NULL), (3, 'leech', 2);
";

const XBT: &str = "
CREATE TABLE xbt_users (uid INT AUTO_INCREMENT PRIMARY KEY, torrent_pass CHAR(32) NOT NULL, can_leech TINYINT NOT NULL
    DEFAULT 1, uploaded BIGINT UNSIGNED NOT NULL DEFAULT 0, downloaded BIGINT UNSIGNED NOT NULL DEFAULT 0);
CREATE TABLE xbt_torrents (tid INT AUTO_INCREMENT PRIMARY KEY, info_hash BINARY(20) NOT NULL, flags INT NOT NULL DEFAULT 0,
    seeders INT NOT NULL DEFAULT 0, leechers INT NOT NULL DEFAULT 0, completed INT NOT NULL DEFAULT 0,
    mtime INT NOT NULL DEFAULT 0);
CREATE TABLE xbt_peers (tid INT NOT NULL, uid INT NOT NULL, active TINYINT NOT NULL, completed INT NOT NULL,
    uploaded BIGINT UNSIGNED NOT NULL, downloaded BIGINT UNSIGNED NOT NULL, `left` BIGINT UNSIGNED NOT NULL,
    mtime INT NOT NULL, PRIMARY KEY (tid, uid));
";

const NEXUSPHP: &str = "
CREATE TABLE users (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, passkey VARCHAR(32) NOT NULL DEFAULT '',
    enabled ENUM('yes','no') NOT NULL DEFAULT 'yes', parked ENUM('yes','no') NOT NULL DEFAULT 'no',
    downloadpos ENUM('yes','no') NOT NULL DEFAULT 'yes', uploaded BIGINT UNSIGNED NOT NULL DEFAULT 0,
    downloaded BIGINT UNSIGNED NOT NULL DEFAULT 0, last_announce_at DATETIME NULL);
CREATE TABLE torrents (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, info_hash BINARY(20) NOT NULL,
    size BIGINT UNSIGNED NOT NULL DEFAULT 0, sp_state TINYINT NOT NULL DEFAULT 1, banned ENUM('yes','no') NOT NULL DEFAULT 'no',
    seeders INT UNSIGNED NOT NULL DEFAULT 0, leechers INT UNSIGNED NOT NULL DEFAULT 0,
    times_completed INT UNSIGNED NOT NULL DEFAULT 0, visible ENUM('yes','no') NOT NULL DEFAULT 'no',
    last_action DATETIME NULL);
CREATE TABLE torrents_state (global_sp_state INT NOT NULL, begin DATETIME NULL, deadline DATETIME NULL);
CREATE TABLE snatched (id INT AUTO_INCREMENT PRIMARY KEY, torrentid INT UNSIGNED NOT NULL, userid INT UNSIGNED NOT NULL,
    ip VARCHAR(64) NOT NULL, port SMALLINT UNSIGNED NOT NULL, uploaded BIGINT UNSIGNED NOT NULL,
    downloaded BIGINT UNSIGNED NOT NULL, to_go BIGINT UNSIGNED NOT NULL, seedtime INT UNSIGNED NOT NULL,
    leechtime INT UNSIGNED NOT NULL, last_action DATETIME NULL, startdat DATETIME NULL, completedat DATETIME NULL,
    finished ENUM('yes','no') NOT NULL, UNIQUE (torrentid, userid));
CREATE TABLE peers (id INT AUTO_INCREMENT PRIMARY KEY, torrent INT UNSIGNED NOT NULL, userid INT UNSIGNED NOT NULL,
    peer_id BINARY(20) NOT NULL, ip VARCHAR(64) NOT NULL, ipv4 VARCHAR(64) NOT NULL, ipv6 VARCHAR(64) NOT NULL,
    port SMALLINT UNSIGNED NOT NULL, connectable ENUM('yes','no') NOT NULL, uploaded BIGINT UNSIGNED NOT NULL,
    downloaded BIGINT UNSIGNED NOT NULL, to_go BIGINT UNSIGNED NOT NULL, started DATETIME NOT NULL,
    last_action DATETIME NOT NULL, prev_action DATETIME NOT NULL, seeder ENUM('yes','no') NOT NULL,
    agent VARCHAR(60) NOT NULL, downloadoffset BIGINT UNSIGNED NOT NULL, uploadoffset BIGINT UNSIGNED NOT NULL,
    passkey VARCHAR(32) NOT NULL, UNIQUE (torrent, peer_id, userid));
";

const PRISMA: &str = r#"
CREATE TABLE users (id SERIAL PRIMARY KEY, passkey TEXT NOT NULL UNIQUE, enabled BOOLEAN NOT NULL DEFAULT TRUE,
    uploaded TEXT NOT NULL DEFAULT '0', downloaded TEXT NOT NULL DEFAULT '0');
CREATE TABLE torrents (id SERIAL PRIMARY KEY, "infoHash" TEXT NOT NULL UNIQUE, enabled BOOLEAN NOT NULL DEFAULT TRUE,
    seeders INT NOT NULL DEFAULT 0, leechers INT NOT NULL DEFAULT 0, completed INT NOT NULL DEFAULT 0);
CREATE TABLE user_torrents ("userId" INT NOT NULL REFERENCES users (id), "torrentId" INT NOT NULL REFERENCES torrents (id),
    uploaded TEXT NOT NULL, downloaded TEXT NOT NULL, "seedingTime" BIGINT NOT NULL, "isSeeding" BOOLEAN NOT NULL,
    "isCompleted" BOOLEAN NOT NULL, "lastAnnounceAt" TIMESTAMP NOT NULL, PRIMARY KEY ("userId", "torrentId"));
CREATE SCHEMA rollcall;
"#;

/// A site's own database, with users and torrents from 1 to `USERS` and `TORRENTS`.
pub struct Site {
    pub profile: &'static str,
    pub url: String,
    name: String,
}

pub const USERS: u64 = 6;
pub const TORRENTS: u64 = 4;

pub fn passkey(user: u64) -> String {
    format!("{user:032x}")
}

impl Site {
    pub fn unit3d() -> Site {
        let site = Site::on_mariadb("unit3d", UNIT3D);
        for user in 1..=USERS {
            site.sql(&format!(
                "INSERT INTO users (id, passkey, group_id) VALUES ({user}, '{}', 1)",
                passkey(user)
            ));
        }
        site.with_torrents("torrents (id, info_hash)")
    }

    pub fn xbt() -> Site {
        let site = Site::on_mariadb("xbt", XBT);
        for user in 1..=USERS {
            site.sql(&format!(
                "INSERT INTO xbt_users (uid, torrent_pass) VALUES ({user}, '{}')",
                passkey(user)
            ));
        }
        site.with_torrents("xbt_torrents (tid, info_hash)")
    }

    pub fn nexusphp() -> Site {
        let site = Site::on_mariadb("nexusphp", NEXUSPHP);
        for user in 1..=USERS {
            site.sql(&format!("INSERT INTO users (id, passkey) VALUES ({user}, '{}')", passkey(user)));
        }
        site.with_torrents("torrents (id, info_hash)")
    }

    pub fn prisma() -> Site {
        let server = PostgresServer::shared();
        let url = server.fresh_database();
        let name = url.rsplit('/').next().unwrap().to_owned();
        let site = Site { profile: "prisma", url, name };
        site.sql(PRISMA);
        for user in 1..=USERS {
            site.sql(&format!("INSERT INTO users (id, passkey) VALUES ({user}, '{}')", passkey(user)));
        }
        for torrent in 1..=TORRENTS {
            let hash = super::info_hash(torrent);
            site.sql(&format!("INSERT INTO torrents (id, \"infoHash\") VALUES ({torrent}, '{hash}')"));
        }
        site
    }

    fn on_mariadb(profile: &'static str, tables: &str) -> Site {
        let server = MariaDbServer::shared();
        server.mariadb("mysql", "CREATE DATABASE IF NOT EXISTS rollcall");
        let url = server.fresh_database();
        let name = url.rsplit('/').next().unwrap().to_owned();
        let site = Site { profile, url, name };
        site.sql(tables);
        site
    }

    fn with_torrents(self, table: &str) -> Site {
        for torrent in 1..=TORRENTS {
            let hash = super::info_hash(torrent);
            self.sql(&format!("INSERT INTO {table} VALUES ({torrent}, UNHEX('{hash}'))"));
        }
        self
    }

    /// Under another address.
    pub fn at(self, url: String) -> Site {
        Site { url, ..self }
    }

    pub fn profile(&self) -> sites::Profile {
        sites::Profile::load(self.profile).unwrap()
    }

    /// Runs SQL as the site would: rows as lines.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        match self.profile {
            "prisma" => PostgresServer::shared().psql(&self.name, sql),
            _ => MariaDbServer::shared().mariadb(&self.name, sql),
        }
    }

    /// Two numbers of one row.
    #[track_caller]
    pub fn pair(&self, sql: &str) -> (u64, u64) {
        let line = self.sql(sql);
        let mut numbers =
            line.split(['\t', '|']).map(|number| number.trim().parse().unwrap_or_else(|_| panic!("{line}")));
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// The totals of a user: uploaded, downloaded.
    #[track_caller]
    pub fn totals(&self, user: u64) -> (u64, u64) {
        self.pair(&match self.profile {
            "xbt" => format!("SELECT uploaded, downloaded FROM xbt_users WHERE uid = {user}"),
            _ => format!("SELECT uploaded, downloaded FROM users WHERE id = {user}"),
        })
    }

    /// What the site has of a user on a torrent; zero without a row.
    #[track_caller]
    pub fn account(&self, user: u64, torrent: u64) -> (u64, u64) {
        let from = match self.profile {
            "unit3d" => {
                format!(
                    "COALESCE(SUM(actual_uploaded), 0), COALESCE(SUM(actual_downloaded), 0) FROM history WHERE user_id = {user} AND torrent_id = {torrent}"
                )
            }
            "xbt" => format!(
                "COALESCE(SUM(uploaded), 0), COALESCE(SUM(downloaded), 0) FROM xbt_peers WHERE uid = {user} AND tid = {torrent}"
            ),
            "nexusphp" => {
                format!(
                    "COALESCE(SUM(uploaded), 0), COALESCE(SUM(downloaded), 0) FROM snatched WHERE userid = {user} AND torrentid = {torrent}"
                )
            }
            _ => format!(
                "COALESCE(SUM(uploaded::NUMERIC), 0), COALESCE(SUM(downloaded::NUMERIC), 0) FROM user_torrents WHERE \"userId\" = {user} AND \"torrentId\" = {torrent}"
            ),
        };
        self.pair(&format!("SELECT {from}"))
    }

    #[track_caller]
    pub fn seeders_and_leechers(&self, torrent: u64) -> (u64, u64) {
        self.pair(&match self.profile {
            "xbt" => format!("SELECT seeders, leechers FROM xbt_torrents WHERE tid = {torrent}"),
            _ => format!("SELECT seeders, leechers FROM torrents WHERE id = {torrent}"),
        })
    }
}
