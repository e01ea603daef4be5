//! Peer ids that a user has recently used on a torrent, and the peer lists returned for them.
//!
//! Nothing is kept of a peer that has left, and a new peer id is a new peer. Without this table a user who makes up
//! peer ids would get a further list with each of them, and would fill the journal with peers that never existed.
//!
//! # Guarantees
//!
//! - Keyed by user and torrent, so `stopped` resets nothing.
//! - Fixed in size, and nothing is allocated after the first use. A full set evicts the user with the fewest peer ids:
//!   a user with many is not evicted in favour of users with one.

use domain::{Seconds, UnixTime};

/// Budgets per set.
const WAYS: usize = 4;
/// 512 budgets per shard, 6 KiB. All shards together cost less than half a byte for each of a million peers.
const SETS: usize = 128;
const PEER_IDS_WINDOW_MINUTES: u16 = 60;
/// Seconds in a unit of `lists_since`: a window may last up to three days.
const LISTS_UNIT_S: u32 = 4;
/// Recent peer ids stored: one of them that returns is not counted again.
const RECENT_IDS: usize = 2;

/// Usage of one user on one torrent.
#[derive(Clone, Copy, Debug, Default)]
struct JoinBudget {
    /// Part of the hash of user and torrent; another part selects the set. Zero for an unused budget.
    tag: u16,
    /// When the first counted peer id was used, in minutes.
    ids_since: u16,
    /// When the first counted list was returned, in units of [`LISTS_UNIT_S`].
    lists_since: u16,
    peer_ids: u8,
    lists: u8,
    /// Hashes of the last peer ids; zero for none.
    recent_ids: [u16; RECENT_IDS],
}

const _: () = assert!(size_of::<[JoinBudget; WAYS]>() == 48);

impl JoinBudget {
    fn is_over_at(&self, minute: u16) -> bool {
        self.tag == 0 || minute.wrapping_sub(self.ids_since) >= PEER_IDS_WINDOW_MINUTES
    }
}

/// The budgets of a shard, by a hash of user and torrent.
#[derive(Debug, Default)]
pub(crate) struct JoinBudgets {
    sets: Vec<[JoinBudget; WAYS]>,
    displaced: u64,
}

impl JoinBudgets {
    /// Counts a peer id, unless it is one of the last few. Returns how many this user has used within the hour, at most
    /// 255.
    pub(crate) fn count_peer_id(&mut self, user_on_torrent: u64, peer_id: u16, now: UnixTime) -> u8 {
        let minute = minute_of(now);
        let budget = self.budget(user_on_torrent, minute);
        if budget.is_over_at(minute) {
            (budget.ids_since, budget.peer_ids, budget.recent_ids) = (minute, 0, [0; RECENT_IDS]);
        }
        let peer_id = peer_id.max(1);
        if !budget.recent_ids.contains(&peer_id) {
            budget.recent_ids.rotate_right(1);
            budget.recent_ids[0] = peer_id;
            budget.peer_ids = budget.peer_ids.saturating_add(1);
        }
        budget.peer_ids
    }

    /// Takes one of `lists_max` lists per `window`. Returns a number that is the same for all lists of a window, or
    /// none if they are used up.
    pub(crate) fn take_list(
        &mut self,
        user_on_torrent: u64,
        now: UnixTime,
        window: Seconds,
        lists_max: u8,
    ) -> Option<u16> {
        let budget = self.budget(user_on_torrent, minute_of(now));
        let unit = (now.0 / LISTS_UNIT_S) as u16;
        let elapsed_s = u32::from(unit.wrapping_sub(budget.lists_since)) * LISTS_UNIT_S;
        if budget.lists == 0 || elapsed_s >= window.0 {
            (budget.lists_since, budget.lists) = (unit, 0);
        }
        if budget.lists >= lists_max {
            return None;
        }
        budget.lists += 1;
        Some(budget.lists_since)
    }

    /// Budgets with several peer ids that were evicted within the hour.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced
    }

    fn budget(&mut self, user_on_torrent: u64, minute: u16) -> &mut JoinBudget {
        if self.sets.is_empty() {
            self.sets = vec![Default::default(); SETS];
        }
        let tag = (user_on_torrent as u16).max(1);
        let set = &mut self.sets[(user_on_torrent >> 32) as usize % SETS];
        let way = set.iter().position(|budget| budget.tag == tag).unwrap_or_else(|| {
            let way = least_used(set, minute);
            // Most users have a single peer id: nothing is lost with it.
            self.displaced += u64::from(!set[way].is_over_at(minute) && set[way].peer_ids > 1);
            set[way] = JoinBudget { tag, ids_since: minute, ..JoinBudget::default() };
            way
        });
        &mut set[way]
    }
}

fn minute_of(now: UnixTime) -> u16 {
    (now.0 / 60) as u16
}

/// The budget to evict: an expired one, else the one with the fewest peer ids, of these the oldest.
fn least_used(set: &[JoinBudget; WAYS], minute: u16) -> usize {
    let cost = |budget: &JoinBudget| {
        let age = minute.wrapping_sub(budget.ids_since);
        (!budget.is_over_at(minute), budget.peer_ids, u16::MAX - age)
    };
    (0..WAYS).min_by_key(|way| cost(&set[*way])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime(1_700_000_040);

    #[test]
    fn peer_ids_are_counted_for_an_hour_and_one_that_returns_is_not_counted_again() {
        let mut budgets = JoinBudgets::default();
        let counts: Vec<u8> = [1, 2, 1, 2, 3].map(|id| budgets.count_peer_id(7, id, NOW)).to_vec();
        assert_eq!(counts, [1, 2, 2, 2, 3]);
        assert_eq!(budgets.count_peer_id(8, 1, NOW), 1, "another user or torrent");
        assert_eq!(budgets.count_peer_id(7, 9, NOW + Seconds(3599)), 4);
        assert_eq!(budgets.count_peer_id(7, 9, NOW + Seconds(3600)), 1);
    }

    #[test]
    fn lists_are_available_again_in_the_next_window() {
        let mut budgets = JoinBudgets::default();
        let mut take = |at: u32| budgets.take_list(7, NOW + Seconds(at), Seconds(900), 2);
        let first = take(0);
        assert!(first.is_some());
        assert_eq!([take(899), take(899)], [first, None]);
        assert!(take(900).is_some_and(|later| Some(later) != first));
    }

    #[test]
    fn the_budget_with_most_peer_ids_is_evicted_last() {
        let mut budgets = JoinBudgets::default();
        (1..=20).for_each(|id| _ = budgets.count_peer_id(1, id, NOW));
        (2..=50).for_each(|other| _ = budgets.count_peer_id(other, 1, NOW));
        assert_eq!((budgets.count_peer_id(1, 99, NOW), budgets.displaced()), (21, 0));
        for (other, id) in (51..=60).flat_map(|other| [(other, 1), (other, 2)]) {
            budgets.count_peer_id(other, id, NOW);
        }
        assert_eq!((budgets.count_peer_id(1, 98, NOW), budgets.displaced()), (22, 7));
    }
}
