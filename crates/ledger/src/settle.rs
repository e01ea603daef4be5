//! Keeps the number of a client's runs bounded, without changing what it is credited.
//!
//! A client that begins anew every minute has forty thousand runs a month. Of all but the newest, no more is needed
//! than where their counters ended: one *settled* run stands for them. The price is that an entry of a run that was
//! put away can no longer be told from a new one; such entries, which are as late as many runs, are rejected.

use domain::{RateCeiling, UnixTime};

use crate::credit::{Stretch, stretches};
use crate::run::Run;

/// Runs of one client beyond which the oldest are put away.
pub const RUNS_MAX: usize = 64;
/// How many are kept then, so that not every further run causes the same work.
const RUNS_KEPT: usize = 32;

/// Puts the oldest runs away if there are more than [`RUNS_MAX`]. Says until when; none if nothing was done.
pub fn settle(runs: &mut Vec<Run>, ceiling: RateCeiling) -> Option<UnixTime> {
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let mut stretches = stretches(runs, ceiling);
    let mut until = UnixTime(0);
    let mut excess = runs.len() - RUNS_KEPT;
    while excess > 0 {
        until = until.max(put_one_away(&mut stretches));
        excess -= 1;
    }
    *runs = stretches.into_iter().flat_map(|stretch| stretch.runs).collect();
    Some(until)
}

/// Makes the runs one fewer. There are many: this is called with more than [`RUNS_KEPT`] of them.
fn put_one_away(stretches: &mut Vec<Stretch>) -> UnixTime {
    let has_settled = stretches[0].runs[0].is_settled;
    let oldest = &mut stretches[usize::from(has_settled)];
    if oldest.runs.len() > 1 {
        return join_two_oldest(&mut oldest.runs);
    }
    // One run is left of the oldest stretch: its end is all that the next one has to go on from.
    let end = &mut oldest.runs[0];
    let until = end.last;
    *end = Run { low: end.high, first: end.last, is_settled: true, ..*end };
    if has_settled {
        stretches.remove(0);
        return until;
    }
    until.max(put_one_away(stretches))
}

/// Makes one of the two runs of a stretch that ended first. They are the same counters, so nothing is lost.
fn join_two_oldest(runs: &mut Vec<Run>) -> UnixTime {
    let oldest = position_of_oldest(runs);
    let gone = runs.remove(oldest);
    let heir = position_of_oldest(runs);
    let run = &mut runs[heir];
    run.low = run.low.min(gone.low);
    run.high = run.high.max(gone.high);
    run.first = run.first.min(gone.first);
    gone.last
}

fn position_of_oldest(runs: &[Run]) -> usize {
    let oldest = runs.iter().enumerate().min_by_key(|(_, run)| (run.last, run.key));
    oldest.map_or(0, |(position, _)| position)
}
