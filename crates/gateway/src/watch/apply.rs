//! From changes of friendships and privacy to what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use domain::UserId;
use people::PeopleChange;

use super::in_time;
use crate::hub::{CommandError, Hub};

/// People read in one go when everything may have changed.
const CHUNK: usize = 200;
/// People whose changes are applied in one go.
const STEPS_MAX: usize = 200;

/// Changes that are not applied yet, each once.
#[derive(Default)]
pub(super) struct Unapplied {
    /// Who may have gained or lost which friends.
    friends: BTreeMap<UserId, BTreeSet<UserId>>,
    privacy: BTreeSet<UserId>,
    /// Whose everything is to be read again; filled when it is not known what changed.
    everything: BTreeSet<UserId>,
    is_everything: bool,
}

impl Unapplied {
    pub(super) fn add(&mut self, changes: &[PeopleChange]) {
        for change in changes {
            match change {
                PeopleChange::Friends(one, other) => {
                    self.friends.entry(*one).or_default().insert(*other);
                    self.friends.entry(*other).or_default().insert(*one);
                }
                PeopleChange::Privacy(user) => {
                    self.privacy.insert(*user);
                }
                PeopleChange::Everything => self.is_everything = true,
            }
        }
    }

    /// Whether a change is among them.
    pub(super) fn holds(&self, change: &PeopleChange) -> bool {
        let has = |one: &UserId, other: &UserId| self.friends.get(one).is_some_and(|all| all.contains(other));
        match change {
            PeopleChange::Friends(one, other) => has(one, other) || has(other, one),
            PeopleChange::Privacy(user) => self.privacy.contains(user),
            PeopleChange::Everything => self.is_everything || !self.everything.is_empty(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.friends.is_empty()
            && self.privacy.is_empty()
            && self.everything.is_empty()
            && !self.is_everything
    }
}

impl Hub {
    /// Applies some of the changes, so that those who connect need not wait for all of them. Whatever is read in between
    /// knows of the rest already, and is put right by it once more. Those that are left when this fails are for the next
    /// time.
    pub(super) async fn apply(&self, unapplied: &mut Unapplied) -> Result<(), CommandError> {
        if std::mem::take(&mut unapplied.is_everything) {
            unapplied.everything.extend(self.connected());
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
        if self.shard(user).people.contains_key(&user) {
            let privacy = in_time(self.people.privacy(user)).await.ok_or(CommandError::Internal)?;
            let now = self.now();
            let after = self.shard(user).choose(now, user, &privacy, &self.outside);
            self.finish(after);
        }
        Ok(())
    }

    /// Reads what is so between somebody and these others, and puts it in place.
    async fn settle_all(&self, viewer: UserId, others: &[UserId]) -> Result<(), CommandError> {
        let is_connected =
            self.shard(viewer).people.get(&viewer).is_some_and(|person| person.circle.is_some());
        if !is_connected {
            return Ok(());
        }
        for chunk in others.chunks(CHUNK * 10) {
            let found = in_time(self.people.sights(viewer, chunk)).await.ok_or(CommandError::Internal)?;
            let unlearned = self.unlearned(found.iter().map(|one| one.user));
            self.learn(unlearned).await;
            for acquaintance in found {
                self.settle(viewer, acquaintance);
            }
        }
        Ok(())
    }

    /// Reads everything again about people who are connected.
    async fn read_again(&self, users: &[UserId]) -> Result<(), CommandError> {
        let circles = in_time(self.people.circles(users)).await.ok_or(CommandError::Internal)?;
        let friends = circles.iter().flat_map(|circle| circle.friends.iter().map(|friend| friend.user));
        let unlearned = self.unlearned(friends);
        self.learn(unlearned).await;
        for circle in circles {
            let user = circle.user;
            let mut others = self.watched_by(user);
            for friend in &circle.friends {
                others.remove(&friend.user);
            }
            let now = self.now();
            let after = self.shard(user).choose(now, user, &circle.privacy, &self.outside);
            self.finish(after);
            for friend in circle.friends {
                self.settle(user, friend);
            }
            // Former friends, and whom they track.
            self.settle_all(user, &others.into_iter().collect::<Vec<UserId>>()).await?;
        }
        Ok(())
    }

    fn watched_by(&self, user: UserId) -> BTreeSet<UserId> {
        let shard = self.shard(user);
        let Some(person) = shard.people.get(&user) else { return BTreeSet::new() };
        let friends = person.circle.iter().flat_map(|circle| circle.friends.iter().copied());
        let tracked =
            person.connections.iter().flat_map(|connection| connection.seat.tracked.iter().copied());
        friends.chain(tracked).collect()
    }

    /// Everybody with a connection.
    fn connected(&self) -> BTreeSet<UserId> {
        let mut users = BTreeSet::new();
        let mut from = Some(0);
        while let Some(place) = from {
            let (page, next) = self.outside.table.read().page(place, 4_096);
            users.extend(page.into_iter().map(|conn| conn.user));
            from = next;
        }
        users
    }
}
