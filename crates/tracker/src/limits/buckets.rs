//! Leaky buckets in a table of fixed size, without locks: one per busy key (an address, a user).
//!
//! Keys are keyed hashes. A displaced key gets its burst once more, which is counted.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::UnixTime;

use super::WAYS;
use domain::Counter;

/// Room for 65,536 busy keys in half a mebibyte.
const GROUPS: usize = 16_384;

/// A cell: tag (16 bits of the hash), time (16 bits of the second), level (32 bits).
#[derive(Clone, Copy)]
struct Bucket {
    tag: u16,
    second: u16,
    level: u32,
}

impl Bucket {
    fn from_cell(cell: u64) -> Self {
        Bucket { tag: (cell >> 48) as u16, second: (cell >> 32) as u16, level: cell as u32 }
    }

    fn to_cell(self) -> u64 {
        u64::from(self.tag) << 48 | u64::from(self.second) << 32 | u64::from(self.level)
    }

    /// Seconds since it was written. Zero if that is in the future: another thread was faster, or the clock stepped
    /// back.
    fn age_at(self, second: u16) -> u16 {
        let elapsed = second.wrapping_sub(self.second);
        if elapsed > u16::MAX - STEP_BACK_MAX_S { 0 } else { elapsed }
    }

    /// The level after the leak since then.
    fn level_at(self, second: u16, leak_per_s: u32) -> u32 {
        self.level.saturating_sub(u32::from(self.age_at(second)).saturating_mul(leak_per_s))
    }
}

/// A clock step back by up to this much empties no bucket.
const STEP_BACK_MAX_S: u16 = 600;

/// Zero for either means no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketLimit {
    pub(super) per_s: u32,
    pub(super) burst: u32,
}

impl BucketLimit {
    pub(super) fn is_off(self) -> bool {
        self.per_s == 0 || self.burst == 0
    }
}

#[derive(Debug)]
pub(super) struct Buckets {
    cells: Box<[[AtomicU64; WAYS]]>,
    displaced: Counter,
}

impl Default for Buckets {
    fn default() -> Self {
        let cells = (0..GROUPS).map(|_| Default::default()).collect();
        Buckets { cells, displaced: Counter::default() }
    }
}

impl Buckets {
    pub(super) fn capacity(&self) -> usize {
        GROUPS * WAYS
    }

    pub(super) fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// False if the key has used up its burst and more than `per_s` a second since.
    pub(super) fn allows(&self, hash: u64, now: UnixTime, limit: BucketLimit) -> bool {
        let BucketLimit { per_s, burst } = limit;
        let group = &self.cells[hash as usize % GROUPS];
        // Zero marks an unused cell.
        let tag = ((hash >> 48) as u16).max(1);
        let second = now.0 as u16;
        loop {
            let (cell, old) = find_cell(group, tag, second, per_s);
            let bucket = Bucket::from_cell(old);
            let level = if bucket.tag == tag { bucket.level_at(second, per_s) } else { 0 };
            if level >= burst {
                return false;
            }
            let written_at =
                if bucket.tag == tag && bucket.age_at(second) == 0 { bucket.second } else { second };
            let new = Bucket { tag, second: written_at, level: level + 1 }.to_cell();
            if cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                let is_others = bucket.tag != 0 && bucket.tag != tag;
                if is_others && bucket.level_at(second, per_s) > 0 {
                    self.displaced.increment();
                }
                return true;
            }
        }
    }
}

/// The key's own cell, else the one with the lowest level.
fn find_cell(group: &[AtomicU64; WAYS], tag: u16, second: u16, leak_per_s: u32) -> (&AtomicU64, u64) {
    let mut emptiest = (&group[0], group[0].load(Ordering::Relaxed));
    let mut emptiest_level = u32::MAX;
    for cell in group {
        let value = cell.load(Ordering::Relaxed);
        let bucket = Bucket::from_cell(value);
        if bucket.tag == tag {
            return (cell, value);
        }
        let level = if bucket.tag == 0 { 0 } else { bucket.level_at(second, leak_per_s) };
        if level < emptiest_level {
            emptiest_level = level;
            emptiest = (cell, value);
        }
    }
    emptiest
}
