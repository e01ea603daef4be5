//! Applies what one user may see of another, for all connections of the viewer.

use std::sync::Arc;

use domain::UserId;
use friends::ViewedUser;
use presence::{ConnId, LastKnown};

use super::{Tracked, WatchTask, in_time};
use crate::hub::user::{Connection, Watcher};
use crate::hub::{CommandError, ConnRef};
use crate::outbox::FeedUser;

impl WatchTask {
    /// Applies the relation between `viewer` and another user: friends or not, and what is visible.
    pub(super) fn settle(&self, viewer: UserId, viewed: ViewedUser) {
        let ViewedUser { user: subject, is_friend, visibility, last } = viewed;
        let watchers: Vec<Watcher> = {
            let mut shard = self.users.shard(viewer);
            let Some(entry) = shard.users.get_mut(&viewer) else { return };
            let Some(connected) = &mut entry.connected else { return };
            match (connected.friends.binary_search(&subject), is_friend) {
                (Ok(place), false) => {
                    Arc::make_mut(&mut connected.friends).remove(place);
                }
                (Err(place), true) => Arc::make_mut(&mut connected.friends).insert(place, subject),
                _ => {}
            }
            let watcher = |connection: &Connection| Watcher {
                conn: connection.conn,
                viewer,
                outbox: connection.outbox.clone(),
                is_friend,
                is_tracker: connection.details.tracked.binary_search(&subject).is_ok(),
                visibility,
            };
            entry.connections.iter().map(watcher).collect()
        };
        self.settle_watchers(subject, &watchers, last);
        self.end_orphans(viewer, subject, watchers.iter().map(|watcher| watcher.conn));
    }

    fn settle_watchers(&self, subject: UserId, watchers: &[Watcher], last: LastKnown) {
        let now = self.users.now();
        let mut shard = self.users.shard(subject);
        let watches = |watcher: &Watcher| watcher.is_friend || watcher.is_tracker;
        if watchers.iter().any(watches) {
            shard.watch(now, subject, last);
        }
        for watcher in watchers {
            let Some(entry) = shard.users.get_mut(&subject) else { break };
            if !watches(watcher) {
                if entry.remove_watcher(watcher.conn) {
                    watcher.outbox.remove(subject, now);
                }
                continue;
            }
            let before = entry.watchers.get(watcher.conn).map(|before| (before.is_friend, before.visibility));
            entry.watchers.put(watcher.clone());
            // A friend that is not visible is in the feed as offline.
            if before != Some((watcher.is_friend, watcher.visibility)) {
                watcher.outbox.change(shard.feed_user_for(now, subject, watcher.visibility), true, now);
            }
        }
        shard.release(subject);
    }

    /// Connections that ended meanwhile do not watch.
    fn end_orphans(&self, viewer: UserId, subject: UserId, conns: impl Iterator<Item = ConnId>) {
        let orphans: Vec<ConnId> = {
            let shard = self.users.shard(viewer);
            let entry = shard.users.get(&viewer);
            conns.filter(|conn| entry.is_none_or(|entry| entry.connection(*conn).is_none())).collect()
        };
        for conn in orphans {
            self.users.end_watch(subject, conn);
        }
    }

    /// Returns the users that are visible.
    pub(super) async fn track_now(&self, conn: ConnRef, users: Vec<UserId>) -> Tracked {
        let tracked_max = self.users.settings.limits.tracked_max as usize;
        if self.tracked_with(conn, &users)?.len() > tracked_max {
            return Err(CommandError::LimitExceeded);
        }
        let found = in_time(self.friend_store.view_users(conn.user, &users)).await?;
        let unread = self.unread(users.iter().copied());
        self.load_records(unread).await;
        let outbox = {
            let tracked = self.tracked_with(conn, &users)?;
            let mut shard = self.users.shard(conn.user);
            let entry = shard.users.get_mut(&conn.user);
            let connection = entry.and_then(|entry| entry.connection_mut(conn.conn));
            let connection = connection.ok_or(CommandError::NotAvailable)?;
            connection.details.tracked = tracked;
            connection.outbox.clone()
        };
        let mut seen = Vec::new();
        for ViewedUser { user, is_friend, visibility, last } in found {
            let watcher = Watcher {
                conn: conn.conn,
                viewer: conn.user,
                outbox: outbox.clone(),
                is_friend,
                is_tracker: true,
                visibility,
            };
            let shown = self.begin_track(user, watcher, last);
            if visibility.status {
                seen.push(shown);
            }
        }
        for user in &users {
            self.end_orphans(conn.user, *user, std::iter::once(conn.conn));
        }
        Ok(seen)
    }

    /// Like [`WatchTask::begin_watch`]. Friendship changes only by [`WatchTask::settle`].
    fn begin_track(&self, user: UserId, mut watcher: Watcher, last: LastKnown) -> FeedUser {
        let is_friend = |conn| Some(self.users.shard(user).users.get(&user)?.watchers.get(conn)?.is_friend);
        watcher.is_friend = is_friend(watcher.conn).unwrap_or(false);
        let (visibility, outbox) = (watcher.visibility, watcher.outbox.clone());
        let seen = self.begin_watch(user, watcher, last);
        // The user may have been untracked a moment ago: a waiting removal would follow the reply.
        if visibility.status {
            outbox.show_again(seen.clone());
        }
        seen
    }

    /// The tracked users with `users` added, sorted.
    fn tracked_with(&self, conn: ConnRef, users: &[UserId]) -> Result<Vec<UserId>, CommandError> {
        let shard = self.users.shard(conn.user);
        let connection = shard.users.get(&conn.user).and_then(|entry| entry.connection(conn.conn));
        let mut tracked = connection.ok_or(CommandError::NotAvailable)?.details.tracked.clone();
        tracked.extend_from_slice(users);
        tracked.sort_unstable();
        tracked.dedup();
        Ok(tracked)
    }

    /// Friends stay in the feed.
    pub(super) fn untrack_now(&self, conn: ConnRef, users: &[UserId]) {
        {
            let mut shard = self.users.shard(conn.user);
            let entry = shard.users.get_mut(&conn.user);
            let Some(connection) = entry.and_then(|entry| entry.connection_mut(conn.conn)) else { return };
            connection.details.tracked.retain(|tracked| users.binary_search(tracked).is_err());
            connection.details.tracked.shrink_to_fit();
        }
        for user in users {
            let mut shard = self.users.shard(*user);
            let Some(entry) = shard.users.get_mut(user) else { continue };
            let Some(mut watcher) = entry.watchers.get(conn.conn).cloned() else { continue };
            if watcher.is_friend {
                watcher.is_tracker = false;
                entry.watchers.put(watcher);
            } else {
                entry.remove_watcher(conn.conn);
                watcher.outbox.remove(*user, self.users.now());
            }
            shard.release(*user);
        }
    }
}
