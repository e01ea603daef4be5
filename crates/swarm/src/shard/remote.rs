//! Applies remote announces to the swarms of a shard.
//!
//! # Guarantees
//!
//! - Neither order nor repetition matters: of each client the latest announce counts; within a run the highest totals;
//!   of each address family the latest address.
//! - The order within one second is unknown. There a complete client takes precedence, and otherwise the order of
//!   arrival.
//!
//! # Deliberately absent
//!
//! Limits: another node has admitted the client. Only capacity is checked.

use domain::{AHEAD_MAX, AnnounceEvent, Cause, UnixTime};

use super::Shard;
use super::clients::key_of;
use crate::announce::{CLIENTS_PER_USER_MAX, Rules};
use crate::members::Addresses;
use crate::peer::Peer;
use crate::remote::{RemoteAnnounce, RemoteOutcome};

/// A remote announce with the time and rules to apply it.
#[derive(Clone, Copy)]
pub(crate) struct Replication<'a> {
    pub(crate) remote: &'a RemoteAnnounce,
    pub(crate) now: UnixTime,
    pub(crate) rules: &'a Rules,
}

impl Shard {
    pub(crate) fn apply_remote(
        &mut self,
        hash_of_torrent: u64,
        replication: Replication<'_>,
    ) -> RemoteOutcome {
        let Replication { remote, now, rules } = replication;
        self.now = self.now.max(now);
        if remote.at > now + AHEAD_MAX {
            return RemoteOutcome::Ahead;
        }
        if remote.event == AnnounceEvent::Stopped {
            return self.apply_end(hash_of_torrent, remote, rules);
        }
        if remote.at + rules.silence_max.max(remote.silence_max) <= now {
            return RemoteOutcome::Overdue;
        }
        // An announce before a `stopped` belongs to an ended session, whether or not the client has returned since.
        let client = self.hash_of_client(&remote.info_hash, remote.user, &remote.peer_id);
        if self.recent_stops.of(client).is_some_and(|stop| remote.at < stop) {
            return RemoteOutcome::Late;
        }
        let found = self.find_swarm(hash_of_torrent, &remote.info_hash);
        let own = found.map(|swarm| self.own_peers(swarm, remote.user));
        let known = own.as_ref().and_then(|own| self.find_client(own, &remote.peer_id, remote.key));
        let Some(slot) = known else {
            return self.add_remote_peer(hash_of_torrent, replication, own.map_or(0, |own| own.count));
        };
        let outcome = match remote.at >= self.peers[slot].last_announce {
            true => self.apply_latest(slot, remote, rules),
            false => self.apply_late(slot, remote, rules),
        };
        self.apply_completion(slot, remote);
        outcome
    }

    fn add_remote_peer(
        &mut self,
        hash_of_torrent: u64,
        replication: Replication<'_>,
        clients: usize,
    ) -> RemoteOutcome {
        let Replication { remote, rules, .. } = replication;
        let Ok(Some(swarm)) = self.find_or_open_swarm(hash_of_torrent, &remote.info_hash, true) else {
            return RemoteOutcome::NoRoom;
        };
        if self.is_full(swarm) || clients >= CLIENTS_PER_USER_MAX {
            return RemoteOutcome::NoRoom;
        }
        let slot = self.admit(Peer::from_remote(remote, swarm), Addresses::at(remote.ip, remote.port), rules);
        self.set_silence_max(slot, remote.silence_max, rules);
        self.set_seeder(slot, remote.is_seeder());
        // The first leeching client takes a slot; further ones are already counted.
        let had_slot = self
            .own_peers(swarm, remote.user)
            .slots()
            .iter()
            .any(|own| *own != slot && self.is_leeching(*own));
        self.settle_slot(had_slot, swarm, remote.user);
        self.apply_completion(slot, remote);
        RemoteOutcome::Applied
    }

    /// The latest announce of a known peer.
    fn apply_latest(&mut self, slot: u32, remote: &RemoteAnnounce, rules: &Rules) -> RemoteOutcome {
        let peer = &mut self.peers[slot];
        let is_same_second = remote.at == peer.last_announce;
        peer.apply_remote(remote);
        let (swarm, position) = (peer.swarm(), peer.position());
        let left_other_family = peer.other_family_is_stale(rules.silence_max);
        self.set_silence_max(slot, remote.silence_max, rules);
        let members = &mut self.swarms[swarm].members;
        members.set_address(position, remote.ip, remote.port);
        if left_other_family {
            members.clear_address(position, !remote.ip.is_ipv6());
        }
        let was_seeder = !self.is_leeching(slot);
        let is_seeder = remote.is_seeder() || is_same_second && was_seeder;
        if is_seeder != was_seeder {
            let had_slot = self.any_leeches(&self.own_peers(swarm, remote.user));
            self.note_leecher_ends(slot);
            self.set_seeder(slot, is_seeder);
            self.settle_slot(had_slot, swarm, remote.user);
        }
        RemoteOutcome::Applied
    }

    /// An announce of a known peer that is not the latest.
    fn apply_late(&mut self, slot: u32, remote: &RemoteAnnounce, rules: &Rules) -> RemoteOutcome {
        let peer = &mut self.peers[slot];
        if peer.apply_late_remote(remote, rules.silence_max) {
            let (swarm, position) = (peer.swarm(), peer.position());
            self.swarms[swarm].members.set_address(position, remote.ip, remote.port);
        }
        RemoteOutcome::Late
    }

    fn apply_completion(&mut self, slot: u32, remote: &RemoteAnnounce) {
        if remote.event == AnnounceEvent::Completed && self.peers[slot].complete() {
            self.count_snatch(slot);
        }
    }

    /// The end of a peer: `stopped`, removal or timeout.
    fn apply_end(&mut self, hash_of_torrent: u64, remote: &RemoteAnnounce, rules: &Rules) -> RemoteOutcome {
        let is_timeout = remote.cause == Cause::Timeout;
        if !is_timeout {
            let client = self.hash_of_client(&remote.info_hash, remote.user, &remote.peer_id);
            self.recent_stops.record(client, remote.at);
        }
        let Some(swarm) = self.find_swarm(hash_of_torrent, &remote.info_hash) else {
            return RemoteOutcome::Late;
        };
        let own = self.own_peers(swarm, remote.user);
        let Some(slot) = self.find_client(&own, &remote.peer_id, key_of(remote.event, remote.key)) else {
            return RemoteOutcome::Late;
        };
        // A timeout is void if any node received an announce since the silence began.
        let silent_since = remote.at - remote.since_last.unwrap_or(rules.silence_max);
        let ends = match is_timeout {
            true => self.peers[slot].last_announce <= silent_since,
            false => self.peers[slot].last_announce <= remote.at,
        };
        if ends {
            self.leave(slot);
            return RemoteOutcome::Applied;
        }
        if !is_timeout && self.peers[slot].clear_stale_other_family(remote.at) {
            let (position, was_v6) = (self.peers[slot].position(), self.peers[slot].last_was_v6());
            self.swarms[swarm].members.clear_address(position, !was_v6);
        }
        RemoteOutcome::Late
    }
}
