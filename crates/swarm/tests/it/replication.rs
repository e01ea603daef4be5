//! Remote announces lead to the same swarms, in whatever order they arrive.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use domain::{AnnounceEvent, Cause, ClientKey, PeerId, RunId, Seconds, UnixTime};
use fastrand::Rng;
use proptest::prelude::*;
use swarm::{Outcome, PeerInfo, PeerLists, RemoteAnnounce, RemoteOutcome, RemoteTotals, Rules, Swarms};

use crate::support::*;

fn totals(run: u32, uploaded: u64) -> Option<RemoteTotals> {
    Some(RemoteTotals { run: RunId(run), uploaded, downloaded: uploaded / 2 })
}

/// A leecher's heartbeat over IPv4, received by another node.
fn remote_announce_of(number: u64, at: UnixTime) -> RemoteAnnounce {
    let announce = announce_of(number, at);
    RemoteAnnounce {
        info_hash: TORRENT,
        user: announce.user,
        peer_id: announce.peer_id,
        key: ClientKey::NONE,
        ip: announce.ip,
        port: announce.port,
        left: announce.left,
        event: AnnounceEvent::None,
        cause: Cause::Announce,
        at,
        since_last: Some(Seconds(0)),
        silence_max: RULES.silence_max,
        totals: totals(9, 0),
    }
}

fn v6_of(number: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number as u16))
}

fn apply_remote(swarms: &Swarms, remote: &RemoteAnnounce) -> RemoteOutcome {
    swarms.apply_remote(remote, remote.at.max(START), &RULES)
}

fn only_peer(swarms: &Swarms) -> PeerInfo {
    let peers = swarms.peers_of(&TORRENT);
    assert_eq!(peers.len(), 1);
    peers[0]
}

#[test]
fn a_remote_peer_is_returned() {
    let swarms = swarms();
    assert_eq!(apply_remote(&swarms, &remote_announce_of(1, START)), RemoteOutcome::Applied);
    let (_, lists) = take_with_peers(&swarms, &announce_of(2, START));
    assert_eq!(lists.v4, [10, 0, 0, 1, 0x1a, 0xe1]);
}

#[test]
fn an_announce_continues_the_run_of_another_node() {
    let swarms = swarms();
    apply_remote(&swarms, &RemoteAnnounce { totals: totals(77, 1000), ..remote_announce_of(1, START) });
    let announce = Announce { uploaded: 1500, downloaded: 500, ..announce_of(1, START + Seconds(900)) };
    let outcome = take(&swarms, &announce);
    assert_eq!((outcome.session.run, outcome.uploaded_delta), (RunId(77), 500));
    assert_eq!(outcome.since_last, Seconds(900));
}

#[test]
fn j3_a_client_of_another_producer_starts_at_its_first_counters_here() {
    let swarms = swarms();
    apply_remote(&swarms, &RemoteAnnounce { totals: None, ..remote_announce_of(1, START) });
    assert_eq!(expire(&swarms, START + Seconds(2405))[0].session.run, RunId::NONE);
    apply_remote(&swarms, &RemoteAnnounce { totals: None, ..remote_announce_of(1, START + Seconds(3000)) });
    let first = take(&swarms, &Announce { uploaded: 5000, ..announce_of(1, START + Seconds(3100)) });
    assert_eq!((first.uploaded_delta, first.since_last), (0, Seconds(100)));
    assert_ne!(first.session.run, RunId::NONE);
    let second = take(&swarms, &Announce { uploaded: 5600, ..announce_of(1, START + Seconds(4100)) });
    assert_eq!((second.uploaded_delta, second.session.run), (600, first.session.run));
}

