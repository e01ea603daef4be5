//! What a start finds and how much it reads: while the wall clock was set, and when the process is killed again and again.

use std::fmt::Write;
use std::time::Duration;

use domain::AnnounceEvent;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{Plan, Population, SwarmCounts, eventually};

use crate::many_processes::warm_start::{counts, register, say};
use crate::site::{DatabaseKind, PATIENCE, Site, builder, durable_redis};

const HOUR_S: i64 = 60 * 60;
/// More than a start reads without writing a snapshot.
const ENTRIES: u64 = 6_000;

/// Interval + grace are eleven minutes. Every announce is stored before it is answered, so that each start finds entries
/// from before and after a step.
fn restart_while_the_clock_is_set(redis: Option<testkit::RedisServer>) {
    let builder = builder().own_wall_clock().set("journal.ack", "\"all\"");
    let mut site = Site::start(builder, redis, DatabaseKind::Sqlite);
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
    assert!(!log.contains("is unusable"), "every snapshot was of use");
}

#[test]
fn t3_swarms_survive_restarts_while_the_wall_clock_is_set_embedded() {
    restart_while_the_clock_is_set(None);
}

#[test]
fn t3_swarms_survive_restarts_while_the_wall_clock_is_set_on_redis() {
    restart_while_the_clock_is_set(Some(durable_redis()));
}

/// Twenty accounts whose clients stop and begin anew, while the clock steps two hours forward and back and the server is
/// killed: every byte counts once, and nothing is refused.
fn count_while_the_clock_is_set(redis: Option<testkit::RedisServer>) {
    let mut site = Site::start(builder().own_wall_clock(), redis, DatabaseKind::Sqlite);
    let mut population = Population::new(Plan {
        seed: 9,
        users: 20,
        torrents: 4,
        clients: 40,
        at_once: 8,
        crashes: false,
        pause: Duration::ZERO,
    });
    site.register(&population);
    for (turn, ahead_s) in [2 * HOUR_S, 0, -2 * HOUR_S, 0, 8 * HOUR_S, -8 * HOUR_S, 0].into_iter().enumerate()
    {
        population.live(site.destination(), 2);
        site.server.set_wall_clock(ahead_s);
        population.live(site.destination(), 1);
        if turn % 2 == 1 {
            site.server.kill();
            site.server.start_again();
        }
    }
    population.live(site.destination(), 2);
    population.stop(site.destination());
    let end = site.settle();
    site.assert_nothing_failed(&end);
    site.assert_books_equal(&population.truth());
}

#[test]
fn l6_every_byte_counts_once_while_the_wall_clock_is_set_embedded() {
    count_while_the_clock_is_set(None);
}

#[test]
fn l6_every_byte_counts_once_while_the_wall_clock_is_set_on_redis() {
    count_while_the_clock_is_set(Some(durable_redis()));
}

/// How many entries each start read.
fn entries_read(site: &Site) -> Vec<u64> {
    let log = site.server.log();
    let starts = log.lines().filter(|line| line.contains("\"swarms restored\""));
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
