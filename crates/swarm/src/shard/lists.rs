//! Whether an announce is given peers, and which.
//!
//! Min interval bounds what a client learns of a swarm. Announces that are exempt from it (a new peer's first one, above
//! all) have a budget for each user and torrent, and name the same peers: a user learns little by inventing peer ids.

use fastrand::Rng;

use super::limits::hash_of_user_on_torrent;
use super::{OwnPeers, Shard};
use crate::announce::{Announce, CLIENTS_PER_USER_MAX, PeerLists, Rules};
use crate::peer::ListDue;
use crate::selection::{self, Requester};

/// Lists that each client of a user may be given within min interval although it is too early for one: it has just
/// started, announces over its second address family, has completed.
const LISTS_PER_CLIENT: u8 = 3;

/// Which peers an announce is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListChoice {
    /// None: it asks for none, or comes too soon.
    Nothing,
    /// None: the user's budget for early lists is used up.
    Withheld,
    /// Any, at random.
    Any,
    /// The same ones with the same seed, as far as they are still there.
    Repeatable { seed: u64 },
}

impl Shard {
    /// Which peers an announce is given.
    pub(super) fn list_choice(
        &mut self,
        hash_of_torrent: u64,
        due: ListDue,
        announce: &Announce,
        rules: &Rules,
    ) -> ListChoice {
        match due {
            ListDue::TooSoon => return ListChoice::Nothing,
            ListDue::Due => return ListChoice::Any,
            ListDue::Budgeted if announce.wanted == 0 => return ListChoice::Nothing,
            ListDue::Budgeted => {}
        }
        let user_on_torrent = hash_of_user_on_torrent(hash_of_torrent, announce.user);
        let lists_max = LISTS_PER_CLIENT * rules.clients_per_user_max.clamp(1, CLIENTS_PER_USER_MAX as u8);
        let since = self.join_budgets.take_list(user_on_torrent, announce.now, rules.min_interval, lists_max);
        // All early lists of a user name the same peers, so that inventing peer ids does not reveal further ones.
        let repeatable = |since| ListChoice::Repeatable { seed: user_on_torrent ^ u64::from(since) };
        since.map_or(ListChoice::Withheld, repeatable)
    }

    pub(super) fn choose_peers(
        &mut self,
        swarm: u32,
        own: &OwnPeers,
        announce: &Announce,
        choice: ListChoice,
        lists: &mut PeerLists,
    ) {
        let members = &self.swarms[swarm].members;
        // A seeder has no use for other seeders.
        let crowd = if announce.is_seeder() { members.leechers() } else { members.all() };
        let requester = Requester {
            wanted: announce.wanted,
            families: announce.families,
            own: own.slots(),
            repeatable_from: (choice != ListChoice::Any).then(|| members.all().len() - crowd.len()),
        };
        match choice {
            ListChoice::Nothing | ListChoice::Withheld => {}
            ListChoice::Any => selection::choose(crowd, &requester, &mut self.random, lists),
            ListChoice::Repeatable { seed } => {
                selection::choose(crowd, &requester, &mut Rng::with_seed(seed), lists);
            }
        }
    }
}