#[test]
fn a_client_is_found_by_its_key_under_another_peer_id() {
    let swarms = swarms();
    let key = ClientKey(5);
    apply_remote(&swarms, &RemoteAnnounce { key, ..remote_announce_of(1, START) });
    apply_remote(
        &swarms,
        &RemoteAnnounce { key, peer_id: peer_id(99), ..remote_announce_of(1, START + Seconds(10)) },
    );
    assert_eq!(only_peer(&swarms).peer_id, peer_id(99));
    // A late `stopped` under the earlier peer id is not its own.
    let stop =
        RemoteAnnounce { key, event: AnnounceEvent::Stopped, ..remote_announce_of(1, START + Seconds(11)) };
    assert_eq!(apply_remote(&swarms, &stop), RemoteOutcome::Late);
    assert_eq!(only_peer(&swarms).peer_id, peer_id(99));
}

#[test]
fn the_older_half_of_an_announce_to_two_nodes_is_not_a_restart() {
    let swarms = swarms();
    apply_remote(&swarms, &RemoteAnnounce { totals: totals(7, 1000), ..remote_announce_of(1, START) });
    let slower =
        take(&swarms, &Announce { uploaded: 900, downloaded: 450, ..announce_of(1, START + Seconds(2)) });
    assert_eq!((slower.uploaded_delta, slower.session.run), (0, RunId(7)));
    assert_eq!(only_peer(&swarms).uploaded, 1000);
    let began_anew = RemoteAnnounce {
        event: AnnounceEvent::Started,
        totals: totals(8, 0),
        ..remote_announce_of(1, START + Seconds(3))
    };
    apply_remote(&swarms, &began_anew);
    assert_eq!(only_peer(&swarms).uploaded, 0);
}

#[test]
fn two_nodes_with_a_new_client_at_once_agree_on_its_run() {
    let (one, other) = (
        remote_announce_of(1, START),
        RemoteAnnounce { totals: totals(3, 0), ..remote_announce_of(1, START) },
    );
    for order in [[one, other], [other, one]] {
        let swarms = swarms();
        for remote in &order {
            apply_remote(&swarms, remote);
        }
        assert_eq!(take(&swarms, &announce_of(1, START + Seconds(60))).session.run, RunId(3));
    }
}

#[test]
fn t3_a_remote_peer_expires_later_so_that_its_own_node_reports_it() {
    let swarms = swarms();
    apply_remote(&swarms, &remote_announce_of(1, START));
    assert!(expire(&swarms, START + Seconds(2404)).is_empty());
    let departed = expire(&swarms, START + Seconds(2405));
    assert_eq!((departed.len(), departed[0].last_announce), (1, START));
}

#[test]
fn t3_remote_peers_do_not_expire_while_replication_is_interrupted() {
    let swarms = swarms();
    apply_remote(&swarms, &remote_announce_of(1, START));
    let late = START + RULES.silence_max + Seconds(60);
    swarms.hold_remote_peers(true);
    swarms.expire(late, &RULES, |departure| panic!("{departure:?}"));
    swarms.hold_remote_peers(false);
    let mut departed = 0;
    swarms.expire(late + Seconds(10), &RULES, |_| departed += 1);
    assert_eq!(departed, 1);
}

#[test]
fn a_recent_remote_peer_gets_peers() {
    let swarms = swarms();
    apply_remote(&swarms, &remote_announce_of(1, START));
    apply_remote(&swarms, &remote_announce_of(2, START));
    let mut lists = PeerLists::default();
    let outcome = announce_of(2, START + Seconds(1)).send(&swarms, &RULES, &mut lists).unwrap();
    assert!(!outcome.too_soon && !lists.v4.is_empty());
    let again = announce_of(2, START + Seconds(2)).send(&swarms, &RULES, &mut lists).unwrap();
    assert!(again.too_soon && lists.v4.is_empty());
}

#[test]
fn a_client_with_two_keys_is_one_client_on_every_node() {
    let (one, two) = (swarms(), swarms());
    let mut lists = PeerLists::default();
    let with_key = |key, at| Announce { key: ClientKey(key), ..announce_of(1, at) };
    let first = with_key(7, START).send(&one, &RULES, &mut lists).unwrap();
    apply_remote(&two, &entry_of(&with_key(7, START), &first));
    let later = with_key(9, START + Seconds(1000));
    let second = later.send(&two, &RULES, &mut lists).unwrap();
    assert_eq!((second.session, second.key), (first.session, ClientKey(7)));
}

