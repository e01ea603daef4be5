//! The credit of a client: a function of the set of its runs only.
//!
//! # Guarantees
//!
//! - The order in which runs became known, and intermediate states, do not matter.
//! - Each byte counts once, even if several nodes received the same announce, or a tracker lost the client's state.
//! - Nothing counts beyond the client's token bucket ([`crate::bucket`]), which time alone refills (J8).
//! - Nothing counts that was moved between a `stopped` and the next announce, nor of a client that is known only by a
//!   `stopped`.
//!
//! # Algorithm
//!
//! Runs are processed in the order of the journal, which is exact for one node, and nearly so for several. Runs that
//! are the same counters reported by several nodes at the same time are joined into a [`Stretch`]: runs with the same
//! number, because replication passes the number on; runs that began on several nodes within a second, before
//! replication; and runs that overlap and plausibly continue each other. A stretch is credited by the growth of its
//! counters. Between two stretches no tracker received announces: if the counters continued, the difference is credited
//! as well; if they went back, the client restarted and nothing is credited for the time between. All of it passes one
//! bucket, in the order of time.

use domain::{NodeId, RateCeiling, Seconds, UnixTime};
use journal::EntryId;

use crate::bucket::{Bucket, BucketLimit};
use crate::reported::Reported;
use crate::run::{Counters, Run};

/// Replication takes a fraction of a second, which may end in the next second.
const SAME_MOMENT: Seconds = Seconds(1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    pub uploaded: u128,
    pub downloaded: u128,
    /// Bytes uploaded according to the counters, beyond what the ceiling allows.
    pub withheld_uploaded: u128,
    /// Likewise downloaded.
    pub withheld_downloaded: u128,
    /// Bytes uploaded according to the counters after a `stopped`, none of which are credited.
    pub uploaded_after_stop: u128,
}

impl Credit {
    fn with(mut self, part: &Part) -> Credit {
        let bridge = part.bridge.unwrap_or_default();
        for granted in [part.moved, bridge.granted] {
            self.uploaded += u128::from(granted.uploaded);
            self.downloaded += u128::from(granted.downloaded);
        }
        for withheld in [part.withheld, bridge.withheld] {
            self.withheld_uploaded += u128::from(withheld.uploaded);
            self.withheld_downloaded += u128::from(withheld.downloaded);
        }
        self.uploaded_after_stop += u128::from(part.uploaded_after_stop);
        self
    }
}

/// Contribution of one stretch; the credit is the sum of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Growth of its counters, as far as the bucket allows.
    pub(crate) moved: Counters,
    /// Growth beyond that.
    pub(crate) withheld: Counters,
    /// Growth since the previous stretch; none for the first stretch, after a restart, and after a `stopped`.
    pub(crate) bridge: Option<Bridge>,
    /// Upload since a `stopped` of the previous stretch.
    pub(crate) uploaded_after_stop: u64,
    /// The bucket at the end of the stretch.
    pub(crate) bucket: Bucket,
}

impl Part {
    /// Everything that bridge and counters claim, and the withheld part of it.
    pub(crate) fn claimed_and_withheld(&self) -> (Counters, Counters) {
        let bridge = self.bridge.unwrap_or_default();
        let withheld = self.withheld.plus(bridge.withheld);
        (self.moved.plus(bridge.granted).plus(withheld), withheld)
    }
}

/// Growth of counters while no tracker received announces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bridge {
    /// The credited part.
    pub granted: Counters,
    /// The part beyond what the bucket allows for that time.
    pub withheld: Counters,
}

/// The credit for these runs. `bucket` is the client's before the first of them.
pub fn credit(runs: &[Run], ceiling: RateCeiling, bucket: Bucket) -> Credit {
    credit_of(&parts_of(&stretches(runs, ceiling), ceiling, bucket))
}

pub(crate) fn credit_of(parts: &[Part]) -> Credit {
    parts.iter().fold(Credit::default(), |credit, part| credit.with(part))
}

