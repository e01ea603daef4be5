//! What operators see of people: who is here, page by page, and what happened lately.
//!
//! # Guarantees
//!
//! - A page costs what it shows and a short look into each shard, one lock at a time; where few people fit what is asked
//!   for, all are looked at.
//! - Who hides is shown to those only who may know, and so is since when somebody is here: who showed themselves a moment
//!   ago and is here since yesterday was hidden.

use std::collections::BinaryHeap;

use domain::{UnixTime, UserId};
use presence::{Platform, Status, View};

use super::Hub;
use crate::occurrences::{Fresh, Happening};

/// Whom to show.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnlineAsked {
    /// Only those of this status; everybody who is here if none.
    pub status: Option<Status>,
    /// Only those with such a device.
    pub platform: Option<Platform>,
    /// Whether to show those who hide, and since when everybody is here.
    pub with_hidden: bool,
    /// Only those behind this one.
    pub after: Option<UserId>,
}

/// Somebody who is here.
#[derive(Clone, Debug)]
pub struct OnlinePerson {
    /// What their own devices see.
    pub view: View,
    /// Since when they are here, hidden or not; none for who is pending, and for those who must not know who hides.
    pub since: Option<UnixTime>,
}

/// A page of who is here.
#[derive(Clone, Debug, Default)]
pub struct OnlinePage {
    /// In the order of their numbers.
    pub people: Vec<OnlinePerson>,
    /// Behind whom the next page begins, if there is one.
    pub next: Option<UserId>,
}

impl Hub {
    /// Who is here, at this gateway, by their numbers.
    pub fn online_page(&self, asked: &OnlineAsked, limit: usize) -> OnlinePage {
        let mut chosen = self.choose_online(asked, limit.saturating_add(1));
        let is_more = chosen.len() > limit;
        chosen.truncate(limit);
        let next = chosen.last().copied().filter(|_| is_more);
        let read = |user: UserId| {
            let shard = self.shard(user);
            // Who has gone meanwhile is left out.
            let is_still = shard.roster.is_listed(user) && shard.fits(user, asked);
            is_still.then(|| OnlinePerson {
                view: shard.roster.own_view(user),
                since: shard.roster.here_since(user).filter(|_| asked.with_hidden),
            })
        };
        OnlinePage { people: chosen.into_iter().filter_map(read).collect(), next }
    }

    /// The lowest numbers that fit, of all shards.
    fn choose_online(&self, asked: &OnlineAsked, count: usize) -> Vec<UserId> {
        let mut lowest: BinaryHeap<UserId> = BinaryHeap::new();
        for shard in self.shards() {
            let shard = shard.lock();
            for user in shard.roster.listed_after(asked.after) {
                let is_beyond = lowest.len() >= count && lowest.peek().is_some_and(|highest| user > *highest);
                if is_beyond {
                    break;
                }
                if shard.fits(user, asked) {
                    lowest.push(user);
                    if lowest.len() > count {
                        lowest.pop();
                    }
                }
            }
        }
        lowest.into_sorted_vec()
    }

    /// What happened lately at this gateway, the newest first.
    pub fn happenings(&self, limit: usize, with_hidden: bool) -> Vec<Happening> {
        self.outside.occurrences.newest(limit, with_hidden)
    }

    pub(crate) fn fresh_happenings(&self, max: usize) -> Fresh {
        self.outside.occurrences.take_fresh(max)
    }
}

impl super::shard::Shard {
    fn fits(&self, user: UserId, asked: &OnlineAsked) -> bool {
        let (status, is_hidden) = self.roster.standing(user);
        let is_wanted = match asked.status {
            Some(wanted) => status == wanted,
            None => !matches!(status, Status::Offline | Status::Pending),
        };
        let has_device = |platform| self.roster.has_platform(user, platform);
        is_wanted && (asked.with_hidden || !is_hidden) && asked.platform.is_none_or(has_device)
    }
}
