//! Whether an announce gets a peer list, and which peers.
//!
//! The min interval bounds what a client learns about a swarm. Exempt announces (mainly the first of a new peer) have a
//! budget per user and torrent, and return the same peers: making up peer ids reveals little.

use domain::{Announce, UnixTime};
use fastrand::Rng;

use super::limits::hash_of_user_on_torrent;
use super::{OwnPeers, Shard};
use crate::announce::{CLIENTS_PER_USER_MAX, PeerLists, Terms};
use crate::peer::ListDue;
use crate::selection::{self, Requester};

/// Lists per client of a user within the min interval, for exempt announces: it has just started, announces over its
/// second address family, has completed.
const LISTS_PER_CLIENT: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListChoice {
    /// None requested, or too soon.
    Nothing,
    /// The user's budget for exempt announces is used up.
    Withheld,
    /// Random.
    Any,
    /// The same peers for the same seed, as far as they are still present.
    Repeatable { seed: u64 },
}

/// A peer list to choose.
#[derive(Clone, Copy)]
pub(super) struct Requested<'a> {
    pub(super) announce: &'a Announce,
    pub(super) wanted: usize,
    pub(super) choice: ListChoice,
}

impl Shard {
    pub(super) fn list_choice(
        &mut self,
        hash_of_torrent: u64,
        due: ListDue,
        now: UnixTime,
        terms: &Terms,
    ) -> ListChoice {
        match due {
            ListDue::TooSoon => return ListChoice::Nothing,
            ListDue::Due => return ListChoice::Any,
            ListDue::Budgeted if terms.wanted == 0 => return ListChoice::Nothing,
            ListDue::Budgeted => {}
        }
        let user_on_torrent = hash_of_user_on_torrent(hash_of_torrent, terms.user);
        let lists_max =
            LISTS_PER_CLIENT * terms.rules.clients_per_user_max.clamp(1, CLIENTS_PER_USER_MAX as u8);
        let since = self.join_budgets.take_list(user_on_torrent, now, terms.rules.min_interval, lists_max);
        // All lists for exempt announces of a user return the same peers, so that making up peer ids does not reveal
        // further ones.
        let repeatable = |since| ListChoice::Repeatable { seed: user_on_torrent ^ u64::from(since) };
        since.map_or(ListChoice::Withheld, repeatable)
    }

    pub(super) fn choose_peers(
        &mut self,
        swarm: u32,
        own: &OwnPeers,
        Requested { announce, wanted, choice }: Requested<'_>,
        lists: &mut PeerLists,
    ) {
        let members = &self.swarms[swarm].members;
        // A seeder does not need other seeders.
        let candidates = members.candidates(announce.is_seeder(), announce.families);
        let requester = Requester {
            wanted,
            own: own.slots(),
            repeatable_from: (choice != ListChoice::Any).then(|| members.len() - candidates.len()),
        };
        match choice {
            ListChoice::Nothing | ListChoice::Withheld => {}
            ListChoice::Any => selection::choose(&candidates, &requester, &mut self.random, lists),
            ListChoice::Repeatable { seed } => {
                selection::choose(&candidates, &requester, &mut Rng::with_seed(seed), lists);
            }
        }
    }
}
