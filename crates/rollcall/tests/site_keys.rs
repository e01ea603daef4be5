//! The site's own keys in Redis with the whole server: believed, or kept as a copy (M1 to M3, M11).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use domain::{AnnounceEvent, Passkey};
use serde_json::json;
use testkit::{Announce, Family, RedisServer, Server, TorrentFile, eventually};

const PATIENCE: Duration = Duration::from_secs(30);
const PASSKEY: &str = "0123456789abcdef0123456789abcdef";

fn builder(redis: &RedisServer) -> testkit::ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall")).set("redis.url", format!("{:?}", redis.url()))
}

fn refusal(server: &Server, passkey: &Passkey, announce: &Announce) -> Option<String> {
    server.announce(Family::V4, passkey, announce).failure_reason
}

#[test]
fn m1_m3_a_site_that_writes_the_keys_itself_is_believed() {
    let redis = RedisServer::start();
    let torrent = TorrentFile::random("a file", 50_000, 1);
    let (key, hash) = (format!("t:info_hash:{}", torrent.info_hash()), torrent.info_hash().to_string());
    let user_key = format!("t:user:{PASSKEY}");
    redis.cli(&["HSET", &user_key, "user_id", "7"]);
    let server = builder(&redis).set("access.source", "\"redis\"").start();
    let passkey: Passkey = PASSKEY.parse().unwrap();
    let seeder = Announce::seeder(torrent.info_hash(), 1).with_event(AnnounceEvent::Started);
    assert!(refusal(&server, &passkey, &seeder).unwrap().contains("unknown torrent"));

    redis.cli(&["SET", &key, "12"]);
    redis.cli(&["PUBLISH", "t:ch:torrent", &hash]);
    eventually("the torrent to be let in", PATIENCE, || {
        refusal(&server, &passkey, &seeder).is_none().then_some(())
    });
    let moved = seeder.with_event(AnnounceEvent::None).with_totals(0, 0, 0);
    assert_eq!(refusal(&server, &passkey, &moved), None);
    eventually("the user to be in the accounts", PATIENCE, || {
        let active = redis.cli(&["ZCARD", &format!("tracker:user:seed:{PASSKEY}")]);
        (active == "1").then_some(())
    });

    // Once any prefix exists, others are refused.
    redis.cli(&["SET", "t:whitelist:-XX", "another program"]);
    redis.cli(&["PUBLISH", "t:ch:whitelist", "-XX"]);
    eventually("the client to be refused", PATIENCE, || {
        refusal(&server, &passkey, &moved).filter(|reason| reason.contains("client"))
    });
    redis.cli(&["DEL", "t:whitelist:-XX"]);
    redis.cli(&["PUBLISH", "t:ch:whitelist", "-XX"]);
    eventually("the client to be let in", PATIENCE, || {
        refusal(&server, &passkey, &moved).is_none().then_some(())
    });

    redis.cli(&["DEL", &key]);
    redis.cli(&["PUBLISH", "t:ch:torrent", &hash]);
    eventually("the torrent to be refused", PATIENCE, || {
        refusal(&server, &passkey, &moved).filter(|reason| reason.contains("unknown torrent"))
    });
    eventually("its peers to have left, as everybody learns", PATIENCE, || {
        let active = redis.cli(&["ZCARD", &format!("tracker:user:seed:{PASSKEY}")]);
        (active == "0").then_some(())
    });
    redis.cli(&["DEL", &user_key]);
    redis.cli(&["PUBLISH", "t:ch:user", PASSKEY]);
    eventually("the user to be refused", PATIENCE, || {
        refusal(&server, &passkey, &moved).filter(|reason| reason.contains("unknown passkey"))
    });
}

#[test]
fn m1_m3_keys_are_a_copy_of_the_database_within_a_second() {
    let redis = RedisServer::start();
    let server = builder(&redis).start();
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &passkey);
    server.cli(&["client", "allow", "-TR", "--name", "Transmission"]);
    let torrent_key = format!("t:info_hash:{}", torrent.info_hash());
    let await_key = |key: &str, count: &str| {
        eventually(key, PATIENCE, || (redis.cli(&["EXISTS", key]) == count).then_some(()));
    };
    await_key(&torrent_key, "1");
    await_key(&format!("t:user:{passkey}"), "1");
    await_key("t:whitelist:-TR", "1");
    assert_eq!(redis.cli(&["HGET", &format!("t:user:{passkey}"), "user_id"]), "7");
    assert_eq!(redis.cli(&["GET", "t:whitelist:-TR"]), "Transmission");
    server.cli(&["passkey", "rotate", "--user", "7", "--passkey", PASSKEY]);
    server.cli(&["torrent", "disable", &torrent.info_hash().to_string()]);
    await_key(&format!("t:user:{passkey}"), "0");
    await_key(&format!("t:user:{PASSKEY}"), "1");
    await_key(&torrent_key, "0");
}

#[test]
fn m1_sync_loads_keys_and_says_what_it_did() {
    let redis = RedisServer::start();
    // Nobody else writes the keys here.
    let server = builder(&redis).roles("tracker,ledger,activity,site").start();
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &passkey);
    let foreign = "t:info_hash:00000000000000000000000000000000000000ff";
    redis.cli(&["SET", foreign, "99"]);
    let report = |written, unchanged, removed, unknown, dry_run| {
        json!({
            "kind": "torrents", "dry_run": dry_run, "wanted": 1, "written": written, "unchanged": unchanged,
            "removed": removed, "unknown": unknown,
        })
    };
    assert_eq!(server.cli(&["torrent", "sync", "--dry-run"]), report(1, 0, 0, 1, true));
    assert_eq!(redis.cli(&["EXISTS", foreign, &format!("t:info_hash:{}", torrent.info_hash())]), "1");
    assert_eq!(server.cli(&["torrent", "sync"]), report(1, 0, 0, 1, false));
    assert_eq!(server.cli(&["torrent", "sync", "--flush"]), report(0, 1, 1, 0, false));
    assert_eq!(redis.cli(&["EXISTS", foreign]), "0");
    assert_eq!(server.cli(&["user", "sync"])["written"], 1);
    assert_eq!(server.cli(&["client", "sync"])["wanted"], 0);
}

#[test]
fn without_redis_there_is_nothing_to_load_into() {
    let server = Server::builder(env!("CARGO_BIN_EXE_rollcall")).start();
    let outcome = server.try_cli(&["torrent", "sync"]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(!outcome.status.success() && said.contains("set redis.url"), "{said}");
}
