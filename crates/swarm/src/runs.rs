//! Numbers for the runs of clients.

use std::sync::atomic::{AtomicU32, Ordering};

use domain::RunId;

/// Gives each run a number of its own.
///
/// The first one is taken from the clock, in milliseconds, so that a node does not give the same numbers again after a
/// restart, unless it began more than a thousand runs a second all along. Even then only two runs of one and the same
/// client must not share one.
#[derive(Debug)]
pub(crate) struct Runs(AtomicU32);

impl Runs {
    pub(crate) fn starting_with(first: RunId) -> Self {
        Runs(AtomicU32::new(first.0))
    }

    pub(crate) fn next(&self) -> RunId {
        let run = RunId(self.0.fetch_add(1, Ordering::Relaxed));
        // Once in four billion the number is the one that means "none".
        if run == RunId::NONE { RunId(self.0.fetch_add(1, Ordering::Relaxed)) } else { run }
    }
}
