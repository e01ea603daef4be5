//! Alternating rounds against two servers, and medians.
//!
//! Noise affects both: each round of the tracker is compared with the baseline's round after it, and the median of
//! these ratios is the result.

use serde::Serialize;

use crate::load::LoadResult;
use crate::process::CpuTime;

/// Busy share of a core from which it counts as saturated.
const SATURATED_FROM: f64 = 0.95;

/// One round against one server.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    pub announces_per_s: f64,
    /// The server's processor time per announce.
    pub server_cpu_ns: f64,
    /// The part of it in user space.
    pub server_user_ns: f64,
    /// Share of the round in which the server used its core or waited for it.
    pub server_busy: f64,
    /// The mean size of a reply.
    pub reply_bytes_mean: f64,
    /// Datagrams without a reply.
    pub lost: u64,
}

impl Round {
    /// Combines the client's counts with the server's processor time.
    pub fn new(tally: &LoadResult, cpu: CpuTime) -> Self {
        let elapsed_s = tally.elapsed.as_secs_f64().max(1e-9);
        Round {
            announces_per_s: tally.rate(),
            server_cpu_ns: cpu.used().as_nanos() as f64 / tally.replies.max(1) as f64,
            server_user_ns: cpu.user.as_nanos() as f64 / tally.replies.max(1) as f64,
            server_busy: ((cpu.used() + cpu.waited).as_secs_f64() / elapsed_s).min(1.0),
            reply_bytes_mean: tally.reply_bytes_mean(),
            lost: tally.lost,
        }
    }
}

/// The rounds of one comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    pub tracker: Vec<Round>,
    /// The baseline; same positions as `tracker`.
    pub baseline: Vec<Round>,
}

impl Comparison {
    /// The tracker's throughput relative to the baseline's.
    pub fn throughput_ratio(&self) -> f64 {
        median(self.pairs().map(|(tracker, baseline)| tracker.announces_per_s / baseline.announces_per_s))
    }

    /// The baseline's processor time per announce relative to the tracker's: the ratio of throughputs if both servers
    /// were saturated.
    pub fn cpu_ratio(&self) -> f64 {
        median(self.pairs().map(|(tracker, baseline)| baseline.server_cpu_ns / tracker.server_cpu_ns))
    }

    /// Whether both servers were saturated in most rounds; if not, throughputs compare the client with itself.
    pub fn saturated(&self) -> bool {
        self.tracker_is_saturated() && self.baseline_busy() >= SATURATED_FROM
    }

    /// Whether the tracker was saturated in most rounds.
    pub fn tracker_is_saturated(&self) -> bool {
        self.tracker_busy() >= SATURATED_FROM
    }

    /// Busy share of the tracker's core.
    pub fn tracker_busy(&self) -> f64 {
        median(self.tracker.iter().map(|round| round.server_busy))
    }

    /// Busy share of the baseline's core.
    pub fn baseline_busy(&self) -> f64 {
        median(self.baseline.iter().map(|round| round.server_busy))
    }

    fn pairs(&self) -> impl Iterator<Item = (&Round, &Round)> {
        self.tracker.iter().zip(&self.baseline)
    }
}

/// The mean of the middle two for an even count; zero for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(announces_per_s: f64, server_cpu_ns: f64, server_busy: f64) -> Round {
        Round {
            announces_per_s,
            server_cpu_ns,
            server_user_ns: 0.0,
            server_busy,
            reply_bytes_mean: 200.0,
            lost: 0,
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median([]), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn each_round_is_compared_with_its_neighbour_so_a_slow_spell_cancels_out() {
        let comparison = Comparison {
            tracker: vec![round(90.0, 10.0, 1.0), round(45.0, 10.0, 1.0), round(89.0, 10.0, 1.0)],
            baseline: vec![round(100.0, 9.0, 1.0), round(50.0, 9.0, 1.0), round(100.0, 9.0, 0.5)],
        };
        assert_eq!(comparison.throughput_ratio(), 0.9);
        assert_eq!(comparison.cpu_ratio(), 0.9);
        assert!(comparison.saturated());
    }

    #[test]
    fn an_idle_server_core_is_noticed() {
        let comparison =
            Comparison { tracker: vec![round(90.0, 10.0, 0.99)], baseline: vec![round(90.0, 9.0, 0.8)] };
        assert!(!comparison.saturated());
    }
}
