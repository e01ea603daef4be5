//! Surplus to be taken back: because several nodes received the same announce before replication, or because bytes were
//! withheld.
//!
//! Bonus and completions are added with each entry. A client that announces to three nodes at the same time causes
//! three entries, each with everything it moved since its last announce. Bytes follow from counters
//! ([`mod@crate::credit`]) and count once; this computes the surplus of the rest.
//!
//! # Guarantees
//!
//! - A function of the set of runs, like the credit: the order of entries does not matter.
//! - Nothing is taken back of a stretch that one node reported and of which nothing is withheld.
//! - Of a stretch that several nodes reported, these remain: the bonus as if the bytes had been claimed once, and the
//!   largest number of completions of any node. Withheld bytes have no bonus.
//!
//! # Deliberately absent
//!
//! Single entries. If multipliers changed, the remainder is proportional. (Time is a union of spans, and needs none of
//! this: [`crate::spans`].)

use std::collections::BTreeMap;

use crate::credit::{Part, Stretch};
use crate::reported::{Claimed, Reported};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) completions: i64,
    /// Bonus for bytes uploaded, in hundredths. May be negative: see [`bonus_once`].
    pub(crate) bonus_uploaded_x100: i128,
    /// Likewise for bytes downloaded.
    pub(crate) bonus_downloaded_x100: i128,
}

/// The surplus of these stretches and their contributions.
pub(crate) fn excess(stretches: &[Stretch], parts: &[Part]) -> Excess {
    let pairs = stretches.iter().zip(parts);
    pairs.map(|(stretch, part)| excess_of(stretch, part)).fold(Excess::default(), Excess::with)
}

impl Excess {
    fn with(self, other: Excess) -> Excess {
        Excess {
            completions: self.completions.saturating_add(other.completions),
            bonus_uploaded_x100: self.bonus_uploaded_x100.saturating_add(other.bonus_uploaded_x100),
            bonus_downloaded_x100: self.bonus_downloaded_x100.saturating_add(other.bonus_downloaded_x100),
        }
    }
}

fn is_reported_by_several(stretch: &Stretch) -> bool {
    stretch.runs.windows(2).any(|pair| pair[0].key.node != pair[1].key.node)
}

fn excess_of(stretch: &Stretch, part: &Part) -> Excess {
    let (claimed, withheld) = part.claimed_and_withheld();
    let is_withheld = withheld != Default::default();
    if !is_withheld && !is_reported_by_several(stretch) {
        return Excess::default();
    }
    let reported = stretch.runs.iter().fold(Reported::NONE, |reported, run| reported.with(run.reported));
    let is_several = is_reported_by_several(stretch);
    let left = |of: &Claimed, claimed: u64, withheld: u64| {
        let bonus = if is_several { bonus_once(of) } else { of.bonus_x100 };
        bonus.saturating_sub(share(bonus, withheld, claimed))
    };
    let left_up = left(&reported.uploaded, claimed.uploaded, withheld.uploaded);
    let left_down = left(&reported.downloaded, claimed.downloaded, withheld.downloaded);
    let completions = if is_several { completions_once(stretch) } else { reported.completions };
    Excess {
        completions: reported.completions.checked_signed_diff(completions).unwrap_or_default(),
        bonus_uploaded_x100: reported.uploaded.bonus_x100.saturating_sub(left_up),
        bonus_downloaded_x100: reported.downloaded.bonus_x100.saturating_sub(left_down),
    }
}

/// The share of an amount for `part` of `whole`, at most all of it.
pub(crate) fn share(amount: i128, part: u64, whole: u64) -> i128 {
    if part == 0 || whole == 0 {
        return 0;
    }
    let (part, whole) = (u128::from(part.min(whole)), u128::from(whole));
    // In two steps, neither of which can overflow.
    let (times, rest) = (amount.unsigned_abs() / whole, amount.unsigned_abs() % whole);
    let magnitude = times * part + rest * part / whole;
    i128::try_from(magnitude).unwrap_or(i128::MAX) * amount.signum()
}

/// The bonus as if each byte had been claimed once, at the same rate per byte.
///
/// If a new client announces to two nodes at once, and its counters grow in between, no node claimed the first bytes:
/// each started with the first counters it received. They get their share as well, once any bytes are claimed.
fn bonus_once(claimed: &Claimed) -> i128 {
    let bytes = i128::from(claimed.bytes);
    if bytes == 0 {
        return claimed.bonus_x100;
    }
    let length = i128::from(claimed.over.length());
    // In two steps, neither of which can overflow: the remainder is below 64 bits, and so is the length.
    let (whole, rest) = (claimed.bonus_x100.div_euclid(bytes), claimed.bonus_x100.rem_euclid(bytes));
    let part = rest.unsigned_abs() * length.unsigned_abs() / bytes.unsigned_abs();
    whole.saturating_mul(length).saturating_add_unsigned(part)
}

