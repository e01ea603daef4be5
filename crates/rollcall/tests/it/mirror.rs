//! The mirror: keys `t:*` in Redis (M4 to M11), kept by the real program.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::{AnnounceEvent, Passkey};
use testkit::{
    Announce, Family, RedisCluster, RedisServer, Server, ServerBuilder, TorrentFile, eventually, http,
};

const PATIENCE: Duration = Duration::from_secs(60);

fn builder(redis_url: &str) -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("redis.url", format!("\"{redis_url}\""))
        .set("tracker.min_announce_interval_s", 0)
}

#[track_caller]
fn wait_for(what: &str, mut found: impl FnMut() -> String, expected: &str) {
    eventually(&format!("{what} to be {expected:?}"), PATIENCE, || (found() == expected).then_some(()));
}

fn counts(cli: &dyn Fn(&[&str]) -> String, key: &str) -> String {
    cli(&["HMGET", key, "announces", "leechers", "seeders", "snatches"]).replace('\n', " ")
}

#[test]
fn m4_to_m10_a_site_finds_what_clients_do() {
    let redis = RedisServer::start();
    let mut server = builder(&redis.url()).set("site.metrics_open", true).start();
    let cli = |args: &[&str]| redis.cli(args);
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &passkey);
    let id = server.cli(&["torrent", "list"])["torrents"][0]["id"].to_string();
    let key = format!("t:t:{}", torrent.info_hash());

    let client = Announce::leecher(torrent.info_hash(), 1);
    server.announce(Family::V4, &passkey, &client.with_event(AnnounceEvent::Started));
    wait_for("the counts", || counts(&cli, &key), "1 1 0 0");
    let finished = client.with_totals(100, 50_000, 0);
    server.announce(Family::V4, &passkey, &finished.with_event(AnnounceEvent::Completed));
    wait_for("the counts", || counts(&cli, &key), "2 0 1 1");
    wait_for("the index", || cli(&["ZSCORE", "t:i:seeders", &id]), "1");
    assert_eq!(cli(&["SMEMBERS", "t:u:7:complete"]), id);
    let peer_id = cli(&["SMEMBERS", &format!("t:tpeers:{}", torrent.info_hash())]);
    let left_s: u32 = cli(&["TTL", &format!("t:ptimeout:{id}:{peer_id}")]).parse().unwrap();
    assert!(left_s > 2000 && left_s <= 2410, "{left_s}");
    server.scrape(&passkey, &torrent.info_hash());
    let number = |key: &str| cli(&["GET", key]).parse::<u64>().unwrap_or(0);
    eventually("scrapes and requests to be counted", PATIENCE, || {
        let (scrapes, requests) = (number("t:stats:scrapes"), number("t:stats:requests"));
        (scrapes >= 1 && requests >= scrapes + 2).then_some(())
    });

    // Killed and started again: what was written stays, what comes is added.
    server.kill();
    server.start_again();
    server.announce(Family::V4, &passkey, &finished.with_event(AnnounceEvent::Stopped));
    wait_for("the counts", || counts(&cli, &key), "3 0 0 1");
    wait_for("the statistics", || cli(&["GET", "t:stats:seeders"]), "0");
    wait_for("the set", || cli(&["SMEMBERS", "t:u:7:active"]), "");

    let page = String::from_utf8(http::get(server.site_addr(), "/metrics").body).unwrap();
    for sample in ["rollcall_redis_mirror_active 1", "rollcall_redis_mirror_repaired_total 0"] {
        assert!(page.lines().any(|line| line == sample), "{sample} in:\n{page}");
    }
    assert!(page.contains("rollcall_view_applied_total{view=\"mirror\"}"), "{page}");
    // It can be paused like any view.
    server.cli(&["journal", "pause", "mirror"]);
}

/// An entry of another producer, with the fourteen fields and nothing else.
fn entry(passkey: &Passkey, info_hash: &str, peer_id: &str) -> Vec<String> {
    let now = SystemClock.now().to_string();
    let fields = [
        ("passkey", passkey.to_string()),
        ("infohash", info_hash.to_owned()),
        ("peer_id", peer_id.to_owned()),
        ("port", "6881".to_owned()),
        ("ip", "192.0.2.7".to_owned()),
        ("af", "IPv4".to_owned()),
        ("du", "1000".to_owned()),
        ("dd", "0".to_owned()),
        ("left", "0".to_owned()),
        ("event", "started".to_owned()),
        ("ts", now),
        ("dt", "0".to_owned()),
        ("interval", "1".to_owned()),
        ("min_interval", "1".to_owned()),
    ];
    let pairs = fields.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    ["XADD", "tracker:traffic", "*"].map(str::to_owned).into_iter().chain(pairs).collect()
}

