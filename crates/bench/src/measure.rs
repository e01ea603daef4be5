//! Rounds of both sides, medians and percentiles.
//!
//! Noise affects both sides: each round of ours is compared with the limit's round after it, and the median of these
//! ratios is the result.

use std::time::Duration;

use domain::clock::Stopwatch;
use serde::Serialize;

use crate::process::CpuTime;
use crate::run::Figure;

/// One round of one side.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Round {
    pub per_s: f64,
    /// The server's processor time for each.
    pub server_ns: f64,
    /// The part of it in user space.
    pub server_user_ns: f64,
    /// This process's.
    pub own_ns: f64,
}

/// Measures one round.
pub struct RoundWatch {
    server: Option<u32>,
    before: [CpuTime; 2],
    watch: Stopwatch,
}

impl RoundWatch {
    /// `server` is a process on this machine, if there is one.
    pub fn start(server: Option<u32>) -> anyhow::Result<Self> {
        Ok(RoundWatch { server, before: times(server)?, watch: Stopwatch::start() })
    }

    pub fn stop(self, count: u64) -> anyhow::Result<Round> {
        let elapsed = self.watch.elapsed();
        let now = times(self.server)?;
        let (server, own) = (now[0].since(self.before[0]), now[1].since(self.before[1]));
        let each = |time: Duration| time.as_nanos() as f64 / count.max(1) as f64;
        let elapsed_s = elapsed.as_secs_f64().max(1e-9);
        Ok(Round {
            per_s: count as f64 / elapsed_s,
            server_ns: each(server.used()),
            server_user_ns: each(server.user),
            own_ns: each(own.used()),
        })
    }
}

fn times(server: Option<u32>) -> anyhow::Result<[CpuTime; 2]> {
    Ok([server.map(CpuTime::of).transpose()?.unwrap_or_default(), CpuTime::of(std::process::id())?])
}

/// The rounds of one comparison; same positions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    pub ours: Vec<Round>,
    pub limit: Vec<Round>,
}

impl Comparison {
    pub fn add(&mut self, ours: Round, limit: Round) {
        self.ours.push(ours);
        self.limit.push(limit);
    }

    /// The median of the ratios of a figure, round by round.
    pub fn ratio(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        let rounds = self.ours.iter().zip(&self.limit);
        median(rounds.map(|(ours, limit)| figure(ours) / figure(limit).max(f64::MIN_POSITIVE)))
    }

    /// The medians of a figure with their ratio.
    pub fn figure(&self, figure: impl Fn(&Round) -> f64) -> Figure {
        Figure::of(median(self.ours.iter().map(&figure)))
            .against(median(self.limit.iter().map(&figure)), self.ratio(&figure))
    }

    pub fn rates(&self) -> Figure {
        self.figure(|round| round.per_s)
    }

    /// How many a core of the server would handle in a second, by its processor time.
    pub fn per_core(&self) -> Figure {
        self.figure(|round| 1e9 / round.server_ns.max(1.0))
    }

    /// Processor time is meaningful even on a busy machine.
    pub fn time_note(&self) -> String {
        let mean = |rounds: &[Round], figure: fn(&Round) -> f64| {
            rounds.iter().map(figure).sum::<f64>() / rounds.len().max(1) as f64
        };
        let limit = mean(&self.limit, |round| round.server_ns);
        if limit == 0.0 {
            return String::new();
        }
        format!(
            "processor time for each: the server's {:.0} ns for ours and {limit:.0} ns for the limit, our own {:.0} ns",
            mean(&self.ours, |round| round.server_ns),
            mean(&self.ours, |round| round.own_ns)
        )
    }

    /// The last line of progress.
    pub fn summary(&self) -> String {
        let rate = median(self.ours.iter().map(|round| round.per_s));
        format!("{rate:.0}/s, {:.3} of the limit", self.ratio(|round| round.per_s))
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

/// All measurements are kept: percentiles are exact.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub count: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Latencies {
    pub fn add(&mut self, taken: Duration) {
        self.0.push(taken);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Zeros without measurements.
    pub fn percentiles(&self) -> Percentiles {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        // Nearest-rank percentile.
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).map_or(0.0, |taken| taken.as_secs_f64() * 1e3)
        };
        Percentiles { count: sorted.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn each_round_is_compared_with_its_neighbour_so_a_slow_spell_cancels_out() {
        let mut comparison = Comparison::default();
        for (ours, limit) in [(90.0, 100.0), (45.0, 50.0), (89.0, 100.0)] {
            let round = |per_s| Round { per_s, ..Round::default() };
            comparison.add(round(ours), round(limit));
        }
        assert_eq!(comparison.ratio(|round| round.per_s), 0.9);
        assert_eq!(comparison.time_note(), "");
    }

    #[test]
    fn percentiles_are_those_of_all_measurements() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentiles(), Percentiles::default());
        for taken in (1..=200).rev() {
            latencies.add(Duration::from_millis(taken));
        }
        let expected = Percentiles { count: 200, p50_ms: 100.0, p99_ms: 198.0, max_ms: 200.0 };
        assert_eq!(latencies.percentiles(), expected);
    }
}
