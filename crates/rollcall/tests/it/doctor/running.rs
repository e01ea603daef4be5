//! Beside a server that runs: its ports, its journal.

use std::time::Duration;

use serde_json::Value as Json;
use testkit::{Announce, Family, Server, eventually};

use crate::doctor::BINARY;

const PATIENCE: Duration = Duration::from_secs(60);

fn doctor(server: &Server) -> crate::doctor::Report {
    let output = server.try_cli(&["doctor"]);
    let json = serde_json::from_slice(&output.stdout).unwrap();
    crate::doctor::Report { exit_code: output.status.code().unwrap(), json }
}

fn files(server: &Server) -> Vec<(String, u64)> {
    let mut files: Vec<(String, u64)> = std::fs::read_dir(server.data_folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.metadata().unwrap().len()))
        .collect();
    files.sort();
    files
}

/// All that is in a file.
fn dump(server: &Server, name: &str) -> String {
    let path = server.data_folder().join(name);
    let output = std::process::Command::new("sqlite3").arg(&path).arg(".dump").output().unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ports_of_the_running_server_are_not_reported() {
    let server = Server::builder(BINARY).start();
    let report = doctor(&server);
    report.has("ports", "ok", &["tracker.http_addr", "in use, as expected"]);
    report.has("data folder", "ok", &["in use by a server"]);
    assert!(report.find("ports", "problem", &[]).is_none(), "{report:#?}");
    report.is_well("database");
    report.is_well("journal");
}

#[test]
fn what_a_server_left_behind_is_read_and_left_as_it_is() {
    let mut server = Server::builder(BINARY).start();
    let passkey = server.add_user(7);
    let torrent = testkit::TorrentFile::random("payload", 40_000, 1);
    server.add_torrent(&torrent, &passkey);
    server.announce(Family::V4, &passkey, &Announce::seeder(torrent.info_hash(), 1));
    server.cli(&["journal", "pause", "ledger"]);
    assert!(server.stop().success());
    // This also folds the write-ahead logs into the files, as the doctor would.
    let dumps = || ["rollcall.db", "journal.db"].map(|name| dump(&server, name));
    let before = (dumps(), files(&server));
    let report = doctor(&server);
    report.has_warning("journal", &["ledger is paused"], "rollcall journal resume ledger");
    report.has("ports", "ok", &["tracker.http_addr", "free"]);
    report.is_well("database");
    assert!((dumps(), files(&server)) == before, "the doctor changes nothing");
}

/// The last delivered entry does not give the lag: on a quiet site it is old.
#[test]
fn a_group_is_as_far_behind_as_the_oldest_entry_is_old_that_it_has_not_finished() {
    let redis = testkit::RedisServer::start();
    let append =
        |id: &str| redis.cli(&["XADD", "tracker:traffic", id, "passkey", "unknown", "infohash", "nothing"]);
    append("1000-0");
    redis.cli(&["XGROUP", "CREATE", "tracker:traffic", "quiet", "1000-0"]);
    let server = Server::builder(BINARY).set("redis.url", format!("\"{}\"", redis.url())).start();
    append("*");
    let status = server.cli(&["journal", "status"]);
    let quiet = status["groups"].as_array().unwrap().iter().find(|group| group["group"] == "quiet").unwrap();
    assert_eq!(quiet["unread"], 1, "{status:#}");
    assert!(quiet["behind_s"].as_f64().unwrap() < 600.0, "{status:#}");
    let report = doctor(&server);
    report.has("journal", "ok", &["the group quiet is 1 entry"]);
}

/// A malformed entry: the doctor names the command to inspect it.
#[test]
fn dead_letters_and_failed_entries_are_found() {
    let redis = testkit::RedisServer::builder().append_only(testkit::Fsync::EverySecond).start();
    let server = Server::builder(BINARY)
        .set("redis.url", format!("\"{}\"", redis.url()))
        .set("journal.retry_max", 1)
        .set("journal.retry_delay_s", 0)
        .start();
    redis.cli(&["XADD", "tracker:traffic", "*", "passkey", "unknown", "infohash", "nothing"]);
    let failed = |status: &Json| status["failed"].as_u64().unwrap_or(0);
    eventually("the entry to be given up", PATIENCE, || {
        (failed(&server.cli(&["journal", "status"])) > 0).then_some(())
    });
    let report = doctor(&server);
    report.has_problem("journal", &["failed, and not accounted for"], "rollcall failed list");
    report.is_well("redis");
}
