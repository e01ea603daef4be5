//! The API against its own description, by a program that knows nothing else: Schemathesis reads `/openapi.json` from
//! the running server, makes up thousands of requests, right and wrong ones, and compares every answer.
//!
//! What it checks, and what it does not and why, stands in `scripts/schemathesis/schemathesis.toml`. No operation is
//! left out: the server is thrown away, and none of them takes a key from its owner.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use domain::AnnounceEvent;
use serde_json::json;
use testkit::{Announce, Api, Family, RedisServer, Server, TorrentFile, eventually};

/// Long enough for a machine that does much else, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// After so many seconds a run hangs.
const RUN_LIMIT_S: &str = "540";

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/schemathesis")
}

/// Where the program is, once it is installed.
fn schemathesis() -> PathBuf {
    let output = Command::new(scripts().join("install.sh")).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// A server without limits on how much is asked.
fn start(redis: &RedisServer) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("redis.url", format!("\"{}\"", redis.url()))
        .set("site.requests_per_key_per_s", 0)
        .set("site.requests_per_address_per_s", 0)
        .set("tracker.min_announce_interval_s", 0)
        .set("journal.retry_delay_s", 3600)
        .start()
}

/// Something of everything that the API can show.
fn bring_to_life(server: &Server, redis: &RedisServer, api: &Api) {
    let passkey = server.add_user(1);
    let other = server.add_user(2);
    let torrent = TorrentFile::random("one", 100_000, 1);
    server.add_torrent(&torrent, &passkey);
    let info_hash = torrent.info_hash();
    let leecher = Announce::leecher(info_hash, 1);
    let seeder = Announce::seeder(info_hash, 2);
    server.announce(
        Family::V4,
        &passkey,
        &leecher.with_totals(0, 0, 100_000).with_event(AnnounceEvent::Started),
    );
    server.announce(Family::V4, &passkey, &leecher.with_totals(10, 60_000, 40_000));
    server.announce(Family::V6, &other, &seeder.with_totals(0, 0, 0).with_event(AnnounceEvent::Started));
    // More than a line can carry: a risk.
    server.announce(Family::V6, &other, &seeder.with_totals(u64::MAX / 4, 0, 0));
    // An entry that the ledger cannot take: a dead letter.
    redis.cli(&["XADD", "tracker:traffic", "*", "passkey", &passkey.to_string(), "du", "none"]);
    api.post("/api/v1/whitelist/add", &json!({"passkeys": ["abcdef0123456789"]})).ok();
    api.post("/api/v1/multipliers", &json!({"scope": "site", "download_percent": 0})).ok();
    api.json("PUT", "/api/v1/clients/-XX", &json!({"allowed": false, "name": "a cheat"})).ok();
    eventually("the accounts, a dead letter and a risk", PATIENCE, || {
        let status = api.get("/api/v1/journal").ok();
        let user = api.get("/api/v1/users/1").ok();
        let is_settled = status["dlq"] != 0 && status["risks"] != 0 && user["leeching"] == 1;
        is_settled.then_some(())
    });
}

#[test]
fn the_api_keeps_its_own_description() {
    let program = schemathesis();
    let redis = RedisServer::start();
    let server = start(&redis);
    let api = server.api(&["admin"]);
    bring_to_life(&server, &redis, &api);
    let person = server.cli(&["token", "1"])["token"].as_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after", "10", RUN_LIMIT_S])
        .arg(program)
        .arg("--config-file")
        .arg(scripts().join("schemathesis.toml"))
        .args(["run", &format!("http://{}/openapi.json", server.site_addr()), "--no-color"])
        .args(["--header", &format!("X-API-Key: {}", api.key().unwrap())])
        .env("PERSON_TOKEN", person)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", scripts())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Where it keeps what it remembers from run to run: nothing, here.
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaint}");
    assert_all_were_asked(&said, &api);
    assert_eq!(api.get("/api/v1/stats").status(), 200, "the run has not locked itself out");
    assert_eq!(server.anonymous_api().get("/api/v1/stats").status(), 401);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

/// Asserts that every operation of the description took part.
#[track_caller]
fn assert_all_were_asked(said: &str, api: &Api) {
    let description = api.get("/openapi.json").ok();
    let paths = description["paths"].as_object().unwrap();
    let operations: usize = paths.values().map(|path| path.as_object().unwrap().len()).sum();
    for line in [format!("Selected: {operations}/{operations}"), format!("Tested: {operations}")] {
        assert!(said.contains(&line), "{line} is missing:\n{said}");
    }
}
