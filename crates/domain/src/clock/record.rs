//! Steady time continued from the previous process of a node.

use super::{Clock, SystemClock};

/// Steady time is not continued if it would differ from the wall clock by more than this: the date was wrong for long.
const APART_MAX_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// Uptimes are rounded down to this. Added, so that steady time never goes back.
const UPTIME_PRECISION_MS: u64 = 10;

/// Steady time as recorded for the next process of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyRecord {
    /// At the time of the record.
    pub steady_ms: u64,
    /// Uptime of the machine at the time of the record.
    pub uptime_ms: u64,
    /// Identifies the boot: uptimes of different boots cannot be compared.
    pub boot: String,
}

impl SteadyRecord {
    pub fn now(uptime_ms: u64, boot: String) -> Self {
        SteadyRecord { steady_ms: SystemClock.steady_ms(), uptime_ms, boot }
    }
}

/// The start of steady time: `recorded`, plus the time since.
///
/// Within one boot the difference of the uptimes is the time since. After a reboot the wall clock is used, unless it
/// was set back: then steady time continues from the record.
pub(super) fn start_of(recorded: &SteadyRecord, (uptime_ms, boot): (u64, &str), wall_ms: u64) -> u64 {
    let passed_ms = uptime_ms.checked_sub(recorded.uptime_ms);
    let start_ms = match passed_ms.filter(|_| !boot.is_empty() && boot == recorded.boot) {
        Some(passed_ms) => recorded.steady_ms.saturating_add(passed_ms + UPTIME_PRECISION_MS),
        None => wall_ms.max(recorded.steady_ms),
    };
    // Not in the second of the record: nodes and runs distinguish processes by the second of their start.
    let start_ms = start_ms.max((recorded.steady_ms / 1_000 + 1).saturating_mul(1_000));
    if start_ms.abs_diff(wall_ms) > APART_MAX_MS { wall_ms } else { start_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;
    const WALL_MS: u64 = 1_800_000_000_000;

    fn record(steady_ms: u64, uptime_ms: u64, boot: &str) -> SteadyRecord {
        SteadyRecord { steady_ms, uptime_ms, boot: boot.to_owned() }
    }

    #[test]
    fn a_restart_continues_by_the_uptime_however_the_wall_clock_was_set() {
        let recorded = record(WALL_MS, 50_000, "a");
        for wall_ms in [WALL_MS - 2 * HOUR_MS, WALL_MS + 3_000, WALL_MS + 2 * HOUR_MS] {
            assert_eq!(start_of(&recorded, (53_000, "a"), wall_ms), WALL_MS + 3_010);
        }
    }

    #[test]
    fn after_a_reboot_steady_time_is_the_wall_clock_unless_that_was_set_back() {
        let recorded = record(WALL_MS, 50_000, "a");
        for present in [(60_000, "b"), (10, "a"), (60_000, "")] {
            assert_eq!(start_of(&recorded, present, WALL_MS + HOUR_MS), WALL_MS + HOUR_MS);
            assert_eq!(start_of(&recorded, present, WALL_MS - HOUR_MS), WALL_MS + 1_000);
        }
    }

    #[test]
    fn two_processes_never_start_in_the_same_second() {
        for (recorded_ms, start_ms) in [(WALL_MS, 1_000), (WALL_MS + 400, 1_000), (WALL_MS + 950, 1_160)] {
            let started = start_of(&record(recorded_ms, 50_000, "a"), (50_200, "a"), WALL_MS);
            assert_eq!(started, WALL_MS + start_ms);
        }
    }

    #[test]
    fn a_record_of_more_than_a_week_before_or_after_the_wall_clock_is_ignored() {
        for steady_ms in [WALL_MS + APART_MAX_MS + 1, WALL_MS - APART_MAX_MS - 2_000] {
            assert_eq!(start_of(&record(steady_ms, 50_000, "a"), (51_000, "a"), WALL_MS), WALL_MS);
        }
    }
}