/// The contribution of each stretch, in order. `bucket` is the client's before the first of them.
pub(crate) fn parts_of(stretches: &[Stretch], ceiling: RateCeiling, bucket: Bucket) -> Vec<Part> {
    let limit = BucketLimit::of_client(ceiling);
    let mut bucket = bucket;
    let mut generation = Generation::default();
    let mut parts = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        if bucket.is_unused() {
            bucket = Bucket::full_at(stretch.first);
        }
        let Growth { before, within, uploaded_after_stop } = generation.extend_with(stretch);
        let (grown, reach) = without(stretch.uncredited_upload(), before, within);
        // Time refills the bucket even if nothing is granted.
        let granted = bucket.grant(stretch.first, grown.unwrap_or_default(), &limit);
        let bridge = grown.map(|grown| Bridge { granted, withheld: grown.minus(granted) });
        let moved = bucket.grant(stretch.last, reach, &limit);
        parts.push(Part { moved, withheld: reach.minus(moved), bridge, uploaded_after_stop, bucket });
    }
    parts
}

/// As [`parts_of`] for a client with one run, which most have, without allocating: none if anything is withheld, which is
/// left to the general case.
pub(crate) fn part_of_only(run: &Run, ceiling: RateCeiling, bucket: Bucket) -> Option<Part> {
    let limit = BucketLimit::of_client(ceiling);
    let mut bucket = if bucket.is_unused() { Bucket::full_at(run.first) } else { bucket };
    let grown = if run.is_only_stop() { Counters::default() } else { run.high.minus(run.low) };
    let (_, reach) = without(run.reported.uncredited_upload, None, grown);
    bucket.grant(run.first, Counters::default(), &limit);
    let moved = bucket.grant(run.last, reach, &limit);
    (moved == reach).then(|| Part { moved, bucket, ..Part::default() })
}

/// Subtracts upload that is not to be credited, first from the growth within the stretch.
fn without(upload: u64, grown: Option<Counters>, reach: Counters) -> (Option<Counters>, Counters) {
    let less = |counters: Counters, upload: u64| counters.minus(Counters { uploaded: upload, downloaded: 0 });
    let rest = upload.saturating_sub(reach.uploaded);
    (grown.map(|grown| less(grown, rest)), less(reach, upload))
}

/// Stretches without evidence of a restart between them: whatever the nodes reported, and in which order, the client
/// moved no more than the range of the counters.
#[derive(Default)]
struct Generation<'a> {
    high: Counters,
    runs: Vec<&'a Run>,
}

/// What a stretch adds to the counters of its generation.
#[derive(Default)]
struct Growth {
    /// Growth before its start; none after a restart, and after a `stopped`.
    before: Option<Counters>,
    /// Growth within it.
    within: Counters,
    /// Growth of the upload before its start, after a `stopped`.
    uploaded_after_stop: u64,
}

impl<'a> Generation<'a> {
    fn extend_with(&mut self, stretch: &'a Stretch) -> Growth {
        if self.runs.is_empty() || stretch.restarted_after(&self.runs) {
            *self = Generation { high: stretch.low, runs: stretch.runs.iter().collect() };
            return Growth { within: self.reach_of(stretch), ..Growth::default() };
        }
        let grown = stretch.low.since(self.high);
        let (before, after_stop) = if self.is_stopped() { (None, grown) } else { (grown, None) };
        self.runs.extend(&stretch.runs);
        let uploaded_after_stop = after_stop.unwrap_or_default().uploaded;
        Growth { before, within: self.reach_of(stretch), uploaded_after_stop }
    }

    fn reach_of(&mut self, stretch: &Stretch) -> Counters {
        let known = self.high.max(stretch.low);
        self.high = self.high.max(stretch.high);
        if stretch.is_only_stops() { Counters::default() } else { stretch.high.minus(known) }
    }

    /// Whether the last report is a `stopped`.
    fn is_stopped(&self) -> bool {
        let last = self.runs.iter().map(|run| run.last_id).max();
        last.is_some() && self.runs.iter().any(|run| run.stopped == last)
    }
}

