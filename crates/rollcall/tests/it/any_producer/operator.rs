//! A stream that was in use before (J11), what is recorded about consumption (J10), and views that agree (A4, M8).

use domain::clock::{Clock, SystemClock};
use serde_json::Value as Json;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{RedisServer, eventually, eventually_equal};

use crate::any_producer::foreign_writer::{site, write};
use crate::any_producer::script::{Entry, now};
use crate::site::{DatabaseKind, PATIENCE, Site, builder};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn uploaded(site: &Site, user: u64) -> Json {
    site.server.cli(&["user", "show", &user.to_string()])["uploaded"].clone()
}

/// The state of the ledger's group.
fn group(site: &Site) -> Json {
    let status = site.status();
    let groups = status["groups"].as_array().unwrap();
    groups.iter().find(|group| group["view"] == "ledger").cloned().unwrap_or_default()
}

fn used_before(redis: &RedisServer) {
    let old = Entry::new(1, 1, 1).with("du", 1000);
    for (age_ms, ts) in [(28 * 60 * 60 * 1000, now() - 28 * 3600), (DAY_MS, now() - 24 * 3600)] {
        let id = format!(" {}-0 ", SystemClock.now_ms() - age_ms);
        let replies = redis.cli_lines(&old.clone().with("ts", ts).command().replacen(" * ", &id, 1));
        assert!(replies.contains('-'), "{replies}");
    }
    redis.cli_lines(&old.command());
}

fn register(site: &Site) {
    site.server.cli(&["user", "add", "--id", "1", "--passkey", &passkey_of(1).to_string()]);
    let info_hash = info_hash_of(1).to_string();
    site.server.cli(&["torrent", "add", "--infohash", &info_hash, "--name", "one", "--id", "1"]);
}

#[test]
fn j11_a_first_start_on_a_used_stream_credits_only_what_came_since() {
    let redis = RedisServer::start();
    used_before(&redis);
    let site = Site::start(builder(), Some(redis), DatabaseKind::Sqlite);
    register(&site);
    write(&site, [&Entry::new(1, 1, 1).with("du", 7)]);
    eventually_equal(Json::from("7"), PATIENCE, || uploaded(&site, 1));
    site.settle();
    assert_eq!(uploaded(&site, 1), "7");
    assert_eq!(group(&site)["skipped"], 3);
    assert_eq!(site.status()["dlq"], 0, "what is skipped is no dead letter");
    site.wait_logged(&[
        "older than this installation were skipped",
        "\"count\":3",
        "rollcall journal rewind ledger --from-start",
    ]);

    // An operator takes them after all, once.
    assert_eq!(site.server.cli(&["journal", "rewind", "ledger", "--from-start"])["taken"], 3);
    eventually_equal(Json::from("3007"), PATIENCE, || uploaded(&site, 1));
    assert!(!site.server.try_cli(&["journal", "rewind", "ledger", "--from-start"]).status.success());
    assert_eq!(group(&site)["skipped"], 0);

    site.server.cli(&["journal", "pause", "ledger"]);
    site.server.cli(&["journal", "resume", "ledger"]);
    let trail = site.server.cli(&["audit", "list", "--limit", "100"]);
    let records = trail["entries"].as_array().unwrap();
    let actor = |action: &str| {
        let record = records.iter().find(|record| record["action"] == action);
        record.unwrap_or_else(|| panic!("{action} in {trail:#}"))["actorId"].as_str().unwrap().to_owned()
    };
    assert_eq!(actor("group.create"), "rollcall");
    for action in ["journal.rewind", "journal.pause", "journal.resume"] {
        assert!(actor(action).starts_with("cli:"), "{action}");
    }
}

#[test]
fn j11_entries_written_before_the_accounts_are_kept_count_if_the_database_was_there() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let database = format!("\"sqlite:{}\"", folder.path().join("site.db").display());
    let builder = builder().set("database.url", database).roles("tracker");
    let site = Site::start(builder, Some(redis), DatabaseKind::Sqlite);
    register(&site);
    write(&site, [&Entry::new(1, 1, 1).with("du", 7)]);
    // The role that credits starts last, and for the first time.
    let _ledger = site.server.companion("accounts", "ledger");
    eventually_equal(Json::from("7"), PATIENCE, || uploaded(&site, 1));
}

#[test]
fn j11_another_program_in_our_group_is_reported() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    site.settle();
    site.redis().cli(&["XGROUP", "CREATECONSUMER", "tracker:traffic", "ztorrent", "consumer-1"]);
    eventually("it to be reported", PATIENCE, || {
        let is_seen = group(&site)["foreign_consumers"] == serde_json::json!(["consumer-1"]);
        let log = site.server.log();
        (is_seen && log.contains("another program reads in this view's group")).then_some(())
    });
    let findings = site.server.try_cli(&["doctor"]);
    let findings = String::from_utf8(findings.stdout).unwrap();
    assert!(findings.contains("another program consumes in the group ztorrent: consumer-1"), "{findings}");
}

