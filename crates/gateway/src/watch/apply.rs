//! Applies changes of friendships and privacy.

use std::collections::{BTreeMap, BTreeSet};

use domain::UserId;
use friends::FriendsChange;

use super::{WatchTask, in_time};
use crate::hub::CommandError;

/// Users per read when everything may have changed.
const CHUNK: usize = 200;
/// Users whose changes are applied in one batch.
const STEPS_MAX: usize = 200;

/// Changes that are not applied yet, each once.
#[derive(Default)]
pub(super) struct Unapplied {
    /// Users whose friendship with each other may have changed.
    friends: BTreeMap<UserId, BTreeSet<UserId>>,
    privacy: BTreeSet<UserId>,
    /// Users to read completely; filled when the change is unknown.
    everything: BTreeSet<UserId>,
    is_everything: bool,
}

impl Unapplied {
    pub(super) fn add(&mut self, changes: &[FriendsChange]) {
        for change in changes {
            match change {
                FriendsChange::Friends(one, other) => {
                    self.friends.entry(*one).or_default().insert(*other);
                    self.friends.entry(*other).or_default().insert(*one);
                }
                FriendsChange::Privacy(user) => {
                    self.privacy.insert(*user);
                }
                FriendsChange::Everything => self.is_everything = true,
            }
        }
    }

    pub(super) fn holds(&self, change: &FriendsChange) -> bool {
        let has = |one: &UserId, other: &UserId| self.friends.get(one).is_some_and(|all| all.contains(other));
        match change {
            FriendsChange::Friends(one, other) => has(one, other) || has(other, one),
            FriendsChange::Privacy(user) => self.privacy.contains(user),
            FriendsChange::Everything => self.is_everything || !self.everything.is_empty(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.friends.is_empty()
            && self.privacy.is_empty()
            && self.everything.is_empty()
            && !self.is_everything
    }
}

impl WatchTask {
    /// Applies some of the changes, so that connecting clients need not wait for all. What is read in between
    /// contains the rest already, and applying it again does no harm. After a failure the rest is kept for the next
    /// call.
    pub(super) async fn apply(&self, unapplied: &mut Unapplied) -> Result<(), CommandError> {
        if std::mem::take(&mut unapplied.is_everything) {
            unapplied.everything.extend(self.users.connected());
        }
        for _ in 0..STEPS_MAX {
            if let Some(user) = unapplied.privacy.first().copied() {
                self.apply_privacy(user).await?;
                unapplied.privacy.pop_first();
            } else if let Some((viewer, others)) = unapplied.friends.first_key_value() {
                let (viewer, others) = (*viewer, others.iter().copied().collect::<Vec<UserId>>());
                self.settle_all(viewer, &others).await?;
                unapplied.friends.pop_first();
            } else {
                break;
            }
        }
        let chunk: Vec<UserId> = unapplied.everything.iter().copied().take(CHUNK).collect();
        if !chunk.is_empty() {
            self.read_again(&chunk).await?;
            for user in &chunk {
                unapplied.everything.remove(user);
            }
        }
        Ok(())
    }

    async fn apply_privacy(&self, user: UserId) -> Result<(), CommandError> {
        if self.users.shard(user).users.contains_key(&user) {
            let privacy = in_time(self.friend_store.privacy(user)).await?;
            self.users.change(user, |shard, now| shard.set_privacy(now, user, &privacy));
        }
        Ok(())
    }

    /// Reads and applies what `viewer` may see of these users.
    async fn settle_all(&self, viewer: UserId, others: &[UserId]) -> Result<(), CommandError> {
        if !self.users.is_connected(viewer) {
            return Ok(());
        }
        for chunk in others.chunks(CHUNK * 10) {
            let found = in_time(self.friend_store.view_users(viewer, chunk)).await?;
            let unread = self.unread(found.iter().map(|one| one.user));
            self.load_records(unread).await;
            for viewed in found {
                self.settle(viewer, viewed);
            }
        }
        Ok(())
    }

    /// Reads connected users completely.
    async fn read_again(&self, users: &[UserId]) -> Result<(), CommandError> {
        let friend_lists = in_time(self.friend_store.friend_lists(users)).await?;
        let friends =
            friend_lists.iter().flat_map(|friend_list| friend_list.friends.iter().map(|friend| friend.user));
        let unread = self.unread(friends);
        self.load_records(unread).await;
        for friend_list in friend_lists {
            let user = friend_list.user;
            let mut others = self.watched_by(user);
            for friend in &friend_list.friends {
                others.remove(&friend.user);
            }
            self.users.change(user, |shard, now| shard.set_privacy(now, user, &friend_list.privacy));
            for friend in friend_list.friends {
                self.settle(user, friend);
            }
            // Former friends, and tracked users.
            self.settle_all(user, &others.into_iter().collect::<Vec<UserId>>()).await?;
        }
        Ok(())
    }

    fn watched_by(&self, user: UserId) -> BTreeSet<UserId> {
        let shard = self.users.shard(user);
        let Some(entry) = shard.users.get(&user) else { return BTreeSet::new() };
        let friends = entry.connected.iter().flat_map(|connected| connected.friends.iter().copied());
        let tracked =
            entry.connections.iter().flat_map(|connection| connection.details.tracked.iter().copied());
        friends.chain(tracked).collect()
    }
}
