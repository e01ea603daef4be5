//! Memory of swarms, measured at the allocator.

use domain::{AnnounceEvent, InfoHash, Seconds};
use swarm::{PeerLists, Swarms};
use tikv_jemalloc_ctl::thread::{allocatedp, deallocatedp};

use crate::support::*;

/// Bytes that this thread has allocated so far. Other tests run on other threads.
fn allocated() -> u64 {
    allocatedp::read().unwrap().get()
}

/// Bytes that this thread allocated and did not free. May be negative: it also frees what others allocated.
fn held() -> u64 {
    allocated().wrapping_sub(deallocatedp::read().unwrap().get())
}

fn torrent(number: u64) -> InfoHash {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    InfoHash(bytes)
}

/// `count` peers, of which so many share each torrent; every third seeds.
fn fill(swarms: &Swarms, count: u64, per_torrent: u64, lists: &mut PeerLists) {
    for number in 1..=count {
        let announce = Announce {
            info_hash: torrent(number % (count / per_torrent)),
            left: Some(number % 3),
            ..announce_of(number, START)
        };
        announce.send(swarms, &RULES, lists).unwrap();
    }
}

/// Heartbeats, a change of role, a client that leaves and one that replaces it.
#[test]
fn an_announce_in_steady_state_allocates_nothing() {
    let swarms = swarms();
    let mut lists = PeerLists { v4: Vec::with_capacity(600), v6: Vec::with_capacity(1800) };
    fill(&swarms, 20_000, 100, &mut lists);
    let day = |announce: Announce, lists: &mut PeerLists| {
        announce.send(&swarms, &RULES, lists).unwrap();
    };
    let round = |turn: u32, lists: &mut PeerLists| {
        for number in 1..=20_000_u64 {
            let announce = Announce {
                info_hash: torrent(number % 200),
                left: Some((number + u64::from(turn)) % 3),
                uploaded: u64::from(turn) * 1000,
                ..announce_of(number, START + Seconds(1000 * turn))
            };
            day(announce, lists);
            if number % 50 == 0 {
                day(Announce { event: AnnounceEvent::Stopped, ..announce }, lists);
                day(Announce { event: AnnounceEvent::Started, ..announce }, lists);
            }
        }
    };
    // The first round may still grow a free list; from then on nothing grows.
    round(1, &mut lists);
    let before = allocated();
    round(2, &mut lists);
    assert_eq!(allocated() - before, 0, "bytes allocated by 20,800 announces");
}

#[test]
fn a_million_peers_cost_at_most_96_bytes_each() {
    const PEERS: u64 = 1_000_000;
    for per_torrent in [10, 100] {
        let mut lists = PeerLists::default();
        let before = held();
        let swarms = swarms();
        fill(&swarms, PEERS, per_torrent, &mut lists);
        let bytes_per_peer = held().wrapping_sub(before) as f64 / PEERS as f64;
        assert_eq!(swarms.totals().peers as u64, PEERS);
        assert!(bytes_per_peer <= 96.0, "{bytes_per_peer} bytes a peer, {per_torrent} a torrent");
    }
}
