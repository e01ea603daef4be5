//! A torrent in the memory of the process that writes, and the rules by which entries change it. Pure.
//!
//! Entries are applied in journal order, each once: those up to the watermark are only noted, so that what follows from
//! them is written again.

use std::collections::{BTreeMap, HashMap};

use domain::{InfoHash, PeerId, TorrentId, UserId};
use journal::EntryId;

use super::fold::{EntryKind, MirrorEntry};
use super::stored_peer::{SHARED_MAX, StoredPeer};
use super::user_figures::UserFigures;

/// Whether a torrent is in a user's sets active, complete, incomplete, hit and run (M8).
pub(super) type Memberships = [bool; 4];

/// M4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) announces: u64,
    pub(super) leechers: u64,
    pub(super) seeders: u64,
    pub(super) snatches: u64,
}

/// What the indexes have of a torrent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) counts: Counts,
    /// Whether it is in all of them.
    pub(super) is_whole: bool,
}

/// What Redis has of a torrent, as far as it was read.
#[derive(Debug)]
pub(super) struct Torrent {
    pub(super) info_hash: InfoHash,
    /// The torrent that has the keys named by the infohash: two may have had it, one after the other.
    pub(super) owner: Option<TorrentId>,
    /// Whether there is a state hash.
    pub(super) is_stored: bool,
    pub(super) watermark: EntryId,
    pub(super) counts: Counts,
    pub(super) indexed: Indexed,
    /// Those that were read; without users if there is nothing of a peer.
    pub(super) peers: HashMap<PeerId, Vec<StoredPeer>>,
    /// Those that were read.
    pub(super) users: HashMap<UserId, Option<UserFigures>>,
}

