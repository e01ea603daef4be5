//! What a client is credited: a function of the set of its runs, and of nothing else.
//!
//! # Guarantees
//!
//! - The order in which runs became known, and what was known of them in between, leave no trace.
//! - Each byte counts once, though two nodes heard the same client, and though a tracker forgot it meanwhile.
//! - Nothing counts that the ceiling does not allow for the time in which it would have been moved (J8).
//!
//! # How
//!
//! Runs that are the same counters seen by several nodes at the same time are put together into a [`Stretch`]: those
//! under one number, for nodes that hear of each other take the number over; those that several nodes began within a
//! second, before they had heard of each other; and those that overlap and plausibly go on from each other. A stretch is
//! credited by how far its counters went. Between two stretches lies time in which no tracker watched: if
//! the counters went on, what they grew by is credited, up to the ceiling; if they went back, the client began anew
//! and nobody knows what it moved, so nothing is.

use domain::{NodeId, RateCeiling, Seconds, UnixTime};

use crate::run::{Counters, Run, RunKey};
use crate::told::Told;

/// Nodes hear of each other within a part of a second, which may be in the next one.
const AT_ONCE: Seconds = Seconds(1);

/// What a client is credited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// Bytes uploaded.
    pub uploaded: u128,
    /// Bytes downloaded.
    pub downloaded: u128,
    /// Bytes uploaded according to the counters, beyond what the ceiling allows.
    pub withheld_uploaded: u128,
    /// Likewise downloaded.
    pub withheld_downloaded: u128,
}

impl Credit {
    fn with(mut self, part: &Part) -> Credit {
        let bridge = part.bridge.unwrap_or_default();
        for granted in [part.moved, bridge.granted] {
            self.uploaded += u128::from(granted.uploaded);
            self.downloaded += u128::from(granted.downloaded);
        }
        self.withheld_uploaded += u128::from(bridge.withheld.uploaded);
        self.withheld_downloaded += u128::from(bridge.withheld.downloaded);
        self
    }
}

/// What a stretch brings: everything that is credited is a sum of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// How far its counters went.
    pub(crate) moved: Counters,
    /// What they had grown by since the stretch before; none where there is none, or where they began anew.
    pub(crate) bridge: Option<Bridge>,
}

/// What counters grew by while no tracker watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bridge {
    /// So much of it is credited.
    pub granted: Counters,
    /// So much is not, being beyond what the ceiling allows for that time.
    pub withheld: Counters,
}

impl Bridge {
    fn of(grown: Counters, allowance: u64) -> Bridge {
        let granted =
            Counters { uploaded: grown.uploaded.min(allowance), downloaded: grown.downloaded.min(allowance) };
        let withheld = Counters {
            uploaded: grown.uploaded - granted.uploaded,
            downloaded: grown.downloaded - granted.downloaded,
        };
        Bridge { granted, withheld }
    }
}

/// What a client with these runs is credited, in all.
pub fn credit(runs: &[Run], ceiling: RateCeiling) -> Credit {
    credit_of(&stretches(runs, ceiling), ceiling)
}

/// What a client with these stretches is credited.
pub(crate) fn credit_of(stretches: &[Stretch], ceiling: RateCeiling) -> Credit {
    parts_of(stretches, ceiling).fold(Credit::default(), |credit, part| credit.with(&part))
}

/// What each of these stretches brings, in their order.
pub(crate) fn parts_of(stretches: &[Stretch], ceiling: RateCeiling) -> impl Iterator<Item = Part> {
    stretches.iter().enumerate().map(move |(position, stretch)| {
        let previous = position.checked_sub(1).map(|before| &stretches[before]);
        let bridge = previous.and_then(|previous| {
            let grown = stretch.low.since(previous.high)?;
            Some(Bridge::of(grown, ceiling.allowance(stretch.first.since(previous.last))))
        });
        Part { moved: stretch.high.since(stretch.low).unwrap_or_default(), bridge }
    })
}

/// Runs that are the same counters, seen by one node or several.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) low: Counters,
    pub(crate) high: Counters,
    pub(crate) first: UnixTime,
    pub(crate) last: UnixTime,
    pub(crate) is_settled: bool,
    /// Whether the counters began where those of the stretch before it ended, or above.
    goes_on: bool,
    /// In the order of their beginning.
    pub(crate) runs: Vec<Run>,
}

impl Stretch {
    fn beginning_with(run: Run) -> Stretch {
        let Run { low, high, first, last, is_settled, .. } = run;
        Stretch { low, high, first, last, is_settled, goes_on: false, runs: vec![run] }
    }