/// Runs that are the same counters, reported by one node or several.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) low: Counters,
    pub(crate) high: Counters,
    pub(crate) first: UnixTime,
    pub(crate) last: UnixTime,
    /// The id of the last report.
    last_id: EntryId,
    pub(crate) is_settled: bool,
    /// In the order of the journal.
    pub(crate) runs: Vec<Run>,
}

impl Stretch {
    pub(crate) fn starting_with(run: Run) -> Stretch {
        let Run { low, high, first, last, last_id, is_settled, .. } = run;
        Stretch { low, high, first, last, last_id, is_settled, runs: vec![run] }
    }

    /// Only its end, as one settled run.
    pub(crate) fn ended(self) -> Stretch {
        let stopped = self.is_stopped().then_some(self.last_id);
        let run = Run {
            low: self.high,
            high: self.high,
            first: self.last,
            last: self.last,
            first_id: self.last_id,
            last_id: self.last_id,
            is_settled: true,
            stopped,
            reported: Reported::NONE,
            ..self.runs[0]
        };
        Stretch::starting_with(run)
    }

    /// Whether the last report of these counters is a `stopped`.
    fn is_stopped(&self) -> bool {
        self.runs.iter().any(|run| run.stopped == Some(self.last_id))
    }

    /// Whether any of these runs shows lower counters after one of the earlier runs.
    fn restarted_after(&self, earlier: &[&Run]) -> bool {
        let is_lower_after =
            |run: &Run, earlier: &Run| run.comes_after(earlier) && run.low.since(earlier.high).is_none();
        self.runs.iter().any(|run| earlier.iter().any(|earlier| is_lower_after(run, earlier)))
    }

    /// Whether these counters are known only from `stopped`, sent to trackers that did not know the client.
    fn is_only_stops(&self) -> bool {
        self.runs.iter().all(Run::is_only_stop)
    }

    /// Upload that the tracker excluded from credit. Nodes that received the same announce report the same bytes.
    fn uncredited_upload(&self) -> u64 {
        let of_node = |node: u64| {
            let runs = self.runs.iter().filter(|run| run.key.node == node);
            runs.fold(0, |sum: u64, run| sum.saturating_add(run.reported.uncredited_upload))
        };
        self.runs.iter().map(|run| of_node(run.key.node)).max().unwrap_or_default()
    }

    /// Whether a run, which began no earlier, is part of these counters.
    fn includes(&self, run: &Run, ceiling: RateCeiling) -> bool {
        if self.is_settled {
            return false;
        }
        if self.is_reported_by_other_node(run) || self.began_on_other_node_at_once(run) {
            return self.is_near(run, ceiling);
        }
        if run.first_id > self.last_id {
            return false;
        }
        // The run must plausibly continue what the same node reported last, or else the beginning: otherwise announcing
        // to two nodes would circumvent the ceiling.
        let same_node = self.runs.iter().rev().find(|known| known.key.node == run.key.node);
        let (counters, at) = same_node.map_or((self.low, self.first), |known| (known.high, known.last));
        let allowance = ceiling.allowance(run.first.since(at));
        run.low
            .since(counters)
            .is_some_and(|moved| moved.uploaded <= allowance && moved.downloaded <= allowance)
    }

    /// Whether another node reported this run: replication gives a client's run one number.
    fn is_reported_by_other_node(&self, run: &Run) -> bool {
        self.runs.iter().any(|known| known.key.run == run.key.run && known.key.node != run.key.node)
    }

    /// Whether the client also began on another node before replication: each node gave the run a number of its own. A
    /// node that has already numbered these counters means other counters by a second number.
    fn began_on_other_node_at_once(&self, run: &Run) -> bool {
        run.first <= self.first + SAME_MOMENT
            && self.runs.iter().any(|known| known.key.node != run.key.node)
            && !self.was_numbered_by(run.key.node)
            && !self.had_ended_before(run)
            && !self.contradicts(run)
    }

