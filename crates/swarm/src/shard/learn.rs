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
//! Limits: another node has let the client in, which counts here and is never refused. Only what has no room stays out.

use domain::{AnnounceEvent, Cause, Seconds, UnixTime};

use super::{Shard, key_of};
use crate::announce::{CLIENTS_PER_USER_MAX, Rules};
use crate::heard::{Heard, Learnt};
use crate::members::Member;
use crate::peer::Peer;
use crate::place;

/// How far the clock of another node may be ahead of ours. What claims to be later still is not believed, or one wrong
/// clock would keep a peer for ever.
const AHEAD_MAX: Seconds = Seconds(600);

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
        if heard.at > now + AHEAD_MAX {
            return Learnt::Ahead;
        }
        if heard.event == AnnounceEvent::Stopped {
            return self.learn_end(hash_of_torrent, heard, rules);
        }
        let found = self.find_swarm(hash_of_torrent, &heard.info_hash);
        let own = found.map(|swarm| self.own_peers(swarm, heard.user));
        let known = own.as_ref().and_then(|own| self.find_client(own, &heard.peer_id, heard.key));
        let had_slot = own.as_ref().is_some_and(|own| self.any_leeches(own));
        let Some(slot) = known else {
            return self.learn_newcomer(hash_of_torrent, lesson, own.map_or(0, |own| own.count), had_slot);
        };
        let learnt = match heard.at >= self.peers[slot].last_announce {
            true => self.learn_word(slot, heard, rules),
            false => self.learn_late_word(slot, heard, rules),
        };
        self.settle_slot(had_slot, self.peers[slot].swarm(), heard.user);
        self.learn_completion(slot, heard);
        learnt
    }

    fn learn_newcomer(
        &mut self,
        hash_of_torrent: u64,
        lesson: Lesson<'_>,
        clients: usize,
        had_slot: bool,
    ) -> Learnt {
        let Lesson { heard, now, rules } = lesson;
        let client = self.hash_of_client(&heard.info_hash, heard.user, &heard.peer_id);
        if self.farewells.of(client).is_some_and(|farewell| heard.at < farewell) {
            return Learnt::Late;
        }
        if heard.at + rules.silence_max <= now {
            return Learnt::Overdue;
        }
        let Ok(Some(swarm)) = self.find_or_open_swarm(hash_of_torrent, &heard.info_hash, true) else {
            return Learnt::NoRoom;
        };
        let is_full = self.swarms[swarm].members.all().len() >= place::PEERS_PER_SWARM_MAX;
        if is_full || clients >= CLIENTS_PER_USER_MAX {
            return Learnt::NoRoom;
        }
        let slot = self.admit(Peer::of_heard(heard, swarm), Member::at(heard.ip, heard.port), rules);
        self.set_seeder(slot, heard.is_seeder());
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
        let members = &mut self.swarms[swarm].members;
        let was_seeder = members.is_seeder(position);
        let member = members.member_mut(position);
        member.set_address(heard.ip, heard.port);
        if left_other_family {
            member.forget_address(!heard.ip.is_ipv6());
        }
        self.set_seeder(slot, heard.is_seeder() || is_same_second && was_seeder);
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
            let swarm = self.peers[slot].swarm();
            self.swarms[swarm].snatches = self.swarms[swarm].snatches.saturating_add(1);
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
        if !ends {
            self.peers[slot].hear_late(heard, Seconds(0));
            return Learnt::Late;
        }
        self.leave(slot);
        Learnt::Applied
    }
}
