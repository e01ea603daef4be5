//! Lists of online users and recent events, for operators.
//!
//! # Guarantees
//!
//! - A page costs what it shows and one short lock of each shard; if few users match the filter,
//!   all are visited.
//! - Invisible users are listed only with `with_hidden`, and so is the time since when a user is online, which would
//!   reveal that they were invisible.

use std::collections::BinaryHeap;

use domain::{UnixTime, UserId};
use presence::{Platform, PresenceTable, Status, View};

use super::admin::Admin;
use crate::recent_events::RecentEvent;

#[derive(Clone, Copy, Debug, Default)]
pub struct OnlineFilter {
    /// All online users if none.
    pub status: Option<Status>,
    /// Only those with such a device.
    pub platform: Option<Platform>,
    /// Whether to include invisible users, and since when users are online.
    pub with_hidden: bool,
    /// Only users with a higher id.
    pub after: Option<UserId>,
}

#[derive(Clone, Debug)]
pub struct OnlineUser {
    /// The view of the user's own devices.
    pub view: View,
    /// Online since, invisible or not; none for pending users, and without `with_hidden`.
    pub since: Option<UnixTime>,
}

#[derive(Clone, Debug, Default)]
pub struct OnlinePage {
    /// In the order of their numbers.
    pub users: Vec<OnlineUser>,
    /// The last user of this page, if there are more.
    pub next: Option<UserId>,
}

impl Admin {
    /// Online users of this gateway, by id.
    pub fn online_page(&self, asked: &OnlineFilter, limit: usize) -> OnlinePage {
        let mut chosen = self.choose_online(asked, limit.saturating_add(1));
        let is_more = chosen.len() > limit;
        chosen.truncate(limit);
        let next = chosen.last().copied().filter(|_| is_more);
        let read = |user: UserId| {
            let roster = &self.users.shard(user).roster;
            // Skips users that went offline meanwhile.
            let is_still = roster.is_listed(user) && fits(roster, user, asked);
            is_still.then(|| OnlineUser {
                view: roster.own_view(user),
                since: roster.online_since(user).filter(|_| asked.with_hidden),
            })
        };
        OnlinePage { users: chosen.into_iter().filter_map(read).collect(), next }
    }

    /// The ids of the users who are online at this gateway, in ascending order.
    pub fn online_users(&self, with_hidden: bool) -> Vec<UserId> {
        self.choose_online(&OnlineFilter { with_hidden, ..OnlineFilter::default() }, usize::MAX)
    }

    /// The lowest numbers that fit, of all shards.
    fn choose_online(&self, asked: &OnlineFilter, count: usize) -> Vec<UserId> {
        let mut lowest: BinaryHeap<UserId> = BinaryHeap::new();
        for shard in self.users.shards() {
            let roster = &shard.lock().roster;
            for user in roster.listed_after(asked.after) {
                let is_beyond = lowest.len() >= count && lowest.peek().is_some_and(|highest| user > *highest);
                if is_beyond {
                    break;
                }
                if fits(roster, user, asked) {
                    lowest.push(user);
                    if lowest.len() > count {
                        lowest.pop();
                    }
                }
            }
        }
        lowest.into_sorted_vec()
    }

    /// Of this gateway, newest first.
    pub fn recent_events(&self, limit: usize, with_hidden: bool) -> Vec<RecentEvent> {
        self.users.context.recent_events.newest(limit, with_hidden)
    }
}

fn fits(roster: &PresenceTable, user: UserId, asked: &OnlineFilter) -> bool {
    let (status, is_hidden) = roster.own_status(user);
    let is_wanted = match asked.status {
        Some(wanted) => status == wanted,
        None => !matches!(status, Status::Offline | Status::Pending),
    };
    let has_device = |platform| roster.has_platform(user, platform);
    is_wanted && (asked.with_hidden || !is_hidden) && asked.platform.is_none_or(has_device)
}
