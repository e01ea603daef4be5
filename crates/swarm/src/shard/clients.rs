//! Finding a user's clients on a torrent.
//!
//! A user has few of them, so one search serves the lookup by peer id and key, the limit on clients and the exclusion of
//! the user's own peers. Small swarms are searched member by member; the peers of large ones are in an index.

use std::hash::BuildHasher;

use domain::{AnnounceEvent, ClientKey, InfoHash, PeerId, UserId};
use foldhash::fast::FixedState;

use super::Shard;
use crate::announce::CLIENTS_PER_USER_MAX;

/// The slots of one user's peers in one swarm.
pub(super) struct OwnPeers {
    /// One more than the limit: the peer that joins.
    slots: [u32; CLIENTS_PER_USER_MAX + 1],
    pub(super) count: usize,
}

impl OwnPeers {
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots[..self.count]
    }

    pub(super) fn add(&mut self, slot: u32) {
        self.slots[self.count] = slot;
        self.count += 1;
    }
}

impl Shard {
    pub(super) fn own_peers(&self, swarm: u32, user: UserId) -> OwnPeers {
        let mut own = OwnPeers { slots: [0; CLIENTS_PER_USER_MAX + 1], count: 0 };
        let mut add = |slot: u32| {
            let peer = &self.peers[slot];
            if peer.user == user && peer.swarm() == swarm && own.count < CLIENTS_PER_USER_MAX {
                own.add(slot);
            }
        };
        let members = &self.swarms[swarm].members;
        if members.is_indexed() {
            self.peer_by_user.slots_like(hash_of_user(&self.hasher, swarm, user)).for_each(&mut add);
        } else {
            members.slots_like(user).for_each(&mut add);
        }
        own
    }

    /// Adds a peer to the index of large swarms.
    pub(super) fn index_peer(&mut self, slot: u32) {
        let (peers, hasher) = (&self.peers, &self.hasher);
        let hash_of = |slot| hash_of_user(hasher, peers[slot].swarm(), peers[slot].user);
        self.peer_by_user.insert(hash_of(slot), slot, hash_of);
    }

    pub(super) fn unindex_peer(&mut self, slot: u32) {
        let hash = hash_of_user(&self.hasher, self.peers[slot].swarm(), self.peers[slot].user);
        self.peer_by_user.remove(hash, slot);
    }

    /// Indexes the members of a swarm that has grown, or forgets those of one that has shrunk.
    pub(super) fn switch_index(&mut self, swarm: u32) {
        if !self.swarms[swarm].members.switches_index() {
            return;
        }
        for position in 0..self.swarms[swarm].members.len() {
            let members = &self.swarms[swarm].members;
            let (slot, is_indexed) = (members.all()[position].slot(), members.is_indexed());
            if is_indexed { self.index_peer(slot) } else { self.unindex_peer(slot) }
        }
    }

    /// The announcing peer: by its peer id, else by its key (see [`key_of`]).
    pub(super) fn find_client(&self, own: &OwnPeers, peer_id: &PeerId, key: ClientKey) -> Option<u32> {
        let mut slots = own.slots().iter().copied();
        let by_peer_id = slots.clone().find(|slot| self.peers[*slot].has_peer_id(peer_id));
        by_peer_id.or_else(|| slots.find(|slot| self.peers[*slot].has_key(key)))
    }

    pub(super) fn hash_of_client(&self, info_hash: &InfoHash, user: UserId, peer_id: &PeerId) -> u64 {
        self.hasher.hash_one((info_hash, user, peer_id))
    }
}

/// The key by which a client may be found.
///
/// A `stopped` goes by peer id only: a late one must not remove a restarted client with the same key.
pub(super) fn key_of(event: AnnounceEvent, key: ClientKey) -> ClientKey {
    if event == AnnounceEvent::Stopped { ClientKey::NONE } else { key }
}

fn hash_of_user(hasher: &FixedState, swarm: u32, user: UserId) -> u64 {
    hasher.hash_one((swarm, user))
}
