//! A client that announces to several nodes at once has the same account as on one node.
//!
//! The nodes are real swarms, replicated through one log with random delays. Within two seconds a client sends the same
//! counters to several of them, or slightly higher ones to the next; before its next step all have read everything.

use std::net::{IpAddr, Ipv4Addr};

use domain::{Announce, ClientKey, Families, NodeId, RunId};
use swarm::{Outcome, PeerLists, RemoteAnnounce, RemoteTotals, SlotLimits, Swarms, Terms};

use super::simulator::info_hash;
use super::*;
use crate::multiplier::{Multiplier, NewMultiplier, Percent, Scope};

/// Size of the torrent.
const SIZE: u64 = 1 << 30;
/// Seconds by which time may differ, for each session of a client and each completion: the nodes round their clocks,
/// and the first and the last report are a second apart.
const ROUNDING_S: u64 = 3;

struct Node {
    id: NodeId,
    swarms: Swarms,
    /// How much of the log it has read.
    read: usize,
}

/// Nodes that write one log.
pub(super) struct Site {
    nodes: Vec<Node>,
    log: Vec<TrafficEntry>,
}

impl Site {
    pub(super) fn new(nodes: u64, seed: u64) -> Site {
        let node = |id: u64| Node {
            // Names in random order.
            id: NodeId::starting(UnixTime(BEGIN), &format!("{seed} {id}"), 0),
            // In random order, so that the first node does not always have the lowest number.
            swarms: Swarms::new(UnixTime(BEGIN), id, RunId(((id * 5) % 7) as u32 * 1000)),
            read: 0,
        };
        Site { nodes: (1..=nodes).map(node).collect(), log: Vec::new() }
    }

    pub(super) fn receive(&mut self, node: usize, announce: &Announce) {
        let Node { id, swarms, .. } = &self.nodes[node];
        let outcome = swarms.announce(announce, &terms(), &mut PeerLists::default()).unwrap();
        self.log.push(written(*id, announce, &outcome));
    }

    pub(super) fn read_all(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.read(node, self.log.len()));
    }

    /// Lets a node read a random part of its unread entries.
    pub(super) fn read_some(&mut self, node: usize, random: &mut fastrand::Rng) {
        let until = random.usize(self.nodes[node].read..=self.log.len());
        self.read(node, until);
    }

    fn read(&mut self, node: usize, until: usize) {
        let Node { id, swarms, read } = &mut self.nodes[node];
        for entry in &self.log[*read..until.max(*read)] {
            if entry.node != Some(*id) {
                swarms.apply_remote(&remote_of(entry), entry.at, &rules());
            }
        }
        *read = until.max(*read);
    }

    pub(super) fn arrivals(&self) -> Vec<DeliveredEntry> {
        let numbered = self.log.iter().enumerate();
        numbered.map(|(position, entry)| arrival(*entry, position as u64)).collect()
    }
}

/// No peers, no limits on leeching.
pub(super) fn terms() -> Terms {
    Terms { user: user(1), wanted: 0, slots: SlotLimits::default(), rules: rules() }
}

fn rules() -> swarm::Rules {
    swarm::Rules {
        silence_max: Seconds(SPAN_MAX),
        min_interval: Seconds(0),
        clients_per_user_max: 16,
        ceiling: RateCeiling::default(),
        peer_ids_per_hour_max: 0,
        credit_upload_without_leechers: true,
    }
}

/// An announce as our tracker writes it.
pub(super) fn written(node: NodeId, announce: &Announce, outcome: &Outcome) -> TrafficEntry {
    let is_repeated = announce.event == AnnounceEvent::Completed && !outcome.completed;
    let event = if is_repeated { AnnounceEvent::None } else { announce.event };
    let totals =
        Totals { session: outcome.session, uploaded: announce.uploaded, downloaded: announce.downloaded };
    TrafficEntry {
        uploaded_delta: outcome.uploaded_delta,
        downloaded_delta: outcome.downloaded_delta,
        since_last: Some(outcome.since_last),
        node: Some(node),
        totals: Some(totals),
        key: Some(outcome.key),
        // No absence is longer.
        interval: Seconds(SPAN_MAX),
        ..entry(1, 1, announce.peer_id, announce.now, event, announce.left.unwrap_or_default())
    }
}

