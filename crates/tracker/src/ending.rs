//! How a server is told to end.

use std::sync::atomic::{AtomicU8, Ordering};

/// What becomes of the sockets of a server that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// They are closed: whatever has arrived in them is answered first.
    Drain,
    /// Another process serves the very same sockets: whatever waits in them is for that one.
    HandOver,
}

/// Tells threads that never wait for anything to end.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

impl Stop {
    pub(crate) fn tell(&self, ending: Ending) {
        let code = match ending {
            Ending::Drain => 1,
            Ending::HandOver => 2,
        };
        self.0.store(code, Ordering::Release);
    }

    pub(crate) fn told(&self) -> Option<Ending> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Ending::Drain),
            _ => Some(Ending::HandOver),
        }
    }
}
