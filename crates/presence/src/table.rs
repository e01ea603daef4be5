//! The users of one shard, and the timing wheel that checks their sessions.
//!
//! The owner calls [`PresenceTable::handle`] for each input and [`PresenceTable::tick`] about once a second, and
//! carries out the effects.
//!
//! # Guarantees
//!
//! - A user's status follows from sessions and declarations alone (see `user_presence`); each view has a version that
//!   grows with each change of that view and with nothing else.
//! - A public view discloses nothing of a hidden user: no status, version, time, device, text or traffic. Offline users
//!   show no traffic either, since its absence would disclose hidden ones.
//! - A heartbeat without a status change allocates nothing and reads the sessions of one user only. The cost of a tick
//!   is proportional to what is due.
//! - Inputs for unknown connections are ignored and counted.
//! - Online users can be listed in the order of their ids, from any id.
//! - An offline user that is not watched is removed after `flap_forget`, a minute at the least; until then views and
//!   [`PresenceTable::stored_presence`] can be read.
//!
//! # Deliberately absent
//!
//! Cancelled deadlines: a session's slot in the wheel stays armed when the session ends, and the next session in that
//! slot is checked early, or no later than the shortest timeout that a message can start (`Policy::check_interval`).

mod changes;
mod checks;
mod inputs;
mod remote;
mod sessions;
mod views;

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use domain::wheel::{TimingWheel, Verdict};
use domain::{UnixTime, UserId};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::input::{Effect, Input, Refused};
use crate::policy::Policy;
use crate::session::Session;
use crate::slab::Slab;
use crate::status::Status;
use crate::user_presence::UserPresence;
use crate::view::{LastKnown, StoredPresence, TableSize, UserCounts};
use crate::wall_time::{MonotonicClock, MonotonicTime, WallTime};

#[derive(Debug)]
pub struct PresenceTable {
    core: Core,
    /// When to check each session's slot, in monotonic seconds.
    wheel: TimingWheel,
}

/// Everything but the wheel, whose callback borrows it.
#[derive(Debug)]
struct Core {
    policy: Policy,
    clock: MonotonicClock,
    /// The lowest version of a view that changes here.
    start: WallTime,
    /// Slots in `users`, by user id.
    index: HashTable<u32>,
    hasher: RandomState,
    users: Slab<UserPresence>,
    sessions: Slab<Session>,
    /// Deadlines of users: ends of declarations, grace periods, pending times, removal. Monotonic seconds and slots.
    deadlines: BTreeSet<(u32, u32)>,
    counts: UserCounts,
    /// Users that are not counted as offline, sorted by id.
    listed: BTreeSet<UserId>,
    unknown_inputs: u64,
    /// Spreads first pings.
    rng: fastrand::Rng,
}

impl PresenceTable {
    /// The seed spreads the first pings.
    pub fn new(policy: Policy, now: WallTime, seed: u64) -> PresenceTable {
        let clock = MonotonicClock::new(now);
        let wheel = TimingWheel::new(UnixTime(clock.latest().seconds()), policy.check_interval().0 + 1);
        let core = Core {
            policy,
            clock,
            start: now,
            index: HashTable::new(),
            hasher: RandomState::default(),
            users: Slab::new(),
            sessions: Slab::new(),
            deadlines: BTreeSet::new(),
            counts: UserCounts::default(),
            listed: BTreeSet::new(),
            unknown_inputs: 0,
            rng: fastrand::Rng::with_seed(seed),
        };
        PresenceTable { core, wheel }
    }

    /// Applies an input of `user`. A refused input changes nothing.
    pub fn handle(
        &mut self,
        now: WallTime,
        user: UserId,
        input: Input,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let now = self.core.clock.at(now);
        if let Some((slot, check_at)) = self.core.handle(now, user, input, effects)? {
            self.wheel.arm(slot, UnixTime(check_at.seconds_up()));
        }
        Ok(())
    }

