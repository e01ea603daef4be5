//! Databases: unreachable, older, newer, not durable, damaged.

use testkit::ports::free_port;
use testkit::{MariaDbServer, PostgresServer};

use crate::doctor::Installation;

#[test]
fn a_database_that_is_away_is_found() {
    let url = format!("postgres://rollcall:geheim@127.0.0.1:{}/site", free_port());
    let report = Installation::new().set("database.url", url).doctor();
    report.has_problem("database", &["cannot be reached"], "database.url");
    assert!(!report.json.to_string().contains("geheim"));
}

#[test]
fn postgresql_is_looked_at_before_and_after_the_first_start_and_stays_as_it_is() {
    let server = PostgresServer::start();
    let installation = Installation::new().set("database.url", server.fresh_database());
    let report = installation.doctor();
    report.has("database", "ok", &["PostgreSQL", "is empty"]);
    report.has("database", "ok", &["clock of the database agrees"]);
    assert_eq!(server.psql("test_0", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    installation.run(&["user", "add", "--id", "7"]);
    installation.doctor().has("database", "ok", &["its schema is current"]);
    server.psql("test_0", "UPDATE access_migrations SET version = 999 WHERE version = 1");
    installation.doctor().has_problem("database", &["newer rollcall"], "newer");
}

#[test]
fn mariadb_is_checked_including_durability() {
    let server = MariaDbServer::start();
    let installation = Installation::new().set("database.url", server.fresh_database());
    installation.doctor().has("database", "ok", &["MariaDB", "is empty"]);
    installation.run(&["user", "add", "--id", "7"]);
    let report = installation.doctor();
    report.has("database", "ok", &["its schema is current"]);
    report.has("database", "ok", &["clock of the database agrees"]);
}

#[test]
fn a_damaged_file_is_found() {
    let installation = Installation::new();
    for id in 1..=50 {
        installation.run(&["user", "add", "--id", &id.to_string()]);
    }
    let path = installation.data().join("rollcall.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 4, "there is something to damage");
    for page in 2..pages {
        bytes[page * 4096..page * 4096 + 64].fill(0x5a);
    }
    std::fs::write(&path, bytes).unwrap();
    let report = installation.doctor();
    assert_eq!(report.exit_code, 1, "{report:#?}");
    report.has("database", "problem", &["damaged"]);
}

#[test]
fn a_file_that_is_no_database_is_found() {
    let installation = Installation::new();
    std::fs::create_dir_all(installation.data()).unwrap();
    std::fs::write(installation.data().join("rollcall.db"), "x".repeat(8192)).unwrap();
    installation.doctor().has_problem("database", &["is not a SQLite database"], "rollcall doctor");
}
