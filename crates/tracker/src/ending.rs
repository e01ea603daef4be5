//! How the listeners of a server are told to stand still, to go on and to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use domain::clock::Stopwatch;
use tokio::sync::watch;

/// How often a thread that stands still looks whether it may go on.
const STILL_PAUSE: Duration = Duration::from_millis(1);
/// How long the listeners may take to stand still. A thread that waits for packets looks up ten times a second.
const STILL_PATIENCE: Duration = Duration::from_secs(2);

/// What becomes of the sockets of a server that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// They are closed: whatever has arrived in them is answered first.
    Drain,
    /// Another process serves the very same sockets: whatever waits in them is for that one.
    HandOver,
}

/// What the listeners are to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Take what comes.
    #[default]
    Serve,
    /// Take nothing from the sockets for now.
    StandStill,
    /// End.
    End(Ending),
}

/// What the listeners are to do, for those that never wait for anything, and how many of them stand still.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    code: AtomicU8,
    still: AtomicUsize,
}

impl Orders {
    pub(crate) fn give(&self, phase: Phase) {
        let code = match phase {
            Phase::Serve => 0,
            Phase::StandStill => 1,
            Phase::End(Ending::Drain) => 2,
            Phase::End(Ending::HandOver) => 3,
        };
        self.code.store(code, Ordering::Release);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.code.load(Ordering::Acquire) {
            0 => Phase::Serve,
            1 => Phase::StandStill,
            2 => Phase::End(Ending::Drain),
            _ => Phase::End(Ending::HandOver),
        }
    }

    /// Stands still, on a thread of one's own, until told otherwise.
    pub(crate) fn stand_still(&self) {
        let _still = self.count_still();
        while self.phase() == Phase::StandStill {
            thread::sleep(STILL_PAUSE);
        }
    }

    /// Whoever holds it takes nothing from its sockets.
    pub(crate) fn count_still(&self) -> Still<'_> {
        self.still.fetch_add(1, Ordering::AcqRel);
        Still(self)
    }
}

/// A listener that stands still.
pub(crate) struct Still<'o>(&'o Orders);

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.still.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Closes and opens the way from the sockets into a running server. What comes while it is closed waits in the sockets;
/// connections that are open are served all the while.
#[derive(Clone, Debug)]
pub struct Valve {
    pub(crate) orders: Arc<Orders>,
    pub(crate) tell: watch::Sender<Phase>,
    pub(crate) listeners: usize,
}

impl Valve {
    /// Closes it, and waits until nothing is taken any more; false if that takes too long, or the server ends. Blocks the
    /// thread for a tenth of a second or so. To be opened again, unless the server is to end.
    pub fn close(&self) -> bool {
        self.change(|phase| (phase == Phase::Serve).then_some(Phase::StandStill));
        let closing = Stopwatch::start();
        while self.orders.still.load(Ordering::Acquire) < self.listeners {
            if closing.elapsed() > STILL_PATIENCE || self.orders.phase() != Phase::StandStill {
                return false;
            }
            thread::sleep(STILL_PAUSE);
        }
        self.orders.phase() == Phase::StandStill
    }

    /// Opens it again. A server that has been told to end is not held up.
    pub fn open(&self) {
        self.change(|phase| (phase == Phase::StandStill).then_some(Phase::Serve));
    }

    /// Tells everybody to end.
    pub(crate) fn end(&self, ending: Ending) {
        self.change(|_| Some(Phase::End(ending)));
    }

    /// Both ways of telling say the same, whoever tells what at the same time.
    fn change(&self, next: impl FnOnce(Phase) -> Option<Phase>) {
        self.tell.send_if_modified(|phase| {
            let Some(next) = next(*phase) else { return false };
            *phase = next;
            self.orders.give(next);
            true
        });
    }
}