/// What entries of one batch did.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) peers: BTreeMap<PeerId, PeerChange>,
    pub(super) users: BTreeMap<UserId, UserChange>,
    /// Entries that had been applied before.
    pub(super) repeated: u64,
    pub(super) has_announce: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerChange {
    pub(super) was_active: bool,
    pub(super) is_changed: bool,
    /// By a timeout.
    pub(super) is_expired: bool,
    pub(super) is_repeated: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UserChange {
    pub(super) before: Option<UserFigures>,
    pub(super) is_repeated: bool,
}

impl Torrent {
    pub(super) fn is_active(&self, peer: &PeerId) -> bool {
        self.peers.get(peer).is_some_and(|all| all.iter().any(|stored| stored.is_active))
    }

    pub(super) fn figures(&self, user: UserId) -> Option<UserFigures> {
        self.users.get(&user).copied().flatten()
    }

    pub(super) fn apply(&mut self, entries: &[MirrorEntry]) -> Changes {
        let mut changes = Changes::default();
        for entry in entries {
            let was_active = self.is_active(&entry.peer);
            let peer =
                changes.peers.entry(entry.peer).or_insert(PeerChange { was_active, ..PeerChange::default() });
            if entry.id <= self.watermark {
                peer.is_repeated = true;
                peer.is_expired = entry.kind == EntryKind::Timeout;
                changes.repeated += 1;
                self.user_mut(entry.user, &mut changes);
                changes.users.entry(entry.user).or_default().is_repeated = true;
                continue;
            }
            self.watermark = entry.id;
            changes.has_announce |= matches!(entry.kind, EntryKind::Announce | EntryKind::Completed);
            self.apply_one(entry, &mut changes);
        }
        changes
    }

    fn apply_one(&mut self, entry: &MirrorEntry, changes: &mut Changes) {
        if matches!(entry.kind, EntryKind::Timeout | EntryKind::Removal) {
            return self.deactivate(entry, changes);
        }
        self.counts.announces += 1;
        let user = self.user_mut(entry.user, changes).get_or_insert_default();
        user.was_removed = false;
        let is_first_snatch = entry.kind == EntryKind::Completed && !user.has_snatched;
        user.has_snatched |= is_first_snatch;
        user.is_complete |= entry.is_complete == Some(true);
        user.has_leeched |= entry.is_complete == Some(false);
        self.counts.snatches += u64::from(is_first_snatch);
        if entry.kind == EntryKind::Stopped {
            return self.deactivate(entry, changes);
        }
        let stored = match self.stored(entry) {
            Some(stored) => stored,
            None => self.new_stored(entry, changes),
        };
        if entry.at >= stored.last {
            self.update(stored, entry, true, changes);
        }
    }

    fn deactivate(&mut self, entry: &MirrorEntry, changes: &mut Changes) {
        let is_stop = entry.kind == EntryKind::Stopped;
        match self.stored(entry) {
            Some(stored) if stored.last <= entry.since && (stored.is_active || is_stop) => {
                self.update(stored, entry, false, changes);
            }
            Some(_) => {}
            // An unknown peer: stopped is recorded, timeout and removal are not.
            None if is_stop => {
                let stored = self.new_stored(entry, changes);
                self.update(stored, entry, false, changes);
            }
            None => {}
        }
    }

    /// A user's figures; remembers what they were before the batch.
    fn user_mut(&mut self, user: UserId, changes: &mut Changes) -> &mut Option<UserFigures> {
        let figures = self.users.entry(user).or_default();
        changes.users.entry(user).or_insert(UserChange { before: *figures, is_repeated: false });
        figures
    }

    /// Counts an active user of a peer id, or no longer.
    fn count(&mut self, stored: &StoredPeer, is_more: bool, changes: &mut Changes) {
        let add = |count: &mut u64| *count = if is_more { *count + 1 } else { count.saturating_sub(1) };
        add(if stored.is_complete { &mut self.counts.seeders } else { &mut self.counts.leechers });
        add(&mut self.user_mut(stored.user, changes).get_or_insert_default().peers);
    }

    fn stored(&self, entry: &MirrorEntry) -> Option<StoredPeer> {
        self.peers.get(&entry.peer)?.iter().find(|stored| stored.user == entry.user).cloned()
    }

    /// A user who is new under its peer id; makes room for it.
    fn new_stored(&mut self, entry: &MirrorEntry, changes: &mut Changes) -> StoredPeer {
        let all = self.peers.entry(entry.peer).or_default();
        if all.len() >= SHARED_MAX {
            let evicted = all.remove(0);
            if evicted.is_active {
                self.count(&evicted, false, changes);
            }
        }
        StoredPeer::new(entry.user, entry.at)
    }

    /// Applies an entry to a user of a peer id, and moves it to the end.
    fn update(
        &mut self,
        mut stored: StoredPeer,
        entry: &MirrorEntry,
        is_active: bool,
        changes: &mut Changes,
    ) {
        if stored.is_active {
            self.count(&stored, false, changes);
        }
        match entry.kind {
            EntryKind::Removal => {
                self.user_mut(entry.user, changes).get_or_insert_default().was_removed = true;
            }
            EntryKind::Timeout => {}
            EntryKind::Announce | EntryKind::Completed | EntryKind::Stopped => {
                self.add_time(&mut stored, entry, changes);
            }
        }
        stored.is_active = is_active;
        stored.speeds = (0.0, 0.0);
        if is_active {
            stored.speeds = (entry.speed_up, entry.speed_down);
            stored.announce = entry.last_announce.as_str().into();
            stored.reap_after = entry.reap_after;
            self.count(&stored, true, changes);
        }
        let all = self.peers.entry(entry.peer).or_default();
        all.retain(|other| other.user != stored.user);
        all.push(stored);
        if all.iter().all(|stored| !stored.is_active) {
            // Without an active user, only the shown one is kept.
            *all = StoredPeer::shown(all).cloned().into_iter().collect();
        }
        let change = changes.peers.entry(entry.peer).or_default();
        change.is_changed = true;
        change.is_expired = entry.kind == EntryKind::Timeout;
    }

    fn add_time(&mut self, stored: &mut StoredPeer, entry: &MirrorEntry, changes: &mut Changes) {
        let gap = entry.at.since(stored.last);
        if stored.is_active && gap <= stored.reap_after {
            stored.active_s += u64::from(gap.0);
            let user = self.user_mut(entry.user, changes).get_or_insert_default();
            // As in the ledger: time of two concurrent clients counts once.
            let from = u64::from(stored.last.0).max(user.counted_until);
            user.active_s += u64::from(entry.at.0).saturating_sub(from);
            user.counted_until = user.counted_until.max(u64::from(entry.at.0));
        }
        if let Some(is_complete) = entry.is_complete {
            stored.is_complete = is_complete;
        }
        stored.last = entry.at;
    }
}
