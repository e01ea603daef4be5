//! The public face: all swarms, in shards behind short locks.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{InfoHash, PeerId, RunId, UnixTime, UserId};
use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::announce::{Announce, AnnounceError, Departure, Outcome, PeerLists, Rules, SwarmCounts};
use crate::copy::{BadCopy, Bytes, Restored, SwarmHead};
use crate::leech_counts::LeechCounts;
use crate::peer_info::PeerInfo;
use crate::remote::{RemoteAnnounce, RemoteOutcome};
use crate::runs::Runs;
use crate::shard::{Replication, Shard};

/// Enough that threads rarely meet, few enough that a shard is worth having.
const SHARDS: usize = 64;

/// All swarms of a node. Every call takes the lock of one shard at a time, for as long as it touches that shard.
#[derive(Debug)]
pub struct Swarms {
    // A mutex, not a read-write lock: every announce writes.
    shards: Box<[Mutex<Shard>]>,
    leech_counts: Arc<LeechCounts>,
    hasher: FixedState,
    /// Whether other nodes cannot be remote.
    holds_remote_peers: AtomicBool,
}

/// Sums over all swarms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmTotals {
    /// Torrents that have, or had, peers since the start.
    pub swarms: usize,
    /// Peers, seeding or leeching.
    pub peers: usize,
    /// Of these, those that seed.
    pub seeders: usize,
    /// Torrents that have a seeder now.
    pub seeded: usize,
    /// Torrents that have a leecher now.
    pub leeched: usize,
}

impl SwarmTotals {
    /// Peers that do not seed.
    pub fn leechers(&self) -> usize {
        self.peers.saturating_sub(self.seeders)
    }
}

impl Swarms {
    /// Empty swarms at `now`. The seed makes hash tables and choices unpredictable to strangers; tests fix it. The
    /// first run's number comes from the clock (see [`RunId`]).
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

    /// Takes an announce: updates the peer and writes the addresses it is given to `lists`, which are emptied first.
    pub fn announce(
        &self,
        announce: &Announce,
        rules: &Rules,
        lists: &mut PeerLists,
    ) -> Result<Outcome, AnnounceError> {
        lists.clear();
        if announce.slots.of_user.is_some() {
            self.count_leeching();
        }
        let hash = self.hasher.hash_one(announce.info_hash);
        self.shard_of(hash).lock().announce(hash, announce, rules, lists)
    }

    /// How many users with new peers were forgotten for want of room: they may be given peer lists anew.
    pub fn join_budgets_displaced(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().join_budgets_displaced()).sum()
    }

    /// Takes in what another node remote, or this one in a former life. Harmless in any order, and twice.
    pub fn apply_remote(&self, remote: &RemoteAnnounce, now: UnixTime, rules: &Rules) -> RemoteOutcome {
        let hash = self.hasher.hash_one(remote.info_hash);
        self.shard_of(hash).lock().apply_remote(hash, Replication { remote, now, rules })
    }

    /// Everything that is known, as bytes, a shard at a time: `each` is called with no lock held. What a shard wrote is
    /// read by [`Swarms::restore`].
    pub fn copy<E>(&self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut bytes = Vec::new();
        for shard in &self.shards {
            bytes.clear();
            shard.lock().copy_to(&mut bytes);
            each(&bytes)?;
        }
        Ok(())
    }

    /// Brings back what [`Swarms::copy`] wrote of one shard, also of a process with another seed; `on_peer` is told of
    /// each peer. What is there already stays as it is.
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

    /// Notes that a torrent was completed at least so often.
    pub fn raise_snatches(&self, info_hash: &InfoHash, snatches: u32) {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().raise_snatches_of(hash, info_hash, snatches);
    }

    /// How many goodbyes were forgotten for want of room: what comes late from other nodes may bring such a peer back.
    pub fn recent_stops_evicted(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().recent_stops_evicted()).sum()
    }

    /// Sees to it that everybody's leeches are counted. The first time this reads every peer, a shard at a time; then it
    /// costs nothing. Whoever is about to limit users calls it before their announces would.
    pub fn count_leeching(&self) {
        self.leech_counts.start_once(|| self.shards.iter().for_each(|shard| shard.lock().begin_counting()));
    }

    /// How many torrents a user leeches at once; zero as long as nobody was ever limited (see
    /// [`Swarms::count_leeching`]).
    pub fn leeches_of(&self, user: UserId) -> u32 {
        self.leech_counts.count_of(user)
    }

    /// The counts of one torrent; zeros for one without peers.
    pub fn scrape(&self, info_hash: &InfoHash) -> SwarmCounts {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().scrape(hash, info_hash)
    }

    /// All peers of one torrent, in no order. Copies them under the shard's lock: for people who look, not for every
    /// announce.
    pub fn peers_of(&self, info_hash: &InfoHash) -> Vec<PeerInfo> {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().peers_of(hash, info_hash)
    }

    /// The counts of every torrent that has, or had, peers, in no order. Copies them a shard at a time: `each` is called
    /// with no lock held. For lists that people look at, not for every announce.
    pub fn each_swarm(&self, mut each: impl FnMut(&InfoHash, SwarmCounts)) {
        let mut counted = Vec::new();
        for shard in &self.shards {
            counted.clear();
            shard.lock().counts_to(&mut counted);
            counted.iter().for_each(|(info_hash, counts)| each(info_hash, *counts));
        }
    }

    /// While nothing is remote from other nodes, nobody whom they remote last is taken for silent.
    pub fn hold_remote_peers(&self, holds: bool) {
        if self.holds_remote_peers.swap(holds, Ordering::Relaxed) != holds {
            self.shards.iter().for_each(|shard| shard.lock().set_receives_remote(!holds));
        }
    }

    /// Takes out every peer that has been silent for `rules.silence_max` (T3). Costs what is due.
    pub fn expire(&self, now: UnixTime, rules: &Rules, mut departed: impl FnMut(Departure)) {
        let holds_remote_peers = self.holds_remote_peers.load(Ordering::Relaxed);
        for shard in &self.shards {
            shard.lock().expire(now, rules, holds_remote_peers, &mut departed);
        }
    }

    /// Takes out a torrent with all its peers and counts.
    pub fn remove_torrent(&self, info_hash: &InfoHash, departed: impl FnMut(Departure)) {
        let hash = self.hasher.hash_one(info_hash);
        self.shard_of(hash).lock().remove_torrent(hash, info_hash, departed);
    }

    /// Takes out all peers for which `is_out` holds. Reads every peer, a shard at a time: for rare orders of an
    /// operator, many of which can be carried out in one pass.
    pub fn remove_peers(
        &self,
        is_out: impl Fn(UserId, &PeerId) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        for shard in &self.shards {
            shard.lock().remove_peers(&is_out, &mut departed);
        }
    }

    /// Takes out all peers that can be reached at a port for which `is_banned` holds. Ports that are never handed out are
    /// not remembered, so nobody is found by one. Reads every peer, like [`Swarms::remove_peers`].
    pub fn remove_peers_on_ports(
        &self,
        is_banned: impl Fn(u16) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        for shard in &self.shards {
            shard.lock().remove_peers_on_ports(&is_banned, &mut departed);
        }
    }

    /// Sums over all swarms. Costs the same however many there are.
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
