//! Who changed here, and why: what is to be published follows from what came in, and from what the roster says of it.

use domain::UserId;
use presence::{Cause, DeviceId, Effect, Goodbye, Input, Moment};

use super::book::Mark;
use crate::hub::shard::{Outside, Shard};

/// What an input may change of what is published.
pub(crate) enum Noted {
    /// Nothing, or there is nobody to tell.
    Nothing,
    /// Only what the roster says has changed.
    IfChanged,
    /// Something that may not show here.
    Always(Mark),
}

impl Noted {
    pub(crate) fn of(now: Moment, input: &Input) -> Noted {
        let (cause, device) = match input {
            // Every gateway asks for traffic itself.
            Input::Traffic { .. } => return Noted::Nothing,
            Input::Heard { .. } | Input::ProbeAnswered { .. } => return Noted::IfChanged,
            Input::Connected { hello, .. } => (Cause::Connect, Some(hello.device.clone())),
            Input::Heartbeat { hello } => (Cause::Heartbeat, Some(hello.device.clone())),
            Input::Goodbye { device } => (Cause::Goodbye, Some(device.clone())),
            Input::SignOut { device } => (Cause::SignedOut, Some(device.clone())),
            Input::App { .. } => (Cause::AppState, None),
            Input::Declare { .. } => (Cause::Declared, None),
            Input::ProbeFailed { .. } => (Cause::Silence, None),
            Input::Closed { how: Goodbye::Clean, .. } => (Cause::Close, None),
            Input::Closed { how: Goodbye::Dropped, .. } => (Cause::Drop, None),
        };
        let declared = matches!(input, Input::Declare { .. }).then_some(now);
        Noted::Always(Mark { cause, device, declared })
    }
}

impl Shard {
    /// Marks somebody to whom something happened.
    pub(crate) fn note(&mut self, user: UserId, noted: Noted, effects: &[Effect], outside: &Outside) {
        let mut mark = match noted {
            Noted::Nothing => return,
            Noted::IfChanged if effects.is_empty() => return,
            Noted::IfChanged => {
                if !effects.iter().any(|effect| matches!(effect, Effect::Changed { own: true, .. })) {
                    return;
                }
                Mark { cause: Cause::Heartbeat, device: None, declared: None }
            }
            Noted::Always(mark) => mark,
        };
        if let Some((_, cause, device)) = effects.iter().rev().find_map(reason) {
            (mark.cause, mark.device) = (cause, device.clone());
        }
        self.mark(user, mark, outside);
    }

    /// Marks everybody to whom something happened by itself.
    pub(crate) fn note_all(&mut self, effects: &[Effect], outside: &Outside) {
        if self.book.is_none() {
            return;
        }
        for effect in effects {
            if let Effect::Changed { user, own: true, .. } = effect {
                self.note_by_itself(*user, (Cause::Silence, None), outside);
            }
        }
        for (user, cause, device) in effects.iter().filter_map(reason) {
            self.note_by_itself(user, (cause, device.clone()), outside);
        }
    }

    /// Of those who are elsewhere only, somebody else tells.
    fn note_by_itself(
        &mut self,
        user: UserId,
        (cause, device): (Cause, Option<DeviceId>),
        outside: &Outside,
    ) {
        let is_told = self.book.as_ref().is_some_and(|book| book.is_told(user));
        if is_told || !self.roster.is_others(user) {
            // What ends by its time ends in the register by itself, and may not end what was declared elsewhere since.
            self.mark(user, Mark { cause, device, declared: None }, outside);
        }
    }
}

/// Whose change it was, and why.
fn reason(effect: &Effect) -> Option<(UserId, Cause, &Option<DeviceId>)> {
    match effect {
        Effect::Arrived { user, cause, device }
        | Effect::Left { user, cause, device, .. }
        | Effect::Transition { user, cause, device, .. } => Some((*user, *cause, device)),
        _ => None,
    }
}
