//! Many persons of one shard, and the wheel that looks at their sessions.
//!
//! The owner feeds it with [`Roster::handle`], calls [`Roster::tick`] about once a second, and does what the effects say.
//!
//! # Guarantees
//!
//! - What is shown of a person follows from their sessions and words alone (see `person`); each view has a version that
//!   grows with each change of that view and with nothing else.
//! - A public view says nothing of who hides: no status, no version, no time, no device, no text, no traffic. Who is
//!   offline shows no traffic either, or its absence would give away who hides.
//! - A heartbeat that changes nothing allocates nothing and looks at one person's sessions only. A tick costs what is due.
//! - What happened to an unknown connection is ignored and counted.
//! - Who is here can be walked through in the order of their numbers, from anywhere.
//! - Who left and is not watched is forgotten after `flap_forget`, a minute at the least; until then views and
//!   [`Roster::remembered`] can be read.
//!
//! # Deliberately absent
//!
//! Cancelled deadlines: a session's slot in the wheel stays armed when the session ends, and its next tenant is looked at
//! early or no later than the shortest deadline a message can set (`Policy::look`).

mod elsewhere;
mod inputs;
mod looks;
mod reading;
mod sessions;
mod settling;

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use domain::wheel::{TimingWheel, Verdict};
use domain::{UnixTime, UserId};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::input::{Effect, Input, Refused};
use crate::moment::{Moment, Steady, Timeline};
use crate::person::Person;
use crate::policy::Policy;
use crate::session::Session;
use crate::slots::Slots;
use crate::status::Status;
use crate::view::{LastKnown, Load, Remembered, Tally};

/// Persons and their sessions.
#[derive(Debug)]
pub struct Roster {
    core: Core,
    /// When to look at each session's slot, in steady seconds.
    wheel: TimingWheel,
}

/// Everything but the wheel, which asks it.
#[derive(Debug)]
struct Core {
    policy: Policy,
    timeline: Timeline,
    /// When the roster began. Versions begin with it.
    start: Moment,
    /// Slots of persons, by user.
    table: HashTable<u32>,
    hasher: RandomState,
    persons: Slots<Person>,
    sessions: Slots<Session>,
    /// What is due for persons: ends of declarations, of grace, of waiting. Steady seconds and slots.
    agenda: BTreeSet<(u32, u32)>,
    tally: Tally,
    /// Those who are not counted as offline, in the order of their numbers.
    listed: BTreeSet<UserId>,
    strays: u64,
    /// Spreads first pings.
    dice: fastrand::Rng,
}

impl Roster {
    /// An empty roster. The seed spreads the first pings.
    pub fn new(policy: Policy, now: Moment, seed: u64) -> Roster {
        let timeline = Timeline::new(now);
        let wheel = TimingWheel::new(UnixTime(timeline.latest().seconds()), policy.look().0 + 1);
        let core = Core {
            policy,
            timeline,
            start: now,
            table: HashTable::new(),
            hasher: RandomState::default(),
            persons: Slots::new(),
            sessions: Slots::new(),
            agenda: BTreeSet::new(),
            tally: Tally::default(),
            listed: BTreeSet::new(),
            strays: 0,
            dice: fastrand::Rng::with_seed(seed),
        };
        Roster { core, wheel }
    }

    /// Takes in what happened to `user`. What is refused leaves no trace.
    pub fn handle(
        &mut self,
        now: Moment,
        user: UserId,
        input: Input,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let now = self.core.timeline.at(now);
        if let Some((slot, look_at)) = self.core.handle(now, user, input, effects)? {
            self.wheel.arm(slot, UnixTime(look_at.seconds_up()));
        }
        Ok(())
    }

    /// Does what is due. To be called about once a second.
    pub fn tick(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        // The wheel turns by whole seconds, so looks happen on whole seconds: what was asked then is due then.
        let now = self.core.timeline.at(now).floor();
        let core = &mut self.core;
        self.wheel.advance(UnixTime(now.seconds()), |slot| match core.look(slot, now, effects) {
            Some(again) => Verdict::LookAgainAt(UnixTime(again.seconds_up())),
            None => Verdict::Done,
        });
        core.do_what_is_due(now, effects);
    }

    /// At start: somebody who was here before. They are pending until they come back or their time is over (P11).
    pub fn restore(&mut self, now: Moment, remembered: Remembered) {
        let now = self.core.timeline.at(now);
        // Nobody is connected yet, so nobody need be told.
        self.core.restore(now, remembered, &mut Vec::new());
    }

    /// After the process before this one, which served until a moment ago, has ended: what it stored last holds for
    /// everybody who has not come here yet. Who was there is pending.
    pub fn bring_back(&mut self, now: Moment, remembered: Remembered, effects: &mut Vec<Effect>) {
        let now = self.core.timeline.at(now);
        self.core.bring_back(now, remembered, effects);
    }

    /// Somebody watches this person: keep an entry, whether they are here or not. What is known already is not replaced.
    pub fn know(&mut self, now: Moment, user: UserId, last: LastKnown) {
        let now = self.core.timeline.at(now);
        let person = self.core.recall(now, user, last);
        self.core.persons[person].flags.watched = true;
        self.core.plan(person);
    }

    /// What was last known of a person who is about to come, so that versions go on and declarations hold. Like
    /// [`Roster::know`], but the entry goes by itself if they do not come.
    pub fn recall(&mut self, now: Moment, user: UserId, last: LastKnown) {
        let now = self.core.timeline.at(now);
        let person = self.core.recall(now, user, last);
        self.core.plan(person);
    }

    /// Nobody watches this person any more. Whether the entry is gone now; that of somebody who is here, or left a moment
    /// ago, goes by itself later.
    pub fn forget(&mut self, user: UserId) -> bool {
        self.core.forget(user)
    }

    /// How many there are.
    pub fn online(&self) -> Tally {
        self.core.tally
    }

    /// What the roster holds.
    pub fn load(&self) -> Load {
        Load {
            persons: self.core.persons.len(),
            sessions: self.core.sessions.len(),
            armed: self.wheel.armed(),
            due: self.core.agenda.len(),
            strays: self.core.strays,
        }
    }

    /// Changes the rules. They hold for a session from the next look at it on, which is at most the old ping interval
    /// away.
    pub fn set_policy(&mut self, policy: Policy) {
        self.core.policy = policy;
    }
}

impl Core {
    /// The slot of a person.
    fn find(&self, user: UserId) -> Option<u32> {
        let hash = self.hasher.hash_one(user);
        self.table.find(hash, |slot| self.persons[*slot].user == user).copied()
    }

    /// The slot of a person, who is offline if new.
    fn find_or_add(&mut self, user: UserId) -> u32 {
        if let Some(slot) = self.find(user) {
            return slot;
        }
        let slot = self.persons.insert(Person::new(user));
        self.tally.persons[Status::Offline as usize] += 1;
        let (hasher, persons) = (&self.hasher, &self.persons);
        let hash = hasher.hash_one(user);
        self.table.insert_unique(hash, slot, |slot| hasher.hash_one(persons[*slot].user));
        slot
    }

    /// Forgets a person who is not here.
    fn remove_person(&mut self, slot: u32) {
        let person = self.persons.remove(slot);
        debug_assert!(person.first == crate::slots::NONE, "sessions have a person");
        self.tally.persons[Status::Offline as usize] -= 1;
        self.agenda.remove(&(person.due_s, slot));
        let hash = self.hasher.hash_one(person.user);
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
    }

    /// What the clock says at this point of steady time.
    fn unix(&self, at: Steady) -> UnixTime {
        self.timeline.moment(at).seconds()
    }
}
