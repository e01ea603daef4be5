//! The part of an outbox that holds what an operator is told.

use std::collections::VecDeque;

use super::{Outbox, Pending, wake};
use crate::operators::missed_frame;
use crate::protocol::{CloseCode, Frame};

/// Tellings of what happened to people that may wait.
const TELLINGS_MAX: usize = 8;
/// Pings that may go unanswered.
const UNANSWERED_MAX: u8 = 2;

/// What waits for an operator. The newest overview, and the newest of what happened; never more.
#[derive(Default)]
pub(super) struct Onlooking {
    overview: Option<Frame>,
    tellings: VecDeque<Telling>,
    /// What had to make way.
    missed: u64,
    unanswered: u8,
}

struct Telling {
    frame: Frame,
    /// Of how many occurrences it tells.
    count: u64,
}

impl Onlooking {
    pub(super) fn has_any(&self) -> bool {
        self.overview.is_some() || !self.tellings.is_empty() || self.missed > 0
    }

    /// Adds everything to what is written; says how many frames that were.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> usize {
        let missed = match std::mem::take(&mut self.missed) {
            0 => None,
            missed => Some(missed_frame(missed)),
        };
        let tellings = std::mem::take(&mut self.tellings).into_iter().map(|telling| telling.frame);
        let frames = missed.into_iter().chain(tellings).chain(self.overview.take());
        frames.inspect(|frame| out.extend_from_slice(frame.as_bytes())).count()
    }

    pub(super) fn clear(&mut self) {
        *self = Onlooking::default();
    }
}

impl Outbox {
    /// Lets everything out to an operator, beginning with the answer to `connect`.
    pub(crate) fn open_for_operator(&self, reply: Frame) {
        // Also of a connection that is closing already: it must be known that it was nobody's.
        self.waiting.lock().onlooking = Some(Box::default());
        self.add(|waiting| {
            waiting.frame_bytes += reply.as_bytes().len();
            waiting.replies.insert(0, reply);
            true
        });
    }

    /// Whether it is an operator's.
    pub(crate) fn is_operators(&self) -> bool {
        self.waiting.lock().onlooking.is_some()
    }

    /// How everything is, in place of what waits.
    pub(crate) fn overview(&self, frame: Frame) {
        self.onlook(|onlooking| {
            let is_late = onlooking.overview.replace(frame).is_some();
            (u64::from(is_late), 0)
        });
    }

    /// What happened to people, `count` of it. The oldest makes way.
    pub(crate) fn happened(&self, frame: Frame, count: u64) {
        self.onlook(|onlooking| {
            onlooking.tellings.push_back(Telling { frame, count });
            let gone = match onlooking.tellings.len() > TELLINGS_MAX {
                true => onlooking.tellings.pop_front().map_or(0, |telling| telling.count),
                false => 0,
            };
            onlooking.missed += gone;
            (0, gone)
        });
    }

    /// A ping, unless the last ones were not answered: then the connection is no more.
    pub(crate) fn ask_operator(&self) {
        let is_silent = {
            let mut waiting = self.waiting.lock();
            let Some(onlooking) = &mut waiting.onlooking else { return };
            onlooking.unanswered = onlooking.unanswered.saturating_add(1);
            onlooking.unanswered > UNANSWERED_MAX
        };
        if is_silent {
            self.close(CloseCode::NoPong);
        } else {
            self.ping();
        }
    }

    /// The operator's client said something.
    pub(crate) fn operator_heard(&self) {
        if let Some(onlooking) = &mut self.waiting.lock().onlooking {
            onlooking.unanswered = 0;
        }
    }

    /// Changes what an operator is told; counts overviews and occurrences that had to make way.
    fn onlook(&self, put: impl FnOnce(&mut Onlooking) -> (u64, u64)) {
        let mut waiting = self.waiting.lock();
        let Pending { close: None, onlooking: Some(onlooking), .. } = &mut *waiting else { return };
        let (overviews, occurrences) = put(onlooking);
        self.counters.operators.overviews_replaced.add(overviews);
        self.counters.operators.left_out.add(occurrences);
        if !waiting.is_blocked {
            wake(waiting);
        }
    }
}
