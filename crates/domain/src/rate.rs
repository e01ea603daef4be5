//! The rate ceiling of a client (J8).

use crate::time::Seconds;

/// Announces have a resolution of one second, and clients report late: this much time is always granted.
const SLACK: Seconds = Seconds(10);

/// The highest plausible rate of a client. Tracker and ledger use the same rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateCeiling {
    /// In each direction.
    pub bytes_per_s: u64,
}

impl RateCeiling {
    /// 10 Gbit/s: above any real client, below typical fabricated amounts.
    pub const DEFAULT: RateCeiling = RateCeiling { bytes_per_s: 1_250_000_000 };

    /// The most bytes that count for a duration.
    pub fn allowance(self, elapsed: Seconds) -> u64 {
        self.bytes_per_s.saturating_mul(u64::from((elapsed + SLACK).0))
    }
}

impl Default for RateCeiling {
    fn default() -> Self {
        RateCeiling::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j8_the_allowance_grows_with_time_and_never_overflows() {
        let ceiling = RateCeiling { bytes_per_s: 100 };
        assert_eq!(ceiling.allowance(Seconds(0)), 1000);
        assert_eq!(ceiling.allowance(Seconds(90)), 10_000);
        assert_eq!(RateCeiling { bytes_per_s: u64::MAX }.allowance(Seconds(u32::MAX)), u64::MAX);
    }
}
