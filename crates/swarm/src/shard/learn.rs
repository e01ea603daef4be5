//! What other nodes heard, brought into the swarms of a shard.
//!
//! # Guarantees
//!
//! - The same words in another order, or some of them twice, lead to the same swarms: of each client the latest word
//!   counts; within a run the highest totals; of each address family the latest address.
//! - Within one second nobody can tell what was later. There a client that has everything beats one that has not, and
//!   otherwise the order in which the words arrive decides.
//!
//! # Deliberately absent
//!
//! Limits: another node has let the client in. Only what has no room here stays out.

use domain::{AHEAD_MAX, AnnounceEvent, Cause, UnixTime};

use super::{Shard, key_of};
use crate::announce::{CLIENTS_PER_USER_MAX, Rules};
use crate::heard::{Heard, Learnt};
use crate::members::Member;
use crate::peer::Peer;
use crate::place;

/// Something heard, and the moment it is learnt.
#[derive(Clone, Copy)]
pub(crate) struct Lesson<'a> {
    pub(crate) heard: &'a Heard,
    pub(crate) now: UnixTime,
    pub(crate) rules: &'a Rules,
}

impl Shard {
    /// Takes in what another node heard.
    pub(crate) fn learn(&mut self, hash_of_torrent: u64, lesson: Lesson<'_>) -> Learnt {
        let Lesson { heard, now, rules } = lesson;
        self.now = self.now.max(now);
        if heard.at > now + AHEAD_MAX {
            return Learnt::Ahead;
        }
        if heard.event == AnnounceEvent::Stopped {
            return self.learn_end(hash_of_torrent, heard, rules);
        }
        if heard.at + rules.silence_max.max(heard.silence_max) <= now {
            return Learnt::Overdue;
        }
        // What was said before a goodbye is of a life that is over, whether or not the client has come back since.
        let client = self.hash_of_client(&heard.info_hash, heard.user, &heard.peer_id);
        if self.farewells.of(client).is_some_and(|farewell| heard.at < farewell) {
            return Learnt::Late;
        }
        let found = self.find_swarm(hash_of_torrent, &heard.info_hash);
        let own = found.map(|swarm| self.own_peers(swarm, heard.user));
        let known = own.as_ref().and_then(|own| self.find_client(own, &heard.peer_id, heard.key));
        let Some(slot) = known else {
            return self.learn_newcomer(hash_of_torrent, lesson, own.map_or(0, |own| own.count));
        };
        let learnt = match heard.at >= self.peers[slot].last_announce {
            true => self.learn_word(slot, heard, rules),
            false => self.learn_late_word(slot, heard, rules),
        };
        self.learn_completion(slot, heard);
        learnt
    }

    fn learn_newcomer(&mut self, hash_of_torrent: u64, lesson: Lesson<'_>, clients: usize) -> Learnt {
        let Lesson { heard, rules, .. } = lesson;
        let Ok(Some(swarm)) = self.find_or_open_swarm(hash_of_torrent, &heard.info_hash, true) else {
            return Learnt::NoRoom;
        };
        let is_full = self.swarms[swarm].members.all().len() >= place::PEERS_PER_SWARM_MAX;
        if is_full || clients >= CLIENTS_PER_USER_MAX {
            return Learnt::NoRoom;
        }
        let slot = self.admit(Peer::of_heard(heard, swarm), Member::at(heard.ip, heard.port), rules);
        self.set_silence_max(slot, heard.silence_max, rules);
        self.set_seeder(slot, heard.is_seeder());
        // A first client that leeches takes a slot; of others the count knows already.
        let had_slot = self
            .own_peers(swarm, heard.user)
            .slots()
            .iter()
            .any(|own| *own != slot && self.is_leeching(*own));
        self.settle_slot(had_slot, swarm, heard.user);
        self.learn_completion(slot, heard);
        Learnt::Applied
    }

    /// The last word on a known peer.
    fn learn_word(&mut self, slot: u32, heard: &Heard, rules: &Rules) -> Learnt {
        let peer = &mut self.peers[slot];
        let is_same_second = heard.at == peer.last_announce;
        peer.hear(heard);
        let (swarm, position) = (peer.swarm(), peer.position());
        let left_other_family = peer.other_family_is_stale(rules.silence_max);
        self.set_silence_max(slot, heard.silence_max, rules);
        let member = self.swarms[swarm].members.member_mut(position);
        member.set_address(heard.ip, heard.port);
        if left_other_family {
            member.forget_address(!heard.ip.is_ipv6());
        }
        let was_seeder = !self.is_leeching(slot);
        let is_seeder = heard.is_seeder() || is_same_second && was_seeder;
        if is_seeder != was_seeder {
            let had_slot = self.any_leeches(&self.own_peers(swarm, heard.user));
            self.note_leecher_ends(slot);
            self.set_seeder(slot, is_seeder);
            self.settle_slot(had_slot, swarm, heard.user);
        }
        Learnt::Applied
    }

    /// A word on a known peer that is not its last.
    fn learn_late_word(&mut self, slot: u32, heard: &Heard, rules: &Rules) -> Learnt {
        let peer = &mut self.peers[slot];
        if peer.hear_late(heard, rules.silence_max) {
            let (swarm, position) = (peer.swarm(), peer.position());
            self.swarms[swarm].members.member_mut(position).set_address(heard.ip, heard.port);
        }
        Learnt::Late
    }

    fn learn_completion(&mut self, slot: u32, heard: &Heard) {
        if heard.event == AnnounceEvent::Completed && self.peers[slot].complete() {
            self.count_snatch(slot);
        }
    }

    /// The end of a peer: a goodbye, an order of the site, or too long a silence.
    fn learn_end(&mut self, hash_of_torrent: u64, heard: &Heard, rules: &Rules) -> Learnt {
        let is_timeout = heard.cause == Cause::Timeout;
        if !is_timeout {
            let client = self.hash_of_client(&heard.info_hash, heard.user, &heard.peer_id);
            self.farewells.note(client, heard.at);
        }
        let Some(swarm) = self.find_swarm(hash_of_torrent, &heard.info_hash) else {
            return Learnt::Late;
        };
        let own = self.own_peers(swarm, heard.user);
        let Some(slot) = self.find_client(&own, &heard.peer_id, key_of(heard.event, heard.key)) else {
            return Learnt::Late;
        };
        // A silence is over as soon as somebody has heard the peer since it began.
        let silent_since = heard.at - heard.since_last.unwrap_or(rules.silence_max);
        let ends = match is_timeout {
            true => self.peers[slot].last_announce <= silent_since,
            false => self.peers[slot].last_announce <= heard.at,
        };
        if ends {
            self.leave(slot);
            return Learnt::Applied;
        }
        if !is_timeout && self.peers[slot].forgets_other_family(heard.at) {
            let (position, was_v6) = (self.peers[slot].position(), self.peers[slot].last_was_v6());
            self.swarms[swarm].members.member_mut(position).forget_address(!was_v6);
        }
        Learnt::Late
    }
}