fn remote_of(entry: &TrafficEntry) -> RemoteAnnounce {
    RemoteAnnounce {
        info_hash: entry.info_hash,
        user: user(1),
        peer_id: entry.peer_id,
        key: entry.key.unwrap_or(ClientKey::NONE),
        ip: entry.ip,
        port: entry.port,
        left: entry.left,
        event: entry.event,
        cause: entry.cause,
        at: entry.at,
        since_last: entry.since_last,
        silence_max: Seconds(0),
        totals: entry.totals.map(|totals| RemoteTotals {
            run: totals.session.run,
            uploaded: totals.uploaded,
            downloaded: totals.downloaded,
        }),
    }
}

/// One client, some of many nodes that receive its announces, and one node that receives everything once.
struct Life {
    random: fastrand::Rng,
    many: Site,
    one: Site,
    at: u32,
    uploaded: u64,
    downloaded: u64,
    is_complete: bool,
    lives: u64,
    completions: u64,
}

/// One announce of a step: to one node, or to several.
struct Sent {
    announce: Announce,
    /// Seconds since the start of the step.
    after: u32,
    /// An event that is sent to each node once in this step, with its first announce.
    to_each: Option<AnnounceEvent>,
}

impl Life {
    fn new(seed: u64, nodes: u64) -> Life {
        Life {
            random: fastrand::Rng::with_seed(seed),
            many: Site::new(nodes, seed),
            one: Site::new(1, seed),
            at: BEGIN,
            uploaded: 0,
            downloaded: 0,
            is_complete: false,
            lives: 0,
            completions: 0,
        }
    }

    fn live(mut self, moments: u32) -> Life {
        self.begin();
        for _ in 0..moments {
            self.at += self.random.u32(40..4000);
            self.move_bytes(5_000_000_000);
            match self.random.u8(0..10) {
                0 => self.quit(),
                // Counters near zero cannot be distinguished from a restart.
                1 if self.one.log.last().is_some_and(|entry| entry.uploaded_delta > 1_000_000) => {
                    (self.uploaded, self.downloaded) = (0, 0);
                    self.begin();
                }
                2..4 if !self.is_complete => self.complete(),
                _ => self.announce_in_steps(AnnounceEvent::None),
            }
        }
        // Before anything is claimed, the bonus is unknown.
        self.at += 100;
        self.move_bytes(1000);
        self.announce_in_steps(AnnounceEvent::None);
        self
    }

    fn move_bytes(&mut self, most: u64) {
        self.uploaded += self.random.u64(0..most);
        if !self.is_complete {
            self.downloaded += self.random.u64(0..1000);
        }
    }

    fn begin(&mut self) {
        self.lives += 1;
        self.announce_in_steps(AnnounceEvent::Started);
    }

    fn complete(&mut self) {
        self.is_complete = true;
        self.completions += 1;
        self.announce_in_steps(AnnounceEvent::Completed);
    }

    /// Sends `stopped` to some, and restarts; or continues with its counters.
    fn quit(&mut self) {
        let to_each = Some(AnnounceEvent::Stopped);
        let stop = Sent { announce: self.announce(AnnounceEvent::Stopped), after: 0, to_each };
        self.send(&[stop]);
        self.at += self.random.u32(40..4000);
        if self.random.bool() {
            (self.uploaded, self.downloaded) = (0, 0);
            self.is_complete &= self.random.bool();
        }
        self.begin();
    }

    /// Announces, perhaps several times in a row while bytes move.
    fn announce_in_steps(&mut self, event: AnnounceEvent) {
        let to_each = (event != AnnounceEvent::None).then_some(event);
        let mut sent = vec![Sent { announce: self.announce(event), after: 0, to_each }];
        for _ in 0..self.random.u8(0..4).saturating_sub(1) {
            self.move_bytes(1000);
            let after = sent.last().map_or(0, |word| self.random.u32(word.after..=1));
            sent.push(Sent { announce: self.announce(AnnounceEvent::None), after, to_each });
        }
        self.send(&sent);
    }

    fn send(&mut self, sent: &[Sent]) {
        for word in sent {
            let now = UnixTime(self.at + word.after);
            self.one.receive(0, &Announce { now, ..word.announce });
        }
        for (node, announce) in self.received_by_many(sent) {
            let written = self.many.log.len();
            let until = self.random.usize(self.many.nodes[node].read..=written);
            self.many.read(node, until);
            self.many.receive(node, &announce);
        }
        self.many.read_all();
    }

