//! The site's own keys in Redis with the whole server: they count beside the database, the whitelist and the verify call
//! (M1 to M4, M11), and the database is copied into keys. All on default settings.

use std::time::Duration;

use domain::{AnnounceEvent, InfoHash, Passkey};
use serde_json::json;
use testkit::{Announce, Family, RedisServer, Server, TorrentFile, VerifyEndpoint, eventually};

const PATIENCE: Duration = Duration::from_secs(60);
const PASSKEY: &str = "0123456789abcdef0123456789abcdef";
/// A torrent that only the site's keys know.
const OF_SITE: InfoHash = InfoHash([0x5a; 20]);
/// First id of users that get no id from a source.
const EXTERNAL_ID: &str = "1000000000";

fn builder(redis: &RedisServer) -> testkit::ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall")).set("redis.url", format!("{:?}", redis.url()))
}

fn refusal(server: &Server, passkey: &Passkey, announce: &Announce) -> Option<String> {
    server.announce(Family::V4, passkey, announce).failure_reason
}

#[track_caller]
fn let_in(server: &Server, passkey: &Passkey, announce: &Announce) {
    eventually(&format!("{passkey} to be let in"), PATIENCE, || {
        refusal(server, passkey, announce).is_none().then_some(())
    });
}

#[track_caller]
fn refused_with(server: &Server, passkey: &Passkey, announce: &Announce, text: &str) {
    eventually(text, PATIENCE, || refusal(server, passkey, announce).filter(|reason| reason.contains(text)));
}

#[track_caller]
fn await_reply(redis: &RedisServer, command: &[&str], expected: &str) {
    eventually(&format!("{command:?} to be {expected}"), PATIENCE, || {
        (redis.cli(command) == expected).then_some(())
    });
}

#[test]
fn m1_m2_m3_w4_every_source_counts_at_once_by_default() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain("a key");
    let server = builder(&redis)
        .set("access.verify_url", format!("{:?}", endpoint.url()))
        .set("access.verify_api_key", "\"a key\"")
        .start();
    let own = server.add_user(1);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &own);
    let of_key: Passkey = PASSKEY.parse().unwrap();
    let listed: Passkey = "aaaaaaaa00000001".parse().unwrap();
    let verified: Passkey = "aaaaaaaa00000002".parse().unwrap();
    redis.cli(&["SET", &format!("t:info_hash:{OF_SITE}"), "12"]);
    redis.cli(&["HSET", &format!("t:user:{of_key}"), "user_id", "7"]);
    redis.cli(&["SADD", "pt:passkeys", &listed.to_string()]);
    endpoint.accept_passkey(verified);
    // Nothing is published: all of it is found.
    for (client, passkey) in [own, of_key, listed, verified].into_iter().enumerate() {
        for hash in [torrent.info_hash(), OF_SITE] {
            let seeder = Announce::seeder(hash, client as u32).with_event(AnnounceEvent::Started);
            let_in(&server, &passkey, &seeder);
        }
    }
    let unknown: Passkey = "bbbbbbbb00000001".parse().unwrap();
    let seeder = Announce::seeder(OF_SITE, 9);
    assert!(refusal(&server, &unknown, &seeder).unwrap().contains("unknown passkey"));

    // The accounts have the site's ids, and nothing became a dead letter.
    await_reply(&redis, &["SISMEMBER", "t:u:7:active", "12"], "1");
    await_reply(&redis, &["SCARD", &format!("t:tpeers:{OF_SITE}")], "4");
    let moved = Announce::seeder(OF_SITE, 1).with_totals(5000, 0, 0);
    let_in(&server, &of_key, &moved);
    eventually("the account to show what was moved", PATIENCE, || {
        (server.cli(&["user", "show", "7"])["uploaded"] == "5000").then_some(())
    });
    assert_eq!(redis.cli(&["XLEN", "tracker:traffic:dlq"]), "0");

    // A prefix counts wherever it is: any one refuses the others, and each source adds to the list.
    redis.cli(&["HSET", "t:whitelist:-XX", "name", "another program"]);
    refused_with(&server, &own, &moved, "client");
    let prefix = String::from_utf8(moved.peer_id.0[..3].to_vec()).unwrap();
    server.cli(&["client", "allow", &prefix]);
    let_in(&server, &own, &moved);
}

