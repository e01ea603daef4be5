//! The public interface: all swarms, in shards behind short locks.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{Announce, InfoHash, PeerId, RunId, UnixTime, UserId};
use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::announce::{AnnounceError, Departure, Outcome, PeerLists, Rules, SwarmCounts, Terms};
use crate::copy::{BadCopy, Bytes, Restored, SwarmHead};
use crate::leech_counts::LeechCounts;
use crate::peer_info::PeerInfo;
use crate::remote::{RemoteAnnounce, RemoteOutcome};
use crate::runs::Runs;
use crate::shard::{Replication, Shard};

/// Enough to avoid contention, few enough to keep shards large.
const SHARDS: usize = 64;

/// All swarms of a node. Every call locks one shard at a time, briefly.
#[derive(Debug)]
pub struct Swarms {
    // A mutex, not a read-write lock: every announce writes.
    shards: Box<[Mutex<Shard>]>,
    leech_counts: Arc<LeechCounts>,
    hasher: FixedState,
    /// Whether remote announces are missing at present.
    holds_remote_peers: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmTotals {
    /// Torrents that have, or had, peers since the start.
    pub swarms: usize,
    pub peers: usize,
    pub seeders: usize,
    /// Torrents with a seeder.
    pub seeded: usize,
    /// Torrents with a leecher.
    pub leeched: usize,
}

impl SwarmTotals {
    pub fn leechers(&self) -> usize {
        self.peers.saturating_sub(self.seeders)
    }
}

impl Swarms {
    /// The seed makes hash tables and choices unpredictable for clients; tests fix it. The first run's number comes
    /// from the clock (see [`RunId`]).
    pub fn new(now: UnixTime, seed: u64, first_run: RunId) -> Self {
        let hasher = FixedState::with_seed(seed);
        let runs = Arc::new(Runs::starting_with(first_run));
        let leech_counts = Arc::new(LeechCounts::new(hasher.clone()));
        let shards = (0..SHARDS as u64)
            .map(|shard| {
                let seed = seed.wrapping_add(shard);
                let (runs, leech_counts) = (Arc::clone(&runs), Arc::clone(&leech_counts));
                Mutex::new(Shard::new(now, seed, hasher.clone(), runs, leech_counts))
            })
            .collect();
        Swarms { shards, leech_counts, hasher, holds_remote_peers: AtomicBool::new(false) }
    }

    /// Updates the peer and writes the returned addresses to `lists`, which are cleared first.
    pub fn announce(
        &self,
        announce: &Announce,
        terms: &Terms,
        lists: &mut PeerLists,
    ) -> Result<Outcome, AnnounceError> {
        lists.clear();
        if terms.slots.of_user.is_some() {
            self.count_leeching();
        }
        let hash = self.hasher.hash_one(announce.info_hash);
        self.shard_of(hash).lock().announce(hash, announce, terms, lists)
    }

    /// Budgets evicted because the table was full: their users may get peer lists again.
    pub fn join_budgets_displaced(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().join_budgets_displaced()).sum()
    }

    /// Applies an announce that another node received, or an earlier process of this node. Idempotent, in any order.
    pub fn apply_remote(&self, remote: &RemoteAnnounce, now: UnixTime, rules: &Rules) -> RemoteOutcome {
        let hash = self.hasher.hash_one(remote.info_hash);
        self.shard_of(hash).lock().apply_remote(hash, Replication { remote, now, rules })
    }

    /// Everything as bytes, shard by shard: `each` is called with no lock held. The bytes of a shard are read by
    /// [`Swarms::restore`].
    pub fn copy<E>(&self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut bytes = Vec::new();
        for shard in &self.shards {
            bytes.clear();
            shard.lock().copy_to(&mut bytes);
            each(&bytes)?;
        }
        Ok(())
    }

    /// Restores what [`Swarms::copy`] wrote for one shard, also under another seed; `on_peer` is called for each peer.
    /// Existing peers are unchanged.
    pub fn restore(
        &self,
        bytes: &[u8],
        rules: &Rules,
        mut on_peer: impl FnMut(&InfoHash, UserId),
    ) -> Result<Restored, BadCopy> {
        let mut bytes = Bytes(bytes);
        let mut restored = Restored::default();
        while !bytes.0.is_empty() {
            let head = SwarmHead::read(&mut bytes)?;
            let hash = self.hasher.hash_one(head.info_hash);
            let one = self.shard_of(hash).lock().restore(hash, &head, &mut bytes, rules, &mut on_peer)?;
            restored.swarms += one.swarms;
            restored.peers += one.peers;
            restored.left_out += one.left_out;
        }
        Ok(restored)
    }