#[test]
fn t3_a_timeout_counts_only_without_an_announce_since_the_silence_began() {
    let swarms = swarms();
    apply_remote(&swarms, &remote_announce_of(1, START + Seconds(10)));
    let timeout = |since_last| RemoteAnnounce {
        event: AnnounceEvent::Stopped,
        cause: Cause::Timeout,
        since_last: Some(Seconds(since_last)),
        ..remote_announce_of(1, START + Seconds(2405))
    };
    assert_eq!(apply_remote(&swarms, &timeout(2400)), RemoteOutcome::Late);
    assert_eq!(apply_remote(&swarms, &timeout(2395)), RemoteOutcome::Applied);
    assert!(swarms.peers_of(&TORRENT).is_empty());
}

#[test]
fn a_stop_that_arrives_before_its_announce_leaves_no_peer() {
    let swarms = swarms();
    let stop = RemoteAnnounce { event: AnnounceEvent::Stopped, ..remote_announce_of(1, START + Seconds(5)) };
    assert_eq!(apply_remote(&swarms, &stop), RemoteOutcome::Late);
    assert_eq!(apply_remote(&swarms, &remote_announce_of(1, START)), RemoteOutcome::Late);
    take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..announce_of(2, START + Seconds(5)) });
    assert_eq!(apply_remote(&swarms, &remote_announce_of(2, START + Seconds(4))), RemoteOutcome::Late);
    assert_eq!(swarms.totals().peers, 0);
    // A returning client is added again.
    assert_eq!(apply_remote(&swarms, &remote_announce_of(1, START + Seconds(5))), RemoteOutcome::Applied);
}

#[test]
fn future_overdue_and_excess_announces_are_ignored() {
    let swarms = swarms();
    let at = |at| swarms.apply_remote(&remote_announce_of(1, at), START, &RULES);
    assert_eq!(at(START + Seconds(61)), RemoteOutcome::Ahead);
    assert_eq!(at(START - Seconds(2400)), RemoteOutcome::Overdue);
    assert_eq!(at(START - Seconds(2399)), RemoteOutcome::Applied);
    for client in 0..16 {
        let outcome = apply_remote(
            &swarms,
            &RemoteAnnounce { peer_id: peer_id(100 + client), ..remote_announce_of(2, START) },
        );
        assert_eq!(outcome, RemoteOutcome::Applied, "limits of this node are not applied");
    }
    assert_eq!(apply_remote(&swarms, &remote_announce_of(2, START)), RemoteOutcome::NoRoom);
    assert_eq!(swarms.totals().peers, 17);
}

#[test]
fn a4_a_remote_peer_with_a_longer_interval_stays_for_that_and_the_grace() {
    let swarms = swarms();
    let foreign = RemoteAnnounce { silence_max: Seconds(7800), ..remote_announce_of(1, START) };
    apply_remote(&swarms, &foreign);
    apply_remote(&swarms, &remote_announce_of(2, START));
    let slack = Seconds(5);
    assert_eq!(expire(&swarms, START + RULES.silence_max + slack).len(), 1);
    let restarted = crate::replication::swarms();
    swarms.copy(|bytes| restarted.restore(bytes, &RULES, |_, _| {}).map(|_| ())).unwrap();
    for swarms in [&swarms, &restarted] {
        assert_eq!(expire(swarms, START + Seconds(7799)).len(), 0);
        let gone = expire(swarms, START + Seconds(7800) + slack);
        assert_eq!(gone.iter().map(|gone| gone.silence_max).collect::<Vec<_>>(), [Seconds(7800)]);
    }
    // A late announce is still applied, and an announce here makes it a local peer.
    let late = START + Seconds(20_000);
    assert_eq!(
        swarms.apply_remote(&RemoteAnnounce { at: late - Seconds(7000), ..foreign }, late, &RULES),
        RemoteOutcome::Applied
    );
    take(&swarms, &announce_of(1, late));
    assert_eq!(expire(&swarms, late + RULES.silence_max).len(), 1);
}

