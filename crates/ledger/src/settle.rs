//! Keeps the number of a client's runs bounded, without changing what it is credited, nor what is taken back of it.
//!
//! A client that begins anew every minute has forty thousand runs a month. Of all but the newest, no more is needed
//! than where their counters ended: one *settled* run stands for them, which tells nothing more. The price is that an entry of a run that was
//! put away can no longer be told from a new one; such entries, which are as late as many runs, are rejected.

use std::collections::VecDeque;

use domain::{RateCeiling, UnixTime};

use crate::credit::stretches;
use crate::run::Run;

/// Runs of one client beyond which the oldest are put away.
pub const RUNS_MAX: usize = 64;
/// How many are kept then, so that not every further run causes the same work.
const RUNS_KEPT: usize = 32;

/// Puts the oldest runs away if there are more than [`RUNS_MAX`]. Says until when; none if nothing was done.
///
/// A stretch goes as a whole, or not at all: what is left of a part would be put together with later runs by other
/// rules. The newest one stays, because further runs may belong to it; of one that is too long by itself, runs of the
/// same node become one, as if that node had never forgotten the client.
pub fn settle(runs: &mut Vec<Run>, ceiling: RateCeiling) -> Option<UnixTime> {
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let mut stretches = VecDeque::from(stretches(runs, ceiling));
    let mut until = None;
    let mut count = runs.len();
    while count > RUNS_KEPT && stretches.len() > 1 {
        let Some(oldest) = stretches.pop_front() else { break };
        count -= oldest.runs.len();
        until = until.max(Some(oldest.last));
        if stretches.len() == 1 || count <= RUNS_KEPT {
            // Its end is all that the next one has to go on from.
            stretches.push_front(oldest.ended());
            count += 1;
            break;
        }
        // The next one goes, too, and with it the question of what it went on from.
    }
    if let Some(newest) = stretches.back_mut() {
        while count > RUNS_MAX
            && let Some(gone_until) = join_two_of_a_node(&mut newest.runs)
        {
            count -= 1;
            until = until.max(Some(gone_until));
        }
    }
    *runs = stretches.into_iter().flat_map(|stretch| stretch.runs).collect();
    until
}

/// Makes one of the oldest two runs of the same node; none if each node has but one.
fn join_two_of_a_node(runs: &mut Vec<Run>) -> Option<UnixTime> {
    runs.sort_by_key(|run| (run.first, run.key));
    let has_heir = |(position, run): &(usize, &Run)| {
        runs[position + 1..].iter().any(|later| later.key.node == run.key.node)
    };
    let (oldest, _) = runs.iter().enumerate().find(has_heir)?;
    let gone = runs.remove(oldest);
    let heir = runs[oldest..].iter_mut().find(|later| later.key.node == gone.key.node)?;
    heir.low = heir.low.min(gone.low);
    heir.high = heir.high.max(gone.high);
    heir.first = heir.first.min(gone.first);
    heir.last = heir.last.max(gone.last);
    heir.told = heir.told.with(gone.told);
    Some(gone.last)
}