    /// Raises the number of completions of a torrent to at least this.
    pub fn raise_snatches(&self, info_hash: &InfoHash, snatches: u32) {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().raise_snatches_of(hash, info_hash, snatches);
    }

    /// Recent `stopped` events evicted because the table was full: a late remote announce may add such a peer again.
    pub fn recent_stops_evicted(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().recent_stops_evicted()).sum()
    }

    /// Starts counting leeched torrents per user. The first call reads every peer, shard by shard; later calls cost
    /// nothing. To be called before users are limited.
    pub fn count_leeching(&self) {
        self.leech_counts.start_once(|| self.shards.iter().for_each(|shard| shard.lock().begin_counting()));
    }

    /// Torrents that a user leeches at once; zero before [`Swarms::count_leeching`].
    pub fn leeches_of(&self, user: UserId) -> u32 {
        self.leech_counts.count_of(user)
    }

    /// Zeros for a torrent without peers.
    pub fn scrape(&self, info_hash: &InfoHash) -> SwarmCounts {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().scrape(hash, info_hash)
    }

    /// All peers of one torrent, unordered. Copies them under the shard's lock: for the API, not for announces.
    pub fn peers_of(&self, info_hash: &InfoHash) -> Vec<PeerInfo> {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().peers_of(hash, info_hash)
    }

    /// The counts of every torrent that has, or had, peers, unordered. Copies them shard by shard: `each` is called
    /// with no lock held. For the API, not for announces.
    pub fn each_swarm(&self, mut each: impl FnMut(&InfoHash, SwarmCounts)) {
        let mut counted = Vec::new();
        for shard in &self.shards {
            counted.clear();
            shard.lock().counts_to(&mut counted);
            counted.iter().for_each(|(info_hash, counts)| each(info_hash, *counts));
        }
    }

    /// While replication is interrupted, peers whose last announce another node received do not expire.
    pub fn hold_remote_peers(&self, holds: bool) {
        if self.holds_remote_peers.swap(holds, Ordering::Relaxed) != holds {
            self.shards.iter().for_each(|shard| shard.lock().set_receives_remote(!holds));
        }
    }

    /// Removes every peer that has been silent for `rules.silence_max` (T3). Costs time proportional to what is due.
    pub fn expire(&self, now: UnixTime, rules: &Rules, mut departed: impl FnMut(Departure)) {
        let holds_remote_peers = self.holds_remote_peers.load(Ordering::Relaxed);
        for shard in &self.shards {
            shard.lock().expire(now, rules, holds_remote_peers, &mut departed);
        }
    }

    /// Removes a torrent with all its peers and counts.
    pub fn remove_torrent(&self, info_hash: &InfoHash, departed: impl FnMut(Departure)) {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().remove_torrent(hash, info_hash, departed);
    }

    /// Removes all peers for which `is_out` is true. Reads every peer, shard by shard: for rare operations, many of
    /// which can be combined in one pass.
    pub fn remove_peers(
        &self,
        is_out: impl Fn(UserId, &PeerId) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        for shard in &self.shards {
            shard.lock().remove_peers(&is_out, &mut departed);
        }
    }

    /// Removes all peers that can be reached at a port for which `is_banned` is true. Ports that are never returned are
    /// not stored, so they match nothing. Reads every peer, like [`Swarms::remove_peers`].
    pub fn remove_peers_on_ports(
        &self,
        is_banned: impl Fn(u16) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        for shard in &self.shards {
            shard.lock().remove_peers_on_ports(&is_banned, &mut departed);
        }
    }

    /// Sums over all swarms, in constant time.
    pub fn totals(&self) -> SwarmTotals {
        let mut totals = SwarmTotals::default();
        for shard in &self.shards {
            let shard = shard.lock();
            totals.swarms += shard.swarm_count();
            totals.peers += shard.peer_count();
            totals.seeders += shard.seeder_count();
            totals.seeded += shard.seeded_count();
            totals.leeched += shard.leeched_count();
        }
        totals
    }

    fn shard_of(&self, hash: u64) -> &Mutex<Shard> {
        // Hash tables use the lowest and the highest bits of the same hash.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}
