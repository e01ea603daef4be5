//! The clock of a node, whose steady time goes on where its previous process ended.

use super::{Clock, Steady, SystemClock};
use crate::time::UnixTime;

/// Steady time that would differ from the wall clock by more than this is not continued: the date was wrong for long.
const APART_MAX_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// Steady time as the next process of the node finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyRecord {
    /// Steady time when this was recorded.
    pub steady_ms: u64,
    /// How long the machine had been running then.
    pub uptime_ms: u64,
    /// Which run of the machine it was: uptimes of different ones say nothing about each other.
    pub boot: String,
}

/// The machine's clock, with the steady time of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeClock(Steady);

impl NodeClock {
    /// A clock whose steady time begins at `start_ms`.
    pub fn starting_at(start_ms: u64) -> Self {
        NodeClock(Steady::starting_at(start_ms))
    }

    /// A clock that goes on where the previous process of the node ended. `present` is what that process would record
    /// now, apart from the steady time.
    ///
    /// As long as the machine runs, its uptime says how much time has passed since. After a reboot the wall clock says
    /// it, unless it was set back: then steady time goes on where it was recorded last.
    pub fn following(recorded: Option<&SteadyRecord>, present: &SteadyRecord) -> Self {
        let wall_ms = SystemClock.now_ms();
        NodeClock::starting_at(start_of(recorded, present, wall_ms))
    }
}

fn start_of(recorded: Option<&SteadyRecord>, present: &SteadyRecord, wall_ms: u64) -> u64 {
    let Some(recorded) = recorded else { return wall_ms };
    let passed_ms = present.uptime_ms.checked_sub(recorded.uptime_ms);
    let start_ms = match passed_ms.filter(|_| !present.boot.is_empty() && present.boot == recorded.boot) {
        Some(passed_ms) => recorded.steady_ms.saturating_add(passed_ms),
        None => wall_ms.max(recorded.steady_ms),
    };
    if start_ms.abs_diff(wall_ms) > APART_MAX_MS { wall_ms } else { start_ms }
}

impl Clock for NodeClock {
    fn now(&self) -> UnixTime {
        SystemClock.now()
    }

    fn now_ms(&self) -> u64 {
        SystemClock.now_ms()
    }

    fn steady_ms(&self) -> u64 {
        self.0.now_ms()
    }
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
    fn a_restart_goes_on_by_the_uptime_whichever_way_the_wall_clock_was_set() {
        let recorded = record(WALL_MS, 50_000, "a");
        let present = record(0, 53_000, "a");
        for wall_ms in [WALL_MS - 2 * HOUR_MS, WALL_MS + 3_000, WALL_MS + 2 * HOUR_MS] {
            assert_eq!(start_of(Some(&recorded), &present, wall_ms), WALL_MS + 3_000);
        }
    }

    #[test]
    fn after_a_reboot_steady_time_is_the_wall_clock_unless_that_was_set_back() {
        let recorded = record(WALL_MS, 50_000, "a");
        for present in [record(0, 60_000, "b"), record(0, 10, "a"), record(0, 60_000, "")] {
            assert_eq!(start_of(Some(&recorded), &present, WALL_MS + HOUR_MS), WALL_MS + HOUR_MS);
            assert_eq!(start_of(Some(&recorded), &present, WALL_MS - HOUR_MS), WALL_MS);
        }
        assert_eq!(start_of(None, &record(0, 0, "b"), WALL_MS), WALL_MS);
    }

    #[test]
    fn a_record_of_more_than_a_week_before_or_after_the_wall_clock_is_ignored() {
        for steady_ms in [WALL_MS + APART_MAX_MS + 1, WALL_MS - APART_MAX_MS - 2_000] {
            let recorded = record(steady_ms, 50_000, "a");
            assert_eq!(start_of(Some(&recorded), &record(0, 51_000, "a"), WALL_MS), WALL_MS);
        }
    }
}
