//! The swarms of one shard, and the lifecycle of a peer: join, announce, leave, expire.

use domain::wheel::{TimingWheel, Verdict};
use domain::{Announce, AnnounceEvent, ClientId, InfoHash, Seconds, SessionId, UnixTime, UserId};
use fastrand::Rng;
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use crate::announce::{
    AnnounceError, CLIENTS_PER_USER_MAX, Departure, Outcome, PeerLists, Rules, SwarmCounts, Terms,
};
use crate::leech_counts::LeechCounts;
use crate::members::{Addresses, Member, Members, Moved, PEERS_PER_SWARM_MAX, SLOTS_MAX};
use crate::packed_state;
use crate::peer::{Credit, ListDue, Peer};
use crate::runs::Runs;
use crate::slab::Slab;
use crate::slot_index::SlotIndex;

mod clients;
mod completions;
mod copying;
mod join_budget;
mod last_leechers;
mod leech_slots;
mod limits;
mod listing;
mod lists;
mod recent_stops;
mod remote;
mod removal;

use clients::{OwnPeers, key_of};
use completions::Completions;
use join_budget::JoinBudgets;
use last_leechers::OwnLeechers;
use lists::{ListChoice, Requested};
use recent_stops::RecentStops;
pub(crate) use remote::Replication;

/// Horizon of the timing wheel: longer than the default interval + grace.
const WHEEL_HORIZON_S: u32 = 4096;

/// Extension of remote peers that are due, while other nodes are unreachable.
const HOLD: Seconds = Seconds(5);

/// How much too late a peer may expire, because its remote announce is older than the last one of the slot's previous
/// peer.
const EXPIRY_SLACK: Seconds = Seconds(5);

#[derive(Debug)]
struct Swarm {
    info_hash: InfoHash,
    members: Members,
    snatches: u32,
}

// One cache line.
const _: () = assert!(size_of::<Swarm>() == 64);

