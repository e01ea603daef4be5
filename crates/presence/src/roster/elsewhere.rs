//! What other gateways say of a person, and what this one says to them.

use domain::UserId;

use super::Roster;
use crate::elsewhere::{Elsewhere, Part};
use crate::input::Effect;
use crate::moment::Moment;

impl Roster {
    /// What this gateway says of a person; none if they have no session here. With `heard_since`, only of sessions that
    /// gave a sign of life at or after it.
    pub fn part(&self, _user: UserId, _heard_since: Option<Moment>) -> Option<Part> {
        None
    }

    /// What is known from elsewhere, in place of what was.
    pub fn hear_elsewhere(&mut self, _now: Moment, _elsewhere: Elsewhere, _effects: &mut Vec<Effect>) {}

    /// What was known from elsewhere is too old to be believed.
    pub fn lose_elsewhere(&mut self, _now: Moment, _user: UserId, _effects: &mut Vec<Effect>) {}
}