    /// Runs what is due. To be called about once a second.
    pub fn tick(&mut self, now: WallTime, effects: &mut Vec<Effect>) {
        // The wheel advances by whole seconds, so checks and probes happen on whole seconds.
        let now = self.core.clock.at(now).floor();
        let core = &mut self.core;
        self.wheel.advance(UnixTime(now.seconds()), |slot| match core.check(slot, now, effects) {
            Some(again) => Verdict::RearmAt(UnixTime(again.seconds_up())),
            None => Verdict::Done,
        });
        core.run_deadlines(now, effects);
    }

    /// At start: a user that was online before is pending until they reconnect or their time is over (P11).
    pub fn restore(&mut self, now: WallTime, stored: StoredPresence) {
        let now = self.core.clock.at(now);
        // There are no connections yet, so effects have no recipients.
        self.core.restore(now, stored, &mut Vec::new());
    }

    /// After a handover from a previous process: its last stored presence applies to users that have not connected here
    /// yet. Users that were online there are pending.
    pub fn restore_after_handover(
        &mut self,
        now: WallTime,
        stored: StoredPresence,
        effects: &mut Vec<Effect>,
    ) {
        let now = self.core.clock.at(now);
        self.core.restore_after_handover(now, stored, effects);
    }

    /// The user has a watcher: keep an entry, online or not. Presence known already is not replaced.
    pub fn watch(&mut self, now: WallTime, user: UserId, last: LastKnown) {
        let now = self.core.clock.at(now);
        let entry = self.core.preload(now, user, last);
        self.core.users[entry].flags.watched = true;
        self.core.schedule(entry);
    }

    /// Loads the last known presence of a user that is about to connect, so that versions continue and declarations
    /// hold. As [`PresenceTable::watch`], but the entry expires if the user does not connect.
    pub fn preload(&mut self, now: WallTime, user: UserId, last: LastKnown) {
        let now = self.core.clock.at(now);
        let entry = self.core.preload(now, user, last);
        self.core.schedule(entry);
    }

    /// The user has no watcher any more. Returns whether the entry was removed; that of a user that is or was just
    /// online is removed later.
    pub fn unwatch(&mut self, user: UserId) -> bool {
        self.core.unwatch(user)
    }

    pub fn counts(&self) -> UserCounts {
        self.core.counts
    }

    pub fn size(&self) -> TableSize {
        TableSize {
            users: self.core.users.len(),
            sessions: self.core.sessions.len(),
            armed: self.wheel.armed(),
            due: self.core.deadlines.len(),
            unknown_inputs: self.core.unknown_inputs,
        }
    }

    /// Applies to each session from its next check on, which is at most the old ping interval away.
    pub fn set_policy(&mut self, policy: Policy) {
        self.core.policy = policy;
    }
}

impl Core {
    fn find(&self, user: UserId) -> Option<u32> {
        let hash = self.hasher.hash_one(user);
        self.index.find(hash, |slot| self.users[*slot].user == user).copied()
    }

    /// A new user is offline.
    fn find_or_add(&mut self, user: UserId) -> u32 {
        if let Some(slot) = self.find(user) {
            return slot;
        }
        let slot = self.users.insert(UserPresence::new(user));
        self.counts.users[Status::Offline as usize] += 1;
        let (hasher, users) = (&self.hasher, &self.users);
        let hash = hasher.hash_one(user);
        self.index.insert_unique(hash, slot, |slot| hasher.hash_one(users[*slot].user));
        slot
    }

    /// Removes a user without sessions.
    fn remove_user(&mut self, slot: u32) {
        let entry = self.users.remove(slot);
        debug_assert!(entry.first == crate::slab::NONE, "sessions have a user");
        self.counts.users[Status::Offline as usize] -= 1;
        self.deadlines.remove(&(entry.due_s, slot));
        let hash = self.hasher.hash_one(entry.user);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
    }

    fn unix(&self, at: MonotonicTime) -> UnixTime {
        self.clock.wall_time(at).seconds()
    }
}