#[test]
fn a_completion_counts_once_however_often_it_is_replicated() {
    let swarms = swarms();
    let completed =
        RemoteAnnounce { event: AnnounceEvent::Completed, left: Some(0), ..remote_announce_of(1, START) };
    apply_remote(&swarms, &remote_announce_of(1, START + Seconds(5)));
    for _ in 0..3 {
        apply_remote(&swarms, &completed);
    }
    take(
        &swarms,
        &Announce { event: AnnounceEvent::Completed, left: Some(0), ..announce_of(1, START + Seconds(9)) },
    );
    assert_eq!(swarms.scrape(&TORRENT).snatches, 1);
}

#[test]
fn t3_a_reused_slot_does_not_delay_the_expiry_of_an_older_peer() {
    let swarms = swarms();
    let now = START + Seconds(2000);
    take(&swarms, &announce_of(1, now));
    take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..announce_of(1, now) });
    assert_eq!(swarms.apply_remote(&remote_announce_of(2, START), now, &RULES), RemoteOutcome::Applied);
    assert_eq!(expire(&swarms, START + Seconds(2405)).len(), 1);
}

#[test]
fn remote_leeching_takes_a_slot() {
    let swarms = swarms();
    swarms.count_leeching();
    apply_remote(&swarms, &remote_announce_of(1, START));
    apply_remote(&swarms, &RemoteAnnounce { peer_id: peer_id(50), ..remote_announce_of(1, START) });
    assert_eq!(swarms.leeches_of(user(1)), 1);
    apply_remote(&swarms, &RemoteAnnounce { left: Some(0), ..remote_announce_of(1, START + Seconds(1)) });
    assert_eq!(swarms.leeches_of(user(1)), 1);
    let stop = |id: PeerId| RemoteAnnounce {
        peer_id: id,
        event: AnnounceEvent::Stopped,
        ..remote_announce_of(1, START + Seconds(2))
    };
    apply_remote(&swarms, &stop(peer_id(50)));
    assert_eq!(swarms.leeches_of(user(1)), 0);
    apply_remote(&swarms, &RemoteAnnounce { left: Some(7), ..remote_announce_of(1, START + Seconds(3)) });
    assert_eq!(swarms.leeches_of(user(1)), 1);
    apply_remote(&swarms, &stop(peer_id(1)));
    apply_remote(
        &swarms,
        &RemoteAnnounce { event: AnnounceEvent::Stopped, ..remote_announce_of(1, START + Seconds(4)) },
    );
    assert_eq!(swarms.leeches_of(user(1)), 0);
}

/// The compared state of a peer.
type Facts = (bool, Option<SocketAddr>, Option<SocketAddr>, u64, u64, UnixTime);
type Seen = BTreeMap<PeerId, Facts>;

fn seen(swarms: &Swarms) -> Seen {
    let peers = swarms.peers_of(&TORRENT);
    let count = peers.len();
    let seen: Seen = peers
        .into_iter()
        .map(|peer| {
            let PeerInfo { is_seeding, v4, v6, uploaded, downloaded, last_announce, .. } = peer;
            (peer.peer_id, (is_seeding, v4, v6, uploaded, downloaded, last_announce))
        })
        .collect();
    assert_eq!(seen.len(), count, "a peer id stands for one peer");
    seen
}

