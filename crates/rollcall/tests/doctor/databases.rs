//! Databases: away, old, new, careless, damaged.

use testkit::ports::free_port;
use testkit::{MariaDbServer, PostgresServer};

use crate::Patient;

#[test]
fn a_database_that_is_away_is_found() {
    let url = format!("postgres://rollcall:geheim@127.0.0.1:{}/site", free_port());
    let report = Patient::new().set("database.url", url).examine();
    report.has_problem("database", &["cannot be reached"], "database.url");
    assert!(!report.json.to_string().contains("geheim"));
}

#[test]
fn postgresql_is_looked_at_before_and_after_the_first_start_and_stays_as_it_is() {
    let server = PostgresServer::start();
    let patient = Patient::new().set("database.url", server.fresh_database());
    let report = patient.examine();
    report.has("database", "ok", &["PostgreSQL", "is empty"]);
    report.has("database", "ok", &["clock of the database agrees"]);
    assert_eq!(server.psql("test_0", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    patient.run(&["user", "add", "--id", "7"]);
    patient.examine().has("database", "ok", &["up to date"]);
    server.psql("test_0", "UPDATE access_migrations SET version = 999 WHERE version = 1");
    patient.examine().has_problem("database", &["newer rollcall"], "newer");
}

#[test]
fn mariadb_is_looked_at_and_what_it_could_lose_is_told() {
    let server = MariaDbServer::start();
    let patient = Patient::new().set("database.url", server.fresh_database());
    patient.examine().has("database", "ok", &["MariaDB", "is empty"]);
    patient.run(&["user", "add", "--id", "7"]);
    let report = patient.examine();
    report.has("database", "ok", &["up to date"]);
    report.has("database", "ok", &["clock of the database agrees"]);
}

#[test]
fn a_damaged_file_is_found() {
    let patient = Patient::new();
    for id in 1..=50 {
        patient.run(&["user", "add", "--id", &id.to_string()]);
    }
    let path = patient.data().join("rollcall.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 4, "there is something to damage");
    for page in 2..pages {
        bytes[page * 4096..page * 4096 + 64].fill(0x5a);
    }
    std::fs::write(&path, bytes).unwrap();
    let report = patient.examine();
    assert_eq!(report.exit_code, 1, "{report:#?}");
    report.has("database", "problem", &["damaged"]);
}

#[test]
fn a_file_that_is_no_database_is_found() {
    let patient = Patient::new();
    std::fs::create_dir_all(patient.data()).unwrap();
    std::fs::write(patient.data().join("rollcall.db"), "x".repeat(8192)).unwrap();
    patient.examine().has_problem("database", &["is not a SQLite database"], "rollcall doctor");
}
