//! What one person may see of others, put in place for all of their connections.

use std::sync::Arc;

use domain::UserId;
use people::Acquaintance;
use presence::ConnId;

use super::in_time;
use crate::hub::person::Watcher;
use crate::hub::{CommandError, ConnRef, Hub};
use crate::outbox::{FeedUser, Outbox};

/// A connection that may watch somebody.
struct Eye {
    conn: ConnId,
    outbox: Arc<Outbox>,
    tracks: bool,
}

impl Hub {
    /// What is so between `viewer` and somebody, from now on: friends or not, and what may be seen.
    pub(super) fn settle(&self, viewer: UserId, acquaintance: Acquaintance) {
        let subject = acquaintance.user;
        let eyes = {
            let mut shard = self.shard(viewer);
            let Some(person) = shard.people.get_mut(&viewer) else { return };
            let Some(circle) = &mut person.circle else { return };
            match (circle.friends.binary_search(&subject), acquaintance.is_friend) {
                (Ok(place), false) => {
                    Arc::make_mut(&mut circle.friends).remove(place);
                }
                (Err(place), true) => Arc::make_mut(&mut circle.friends).insert(place, subject),
                _ => {}
            }
            let eye = |connection: &crate::hub::person::Connection| Eye {
                conn: connection.conn,
                outbox: connection.outbox.clone(),
                tracks: connection.seat.tracked.binary_search(&subject).is_ok(),
            };
            person.connections.iter().map(eye).collect::<Vec<Eye>>()
        };
        self.settle_watchers(viewer, &eyes, acquaintance);
        self.end_orphans(viewer, subject, &eyes);
    }

    fn settle_watchers(&self, viewer: UserId, eyes: &[Eye], acquaintance: Acquaintance) {
        let Acquaintance { user: subject, is_friend, sight, last } = acquaintance;
        let now = self.now();
        let mut shard = self.shard(subject);
        if eyes.iter().any(|eye| is_friend || eye.tracks) {
            shard.watch(now, subject, last, &self.outside);
        }
        for eye in eyes {
            let Some(person) = shard.people.get_mut(&subject) else { break };
            let before = person.watcher(eye.conn).map(|watcher| (watcher.is_friend, watcher.sight));
            if !is_friend && !eye.tracks {
                if person.remove_watcher(eye.conn) {
                    eye.outbox.remove(subject);
                }
                continue;
            }
            person.put_watcher(Watcher {
                conn: eye.conn,
                viewer,
                outbox: eye.outbox.clone(),
                is_friend,
                is_tracker: eye.tracks,
                sight,
            });
            // A friend of whom nothing may be seen is in the feed all the same, as offline.
            if before != Some((is_friend, sight)) {
                eye.outbox.change(shard.seen(now, subject, sight), true);
            }
        }
        shard.release(subject);
    }

    /// Connections that ended meanwhile do not watch.
    fn end_orphans(&self, viewer: UserId, subject: UserId, eyes: &[Eye]) {
        let orphans: Vec<ConnId> = {
            let shard = self.shard(viewer);
            let person = shard.people.get(&viewer);
            let is_there = |conn| person.is_some_and(|person| person.connection(conn).is_some());
            eyes.iter().map(|eye| eye.conn).filter(|conn| !is_there(*conn)).collect()
        };
        for conn in orphans {
            self.end_watch(subject, conn);
        }
    }

    /// A connection no longer watches somebody, for whatever reason it did.
    pub(crate) fn end_watch(&self, subject: UserId, conn: ConnId) {
        let mut shard = self.shard(subject);
        if let Some(person) = shard.people.get_mut(&subject) {
            person.remove_watcher(conn);
            shard.release(subject);
        }
    }

    /// A connection tracks these people. Gives those of whom something may be seen.
    pub(super) async fn track_now(
        &self,
        conn: ConnRef,
        users: Vec<UserId>,
    ) -> Result<Vec<FeedUser>, CommandError> {
        let tracked_max = self.settings.load().people.tracked_max as usize;
        if self.tracked_with(conn, &users)?.len() > tracked_max {
            return Err(CommandError::LimitExceeded);
        }
        let found = in_time(self.people.sights(conn.user, &users)).await.ok_or(CommandError::Internal)?;
        let unlearned = self.unlearned(users.iter().copied());
        self.learn(unlearned).await;
        let outbox = {
            let tracked = self.tracked_with(conn, &users)?;
            let mut shard = self.shard(conn.user);
            let person = shard.people.get_mut(&conn.user);
            let connection = person.and_then(|person| person.connection_mut(conn.conn));
            let connection = connection.ok_or(CommandError::NotAvailable)?;
            connection.seat.tracked = tracked;
            connection.outbox.clone()
        };
        let mut seen = Vec::new();
        for Acquaintance { user, is_friend, sight, last } in found {
            let watcher = Watcher {
                conn: conn.conn,
                viewer: conn.user,
                outbox: outbox.clone(),
                is_friend,
                is_tracker: true,
                sight,
            };
            let shown = self.begin_track(user, watcher, last);
            if sight.status {
                seen.push(shown);
            }
        }
        let eye = [Eye { conn: conn.conn, outbox, tracks: true }];
        for user in &users {
            self.end_orphans(conn.user, *user, &eye);
        }
        Ok(seen)
    }

    /// Like [`Hub::begin_watch`]. Who becomes a friend, or no longer is one, does so when that change is applied.
    fn begin_track(&self, user: UserId, mut watcher: Watcher, last: presence::LastKnown) -> FeedUser {
        let before =
            self.shard(user).people.get(&user).and_then(|person| person.watcher(watcher.conn).cloned());
        watcher.is_friend = before.is_some_and(|before| before.is_friend);
        let (now, sight, outbox) = (self.now(), watcher.sight, watcher.outbox.clone());
        let mut shard = self.shard(user);
        shard.watch(now, user, last, &self.outside).put_watcher(watcher);
        let seen = shard.seen(now, user, sight);
        // They may have been untracked a moment ago: what waits would take them away after the answer has shown them.
        if sight.status {
            outbox.show_again(seen.clone());
        }
        seen
    }

    /// Whom a connection would track with these as well, sorted.
    fn tracked_with(&self, conn: ConnRef, users: &[UserId]) -> Result<Vec<UserId>, CommandError> {
        let shard = self.shard(conn.user);
        let connection = shard.people.get(&conn.user).and_then(|person| person.connection(conn.conn));
        let mut tracked = connection.ok_or(CommandError::NotAvailable)?.seat.tracked.clone();
        tracked.extend_from_slice(users);
        tracked.sort_unstable();
        tracked.dedup();
        Ok(tracked)
    }

    /// A connection no longer tracks these people. Friends stay in its feed.
    pub(super) fn untrack_now(&self, conn: ConnRef, users: &[UserId]) {
        {
            let mut shard = self.shard(conn.user);
            let person = shard.people.get_mut(&conn.user);
            let Some(connection) = person.and_then(|person| person.connection_mut(conn.conn)) else { return };
            connection.seat.tracked.retain(|tracked| users.binary_search(tracked).is_err());
            connection.seat.tracked.shrink_to_fit();
        }
        for user in users {
            let mut shard = self.shard(*user);
            let Some(person) = shard.people.get_mut(user) else { continue };
            let Some(mut watcher) = person.watcher(conn.conn).cloned() else { continue };
            if watcher.is_friend {
                watcher.is_tracker = false;
                person.put_watcher(watcher);
            } else {
                person.remove_watcher(conn.conn);
                watcher.outbox.remove(*user);
            }
            shard.release(*user);
        }
    }
}
