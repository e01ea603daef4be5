//! The commands for real clients: a file goes from one test user to another.

use std::time::Duration;

use serde_json::Value as Json;
use testkit::process::Process;
use testkit::{Server, eventually, eventually_equal};

use crate::sandbox::{BINARY, PATIENCE, command, make, paste};

/// A download without peers gives up after two minutes.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(180);

/// Runs a command in a shell until the test ends.
fn run_on(command: &str, log: &std::path::Path) -> Process {
    Process::start("sh", ["-c", &format!("exec {command}")], log)
}

#[test]
fn w9_aria2_downloads_what_another_test_user_seeds() {
    let server = Server::builder(BINARY).set("tracker.min_announce_interval_s", 0).start();
    let sandbox = make(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let _seeder = run_on(command(&sandbox, "aria2_seed"), &folder.path().join("seeder.log"));
    let passkey = sandbox["users"][0]["passkey"].as_str().unwrap().parse().unwrap();
    let info_hash = sandbox["torrents"][0]["infohash"].as_str().unwrap().parse().unwrap();
    eventually("the seeder to announce", PATIENCE, || {
        (server.scrape(&passkey, &info_hash).complete > 0).then_some(())
    });
    let mut leecher = run_on(command(&sandbox, "aria2_fetch"), &folder.path().join("leecher.log"));
    assert!(leecher.wait_end(DOWNLOAD_LIMIT).success(), "{}", leecher.log());
    let content = sandbox["torrents"][0]["content"].as_str().unwrap();
    let name = sandbox["torrents"][0]["name"].as_str().unwrap();
    let downloaded = server.data_folder().join("sandbox/downloads").join(name);
    assert!(std::fs::read(content).unwrap() == std::fs::read(downloaded).unwrap());
    eventually_equal(Json::from("262144"), PATIENCE, || {
        server.cli(&["user", "show", "900000002"])["downloaded"].clone()
    });
}

#[test]
fn w9_transmission_seeds_what_is_in_the_sandbox() {
    let server = Server::builder(BINARY).start();
    let sandbox = make(&server, &[]);
    let folder = tempfile::tempdir().unwrap();
    let _client = run_on(command(&sandbox, "transmission_cli_seed"), &folder.path().join("client.log"));
    let passkey = sandbox["users"][0]["passkey"].as_str().unwrap().parse().unwrap();
    let info_hash = sandbox["torrents"][0]["infohash"].as_str().unwrap().parse().unwrap();
    eventually("Transmission to announce as a seeder", PATIENCE, || {
        (server.scrape(&passkey, &info_hash).complete > 0).then_some(())
    });
}

/// The daemon uses Transmission's default port, which may be taken here: only the command line is checked.
#[test]
fn w9_the_printed_daemon_commands_work() {
    let server = Server::builder(BINARY).start();
    let sandbox = make(&server, &[]);
    let output = paste(&format!("{} --dump-settings", command(&sandbox, "transmission_daemon")));
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("\"dht-enabled\": false"), "{said}");
    assert!(command(&sandbox, "transmission_add").contains("/user-900000001/"));
}