/// Another producer writes and no tracker runs: silent peers still leave every view.
fn zombies_are_reaped(redis_url: &str, cli: &dyn Fn(&[&str]) -> String, spell: &dyn Fn(&str, u64) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("\"sqlite:{}\"", folder.path().join("site.db").display());
    let builder = builder(redis_url).set("database.url", database).set("mirror.reap_after_s", 2);
    let builder = builder.set("tracker.peer_grace_s", 0);
    let mut server = builder.roles("tracker").start();
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &passkey);
    let id = server.cli(&["torrent", "list"])["torrents"][0]["id"].as_u64().unwrap();
    let _views = server.companion("views", "ledger,activity,mirror");
    server.kill();

    let info_hash = torrent.info_hash().to_string();
    let peer_id = "2d5452333030302d303030303030303030303031";
    let words = entry(&passkey, &info_hash, peer_id);
    cli(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let counts_key = spell("t:t", id).replace("<infohash>", &info_hash);
    let peer_key = format!("{}:{peer_id}", spell("t:p", id));
    wait_for("the counts", || counts(cli, &counts_key), "1 0 1 0");
    // The timeout runs out after two seconds; the message, or the sweep, ends the peer by an entry.
    wait_for("the peer", || cli(&["HGET", &peer_key, "active"]), "0");
    assert_eq!(counts(cli, &counts_key), "1 0 0 0");
    assert_eq!(cli(&["HGET", &peer_key, "total_time"]), "0");
    let told = cli(&["XREVRANGE", "tracker:traffic", "+", "-", "COUNT", "1"]);
    let told: Vec<&str> = told.lines().collect();
    for pair in [["event", "stopped"], ["cause", "timeout"], ["du", "0"], ["user", "7"]] {
        assert!(told.windows(2).any(|found| found == pair), "{pair:?} in {told:?}");
    }
    eventually("the lists to be empty", PATIENCE, || {
        let shown = server.cli(&["user", "show", "7"]);
        (shown["seeding"] == 0 && shown["uploaded"] == "1000").then_some(())
    });
    let uploads = cli(&["XLEN", "tracker:traffic"]);
    assert_eq!(uploads, "2", "the announce and its end, nothing else");
}

#[test]
fn m6_zombies_of_another_producer_are_reaped_without_any_tracker() {
    let redis = RedisServer::start();
    let spell = |kind: &str, id: u64| match kind {
        "t:t" => "t:t:<infohash>".to_owned(),
        kind => format!("{kind}:{id}"),
    };
    zombies_are_reaped(&redis.url(), &|args| redis.cli(args), &spell);
}

#[test]
fn m6_zombies_are_reaped_on_a_cluster_too() {
    let cluster = RedisCluster::start();
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    let spell = |kind: &str, id: u64| match kind {
        "t:t" => format!("t:t:{{{id}}}:<infohash>"),
        kind => format!("{kind}:{{{id}}}"),
    };
    zombies_are_reaped(&url, &|args| cluster.cli(args), &spell);
}

/// Everything that Redis publishes on the channel of expired peers, and about the keys that expire with them.
struct Published {
    lines: BufReader<TcpStream>,
    seen: Vec<String>,
}

impl Published {
    fn subscribe(redis: &RedisServer) -> Published {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"SUBSCRIBE t:ch:expired\r\nPSUBSCRIBE __keyspace@0__:t:ptimeout:*\r\n").unwrap();
        let mut published = Published { lines: BufReader::new(stream), seen: Vec::new() };
        published.read_until("psubscribe");
        published
    }

    /// Reads up to a line, and returns everything that was read.
    fn read_until(&mut self, expected: &str) -> &[String] {
        while self.seen.last().is_none_or(|line| line != expected) {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            self.seen.push(line.trim_end().to_owned());
        }
        &self.seen
    }
}

#[test]
fn m6_m11_the_timeout_expires_and_is_published_while_the_tracker_itself_notices_the_silence() {
    let redis = RedisServer::start();
    let builder = builder(&redis.url()).set("tracker.announce_interval_s", 2).set("tracker.peer_grace_s", 1);
    let server = builder.start();
    let mut published = Published::subscribe(&redis);
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &passkey);
    let client = Announce::leecher(torrent.info_hash(), 1);
    server.announce(Family::V4, &passkey, &client.with_event(AnnounceEvent::Started));
    let peers = format!("t:tpeers:{}", torrent.info_hash());
    let peer_id = eventually("the peer to be there", PATIENCE, || {
        Some(redis.cli(&["SMEMBERS", &peers])).filter(|peer_id| !peer_id.is_empty())
    });
    // The message of the channel; then the event of Redis itself, which may come first.
    let seen = published.read_until(&format!("1:{peer_id}"));
    assert!(!seen.iter().any(|line| line == "del"), "{seen:?}");
    assert_eq!(redis.cli(&["HGET", &format!("t:p:1:{peer_id}"), "active"]), "0");
    assert_eq!(redis.cli(&["SMEMBERS", "t:u:7:active"]), "");
    if !seen.iter().any(|line| line == "expired") {
        published.read_until("expired");
    }
    let event = format!("__keyspace@0__:t:ptimeout:1:{peer_id}");
    assert!(published.seen.contains(&event), "{:?}", published.seen);
    let told = redis.cli(&["XRANGE", "tracker:traffic", "-", "+"]);
    assert_eq!(told.matches("timeout").count(), 1, "the tracker noticed, and nothing else did: {told}");

    // Said goodbye: the key is removed, and no peer has expired.
    published.seen.clear();
    server.announce(Family::V4, &passkey, &client.with_event(AnnounceEvent::Started));
    server.announce(Family::V4, &passkey, &client.with_event(AnnounceEvent::Stopped));
    wait_for("the set", || redis.cli(&["SMEMBERS", &peers]), "");
    redis.cli(&["PUBLISH", "t:ch:expired", "the end of the test"]);
    let seen = published.read_until("the end of the test");
    assert!(!seen.iter().any(|line| line == "expired" || line.starts_with("1:")), "{seen:?}");
}
