//! What the entries of a run reported besides its counters: what multipliers add, completions.
//!
//! Sums, and how far what was summed up reaches: from the lowest to the highest counter that was claimed. Both are the
//! same in any order. Where one node heard a client, the sum is as much as its reach, or less; where several heard the
//! same announce, it is more, and `excess` says how much too much.
//!
//! Rows from before this was kept have reported nothing, and neither has a settled run: what they counted is final.

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRange {
    /// The lowest.
    pub from: u64,
    /// The highest.
    pub to: u64,
}

impl CounterRange {
    /// Of nothing.
    pub const NONE: CounterRange = CounterRange { from: u64::MAX, to: 0 };

    /// So much, up to there.
    pub fn up_to(to: u64, length: u64) -> CounterRange {
        CounterRange { from: to.saturating_sub(length), to }
    }

    /// From the lowest to the highest of both.
    pub fn with(self, other: CounterRange) -> CounterRange {
        CounterRange { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// How far it is.
    pub fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it is of nothing.
    pub fn is_none(self) -> bool {
        self.from > self.to
    }
}

/// Bytes that were claimed in one direction, and what multipliers added to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// How many, in all.
    pub bytes: u64,
    /// What multipliers added, in hundredths; below zero where they took.
    pub bonus_x100: i128,
    /// The counters they lie between.
    pub over: CounterRange,
}

impl Claimed {
    /// Nothing.
    pub const NONE: Claimed = Claimed { bytes: 0, bonus_x100: 0, over: CounterRange::NONE };

    /// So many, with a counter that showed `counter` then. An entry that claims nothing tells where its counter stood.
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

/// What entries reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Bytes uploaded.
    pub uploaded: Claimed,
    /// Bytes downloaded.
    pub downloaded: Claimed,
    /// How often the torrent was completed.
    pub completions: u64,
    /// Bytes uploaded that the tracker wants not to be credited (`nu`).
    pub uncredited_upload: u64,
}

impl Reported {
    /// Nothing.
    pub const NONE: Reported =
        Reported { uploaded: Claimed::NONE, downloaded: Claimed::NONE, completions: 0, uncredited_upload: 0 };

    /// What both reported.
    pub fn with(self, other: Reported) -> Reported {
        Reported {
            uploaded: self.uploaded.with(other.uploaded),
            downloaded: self.downloaded.with(other.downloaded),
            completions: self.completions.saturating_add(other.completions),
            uncredited_upload: self.uncredited_upload.saturating_add(other.uncredited_upload),
        }
    }

    /// Whether nothing was reported: every entry tells at least where its counters stood.
    pub fn is_none(&self) -> bool {
        self.uploaded.over.is_none()
    }
}

impl Default for Reported {
    fn default() -> Reported {
        Reported::NONE
    }
}