    /// Whether a node gave these counters one of their numbers. A number belongs to the node that reported it first;
    /// others adopt it.
    fn was_numbered_by(&self, node: u64) -> bool {
        self.runs.iter().any(|known| {
            let took_it_over =
                |other: &Run| other.key.run == known.key.run && other.first_id < known.first_id;
            known.key.node == node && !self.runs.iter().any(took_it_over)
        })
    }

    /// Whether a run begins after the end of these counters: the client had stopped, or the run begins at zero on a
    /// node that had reported them above zero before, or on a restart of such a node. On another node, it is their
    /// beginning, reported late.
    fn had_ended_before(&self, run: &Run) -> bool {
        let has_stopped =
            self.runs.iter().filter_map(|known| known.stopped).any(|stopped| stopped < run.first_id);
        let is_beginning = run.low == Counters::default() && run.low.since(self.high).is_none();
        (has_stopped && !run.is_only_stop()) || (is_beginning && self.continued_before(run))
    }

    /// Whether the node of a run, or an earlier process of it, had reported these counters above zero before.
    fn continued_before(&self, run: &Run) -> bool {
        let node = NodeId(run.key.node);
        self.runs.iter().filter(|known| known.high != Counters::default()).any(|known| {
            let is_former_life = node.is_restart_of(NodeId(known.key.node));
            let was_above = known.last_id < run.first_id || known.low != Counters::default();
            is_former_life || (known.key.node == node.0 && was_above)
        })
    }

    /// Whether a run ended later than one of these, and lower, or vice versa: counters only grow. Different nodes write
    /// at different times; one node writes in order.
    fn contradicts(&self, run: &Run) -> bool {
        let ends_lower = |later: &Run, earlier: &Run| {
            let is_later = if later.key.node == earlier.key.node {
                later.last_id > earlier.last_id
            } else {
                later.last > earlier.last + SAME_MOMENT
            };
            is_later && later.high.since(earlier.high).is_none()
        };
        self.runs.iter().any(|known| ends_lower(run, known) || ends_lower(known, run))
    }

    /// Whether a run can be these counters, allowing for small clock differences.
    fn is_near(&self, run: &Run, ceiling: RateCeiling) -> bool {
        let allowance = ceiling.allowance(run.first.since(self.first));
        let moved = run.low.since(self.low).or_else(|| self.low.since(run.low));
        moved.is_some_and(|moved| moved.uploaded <= allowance && moved.downloaded <= allowance)
    }

    fn include(&mut self, run: Run) {
        // Later, lower counters are a reordered announce, or an undetected restart.
        if run.first <= self.first + SAME_MOMENT {
            self.low = self.low.min(run.low);
        }
        self.high = self.high.max(run.high);
        self.last = self.last.max(run.last);
        self.last_id = self.last_id.max(run.last_id);
        self.runs.push(run);
    }
}

/// Joins runs into stretches, in the order of the journal.
pub(crate) fn stretches(runs: &[Run], ceiling: RateCeiling) -> Vec<Stretch> {
    let mut ordered = runs.to_vec();
    ordered.sort_by_key(|run| (!run.is_settled, run.first_id, run.key));
    let mut stretches: Vec<Stretch> = Vec::new();
    for run in ordered {
        match stretch_of(&run, &stretches, ceiling) {
            Some(home) => stretches[home].include(run),
            None => stretches.push(Stretch::starting_with(run)),
        }
    }
    stretches
}

/// The stretch that a run belongs to; none if it begins one.
///
/// It is the newest, or, as long as later ones began at the same time as the run, one that contains its number: a
/// `stopped` sent to one node that knows the client and to one that does not creates a run of its own beside the run
/// that it ends.
fn stretch_of(run: &Run, stretches: &[Stretch], ceiling: RateCeiling) -> Option<usize> {
    for (position, stretch) in stretches.iter().enumerate().rev() {
        if stretch.is_reported_by_other_node(run) && stretch.includes(run, ceiling) {
            return Some(position);
        }
        if run.first > stretch.first + SAME_MOMENT {
            break;
        }
    }
    let newest = stretches.len().checked_sub(1)?;
    stretches[newest].includes(run, ceiling).then_some(newest)
}

#[cfg(test)]
mod tests;