/// The entries of a client: starts, moves, perhaps completes, perhaps stops, perhaps returns.
fn life_of(number: u64, random: &mut Rng) -> Vec<RemoteAnnounce> {
    let mut at = START + Seconds(random.u32(0..1000));
    let mut life = Vec::new();
    for phase in 0..random.u32(1..4) {
        let run = 100 * number as u32 + phase + 1;
        let (mut uploaded, mut left) = (0, Some(10));
        for word in 0..random.u32(1..6) {
            uploaded += random.u64(0..50);
            let completes = left == Some(10) && random.u8(0..4) == 0;
            left = if completes { Some(0) } else { left };
            let event = match (word, completes) {
                (0, _) => AnnounceEvent::Started,
                (_, true) => AnnounceEvent::Completed,
                _ => AnnounceEvent::None,
            };
            let ip = if random.bool() { remote_announce_of(number, at).ip } else { v6_of(number) };
            let remote = RemoteAnnounce {
                event,
                left,
                ip,
                totals: totals(run, uploaded),
                ..remote_announce_of(number, at)
            };
            life.push(remote);
            if random.u8(0..4) == 0 {
                // The other half of a dual-stack announce, slightly later, at another node that knows the run.
                let ip = if remote.ip.is_ipv4() { v6_of(number) } else { remote_announce_of(number, at).ip };
                at += Seconds(random.u32(1..5));
                let slower = totals(run, uploaded.saturating_sub(random.u64(0..10)));
                life.push(RemoteAnnounce { ip, at, event: AnnounceEvent::None, totals: slower, ..remote });
            }
            at += Seconds(random.u32(1..700));
        }
        if random.bool() {
            life.push(RemoteAnnounce {
                event: AnnounceEvent::Stopped,
                totals: totals(run, uploaded),
                ..remote_announce_of(number, at)
            });
            at += Seconds(random.u32(1..100));
        } else if random.bool() {
            break;
        } else {
            // Lower counters within half a minute are a reordered announce, not a restart.
            at += Seconds(31);
        }
    }
    life
}

/// The expected state of a client after all entries, independent of their order.
fn model_of(life: &[RemoteAnnounce], now: UnixTime) -> Option<Facts> {
    let stop =
        life.iter().filter(|remote| remote.event == AnnounceEvent::Stopped).map(|remote| remote.at).max();
    let alive: Vec<&RemoteAnnounce> = life
        .iter()
        .filter(|remote| remote.at + RULES.silence_max > now)
        .filter(|remote| remote.event != AnnounceEvent::Stopped && stop.is_none_or(|stop| remote.at > stop))
        .collect();
    let last = *alive.iter().max_by_key(|remote| remote.at)?;
    let run = last.totals?.run;
    let of_run = alive.iter().filter_map(|remote| remote.totals).filter(|totals| totals.run == run);
    let (uploaded, downloaded) =
        of_run.fold((0, 0), |(up, down), totals| (up.max(totals.uploaded), down.max(totals.downloaded)));
    let address = |v6: bool| {
        let over = alive.iter().filter(|remote| remote.ip.is_ipv6() == v6).max_by_key(|remote| remote.at)?;
        let is_fresh = last.at.since(over.at) < RULES.silence_max;
        is_fresh.then(|| SocketAddr::new(over.ip, over.port))
    };
    Some((last.left == Some(0), address(false), address(true), uploaded, downloaded, last.at))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_same_entries_in_any_order_and_repeated_give_the_same_swarm(seed: u64) {
        let mut random = Rng::with_seed(seed);
        let lives: Vec<Vec<RemoteAnnounce>> = (1..=12).map(|number| life_of(number, &mut random)).collect();
        let mut words: Vec<RemoteAnnounce> = lives.iter().flatten().copied().collect();
        let now = words.iter().map(|remote| remote.at).max().unwrap();
        let mut expected = Seen::new();
        for life in &lives {
            if let Some(peer) = model_of(life, now) {
                expected.insert(life[0].peer_id, peer);
            }
        }
        for _ in 0..words.len() {
            words.push(words[random.usize(0..words.len())]);
        }
        random.shuffle(&mut words);
        let swarms = Swarms::new(now, seed, RunId(1));
        for remote in &words {
            swarms.apply_remote(remote, now, &RULES);
        }
        prop_assert_eq!(&seen(&swarms), &expected);
        let seeders = expected.values().filter(|peer| peer.0).count();
        prop_assert_eq!(swarms.totals().seeders, seeders);
    }

    /// Clients announce to any of three nodes, which are replicated at times.
    #[test]
    fn fully_replicated_nodes_have_the_same_state(seed: u64) {
        let mut random = Rng::with_seed(seed);
        let mut cluster = Cluster::new(seed);
        for _ in 0..200 {
            cluster.announce(&mut random);
            if random.bool() {
                let node = random.usize(0..3);
                cluster.catch_up(node);
            }
        }
        (0..3).for_each(|node| cluster.catch_up(node));
        let first = seen(&cluster.nodes[0]);
        prop_assert_eq!(&seen(&cluster.nodes[1]), &first);
        prop_assert_eq!(&seen(&cluster.nodes[2]), &first);
    }
}

