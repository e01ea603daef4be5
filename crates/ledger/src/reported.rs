//! What the entries of a run reported besides its counters: bonus and completions.
//!
//! Sums, and the range of counters that they cover. Both are independent of the order. If one node received a client's
//! announces, the sum is at most the length of the range; if several received the same announce, it is more, and
//! `excess` computes the surplus.
//!
//! Runs of older versions have no such sums, and neither has a settled run: their amounts are final.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRange {
    pub from: u64,
    pub to: u64,
}

impl CounterRange {
    pub const NONE: CounterRange = CounterRange { from: u64::MAX, to: 0 };

    /// The range of `length` that ends at `to`.
    pub fn up_to(to: u64, length: u64) -> CounterRange {
        CounterRange { from: to.saturating_sub(length), to }
    }

    /// The smallest range that contains both.
    pub fn with(self, other: CounterRange) -> CounterRange {
        CounterRange { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    pub fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    pub fn is_none(self) -> bool {
        self.from > self.to
    }
}

/// Bytes claimed in one direction, and their bonus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub bytes: u64,
    /// Bonus of multipliers in hundredths; may be negative.
    pub bonus_x100: i128,
    /// The counters they lie between.
    pub over: CounterRange,
}

impl Claimed {
    pub const NONE: Claimed = Claimed { bytes: 0, bonus_x100: 0, over: CounterRange::NONE };

    /// A claim of so many bytes with this counter. A claim of zero bytes records the counter.
    pub fn up_to(counter: u64, bytes: u64, bonus_x100: i128) -> Claimed {
        Claimed { bytes, bonus_x100, over: CounterRange::up_to(counter, bytes) }
    }

    fn with(self, other: Claimed) -> Claimed {
        Claimed {
            bytes: self.bytes.saturating_add(other.bytes),
            bonus_x100: self.bonus_x100.saturating_add(other.bonus_x100),
            over: self.over.with(other.over),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    pub uploaded: Claimed,
    pub downloaded: Claimed,
    pub completions: u64,
    /// Upload that the tracker excluded from credit (`nu`).
    pub uncredited_upload: u64,
}

impl Reported {
    pub const NONE: Reported =
        Reported { uploaded: Claimed::NONE, downloaded: Claimed::NONE, completions: 0, uncredited_upload: 0 };

    pub fn with(self, other: Reported) -> Reported {
        Reported {
            uploaded: self.uploaded.with(other.uploaded),
            downloaded: self.downloaded.with(other.downloaded),
            completions: self.completions.saturating_add(other.completions),
            uncredited_upload: self.uncredited_upload.saturating_add(other.uncredited_upload),
        }
    }

    /// Every entry records at least its counters.
    pub fn is_none(&self) -> bool {
        self.uploaded.over.is_none()
    }
}

impl Default for Reported {
    fn default() -> Reported {
        Reported::NONE
    }
}
