//! Bounds the number of a client's runs, without changing its credit or the surplus taken back.
//!
//! A client that restarts every minute has forty thousand runs a month. First, stretches that continue each other are
//! joined: a tracker that restarts a thousand times leaves one run of a client that did not. Of the others, except the
//! newest, only the final counters are needed: one *settled* run stands for them. As a consequence an entry of a
//! settled run cannot be distinguished from a new one: it counts without its bytes ([`mod@crate::post`]). Entries of a
//! joined run are part of the joined one anyway.

use std::collections::VecDeque;

use domain::{RateCeiling, UnixTime};

use crate::bucket::Bucket;
use crate::credit::{Part, Stretch, parts_of, stretches};
use crate::run::{Counters, Run};

/// Runs of one client beyond which the oldest are settled.
pub const RUNS_MAX: usize = 64;
/// Runs kept then, so that not every further run causes the same work.
const RUNS_KEPT: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Runs that ended until then may be removed.
    pub until: UnixTime,
    /// The client's bucket before the oldest remaining run.
    pub bucket: Bucket,
}

/// Settles the oldest runs if there are more than [`RUNS_MAX`]; none if nothing was settled. `bucket` is the client's
/// before the first run.
///
/// A stretch is settled as a whole, or not at all: parts of it would be joined with later runs by other rules. The
/// newest one stays, because further runs may belong to it; if it is too long by itself, runs of the same node are
/// joined, as if that node had kept the client's state.
pub fn settle(runs: &mut Vec<Run>, ceiling: RateCeiling, bucket: Bucket) -> Option<Settled> {
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let all = stretches(runs, ceiling);
    let parts = parts_of(&all, ceiling, bucket);
    let mut settling = Settling {
        count: runs.len(),
        stretches: all.into_iter().zip(parts).collect(),
        settled: Settled { until: UnixTime(0), bucket },
    };
    settling.join_continued_stretches();
    settling.settle_oldest();
    settling.join_runs_of_newest();
    *runs = settling.stretches.into_iter().flat_map(|(stretch, _)| stretch.runs).collect();
    (settling.settled.until > UnixTime(0)).then_some(settling.settled)
}

struct Settling {
    stretches: VecDeque<(Stretch, Part)>,
    /// Runs in all stretches.
    count: usize,
    settled: Settled,
}

impl Settling {
    /// From the oldest on, as far as needed. The newest is unchanged.
    fn join_continued_stretches(&mut self) {
        let mut position = 0;
        while self.count > RUNS_KEPT && position + 2 < self.stretches.len() {
            let (earlier, later) = (&self.stretches[position], &self.stretches[position + 1]);
            if !is_continuation(earlier, later) {
                position += 1;
                continue;
            }
            let Some((removed, removed_part)) = self.stretches.remove(position) else { break };
            let (successor, part) = &mut self.stretches[position];
            // One run for both: which node reported the counters does not matter within a joined stretch.
            self.count -= removed.runs.len() + successor.runs.len() - 1;
            self.settled.until = self.settled.until.max(successor.last);
            part.moved = part.moved.plus(removed_part.moved).plus(part.bridge.unwrap_or_default().granted);
            part.bridge = removed_part.bridge;
            *successor = joined(&removed, successor);
        }
    }

    fn settle_oldest(&mut self) {
        while self.count > RUNS_KEPT && self.stretches.len() > 1 {
            let Some((oldest, part)) = self.stretches.pop_front() else { break };
            self.count -= oldest.runs.len();
            self.settled.until = self.settled.until.max(oldest.last);
            self.settled.bucket = part.bucket;
            if self.stretches.len() == 1 || self.count <= RUNS_KEPT {
                // The next stretch only needs its end.
                self.stretches.push_front((oldest.ended(), Part { bucket: part.bucket, ..Part::default() }));
                self.count += 1;
                break;
            }
            // The next one is settled as well, so this end is not needed.
        }
    }

    fn join_runs_of_newest(&mut self) {
        let Some((newest, _)) = self.stretches.back_mut() else { return };
        while self.count > RUNS_MAX
            && let Some(removed_until) = join_two_of_a_node(&mut newest.runs)
        {
            self.count -= 1;
            self.settled.until = self.settled.until.max(removed_until);
        }
    }
}

/// Whether one run may stand for both: the later continues the earlier, and nothing was withheld of either or between
/// them.
fn is_continuation((earlier, earlier_part): &(Stretch, Part), (later, part): &(Stretch, Part)) -> bool {
    let nothing = Counters::default();
    let is_whole = |part: &Part| part.withheld == nothing;
    let bridge_is_whole = part.bridge.is_some_and(|bridge| bridge.withheld == nothing);
    let is_settled = earlier.is_settled || later.is_settled;
    !is_settled && bridge_is_whole && is_whole(earlier_part) && is_whole(part)
}

fn joined(earlier: &Stretch, later: &Stretch) -> Stretch {
    let runs = || earlier.runs.iter().chain(&later.runs);
    let newest = later.runs[later.runs.len() - 1];
    let reported = runs().fold(crate::reported::Reported::NONE, |reported, run| reported.with(run.reported));
    let run = Run {
        low: earlier.low,
        high: later.high,
        first: earlier.first,
        last: later.last,
        first_id: runs().map(|run| run.first_id).min().unwrap_or(newest.first_id),
        last_id: runs().map(|run| run.last_id).max().unwrap_or(newest.last_id),
        stopped: later.runs.iter().filter_map(|run| run.stopped).max(),
        reported,
        ..newest
    };
    Stretch::starting_with(run)
}

/// Joins the oldest two runs of the same node; none if each node has only one.
fn join_two_of_a_node(runs: &mut Vec<Run>) -> Option<UnixTime> {
    runs.sort_by_key(|run| (run.first_id, run.key));
    let has_successor = |(position, run): &(usize, &Run)| {
        runs[position + 1..].iter().any(|later| later.key.node == run.key.node)
    };
    let (oldest, _) = runs.iter().enumerate().find(has_successor)?;
    let removed = runs.remove(oldest);
    let successor = runs[oldest..].iter_mut().find(|later| later.key.node == removed.key.node)?;
    successor.low = successor.low.min(removed.low);
    successor.high = successor.high.max(removed.high);
    successor.first = successor.first.min(removed.first);
    successor.last = successor.last.max(removed.last);
    successor.first_id = successor.first_id.min(removed.first_id);
    successor.last_id = successor.last_id.max(removed.last_id);
    successor.stopped = successor.stopped.max(removed.stopped);
    successor.reported = successor.reported.with(removed.reported);
    Some(removed.last)
}