    /// Only where and when it ended, in one settled run.
    pub(crate) fn ended(self) -> Stretch {
        let run = Run {
            low: self.high,
            high: self.high,
            first: self.last,
            last: self.last,
            is_settled: true,
            told: Told::NOTHING,
            ..self.runs[0]
        };
        Stretch::beginning_with(run)
    }

    /// Whether a run, which began no earlier, is these counters as well.
    fn includes(&self, run: &Run, ceiling: RateCeiling) -> bool {
        if self.is_settled {
            return false;
        }
        if self.is_heard_elsewhere(run) || self.began_elsewhere_at_once(run) {
            return self.is_near(run, ceiling);
        }
        if run.first >= self.last {
            return false;
        }
        // What the same node said last, or else the beginning, is what the run must go on from, and plausibly so: else
        // announcing to two nodes would be the way around the ceiling.
        let same_node = self.runs.iter().rev().find(|known| known.key.node == run.key.node);
        let (counters, at) = same_node.map_or((self.low, self.first), |known| (known.high, known.last));
        let allowance = ceiling.allowance(run.first.since(at));
        run.low
            .since(counters)
            .is_some_and(|moved| moved.uploaded <= allowance && moved.downloaded <= allowance)
    }

    /// Whether another node wrote of this very run: nodes that hear of each other give a client's run one number.
    fn is_heard_elsewhere(&self, run: &Run) -> bool {
        self.runs.iter().any(|known| known.key.run == run.key.run && known.key.node != run.key.node)
    }

    /// Whether another node heard this client begin as well, neither knowing of the other yet: each gave the run a number
    /// of its own. A node that has given these counters a number already means others by another.
    fn began_elsewhere_at_once(&self, run: &Run) -> bool {
        run.first <= self.first + AT_ONCE
            && self.runs.iter().any(|known| known.key.node != run.key.node)
            && !self.was_numbered_by(run.key.node)
            && !self.was_over_before(run)
            && !self.contradicts(run)
    }

    /// Whether a node gave these counters one of their numbers. A number belongs to whom it was first heard from; others
    /// take it over. If two wrote it in the same second, nobody knows who gave it.
    fn was_numbered_by(&self, node: u64) -> bool {
        self.runs.iter().any(|known| {
            let has_it_from = |other: &Run| {
                let is_elsewhere = other.key.run == known.key.run && other.key.node != node;
                is_elsewhere && other.first <= known.first
            };
            known.key.node == node && !self.runs.iter().any(has_it_from)
        })
    }

    /// Whether a run is a new beginning, from zero, after these counters had gone on.
    ///
    /// It is if the same node had heard them go on before, or a former life of it: a tracker that is started again, and a
    /// client that is, too, take less than a second. Heard by another node, it is the beginning of these, which came late.
    /// Within the same second it is one also if these went on from others, and were heard but once: somebody said
    /// goodbye. Else nobody knows the order, and both began at once.
    fn was_over_before(&self, run: &Run) -> bool {
        let is_beginning = run.low == Counters::default() && run.low.since(self.high).is_none();
        let was_goodbye = self.goes_on && self.low == self.high;
        is_beginning && (was_goodbye || self.went_on_before(run))
    }

    /// Whether the node of a run heard these counters above zero before it, in this life or in a former one, which
    /// was over by then.
    fn went_on_before(&self, run: &Run) -> bool {
        let node = NodeId(run.key.node);
        self.runs.iter().filter(|known| known.high != Counters::default()).any(|known| {
            let was_above =
                self.last < run.first || (known.low != Counters::default() && known.first < run.first);
            (known.key.node == node.0 && was_above)
                || (node.is_next_life_of(NodeId(known.key.node)) && self.last <= run.first)
        })
    }

    /// Whether a run ended later than one of these, and lower, or the other way round: counters only grow. Clocks of two
    /// nodes may differ a little; that of one does not.
    fn contradicts(&self, run: &Run) -> bool {
        let ends_lower = |later: &Run, earlier: &Run| {
            let slack = if later.key.node == earlier.key.node { Seconds(0) } else { AT_ONCE };
            later.last > earlier.last + slack && later.high.since(earlier.high).is_none()
        };
        self.runs.iter().any(|known| ends_lower(run, known) || ends_lower(known, run))
    }

