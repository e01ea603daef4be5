//! Numbers for the runs of clients.

use std::sync::atomic::{AtomicU32, Ordering};

use domain::RunId;

/// The first number is taken from the clock, in milliseconds, so that a node does not reuse numbers after a restart,
/// unless it began more than a thousand runs per second all the time. Even then only two runs of the same client must
/// not share one.
#[derive(Debug)]
pub(crate) struct Runs(AtomicU32);

impl Runs {
    pub(crate) fn starting_with(first: RunId) -> Self {
        Runs(AtomicU32::new(first.0))
    }

    pub(crate) fn next(&self) -> RunId {
        let run = RunId(self.0.fetch_add(1, Ordering::Relaxed));
        // One number in four billion means "none".
        if run == RunId::NONE { RunId(self.0.fetch_add(1, Ordering::Relaxed)) } else { run }
    }
}
