//! Alternating rounds against two servers, and what to conclude from them.
//!
//! A noisy machine is noisy for both: each round of the tracker is compared with the round of the do-nothing server
//! right behind it, and the median of these ratios is what counts.

use serde::Serialize;

use crate::load::Tally;
use crate::process::CpuTime;

/// A core that was used or waited for during this share of the time had no more to give.
const SATURATED_FROM: f64 = 0.95;

/// One round against one server.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    /// Announces answered per second.
    pub announces_per_s: f64,
    /// Processor time the server took for one announce.
    pub server_cpu_ns: f64,
    /// What of it was spent in user space.
    pub server_user_ns: f64,
    /// The share of the round in which the server used its core or waited for it.
    pub server_busy: f64,
    /// The mean size of a reply.
    pub reply_bytes_mean: f64,
    /// Datagrams that were never answered.
    pub lost: u64,
}

impl Round {
    /// Puts what the client counted beside what the server used meanwhile.
    pub fn new(tally: &Tally, cpu: CpuTime) -> Self {
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
    /// Of the tracker.
    pub tracker: Vec<Round>,
    /// Of the do-nothing server; each belongs to the tracker's of the same position.
    pub floor: Vec<Round>,
}

impl Comparison {
    /// The tracker's throughput as a share of the floor's.
    pub fn throughput_ratio(&self) -> f64 {
        median(self.pairs().map(|(tracker, floor)| tracker.announces_per_s / floor.announces_per_s))
    }

    /// The floor's processor time per announce as a share of the tracker's: what the ratio of throughputs would be
    /// were both servers the bottleneck.
    pub fn cpu_ratio(&self) -> f64 {
        median(self.pairs().map(|(tracker, floor)| floor.server_cpu_ns / tracker.server_cpu_ns))
    }

    /// Whether both servers were the bottleneck in most rounds; if not, throughputs compare the client with itself.
    pub fn saturated(&self) -> bool {
        self.tracker_is_saturated() && self.floor_busy() >= SATURATED_FROM
    }

    /// Whether the tracker was the bottleneck in most of its rounds.
    pub fn tracker_is_saturated(&self) -> bool {
        self.tracker_busy() >= SATURATED_FROM
    }

    /// How busy the tracker's core was.
    pub fn tracker_busy(&self) -> f64 {
        median(self.tracker.iter().map(|round| round.server_busy))
    }

    /// How busy the do-nothing server's core was.
    pub fn floor_busy(&self) -> f64 {
        median(self.floor.iter().map(|round| round.server_busy))
    }

    fn pairs(&self) -> impl Iterator<Item = (&Round, &Round)> {
        self.tracker.iter().zip(&self.floor)
    }
}

/// The middle one, or the mean of the middle two; zero if there are none.
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
            floor: vec![round(100.0, 9.0, 1.0), round(50.0, 9.0, 1.0), round(100.0, 9.0, 0.5)],
        };
        assert_eq!(comparison.throughput_ratio(), 0.9);
        assert_eq!(comparison.cpu_ratio(), 0.9);
        assert!(comparison.saturated());
    }

    #[test]
    fn an_idle_server_core_is_noticed() {
        let comparison =
            Comparison { tracker: vec![round(90.0, 10.0, 0.99)], floor: vec![round(90.0, 9.0, 0.8)] };
        assert!(!comparison.saturated());
    }
}