#[test]
fn j7_what_was_registered_just_before_a_replay_counts() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    for round in 0..4_u64 {
        let info_hash = format!("{round:02x}").repeat(20);
        write(&site, [&Entry::new(1, 1, 1).with("infohash", &info_hash).with("du", 1000)]);
        eventually_equal(Json::from(1), PATIENCE, || site.status()["dlq"].clone());
        site.server.cli(&["torrent", "add", "--infohash", &info_hash, "--name", "forgotten"]);
        assert_eq!(site.server.cli(&["dlq", "replay", "--all"])["replayed"], 1);
        eventually_equal(Json::from(((round + 1) * 1000).to_string()), PATIENCE, || uploaded(&site, 1));
        eventually_equal(Json::from(0), PATIENCE, || site.status()["dlq"].clone());
    }
}

/// State of user 1 on torrent 1 in each view: lists, accounts, key of the peer.
fn seen(site: &Site, torrent: u64) -> [bool; 4] {
    let accounts = site.server.cli(&["user", "torrents", "1"]);
    let accounts = accounts["accounts"].as_array().unwrap();
    let account = accounts.iter().find(|account| account["torrent"] == torrent).unwrap();
    let infohash = info_hash_of(torrent).to_string();
    let listed = site.server.cli(&["user", "seeding", "1"]).to_string().contains(&infohash);
    let score = site.redis().cli(&["ZSCORE", &format!("tracker:user:seed:{}", passkey_of(1)), &infohash]);
    let entry = Entry::new(1, torrent, 1);
    let active = site.redis().cli(&["HGET", &format!("t:p:{torrent}:{}", entry.get("peer_id")), "active"]);
    [listed, !score.is_empty(), account["seeding"] == true, active == "1"]
}

#[test]
fn a4_views_agree_on_the_expiry_of_a_peer_with_a_longer_interval() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    let ago = |torrent, ago_s: u64, interval: u64| {
        Entry::new(1, torrent, 1).with("left", 0).with("ts", now() - ago_s).with("interval", interval)
    };
    // Interval and grace are 7800 s for the first three, and 2400 s for the last two.
    let entries =
        [ago(1, 60, 7200), ago(2, 3000, 7200), ago(3, 7900, 7200), ago(4, 2000, 1800), ago(5, 2500, 1800)];
    write(&site, &entries);
    site.settle();
    for (torrent, is_there) in [(1, true), (2, true), (3, false), (4, true), (5, false)] {
        eventually_equal([is_there; 4], PATIENCE, || seen(&site, torrent));
    }
    // The sorted set holds the time of the last announce, for programs that go by it.
    let infohash = info_hash_of(2).to_string();
    let score = site.redis().cli(&["ZSCORE", &format!("tracker:user:seed:{}", passkey_of(1)), &infohash]);
    assert_eq!(score, entries[1].get("ts"));
}

#[test]
fn m8_m11_hit_and_run_is_one_rule_for_redis_the_api_and_the_command() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    let leeches = |torrent| Entry::new(1, torrent, 1).with("event", "started").with("dt", 0);
    // Left at once; left as a seeder that never leeched; still there.
    let gone = leeches(1).with("event", "stopped").with("dt", 1).with("ts", now() + 1);
    let seeder = Entry::new(1, 2, 1).with("left", 0).with("event", "stopped");
    write(&site, [&leeches(1), &gone, &seeder, &leeches(3)]);
    site.settle();
    eventually_equal("1".to_owned(), PATIENCE, || site.redis().cli(&["SMEMBERS", "t:u:1:hnr"]));
    let by_command = site.server.cli(&["user", "hit-and-runs", "1"]);
    let by_command = by_command["hit_and_runs"].as_array().unwrap();
    let by_api = site.server.api(&["read"]).get("/api/v1/users/1/hit-and-runs").ok();
    let expected = [(1, "hit_and_run"), (3, "owing")];
    let command: Vec<_> = by_command
        .iter()
        .map(|one| (one["torrent"].as_u64().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    let by_api = by_api["items"].as_array().unwrap();
    let api: Vec<_> = by_api
        .iter()
        .map(|one| (one["account"]["torrent"].as_u64().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    assert_eq!((command.as_slice(), api.as_slice()), (expected.as_slice(), expected.as_slice()));
}

#[test]
fn j5_an_entry_from_the_future_is_one_dead_letter_and_in_no_view() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    write(&site, [&Entry::new(1, 1, 1).with("left", 0).with("du", 5).with("ts", now() + 90)]);
    eventually_equal(Json::from(1), PATIENCE, || site.status()["dlq"].clone());
    site.settle();
    let shown = site.server.cli(&["user", "show", "1"]);
    assert_eq!((&shown["seeding"], &shown["leeching"]), (&0.into(), &0.into()), "{shown:#}");
    assert_eq!(site.redis().cli(&["KEYS", "t:p:*"]), "");
    assert_eq!(site.sql("SELECT count(*) FROM ledger_accounts").trim(), "0");
}
