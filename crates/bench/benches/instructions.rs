//! Instruction counts of the announce path under callgrind: exact where clocks are noisy.
//!
//! Run through `scripts/bench.sh`, which has the tools installed that this needs. What is set up is not counted.
#![allow(missing_docs, reason = "the macros make public items that cannot be documented")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use bench::load::{START as NOW, announce_of};
use domain::{Announce, AnnounceEvent, Seconds, UnixTime};
use gungraun::{library_benchmark, library_benchmark_group, main};
use simulate::announce::PasskeyIn;
use simulate::load::{HttpRequests, Peers, ScheduledAnnounce, Shape};
use swarm::{PeerLists, SwarmCounts, Swarms, Terms};
use wire::http::{AnnounceReply, Received, parse_announce, parse_target};

/// One swarm that every peer has joined, and the next heartbeat of one of them.
struct Fixture {
    swarms: Swarms,
    heartbeat: Announce,
    terms: Terms,
    lists: PeerLists,
    target: Vec<u8>,
    reply: Vec<u8>,
}

fn scheduled(peer: u32, uploaded: u64, event: AnnounceEvent) -> ScheduledAnnounce {
    ScheduledAnnounce { peer, uploaded, event }
}

fn scene(peers: u32) -> Fixture {
    let all = Peers::new(Shape { torrents: 1, peers });
    let swarms = Swarms::new(NOW, 1, domain::RunId(1));
    let mut lists = PeerLists { v4: Vec::with_capacity(4096), v6: Vec::with_capacity(4096) };
    for peer in 0..peers {
        let started = scheduled(peer, 1_000_000_000, AnnounceEvent::Started);
        let (announce, terms) = announce_of(&all, started, NOW);
        swarms.announce(&announce, &terms, &mut lists).expect("each user has one client");
    }
    // A leecher: it is given seeders and leechers alike, so as many peers as there are.
    let leecher = (0..peers).find(|peer| all.get(*peer).announce.left > 0).expect("a third are leechers");
    let next = scheduled(leecher, 1_000_016_384, AnnounceEvent::None);
    let (heartbeat, terms) = announce_of(&all, next, NOW + Seconds(1_800));
    Fixture {
        swarms,
        heartbeat,
        terms,
        lists,
        target: target_of(&all, next),
        reply: Vec::with_capacity(4096),
    }
}

fn target_of(all: &Peers, scheduled: ScheduledAnnounce) -> Vec<u8> {
    let mut request = Vec::new();
    HttpRequests::new(all, "127.0.0.1:6969", PasskeyIn::Path).write(scheduled, &mut request);
    request.split(|byte| *byte == b' ').nth(1).expect("GET, target, version").to_vec()
}

/// A scene whose lists hold what the heartbeat is given.
fn answered_scene(peers: u32) -> Fixture {
    let mut scene = scene(peers);
    scene.swarms.announce(&scene.heartbeat, &scene.terms, &mut scene.lists).expect("a known peer");
    scene
}

fn parse(target: &[u8], now: UnixTime) -> Announce {
    let target = parse_target(target).expect("a target as clients send it");
    let received = Received { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), trusts_ip: false, now };
    let announce = parse_announce(target.query, received).expect("a query as clients send it");
    Announce { passkey: target.path_passkey().expect("a passkey").or(announce.passkey), ..announce }
}

fn write_reply(scene: &mut Fixture, counts: SwarmCounts) {
    let reply = AnnounceReply {
        complete: counts.seeders,
        incomplete: counts.leechers,
        downloaded: counts.snatches,
        interval: Seconds(1_800),
        min_interval: Seconds(900),
        external_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        peers: &scene.lists.v4,
        peers6: &scene.lists.v6,
        warning: None,
    };
    reply.write(&mut scene.reply);
}

#[library_benchmark]
#[bench::of_a_heartbeat(args = (10), setup = scene)]
fn http_query_parse(scene: Fixture) -> (Fixture, Announce) {
    let query = black_box(parse(black_box(&scene.target), scene.heartbeat.now));
    (scene, query)
}

#[library_benchmark]
#[bench::among_10_peers(args = (10), setup = scene)]
#[bench::among_100_peers(args = (100), setup = scene)]
fn swarm_heartbeat(mut scene: Fixture) -> Fixture {
    let outcome = scene.swarms.announce(black_box(&scene.heartbeat), &scene.terms, &mut scene.lists);
    black_box(outcome).expect("a known peer");
    scene
}

#[library_benchmark]
#[bench::with_9_peers(args = (10), setup = answered_scene)]
#[bench::with_50_peers(args = (100), setup = answered_scene)]
fn http_reply_write(mut scene: Fixture) -> Fixture {
    write_reply(&mut scene, black_box(SwarmCounts { seeders: 70, leechers: 30, snatches: 0 }));
    black_box(&scene.reply);
    scene
}

#[library_benchmark]
#[bench::among_10_peers(args = (10), setup = scene)]
#[bench::among_100_peers(args = (100), setup = scene)]
fn whole_announce(mut scene: Fixture) -> Fixture {
    let announce = parse(black_box(&scene.target), scene.heartbeat.now);
    let outcome = scene.swarms.announce(black_box(&announce), &scene.terms, &mut scene.lists);
    write_reply(&mut scene, outcome.expect("a known peer").counts);
    black_box(&scene.reply);
    scene
}

library_benchmark_group!(
    name = announce_path,
    benchmarks = [http_query_parse, swarm_heartbeat, http_reply_write, whole_announce]
);
main!(library_benchmark_groups = announce_path);