    /// Which node receives what, in the order of time. The last announce of a step may be a second late at some nodes.
    fn received_by_many(&mut self, sent: &[Sent]) -> Vec<(usize, Announce)> {
        let nodes = self.many.nodes.len();
        let mut has_received = vec![false; nodes];
        let mut reported = Vec::new();
        for (position, word) in sent.iter().enumerate() {
            let surely = self.random.usize(0..nodes);
            let latest = if position + 1 == sent.len() { 1 } else { word.after };
            for (node, has_received) in has_received.iter_mut().enumerate() {
                if node != surely && self.random.bool() {
                    continue;
                }
                let is_first = !std::mem::replace(has_received, true);
                let event = word.to_each.filter(|_| is_first).unwrap_or(AnnounceEvent::None);
                let now = UnixTime(self.at + self.random.u32(word.after..=latest));
                reported.push((node, Announce { event, now, ..word.announce }));
            }
        }
        reported.sort_by_key(|(_, announce)| announce.now);
        reported
    }

    fn announce(&self, event: AnnounceEvent) -> Announce {
        Announce {
            info_hash: info_hash(1),
            passkey: None,
            peer_id: PEER,
            key: ClientKey(77),
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 6881,
            uploaded: self.uploaded,
            downloaded: self.downloaded,
            left: Some(if self.is_complete { 0 } else { SIZE }),
            event,
            numwant: None,
            families: Families::V4,
            now: UnixTime(self.at),
        }
    }
}

pub(super) fn multiplier(percents: (u32, u32), span: (u32, Option<u32>)) -> Multiplier {
    let terms = NewMultiplier {
        scope: Scope::Site,
        upload: Percent::new(percents.0).unwrap(),
        download: Percent::new(percents.1).unwrap(),
        starts_at: UnixTime(BEGIN + span.0),
        ends_at: span.1.map(|end| UnixTime(BEGIN + end)),
        note: String::new(),
    };
    Multiplier { id: 1, terms }
}

fn state_of(multipliers: &Multipliers, batches: std::slice::Chunks<'_, DeliveredEntry>) -> AccountState {
    let mut state = AccountState::default();
    for batch in batches {
        assert_eq!(post_under(multipliers, &mut state, batch).rejected, []);
    }
    state
}

fn figures_of(state: &AccountState) -> crate::Figures {
    assert_eq!(state.users[&user(1)], state.torrents[&torrent(1)]);
    state.users[&user(1)]
}

/// The state from many nodes equals that from one.
#[track_caller]
fn assert_counted_once(life: &Life, batch: usize) {
    let multipliers = Multipliers::new([multiplier((150, 25), (0, None))]);
    let by_many = figures_of(&state_of(&multipliers, life.many.arrivals().chunks(batch)));
    let by_one = figures_of(&state_of(&multipliers, life.one.arrivals().chunks(batch)));
    assert_eq!((by_many.uploaded, by_many.downloaded), (by_one.uploaded, by_one.downloaded));
    assert_eq!(by_many.bonus_uploaded_x100, by_one.bonus_uploaded_x100);
    assert_eq!(by_many.bonus_downloaded_x100, by_one.bonus_downloaded_x100);
    assert_eq!(by_many.completed_count, by_one.completed_count);
    let room = ROUNDING_S * (life.lives + life.completions);
    assert!(by_many.seeding_s.abs_diff(by_one.seeding_s) <= room, "{by_many:?} {by_one:?}");
    assert!(by_many.leeching_s.abs_diff(by_one.leeching_s) <= room, "{by_many:?} {by_one:?}");
}

/// So many runs that the oldest are settled.
#[test]
fn settling_runs_of_several_nodes_changes_no_amount() {
    for seed in 0..6 {
        let life = Life::new(seed, 3).live(300);
        assert!(life.lives > 30, "{}", life.lives);
        assert_counted_once(&life, 7 + seed as usize * 20);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn l2_l4_l5_announces_to_several_nodes_at_once_count_once(seed: u64, nodes in 1..=3_u64) {
        assert_counted_once(&Life::new(seed, nodes).live(24), 1000);
    }

    #[test]
    fn announces_to_several_nodes_at_once_are_order_independent(seed: u64, nodes in 2..=3_u64, batch in 1..40_usize) {
        let free = multiplier((300, 0), (5000, Some(20_000)));
        let multipliers = Multipliers::new([multiplier((150, 50), (0, Some(9000))), free]);
        let arrivals = Life::new(seed, nodes).live(20).many.arrivals();
        let mut shuffled = arrivals.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
        let in_order = state_of(&multipliers, arrivals.chunks(1000));
        prop_assert_eq!(tidied(state_of(&multipliers, shuffled.chunks(batch))), tidied(in_order));
    }
}
