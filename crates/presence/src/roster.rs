//! Many persons of one shard. (Signatures; the bodies follow.)
#![allow(unused_variables, dead_code, reason = "the bodies follow")]

use domain::UserId;

use crate::input::{Effect, Input, Refused};
use crate::moment::Moment;
use crate::policy::Policy;
use crate::view::{LastKnown, Load, Remembered, SessionView, Tally, View};

/// Persons and their sessions.
#[derive(Debug)]
pub struct Roster {
    policy: Policy,
}

impl Roster {
    /// An empty roster. The seed spreads first pings.
    pub fn new(policy: Policy, now: Moment, seed: u64) -> Roster {
        Roster { policy }
    }
    /// Takes in what happened.
    pub fn handle(
        &mut self,
        now: Moment,
        user: UserId,
        input: Input,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        Ok(())
    }
    /// Does what is due. To be called about once a second.
    pub fn tick(&mut self, now: Moment, effects: &mut Vec<Effect>) {}
    /// Somebody who was here before a restart.
    pub fn restore(&mut self, now: Moment, remembered: Remembered) {}
    /// Somebody watches this person: keep an entry, here or not.
    pub fn know(&mut self, now: Moment, user: UserId, last: LastKnown) {}
    /// What was last known of a person who is about to come: like `know`, but nobody need watch them.
    pub fn recall(&mut self, now: Moment, user: UserId, last: LastKnown) {}
    /// Nobody watches this person any more. Whether the entry is gone at once.
    pub fn forget(&mut self, user: UserId) -> bool {
        false
    }
    /// What others see.
    pub fn public_view(&self, user: UserId) -> View {
        View::unknown(user)
    }
    /// What the person's own devices see.
    pub fn own_view(&self, user: UserId) -> View {
        View::unknown(user)
    }
    /// What should be known after a crash.
    pub fn remembered(&self, user: UserId) -> Option<Remembered> {
        None
    }
    /// A person's sessions.
    pub fn sessions(&self, user: UserId) -> impl Iterator<Item = SessionView> {
        std::iter::empty()
    }
    /// How many there are.
    pub fn online(&self) -> Tally {
        Tally::default()
    }
    /// What the roster holds.
    pub fn load(&self) -> Load {
        Load::default()
    }
    /// Changes the rules.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }
}
