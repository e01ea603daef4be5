//! Swarms round-trip through bytes.

use std::net::{IpAddr, Ipv6Addr};

use domain::{AnnounceEvent, ClientKey, InfoHash, RunId, Seconds};
use swarm::{BadCopy, Restored, Swarms};

use crate::support::*;

fn v6_of(number: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number as u16))
}

fn copy_of(swarms: &Swarms) -> Vec<Vec<u8>> {
    let mut copies = Vec::new();
    swarms
        .copy(|bytes| {
            copies.push(bytes.to_vec());
            Ok::<(), ()>(())
        })
        .unwrap();
    copies
}

fn restored(copies: &[Vec<u8>]) -> (Swarms, Restored) {
    // Another seed, as after a restart.
    let swarms = Swarms::new(START, 99, RunId(5_000_000));
    let mut all = Restored::default();
    for copy in copies {
        let one = swarms.restore(copy, &RULES, |_, _| {}).unwrap();
        all.swarms += one.swarms;
        all.peers += one.peers;
        all.left_out += one.left_out;
    }
    (swarms, all)
}

fn torrent(number: u64) -> InfoHash {
    InfoHash([number as u8; 20])
}

/// Fifty clients on ten torrents: seeders, dual-stack ones, ones without an address, ones with a key.
fn populated() -> Swarms {
    let swarms = swarms();
    for number in 1..=50 {
        let announce = Announce {
            info_hash: torrent(number % 10),
            left: Some(number % 3),
            uploaded: number * 1000,
            key: ClientKey(number as u32 % 4),
            event: if number % 3 == 0 { AnnounceEvent::Completed } else { AnnounceEvent::Started },
            port: if number % 7 == 0 { 0 } else { 6881 },
            ..announce_of(number, START + Seconds(number as u32))
        };
        take(&swarms, &announce);
        if number % 5 == 0 {
            take(&swarms, &Announce { ip: v6_of(number), event: AnnounceEvent::None, ..announce });
        }
    }
    swarms
}

#[test]
fn everything_is_restored_and_continues() {
    let before = populated();
    let (after, report) = restored(&copy_of(&before));
    assert_eq!(report, Restored { swarms: 10, peers: 50, left_out: 0 });
    assert_eq!(after.totals(), before.totals());
    for number in 0..10 {
        let sorted = |swarms: &Swarms| {
            let mut peers = swarms.peers_of(&torrent(number));
            peers.sort_by_key(|peer| peer.peer_id);
            peers
        };
        assert_eq!(sorted(&after), sorted(&before));
        assert_eq!(after.scrape(&torrent(number)), before.scrape(&torrent(number)));
    }
    for number in 1..=50 {
        let again = Announce {
            info_hash: torrent(number % 10),
            left: Some(number % 3),
            uploaded: number * 1000 + 7,
            key: ClientKey(number as u32 % 4),
            event: if number % 3 == 0 { AnnounceEvent::Completed } else { AnnounceEvent::None },
            ..announce_of(number, START + Seconds(1000))
        };
        assert_eq!(take(&after, &again), take(&before, &again), "client {number}");
    }
    assert_eq!(expire(&after, START + Seconds(4000)).len(), 50);
}

#[test]
fn t3_deadlines_are_restored_and_overdue_peers_expire_at_once() {
    let (after, _) = restored(&copy_of(&populated()));
    let mut departed = expire(&after, START + Seconds(2425));
    departed.sort_by_key(|departure| departure.last_announce);
    assert_eq!(departed.len(), 25);
    assert_eq!(departed[24].last_announce, START + Seconds(25));
}

#[test]
fn existing_peers_are_unchanged() {
    let copies = copy_of(&populated());
    let (after, _) = restored(&copies);
    take(
        &after,
        &Announce { info_hash: torrent(1), uploaded: 77_000, ..announce_of(1, START + Seconds(99)) },
    );
    let again: Vec<Restored> =
        copies.iter().map(|copy| after.restore(copy, &RULES, |_, _| {}).unwrap()).collect();
    assert_eq!(again.iter().map(|one| one.left_out).sum::<u64>(), 50);
    assert_eq!(after.totals().peers, 50);
    let peers = after.peers_of(&torrent(1));
    assert_eq!(peers.iter().find(|peer| peer.user == user(1)).unwrap().uploaded, 77_000);
}

#[test]
fn damaged_bytes_are_refused_and_never_panic() {
    let copies = copy_of(&populated());
    let copy = copies.iter().find(|copy| !copy.is_empty()).unwrap();
    for length in (1..copy.len()).step_by(29) {
        let swarms = swarms();
        let outcome = swarms.restore(&copy[..length], &RULES, |_, _| {});
        if outcome.is_ok() {
            assert!(swarms.totals().swarms > 0, "cut between two swarms");
        } else {
            assert_eq!(outcome, Err(BadCopy));
        }
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50 {
        let bytes: Vec<u8> = (0..random.usize(0..300)).map(|_| random.u8(..)).collect();
        let _ = swarms().restore(&bytes, &RULES, |_, _| {});
    }
}

#[test]
fn snatches_only_rise() {
    let swarms = swarms();
    swarms.raise_snatches(&TORRENT, 5);
    swarms.raise_snatches(&TORRENT, 3);
    assert_eq!(swarms.scrape(&TORRENT).snatches, 5);
}