impl Swarm {
    fn counts(&self) -> SwarmCounts {
        SwarmCounts {
            seeders: self.members.seeder_count(),
            leechers: self.members.leecher_count(),
            snatches: self.snatches,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shard {
    swarms: Slab<Swarm>,
    swarm_by_hash: SlotIndex,
    peers: Slab<Peer>,
    peer_by_user: SlotIndex,
    wheel: TimingWheel,
    random: Rng,
    hasher: FixedState,
    runs: Arc<Runs>,
    /// Seeders in all swarms.
    seeders: usize,
    /// Swarms with at least one seeder.
    seeded: usize,
    /// Swarms with at least one leecher.
    leeched: usize,
    recent_stops: RecentStops,
    join_budgets: JoinBudgets,
    completions: Completions,
    own_leechers: OwnLeechers,
    /// Since when all leechers are known: since the start, or since replication works again.
    knows_since: UnixTime,
    /// The latest time passed to the shard.
    now: UnixTime,
    /// Peers, by slot, with a longer allowed silence: another node sent them a longer interval.
    longer_silences: HashMap<u32, Seconds>,
    /// Over all shards.
    leech_counts: Arc<LeechCounts>,
    /// Whether this shard updates `leech_counts`.
    counts_leeching: bool,
}

impl Shard {
    pub(crate) fn new(
        now: UnixTime,
        random_seed: u64,
        hasher: FixedState,
        runs: Arc<Runs>,
        leech_counts: Arc<LeechCounts>,
    ) -> Self {
        Shard {
            runs,
            leech_counts,
            counts_leeching: false,
            longer_silences: HashMap::new(),
            swarms: Slab::default(),
            swarm_by_hash: SlotIndex::default(),
            peers: Slab::default(),
            peer_by_user: SlotIndex::default(),
            wheel: TimingWheel::new(now, WHEEL_HORIZON_S),
            random: Rng::with_seed(random_seed),
            hasher,
            seeders: 0,
            seeded: 0,
            leeched: 0,
            recent_stops: RecentStops::default(),
            join_budgets: JoinBudgets::default(),
            completions: Completions::default(),
            own_leechers: OwnLeechers::default(),
            knows_since: now,
            now,
        }
    }

    pub(crate) fn peer_count(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn swarm_count(&self) -> usize {
        self.swarms.len()
    }

    pub(crate) fn seeder_count(&self) -> usize {
        self.seeders
    }

    pub(crate) fn seeded_count(&self) -> usize {
        self.seeded
    }

    pub(crate) fn leeched_count(&self) -> usize {
        self.leeched
    }

    pub(crate) fn recent_stops_evicted(&self) -> u64 {
        self.recent_stops.evicted()
    }

    pub(crate) fn announce(
        &mut self,
        hash_of_torrent: u64,
        announce: &Announce,
        terms: &Terms,
        lists: &mut PeerLists,
    ) -> Result<Outcome, AnnounceError> {
        let rules = &terms.rules;
        self.now = self.now.max(announce.now);
        if announce.event == AnnounceEvent::Stopped {
            self.recent_stops.record(
                self.hash_of_client(&announce.info_hash, terms.user, &announce.peer_id),
                announce.now,
            );
        }
        let opens = announce.event != AnnounceEvent::Stopped;
        let Some(swarm) = self.find_or_open_swarm(hash_of_torrent, &announce.info_hash, opens)? else {
            return Ok(self.stop_unknown(hash_of_torrent, announce, terms.user, SwarmCounts::default()));
        };
        let mut own = self.own_peers(swarm, terms.user);
        let known = self.find_client(&own, &announce.peer_id, key_of(announce.event, announce.key));
        if announce.event == AnnounceEvent::Stopped {
            return Ok(match known {
                Some(slot) => self.stop(slot, &own, announce, rules),
                None => self.stop_unknown(hash_of_torrent, announce, terms.user, self.swarms[swarm].counts()),
            });
        }
        if known.is_none() {
            self.check_room(swarm, &own, rules)?;
        }
        let admitted = self
            .count_peer_id(hash_of_torrent, known, announce, terms)
            .and_then(|peer_ids| Ok((peer_ids, self.claim_slot(swarm, &own, announce, terms)?)));
        let (peer_ids, has_slot) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                self.close_unused_swarm(hash_of_torrent, swarm);
                return Err(error);
            }
        };
        let was_leeching = known.is_some_and(|slot| self.is_leeching(slot));
        let (slot, credit, due) = match known {
            Some(slot) => self.heartbeat(slot, &own, announce, rules),
            None => {
                let slot = self.join(swarm, announce, terms);
                own.add(slot);
                (slot, Credit::NOTHING, ListDue::Budgeted)
            }
        };
        if has_slot && announce.is_seeder() {
            self.settle_slot(has_slot, swarm, terms.user);
        }
        let completed = announce.is_seeder() && self.completes(slot, was_leeching, &own);
        let choice = self.list_choice(hash_of_torrent, due, announce.now, terms);
        self.choose_peers(swarm, &own, Requested { announce, wanted: terms.wanted, choice }, lists);
        Ok(Outcome {
            too_soon: due == ListDue::TooSoon,
            completed,
            peer_ids,
            list_withheld: choice == ListChoice::Withheld,
            ..self.outcome(slot, &credit, &announce.info_hash)
        })
    }

    /// Marks a client as complete, and returns whether it completed the download just now: only a client that was a
    /// leecher can, only once, and not by checking files that another client of its user seeds. A starting seeder may
    /// send `completed`, a finishing leecher may not.
    fn completes(&mut self, slot: u32, was_leeching: bool, own: &OwnPeers) -> bool {
        let is_first = self.peers[slot].complete() && was_leeching;
        let has_downloaded = self.peers[slot].downloaded > 0;
        let others_leech = || own.slots().iter().all(|own| *own == slot || self.is_leeching(*own));
        let completed = is_first && (has_downloaded || others_leech());
        if completed {
            self.count_snatch(slot);
        }
        completed
    }

    /// Counts a completion, once per user.
    fn count_snatch(&mut self, slot: u32) {
        let Peer { user, .. } = self.peers[slot];
        let swarm = &mut self.swarms[self.peers[slot].swarm()];
        if self.completions.is_first(self.hasher.hash_one((user, swarm.info_hash))) {
            swarm.snatches = swarm.snatches.saturating_add(1);
        }
    }

    fn outcome(&self, slot: u32, credit: &Credit, info_hash: &InfoHash) -> Outcome {
        let peer = &self.peers[slot];
        Outcome {
            uploaded_delta: credit.uploaded,
            downloaded_delta: credit.downloaded,
            since_last: credit.since_last,
            implausible: credit.implausible,
            upload_without_leechers: credit.upload_without_leechers,
            uncredited_upload: credit.uncredited_upload,
            ..Outcome::of(self.swarms[peer.swarm()].counts(), peer.session(info_hash), peer.key())
        }
    }

    pub(crate) fn scrape(&self, hash_of_torrent: u64, info_hash: &InfoHash) -> SwarmCounts {
        match self.find_swarm(hash_of_torrent, info_hash) {
            Some(swarm) => self.swarms[swarm].counts(),
            None => SwarmCounts::default(),
        }
    }

    /// Removes every peer whose allowed silence has passed.
    pub(crate) fn expire(
        &mut self,
        now: UnixTime,
        rules: &Rules,
        holds_remote_peers: bool,
        mut departed: impl FnMut(Departure),
    ) {
        self.now = self.now.max(now);
        // The wheel is moved out, so that the callback may change the shard.
        let mut wheel = std::mem::replace(&mut self.wheel, TimingWheel::new(now, 1));
        wheel.advance(now, |slot| {
            let peer = &self.peers[slot];
            if peer.is_vacant() {
                return Verdict::Done;
            }
            let deadline = peer.deadline(self.silence_max_of(slot, rules));
            if deadline > now {
                return Verdict::RearmAt(deadline);
            }
            if holds_remote_peers && peer.is_remote() {
                return Verdict::RearmAt(now + HOLD);
            }
            departed(self.departure(slot));
            self.leave(slot);
            Verdict::Done
        });
        self.wheel = wheel;
    }

    /// Allowed silence of a peer.
    fn silence_max_of(&self, slot: u32, rules: &Rules) -> Seconds {
        let longer = self.longer_silences.get(&slot).copied().unwrap_or_default();
        rules.silence_max.max(longer)
    }

    fn set_silence_max(&mut self, slot: u32, silence_max: Seconds, rules: &Rules) {
        if silence_max > rules.silence_max {
            self.longer_silences.insert(slot, silence_max);
        } else if !self.longer_silences.is_empty() {
            self.longer_silences.remove(&slot);
        }
    }

    fn live_peers(&self) -> impl Iterator<Item = (u32, &Peer)> {
        self.peers.iter().filter(|(_, peer)| !peer.is_vacant())
    }

    fn find_swarm(&self, hash_of_torrent: u64, info_hash: &InfoHash) -> Option<u32> {
        self.swarm_by_hash.slots_like(hash_of_torrent).find(|slot| self.swarms[*slot].info_hash == *info_hash)
    }

    /// A swarm opens with its first peer; a `stopped` opens none.
    fn find_or_open_swarm(
        &mut self,
        hash_of_torrent: u64,
        info_hash: &InfoHash,
        opens: bool,
    ) -> Result<Option<u32>, AnnounceError> {
        let found = self.find_swarm(hash_of_torrent, info_hash);
        if found.is_some() || !opens {
            return Ok(found);
        }
        if self.swarms.len() >= packed_state::SWARMS_MAX {
            return Err(AnnounceError::NoRoom);
        }
        let swarm = Swarm { info_hash: *info_hash, members: Members::default(), snatches: 0 };
        let slot = self.swarms.insert(swarm);
        let (swarms, hasher) = (&self.swarms, &self.hasher);
        self.swarm_by_hash.insert(hash_of_torrent, slot, |slot| hasher.hash_one(swarms[slot].info_hash));
        Ok(Some(slot))
    }

    /// Closes a swarm that was opened for an announce that is refused.
    fn close_unused_swarm(&mut self, hash_of_torrent: u64, swarm: u32) {
        if !self.swarms[swarm].members.all().is_empty() || self.swarms[swarm].snatches > 0 {
            return;
        }
        self.swarm_by_hash.remove(hash_of_torrent, swarm);
        self.swarms.release(swarm);
    }

    /// Whether the user may have another client, and the swarm has capacity.
    fn check_room(&self, swarm: u32, own: &OwnPeers, rules: &Rules) -> Result<(), AnnounceError> {
        let limit = rules.clients_per_user_max.min(CLIENTS_PER_USER_MAX as u8);
        if own.count >= usize::from(limit) {
            return Err(AnnounceError::TooManyClients { limit });
        }
        if self.is_full(swarm) { Err(AnnounceError::NoRoom) } else { Ok(()) }
    }

    /// Whether the shard or the swarm has no capacity for another peer.
    fn is_full(&self, swarm: u32) -> bool {
        self.peers.len() >= SLOTS_MAX || self.swarms[swarm].members.len() >= PEERS_PER_SWARM_MAX
    }

    fn join(&mut self, swarm: u32, announce: &Announce, terms: &Terms) -> u32 {
        let peer = Peer::new(terms.user, announce, swarm, self.runs.next());
        let slot = self.admit(peer, Addresses::at(announce.ip, announce.port), &terms.rules);
        self.set_seeder(slot, announce.is_seeder());
        slot
    }

    /// Adds a peer to its swarm, as a leecher.
    fn admit(&mut self, peer: Peer, addresses: Addresses, rules: &Rules) -> u32 {
        let (swarm, user, wheel) = (peer.swarm(), peer.user, &self.wheel);
        let has_no_other = self.peers.slots() >= SLOTS_MAX;
        let slot = self.peers.insert_where(peer, |slot, former| {
            // The wheel checks a slot when its previous peer was due, which must not be too late for this one.
            has_no_other || former.last_announce <= peer.last_announce + EXPIRY_SLACK || !wheel.is_armed(slot)
        });
        let members = &mut self.swarms[swarm].members;
        let position = members.push(Member::new(slot, user), addresses);
        self.leeched += usize::from(members.leecher_count() == 1);
        self.peers[slot].set_position(position);
        if self.swarms[swarm].members.is_indexed() {
            self.index_peer(slot);
        } else {
            self.switch_index(swarm);
        }
        self.wheel.arm(slot, peer.deadline(rules.silence_max));
        slot
    }

    /// An announce of a known peer that stays: what it moved, and whether it gets a peer list.
    fn heartbeat(
        &mut self,
        slot: u32,
        own: &OwnPeers,
        announce: &Announce,
        rules: &Rules,
    ) -> (u32, Credit, ListDue) {
        let due = self.peers[slot].list_due(announce, rules.min_interval);
        let credit = self.credit(slot, own, announce, rules);
        let peer = &self.peers[slot];
        let (swarm, position) = (peer.swarm(), peer.position());
        let left_other_family = peer.other_family_is_stale(rules.silence_max);
        let members = &mut self.swarms[swarm].members;
        members.set_address(position, announce.ip, announce.port);
        if left_other_family {
            // A client that moved to a network with one family is no longer reachable over the other.
            members.clear_address(position, !announce.ip.is_ipv6());
        }
        if announce.is_seeder() {
            self.note_leecher_ends(slot);
        }
        self.set_seeder(slot, announce.is_seeder());
        (slot, credit, due)
    }

    fn stop(&mut self, slot: u32, own: &OwnPeers, announce: &Announce, rules: &Rules) -> Outcome {
        let credit = self.credit(slot, own, announce, rules);
        let completed = announce.left == Some(0) && self.completes(slot, self.is_leeching(slot), own);
        let outcome = Outcome { completed, ..self.outcome(slot, &credit, &announce.info_hash) };
        let swarm = self.peers[slot].swarm();
        self.leave(slot);
        Outcome { counts: self.swarms[swarm].counts(), ..outcome }
    }

    /// A `stopped` of an unknown peer succeeds; otherwise the client would repeat it.
    fn stop_unknown(
        &mut self,
        hash_of_torrent: u64,
        announce: &Announce,
        user: UserId,
        counts: SwarmCounts,
    ) -> Outcome {
        let client = ClientId::derive(user, &announce.info_hash, announce.key, &announce.peer_id);
        let session = SessionId { client, run: self.runs.next() };
        let peer_ids = self.count_new_peer_id(hash_of_torrent, announce, user);
        Outcome { peer_ids, unknown_stop: true, ..Outcome::of(counts, session, announce.key) }
    }

    /// Removes a peer from its swarm. The wheel keeps the slot until its next check, or until the slot is reused.
    fn leave(&mut self, slot: u32) {
        let leeched = self.is_leeching(slot);
        self.note_leecher_ends(slot);
        self.set_seeder(slot, false);
        let (swarm, user, position) = {
            let peer = &mut self.peers[slot];
            peer.vacate();
            (peer.swarm(), peer.user, peer.position())
        };
        if self.swarms[swarm].members.is_indexed() {
            self.unindex_peer(slot);
        }
        let members = &mut self.swarms[swarm].members;
        let moved = members.remove_leecher(position);
        self.leeched -= usize::from(members.leecher_count() == 0);
        self.note_moved(moved);
        self.switch_index(swarm);
        self.peers.release(slot);
        self.longer_silences.remove(&slot);
        if leeched {
            self.settle_slot(leeched, swarm, user);
        }
    }

    fn set_seeder(&mut self, slot: u32, seeder: bool) {
        let peer = &self.peers[slot];
        let members = &mut self.swarms[peer.swarm()].members;
        let Some(moved) = members.set_seeder(peer.position(), seeder) else {
            return;
        };
        let (seeders, leechers) = (members.seeder_count(), members.leecher_count());
        if seeder {
            self.seeders += 1;
            self.seeded += usize::from(seeders == 1);
            self.leeched -= usize::from(leechers == 0);
        } else {
            self.seeders -= 1;
            self.seeded -= usize::from(seeders == 0);
            self.leeched += usize::from(leechers == 1);
        }
        self.note_moved(moved);
    }

    fn note_moved(&mut self, moved: impl IntoIterator<Item = Moved>) {
        for Moved { slot, to } in moved {
            self.peers[slot].set_position(to);
        }
    }

    fn departure(&self, slot: u32) -> Departure {
        let peer = &self.peers[slot];
        let swarm = &self.swarms[peer.swarm()];
        Departure {
            info_hash: swarm.info_hash,
            user: peer.user,
            peer_id: peer.peer_id,
            address: swarm.members.addresses(peer.position()).first(),
            uploaded: peer.uploaded,
            downloaded: peer.downloaded,
            seeder: swarm.members.is_seeder(peer.position()),
            last_announce: peer.last_announce,
            session: peer.session(&swarm.info_hash),
            key: peer.key,
            silence_max: self.longer_silences.get(&slot).copied().unwrap_or_default(),
        }
    }
}