/// The largest number of completions that any node reported.
fn completions_once(stretch: &Stretch) -> u64 {
    let mut by_node: BTreeMap<u64, u64> = BTreeMap::new();
    for run in stretch.runs.iter().filter(|run| run.reported.completions > 0) {
        let completions = by_node.entry(run.key.node).or_default();
        *completions = completions.saturating_add(run.reported.completions);
    }
    by_node.into_values().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Bucket;
    use crate::credit::{parts_of, stretches};
    use crate::run::{Counters, Run, RunKey};
    use domain::{RateCeiling, RunId, UnixTime};
    use journal::EntryId;

    /// An announce at `at`, with counters that grow by 1000 bytes per second, that reports the last `seconds` with a
    /// multiplier of two.
    fn reported(at: u64, seconds: u64) -> Reported {
        let bytes = seconds * 1000;
        Reported {
            uploaded: Claimed::up_to(at * 1000, bytes, i128::from(bytes) * 100),
            downloaded: Claimed::up_to(0, 0, 0),
            ..Reported::NONE
        }
    }

    fn run_of(node: u64, span: (u32, u32), reported: &[Reported]) -> Run {
        let at = |at: u32| Counters { uploaded: u64::from(at) * 1000, downloaded: 0 };
        Run {
            key: RunKey { run: RunId(1), node },
            low: at(span.0),
            high: at(span.1),
            first: UnixTime(span.0),
            last: UnixTime(span.1),
            first_id: EntryId { ms: u64::from(span.0), seq: node },
            last_id: EntryId { ms: u64::from(span.1), seq: node },
            is_settled: false,
            stopped: None,
            reported: reported.iter().fold(Reported::NONE, |sum, reported| sum.with(*reported)),
        }
    }

    fn excess_of_runs(runs: &[Run]) -> Excess {
        let stretches = stretches(runs, RateCeiling::default());
        excess(&stretches, &parts_of(&stretches, RateCeiling::default(), Bucket::default()))
    }

    #[test]
    fn nothing_is_taken_back_of_one_node() {
        let twice = run_of(1, (0, 100), &[reported(100, 100), reported(100, 100)]);
        assert_eq!(excess_of_runs(&[twice]), Excess::default());
    }

    #[test]
    fn one_announce_reported_by_three_nodes_remains_once() {
        let completed = Reported { completions: 1, ..reported(100, 100) };
        let first = run_of(1, (0, 100), &[reported(0, 0), completed]);
        let others = [2, 3].map(|node| run_of(node, (100, 100), &[completed]));
        let expected = Excess { completions: 2, bonus_uploaded_x100: 200 * 1000 * 100, ..Excess::default() };
        assert_eq!(excess_of_runs(&[first, others[0], others[1]]), expected);
        // The largest number of any node.
        let again = run_of(2, (100, 100), &[completed, Reported { completions: 1, ..reported(100, 0) }]);
        assert_eq!(excess_of_runs(&[first, again]).completions, 1);
    }

    #[test]
    fn a_client_that_moves_between_nodes_keeps_everything() {
        let runs = [
            run_of(1, (0, 300), &[reported(100, 100), reported(300, 100)]),
            run_of(2, (200, 200), &[reported(200, 100)]),
        ];
        assert_eq!(excess_of_runs(&runs), Excess::default());
    }

    #[test]
    fn rows_of_older_versions_have_no_surplus() {
        let former = run_of(1, (0, 5000), &[]);
        assert_eq!(excess_of_runs(&[former, run_of(2, (4000, 5000), &[])]), Excess::default());
        let now =
            [run_of(1, (0, 5100), &[reported(5100, 100)]), run_of(2, (5100, 5100), &[reported(5100, 100)])];
        let excess = excess_of_runs(&now);
        assert_eq!(excess.bonus_uploaded_x100, 100 * 1000 * 100);
    }

    /// Each node started with the first counters it received, then adopted those of the other.
    #[test]
    fn unclaimed_bytes_have_their_share_of_the_bonus() {
        let runs = [
            run_of(1, (0, 0), &[reported(0, 0)]),
            run_of(2, (1, 101), &[reported(1, 0), reported(101, 100)]),
        ];
        assert_eq!(excess_of_runs(&runs).bonus_uploaded_x100, -1000 * 100);
        // The rate is unknown before anything is claimed.
        let unclaimed = [runs[0], run_of(2, (1, 1), &[reported(1, 0)])];
        assert_eq!(excess_of_runs(&unclaimed), Excess::default());
    }

    #[test]
    fn a_bonus_of_several_multipliers_is_reduced_in_proportion_and_may_be_negative() {
        let claimed = |bytes, bonus_x100, to| Claimed {
            bytes,
            bonus_x100,
            over: crate::reported::CounterRange { from: 0, to },
        };
        assert_eq!(bonus_once(&claimed(200, 100 * 50 + 100 * 200, 100)), 12_500);
        assert_eq!(bonus_once(&claimed(3, -100, 1)), -34);
        assert_eq!(bonus_once(&claimed(0, 0, 100)), 0);
        assert_eq!(
            bonus_once(&claimed(u64::MAX, i128::from(u64::MAX) * 9900, u64::MAX)),
            i128::from(u64::MAX) * 9900
        );
        // No input overflows.
        bonus_once(&claimed(1, i128::MAX, u64::MAX));
        bonus_once(&claimed(u64::MAX, i128::MIN, u64::MAX));
    }

    #[test]
    fn j8_withheld_bytes_have_no_bonus() {
        let run = Run { last: UnixTime(0), ..run_of(1, (0, 100), &[reported(100, 100)]) };
        let ceiling = RateCeiling { bytes_per_s: 4000 };
        let stretches = stretches(&[run], ceiling);
        let parts = parts_of(&stretches, ceiling, Bucket::default());
        assert_eq!(parts[0].moved.uploaded, 40_000, "ten seconds of slack");
        assert_eq!(excess(&stretches, &parts).bonus_uploaded_x100, 60_000 * 100);
    }

    #[test]
    fn a_share_is_never_more_than_the_whole() {
        assert_eq!((share(100, 1, 3), share(-100, 1, 3), share(7, 9, 3)), (33, -33, 7));
        assert_eq!((share(5, 0, 0), share(i128::MAX, u64::MAX, u64::MAX)), (0, i128::MAX));
    }
}