#[test]
fn m1_m3_m11_what_the_site_publishes_takes_effect_at_once() {
    let redis = RedisServer::start();
    let (key, hash) = (format!("t:info_hash:{OF_SITE}"), OF_SITE.to_string());
    let user_key = format!("t:user:{PASSKEY}");
    redis.cli(&["HSET", &user_key, "user_id", "7"]);
    let server = builder(&redis).start();
    let passkey: Passkey = PASSKEY.parse().unwrap();
    assert_eq!(server.cli(&["passkey", "check", PASSKEY])["valid"], true);
    let seeder = Announce::seeder(OF_SITE, 1).with_event(AnnounceEvent::Started);
    assert!(refusal(&server, &passkey, &seeder).unwrap().contains("unknown torrent"));

    redis.cli(&["SET", &key, "12"]);
    redis.cli(&["PUBLISH", "t:ch:torrent", &hash]);
    let_in(&server, &passkey, &seeder);
    let moved = seeder.with_event(AnnounceEvent::None).with_totals(0, 0, 0);
    assert_eq!(refusal(&server, &passkey, &moved), None);
    await_reply(&redis, &["ZCARD", &format!("tracker:user:seed:{PASSKEY}")], "1");

    redis.cli(&["SET", "t:whitelist:-XX", "another program"]);
    redis.cli(&["PUBLISH", "t:ch:whitelist", "-XX"]);
    refused_with(&server, &passkey, &moved, "client");
    redis.cli(&["DEL", "t:whitelist:-XX"]);
    redis.cli(&["PUBLISH", "t:ch:whitelist", "-XX"]);
    let_in(&server, &passkey, &moved);

    redis.cli(&["DEL", &key]);
    redis.cli(&["PUBLISH", "t:ch:torrent", &hash]);
    refused_with(&server, &passkey, &moved, "unknown torrent");
    // Its peers have left, for every view.
    await_reply(&redis, &["ZCARD", &format!("tracker:user:seed:{PASSKEY}")], "0");
    redis.cli(&["DEL", &user_key]);
    redis.cli(&["PUBLISH", "t:ch:user", PASSKEY]);
    refused_with(&server, &passkey, &moved, "unknown passkey");
}

#[test]
fn m3_a_user_disabled_in_the_database_stays_refused_despite_a_key() {
    let redis = RedisServer::start();
    let server = builder(&redis).start();
    let passkey = server.add_user(7);
    redis.cli(&["SET", &format!("t:info_hash:{OF_SITE}"), "12"]);
    let seeder = Announce::seeder(OF_SITE, 1);
    let_in(&server, &passkey, &seeder);
    server.cli(&["user", "disable", "7"]);
    // Ours goes with it; then the site writes its own.
    await_reply(&redis, &["EXISTS", &format!("t:user:{passkey}")], "0");
    redis.cli(&["HSET", &format!("t:user:{passkey}"), "user_id", "7"]);
    redis.cli(&["SADD", "pt:passkeys", &passkey.to_string()]);
    redis.cli(&["PUBLISH", "t:ch:user", &passkey.to_string()]);
    refused_with(&server, &passkey, &seeder, "disabled");
    server.cli(&["user", "enable", "7"]);
    let_in(&server, &passkey, &seeder);
    assert_eq!(redis.cli(&["HGET", &format!("t:user:{passkey}"), "user_id"]), "7", "the site's own key");
}

#[test]
fn m3_a_user_removed_from_the_database_is_refused_despite_a_copy() {
    let redis = RedisServer::start();
    let server = builder(&redis).start();
    let passkey = server.add_user(7);
    await_reply(&redis, &["HGET", &format!("t:user:{passkey}"), "user_id"], "7");
    redis.cli(&["SET", &format!("t:info_hash:{OF_SITE}"), "12"]);
    let seeder = Announce::seeder(OF_SITE, 1);
    let_in(&server, &passkey, &seeder);
    server.cli(&["user", "remove", "7"]);
    refused_with(&server, &passkey, &seeder, "unknown passkey");
    await_reply(&redis, &["EXISTS", &format!("t:user:{passkey}")], "0");
}

