//! What a start finds and how much it reads: while the wall clock was set, and when the process is killed again and again.

use std::fmt::Write;

use domain::AnnounceEvent;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{SwarmCounts, eventually};

use crate::site::{DatabaseKind, PATIENCE, Site, builder, durable_redis};
use crate::warm::{counts, register, say};

const HOUR_S: i64 = 60 * 60;
/// More than a start reads without writing a snapshot.
const ENTRIES: u64 = 6_000;

/// Interval + grace are eleven minutes.
fn restart_while_the_clock_is_set(redis: Option<testkit::RedisServer>) {
    let mut site = Site::start(builder().own_wall_clock(), redis, DatabaseKind::Sqlite);
    register(&site);
    say(&site.server, 1, AnnounceEvent::Started, (0, 0, 0));
    say(&site.server, 2, AnnounceEvent::Started, (0, 0, 1000));
    let before = SwarmCounts { complete: 1, incomplete: 1, downloaded: 0 };
    for ahead_s in [2 * HOUR_S, 0, -2 * HOUR_S, 8 * HOUR_S, -8 * HOUR_S] {
        site.server.set_wall_clock(ahead_s);
        assert_eq!(say(&site.server, 1, AnnounceEvent::None, (0, 0, 0)).all_peers().len(), 1);
        site.server.kill();
        site.server.start_again();
        assert_eq!(counts(&site.server), before, "after a kill, with the clock {ahead_s:+} s");
        assert!(site.server.stop().success());
        site.server.set_wall_clock(-ahead_s);
        site.server.start_again();
        assert_eq!(counts(&site.server), before, "after a stop, with the clock {:+} s", -ahead_s);
    }
    let log = site.server.log();
    assert!(!log.contains("cannot be used"), "every snapshot was of use");
}

#[test]
fn t3_swarms_survive_restarts_while_the_wall_clock_is_set_embedded() {
    restart_while_the_clock_is_set(None);
}

#[test]
fn t3_swarms_survive_restarts_while_the_wall_clock_is_set_on_redis() {
    restart_while_the_clock_is_set(Some(durable_redis()));
}

/// How many entries each start read.
fn entries_read(site: &Site) -> Vec<u64> {
    let log = site.server.log();
    let starts = log.lines().filter(|line| line.contains("\"swarms brought back\""));
    starts
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["entries"].as_u64().unwrap())
        .collect()
}

/// It would never live until its next snapshot is due.
#[test]
fn a_server_that_is_killed_again_and_again_does_not_read_the_same_entries_at_each_start() {
    let mut site = Site::start(builder(), Some(durable_redis()), DatabaseKind::Sqlite);
    register(&site);
    let now = site.redis().cli(&["TIME"]);
    let now = now.lines().next().unwrap();
    let mut commands = String::new();
    for number in 0..ENTRIES {
        writeln!(
            commands,
            "XADD tracker:traffic * passkey {} infohash {} peer_id {:040x} port 6881 ip 192.0.2.1 af IPv4 du 0 dd 0 \
             left 0 event stopped ts {now} dt 60 interval 60 min_interval 0",
            passkey_of(1),
            info_hash_of(1),
            number
        )
        .unwrap();
    }
    site.redis().cli_lines(&commands);
    site.server.kill();
    site.server.start_again();
    let snapshot = site.server.data_folder().join("swarms.snapshot");
    eventually("a snapshot right after the start", PATIENCE, || snapshot.exists().then_some(()));
    for _ in 0..2 {
        site.server.kill();
        site.server.start_again();
    }
    let read = entries_read(&site);
    let [first_again, later @ ..] = &read[1..] else { panic!("{read:?}") };
    assert!(*first_again >= ENTRIES && later.len() == 2 && later.iter().all(|read| *read < 100), "{read:?}");
}
