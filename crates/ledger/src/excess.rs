//! What was counted too often, because several nodes heard the same announce before they heard of each other.
//!
//! Time, what multipliers add and completions are added with each entry. A client that announces to three nodes in the
//! same moment makes three entries, and each of them tells the whole time since its last announce, and everything it
//! moved in it. Bytes follow from counters ([`mod@crate::credit`]) and count once; this is what has to be taken back of
//! the rest.
//!
//! # Guarantees
//!
//! - A function of the set of runs, as the credit is: the order of entries leaves no trace.
//! - Of a stretch that one node heard, nothing is taken back.
//! - What is left of a stretch that several heard: time up to what lies between the first and the last moment counted,
//!   for seeding and for leeching each, and for both together; the bonus that the counters claimed would have had, had
//!   they been claimed once; as many completions as the node told that told most.
//!
//! # Deliberately absent
//!
//! Single entries. Where a client was seeding, leeching and seeding again, or where multipliers changed, what is left is
//! shared out in proportion.

use std::collections::BTreeMap;

use crate::credit::Stretch;
use crate::told::{Claimed, Told};

/// What was counted too often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    /// Time spent seeding.
    pub seeding_s: u64,
    /// Time spent leeching.
    pub leeching_s: u64,
    /// Completions.
    pub completed_count: u64,
    /// What multipliers added to the bytes uploaded, in hundredths. Also the other way: see [`bonus_once`].
    pub bonus_uploaded_x100: i128,
    /// Likewise of bytes downloaded.
    pub bonus_downloaded_x100: i128,
}

/// What was counted too often of these stretches.
pub(crate) fn excess(stretches: &[Stretch]) -> Excess {
    let several = stretches.iter().filter(|stretch| is_heard_by_several(stretch));
    several.map(excess_of).fold(Excess::default(), Excess::with)
}

impl Excess {
    fn with(self, other: Excess) -> Excess {
        Excess {
            seeding_s: self.seeding_s.saturating_add(other.seeding_s),
            leeching_s: self.leeching_s.saturating_add(other.leeching_s),
            completed_count: self.completed_count.saturating_add(other.completed_count),
            bonus_uploaded_x100: self.bonus_uploaded_x100.saturating_add(other.bonus_uploaded_x100),
            bonus_downloaded_x100: self.bonus_downloaded_x100.saturating_add(other.bonus_downloaded_x100),
        }
    }
}

fn is_heard_by_several(stretch: &Stretch) -> bool {
    stretch.runs.windows(2).any(|pair| pair[0].key.node != pair[1].key.node)
}

fn excess_of(stretch: &Stretch) -> Excess {
    let told = stretch.runs.iter().fold(Told::NOTHING, |told, run| told.with(run.told));
    let (seeding_s, leeching_s) = time_once(&told);
    Excess {
        seeding_s: told.seeding.seconds - seeding_s,
        leeching_s: told.leeching.seconds - leeching_s,
        completed_count: told.completions.saturating_sub(completions_once(stretch)),
        bonus_uploaded_x100: told.uploaded.bonus_x100.saturating_sub(bonus_once(&told.uploaded)),
        bonus_downloaded_x100: told.downloaded.bonus_x100.saturating_sub(bonus_once(&told.downloaded)),
    }
}

/// Seconds of seeding and of leeching, each no more than told, and no more than there were.
fn time_once(told: &Told) -> (u64, u64) {
    let seeding = told.seeding.seconds.min(told.seeding.over.length());
    let leeching = told.leeching.seconds.min(told.leeching.over.length());
    let there_were = told.seeding.over.with(told.leeching.over).length();
    let both = u128::from(seeding) + u128::from(leeching);
    if both <= u128::from(there_were) {
        return (seeding, leeching);
    }
    let share = u128::from(seeding) * u128::from(there_were) / both;
    let seeding_share = u64::try_from(share).unwrap_or(seeding);
    (seeding_share, there_were - seeding_share)
}

/// What multipliers would have added, had each byte been claimed once: as much a byte as they did.
///
/// Of a new client that two nodes hear at once, with counters that grew between them, the first bytes were claimed by
/// nobody: each node began with what it heard first. They have their share, too, once anything is claimed.
fn bonus_once(claimed: &Claimed) -> i128 {
    let bytes = i128::from(claimed.bytes);
    if bytes == 0 {
        return claimed.bonus_x100;
    }
    let length = i128::from(claimed.over.length());
    // In two steps, of which neither goes beyond its bounds: the remainder is below 64 bits, and so is the length.
    let (whole, rest) = (claimed.bonus_x100.div_euclid(bytes), claimed.bonus_x100.rem_euclid(bytes));
    let part = rest.unsigned_abs() * length.unsigned_abs() / bytes.unsigned_abs();
    whole.saturating_mul(length).saturating_add_unsigned(part)
}

/// The same counters were completed as often as the node told that told most.
fn completions_once(stretch: &Stretch) -> u64 {
    let mut by_node: BTreeMap<u64, u64> = BTreeMap::new();
    for run in stretch.runs.iter().filter(|run| run.told.completions > 0) {
        let completions = by_node.entry(run.key.node).or_default();
        *completions = completions.saturating_add(run.told.completions);
    }
    by_node.into_values().max().unwrap_or_default()
}