    /// Whether a run can be these counters, heard a little sooner or later by clocks that differ a little.
    fn is_near(&self, run: &Run, ceiling: RateCeiling) -> bool {
        let allowance = ceiling.allowance(run.first.since(self.first));
        let moved = run.low.since(self.low).or_else(|| self.low.since(run.low));
        moved.is_some_and(|moved| moved.uploaded <= allowance && moved.downloaded <= allowance)
    }

    fn include(&mut self, run: Run) {
        self.low = self.low.min(run.low);
        self.high = self.high.max(run.high);
        self.last = self.last.max(run.last);
        self.runs.push(run);
    }
}

/// Puts runs together into stretches, in the order of their beginning.
pub(crate) fn stretches(runs: &[Run], ceiling: RateCeiling) -> Vec<Stretch> {
    let mut ordered = runs.to_vec();
    // Of runs that began in the same second, the one with the lower number did first: a node counts on. Of one run that
    // several nodes heard, the lowest counters came first.
    ordered.sort_by_key(|run| {
        let Counters { uploaded, downloaded } = run.low;
        (!run.is_settled, run.first, run.key.run, uploaded, downloaded, run.key.node)
    });
    let mut stretches: Vec<Stretch> = Vec::new();
    for position in 0..ordered.len() {
        let begins_second = position == 0 || !began_together(&ordered[position - 1], &ordered[position]);
        if begins_second && let Some(before) = stretches.last() {
            put_goodbyes_first(&mut ordered[position..], before.high);
        }
        let home = put_first_who_is_at_home(&mut ordered[position..], &stretches, ceiling);
        let run = ordered[position];
        match home {
            Some(home) => stretches[home].include(run),
            None => {
                let goes_on = stretches.last().is_some_and(|before| run.low.since(before.high).is_some());
                stretches.push(Stretch { goes_on, ..Stretch::beginning_with(run) });
            }
        }
    }
    stretches
}

fn began_together(one: &Run, other: &Run) -> bool {
    (one.is_settled, one.first) == (other.is_settled, other.first)
}

/// Of the runs that began in the same second as the first of these, puts those first that were heard but once and go on
/// from what was known before: a goodbye comes before a beginning, and numbers of two nodes do not tell which was first.
fn put_goodbyes_first(runs: &mut [Run], known: Counters) {
    let count = runs.iter().take_while(|run| began_together(&runs[0], run)).count();
    let second = &mut runs[..count];
    let begun: Vec<RunKey> =
        second.iter().filter(|run| run.low == Counters::default()).map(|run| run.key).collect();
    if begun.is_empty() {
        return;
    }
    // Where one node heard both, its numbers do tell; of two lives of a node, the next one came after; and of one run that
    // several nodes heard, the beginning came first.
    let comes_after = |key: RunKey, begun: &RunKey| {
        let is_next_life = NodeId(key.node).is_next_life_of(NodeId(begun.node));
        key.run == begun.run || (key.node == begun.node && key.run > begun.run) || is_next_life
    };
    second.sort_by_key(|run| {
        let is_goodbye = run.low == run.high && run.low.since(known).is_some();
        !is_goodbye || begun.iter().any(|begun| comes_after(run.key, begun))
    });
}

/// Of runs that differ in nothing but who wrote of them, any may have given the number that they share: puts one first
/// that belongs to a stretch, and says to which. The names of nodes tell nothing.
fn put_first_who_is_at_home(runs: &mut [Run], stretches: &[Stretch], ceiling: RateCeiling) -> Option<usize> {
    let first = runs[0];
    let is_alike =
        |run: &Run| began_together(&first, run) && first.key.run == run.key.run && first.low == run.low;
    let alike = runs.iter().take_while(|run| is_alike(run)).enumerate();
    let (position, home) = alike
        .map(|(position, run)| (position, home_of(run, stretches, ceiling)))
        .find(|(_, home)| home.is_some())?;
    runs.swap(0, position);
    home
}

/// The stretch that a run belongs to; none if it begins one.
///
/// It is the newest, or, while those after it began at the same moment as the run, one that knows its number: a goodbye
/// said to one node that has heard of it and to one that has not is a run of its own, and the run that it ended.
fn home_of(run: &Run, stretches: &[Stretch], ceiling: RateCeiling) -> Option<usize> {
    for (position, stretch) in stretches.iter().enumerate().rev() {
        if stretch.is_heard_elsewhere(run) && stretch.includes(run, ceiling) {
            return Some(position);
        }
        if run.first > stretch.first + AT_ONCE {
            break;
        }
    }
    let newest = stretches.len().checked_sub(1)?;
    stretches[newest].includes(run, ceiling).then_some(newest)
}

#[cfg(test)]
mod tests;