#[test]
fn m4_users_known_only_by_passkey_are_found_from_redis() {
    let redis = RedisServer::start();
    let server = builder(&redis).start();
    let (one, other): (Passkey, Passkey) =
        ("aaaaaaaa00000001".parse().unwrap(), "aaaaaaaa00000002".parse().unwrap());
    redis.cli(&["SADD", "pt:passkeys", &one.to_string(), &other.to_string()]);
    redis.cli(&["SET", &format!("t:info_hash:{OF_SITE}"), "12"]);
    let_in(&server, &one, &Announce::seeder(OF_SITE, 1));
    await_reply(&redis, &["HGET", &format!("t:user:{one}"), "user_id"], EXTERNAL_ID);
    await_reply(&redis, &["SMEMBERS", &format!("t:u:{EXTERNAL_ID}:active")], "12");
    // Our key does not keep them in.
    redis.cli(&["SREM", "pt:passkeys", &one.to_string()]);
    redis.cli(&["PUBLISH", "t:ch:user", &one.to_string()]);
    refused_with(&server, &one, &Announce::seeder(OF_SITE, 1), "unknown passkey");
    await_reply(&redis, &["EXISTS", &format!("t:user:{one}")], "0");
}

#[test]
fn j3_entries_of_other_programs_count_for_users_and_torrents_known_from_redis_alone() {
    let redis = RedisServer::start();
    let server = builder(&redis).start();
    redis.cli(&["HSET", &format!("t:user:{PASSKEY}"), "user_id", "7"]);
    redis.cli(&["SADD", "pt:passkeys", "aaaaaaaa00000001"]);
    redis.cli(&["SET", &format!("t:info_hash:{OF_SITE}"), "12"]);
    // At once, before any round through the keys.
    for passkey in [PASSKEY, "aaaaaaaa00000001"] {
        let fields = format!(
            "XADD tracker:traffic * passkey {passkey} infohash {OF_SITE} peer_id 2d5858303030312d303030303030303030303031 \
             port 51413 ip 127.0.0.1 af IPv4 du 300 dd 4 left 0 event none ts {} dt 60 interval 1800 min_interval 900",
            redis.cli(&["TIME"]).lines().next().unwrap()
        );
        redis.cli(&fields.split_whitespace().collect::<Vec<_>>());
    }
    for user in ["7", EXTERNAL_ID] {
        eventually("the account to show what was moved", PATIENCE, || {
            let shown = server.try_cli(&["user", "show", user]);
            let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
            (shown["uploaded"] == "300").then_some(())
        });
    }
    await_reply(&redis, &["SISMEMBER", "t:u:7:active", "12"], "1");
    assert_eq!(redis.cli(&["XLEN", "tracker:traffic:dlq"]), "0");
}

#[test]
fn m1_m3_an_unreachable_or_empty_redis_at_the_start_refuses_no_known_user() {
    let mut redis = RedisServer::start();
    redis.kill();
    let server = builder(&redis).start();
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    // Not by `Server::add_torrent`, which waits for a scrape.
    server.cli(&["torrent", "add", "--infohash", &torrent.info_hash().to_string(), "--name", "a file"]);
    let_in(&server, &passkey, &Announce::seeder(torrent.info_hash(), 1));
    refused_with(&server, &passkey, &Announce::seeder(OF_SITE, 1), "cannot be checked right now");
    let stranger: Passkey = PASSKEY.parse().unwrap();
    refused_with(&server, &stranger, &Announce::seeder(OF_SITE, 2), "cannot be checked right now");
    redis.restart();
    redis.cli(&["SET", &format!("t:info_hash:{OF_SITE}"), "12"]);
    redis.cli(&["HSET", &format!("t:user:{PASSKEY}"), "user_id", "9"]);
    let_in(&server, &passkey, &Announce::seeder(OF_SITE, 1));
    let_in(&server, &stranger, &Announce::seeder(OF_SITE, 2));
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
    let await_key = |key: &str, count: &str| await_reply(&redis, &["EXISTS", key], count);
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
fn m1_sync_writes_keys_and_reports_counts() {
    let redis = RedisServer::start();
    // No other program writes the keys here.
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
