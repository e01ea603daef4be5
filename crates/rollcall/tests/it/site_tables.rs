//! The tables of an existing site with the whole server (L8).

use std::time::Duration;

use domain::{AnnounceEvent, InfoHash, Passkey};
use testkit::{Announce, Family, MariaDbServer, Server, eventually, eventually_equal};

const TIMEOUT: Duration = Duration::from_secs(60);
const PASSKEY: &str = "0123456789abcdef0123456789abcdef";
const INFO_HASH: InfoHash = InfoHash([0x5a; 20]);

const TABLES: &str = "
CREATE TABLE xbt_users (uid INT PRIMARY KEY, torrent_pass CHAR(32) NOT NULL, can_leech TINYINT NOT NULL DEFAULT 1,
    uploaded BIGINT UNSIGNED NOT NULL DEFAULT 0, downloaded BIGINT UNSIGNED NOT NULL DEFAULT 0);
CREATE TABLE xbt_torrents (tid INT PRIMARY KEY, info_hash BINARY(20) NOT NULL, flags INT NOT NULL DEFAULT 0,
    seeders INT NOT NULL DEFAULT 0, leechers INT NOT NULL DEFAULT 0, completed INT NOT NULL DEFAULT 0,
    mtime INT NOT NULL DEFAULT 0);
CREATE TABLE xbt_peers (tid INT NOT NULL, uid INT NOT NULL, active TINYINT NOT NULL, completed INT NOT NULL,
    uploaded BIGINT UNSIGNED NOT NULL, downloaded BIGINT UNSIGNED NOT NULL, `left` BIGINT UNSIGNED NOT NULL,
    mtime INT NOT NULL, PRIMARY KEY (tid, uid));";

/// Seven lines of nginx and two of configuration: an operator's whole switch.
#[test]
fn l8_a_site_switches_with_two_settings() {
    let database = MariaDbServer::shared();
    database.mariadb("mysql", "CREATE DATABASE IF NOT EXISTS rollcall");
    let url = database.fresh_database();
    let site = |sql: &str| database.mariadb(url.rsplit('/').next().unwrap(), sql);
    site(TABLES);
    site(&format!("INSERT INTO xbt_users (uid, torrent_pass, uploaded) VALUES (7, '{PASSKEY}', 1000)"));
    site(&format!("INSERT INTO xbt_torrents (tid, info_hash) VALUES (12, UNHEX('{INFO_HASH}'))"));
    let mut server = Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("sites.profile", "\"xbt\"")
        .set("sites.database_url", format!("{url:?}"))
        .start();
    let passkey: Passkey = PASSKEY.parse().unwrap();
    let client = Announce::leecher(INFO_HASH, 1);
    eventually("the site's user to be known", TIMEOUT, || {
        let started = client.with_event(AnnounceEvent::Started);
        server.announce(Family::V4, &passkey, &started).failure_reason.is_none().then_some(())
    });
    server.announce(Family::V4, &passkey, &client.with_totals(0, 600_000, 400_000));
    let totals = || site("SELECT uploaded, downloaded FROM xbt_users WHERE uid = 7");
    eventually_equal("1000\t600000".to_owned(), TIMEOUT, totals);
    // Killed with what it has yet to write; the site gives a bonus meanwhile.
    server.announce(
        Family::V4,
        &passkey,
        &client.with_totals(50, 1_000_000, 0).with_event(AnnounceEvent::Completed),
    );
    server.kill();
    site("UPDATE xbt_users SET uploaded = uploaded + 5");
    server.start_again();
    eventually_equal("1055\t1000000".to_owned(), TIMEOUT, totals);
    let counts = || site("SELECT seeders, leechers, completed FROM xbt_torrents");
    eventually_equal("1\t0\t1".to_owned(), TIMEOUT, counts);
    assert_eq!(
        site("SELECT active, completed, uploaded, downloaded, `left` FROM xbt_peers"),
        "1\t1\t50\t1000000\t0"
    );
    let status = server.cli(&["journal", "status"]);
    assert!(status.to_string().contains("\"sites\""), "{status}");
    let checked = server.cli(&["site", "profile", "check"]);
    assert_eq!((checked["profile"].as_str(), checked["fits"].as_bool()), (Some("xbt"), Some(true)));
    site("ALTER TABLE xbt_peers DROP COLUMN mtime");
    let doctor = server.try_cli(&["doctor"]);
    let findings = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(findings.contains("the table xbt_peers has no column mtime"), "{findings}");
}

#[test]
fn l8_profiles_are_printed_and_a_profile_needs_an_address() {
    let server = Server::builder(env!("CARGO_BIN_EXE_rollcall")).start();
    let listed = server.cli(&["site", "profile", "list"]);
    let names: Vec<_> =
        listed["profiles"].as_array().unwrap().iter().map(|row| row["profile"].clone()).collect();
    assert_eq!(names, ["unit3d", "nexusphp", "xbt", "prisma"]);
    let printed = server.cli(&["site", "profile", "print", "xbt"]);
    assert!(printed["toml"].as_str().unwrap().contains("xbt_users"));
    let refused = server.try_cli(&["--set", "sites.profile=xbt", "config", "check"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("set sites.database_url"), "{error}");
}