struct Client {
    uploaded: u64,
    is_here: bool,
    left: u64,
}

struct Cluster {
    nodes: Vec<Swarms>,
    log: Vec<(usize, RemoteAnnounce)>,
    read: [usize; 3],
    clients: Vec<Client>,
    now: UnixTime,
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let node = |number: u64| Swarms::new(START, seed ^ number, RunId(1_000_000 * (number as u32 + 1)));
        let clients = (0..8).map(|_| Client { uploaded: 0, is_here: false, left: 10 }).collect();
        Cluster { nodes: (0..3).map(node).collect(), log: Vec::new(), read: [0; 3], clients, now: START }
    }

    fn announce(&mut self, random: &mut Rng) {
        self.now += Seconds(random.u32(1..40));
        let number = random.usize(0..self.clients.len());
        let node = random.usize(0..3);
        if !self.clients[number].is_here {
            // A restart takes longer than the replication of the `stopped`. Otherwise lower counters cannot be
            // distinguished from the older half of an announce.
            self.now += Seconds(31);
            (0..3).for_each(|node| self.catch_up(node));
        }
        let client = &mut self.clients[number];
        let event = match (client.is_here, random.u8(0..8)) {
            (false, _) => AnnounceEvent::Started,
            (true, 0) => AnnounceEvent::Stopped,
            (true, 1) if client.left > 0 => AnnounceEvent::Completed,
            _ => AnnounceEvent::None,
        };
        client.uploaded = if client.is_here { client.uploaded + random.u64(0..9) } else { 0 };
        client.left = if event == AnnounceEvent::Completed { 0 } else { client.left };
        client.is_here = event != AnnounceEvent::Stopped;
        let base = announce_of(number as u64 + 1, self.now);
        let announce = Announce {
            event,
            uploaded: client.uploaded,
            left: Some(client.left),
            ip: if random.bool() { base.ip } else { v6_of(number as u64) },
            ..base
        };
        let outcome = take(&self.nodes[node], &announce);
        self.log.push((node, entry_of(&announce, &outcome)));
    }

    fn catch_up(&mut self, node: usize) {
        let rules: &Rules = &RULES;
        for (from, remote) in &self.log[self.read[node]..] {
            if *from != node {
                self.nodes[node].apply_remote(remote, self.now, rules);
            }
        }
        self.read[node] = self.log.len();
    }
}

fn entry_of(announce: &Announce, outcome: &Outcome) -> RemoteAnnounce {
    RemoteAnnounce {
        info_hash: announce.info_hash,
        user: announce.user,
        peer_id: announce.peer_id,
        key: outcome.key,
        ip: announce.ip,
        port: announce.port,
        left: announce.left,
        event: announce.event,
        cause: Cause::Announce,
        at: announce.now,
        since_last: Some(outcome.since_last),
        silence_max: RULES.silence_max,
        totals: Some(RemoteTotals {
            run: outcome.session.run,
            uploaded: announce.uploaded,
            downloaded: announce.downloaded,
        }),
    }
}
