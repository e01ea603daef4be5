//! Rates of the product against rates of the raw limit, round by round.
//!
//! Noise affects both sides: each round of the product is compared with the raw round after it, and the median of these
//! ratios is the result.

use std::time::Duration;

use domain::clock::Stopwatch;
use serde::Serialize;

use crate::error::BenchError;
use crate::process::CpuTime;
use crate::report::{Budget, Row};
use crate::rounds::median;

/// The rounds of one comparison, in entries per second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RateComparison {
    pub name: String,
    pub product: Vec<f64>,
    /// Raw limit; same positions as `product`.
    pub raw: Vec<f64>,
    /// Processor time that all rounds took.
    pub cpu: RateComparisonCpu,
}

/// Processor time of all rounds, which is meaningful even on a busy machine.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RateComparisonCpu {
    /// Entries per side.
    pub entries: usize,
    /// The server's, for the product.
    pub product_server: Duration,
    /// This process's, for the product.
    pub product_own: Duration,
    /// The server's, for the raw limit.
    pub raw_server: Duration,
}

/// What one side took in one round.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    elapsed: Duration,
    server: Duration,
    own: Duration,
}

/// Measures one side in one round.
#[derive(Debug)]
pub struct LapWatch {
    server_pid: Option<u32>,
    server: CpuTime,
    own: CpuTime,
    watch: Stopwatch,
}

impl LapWatch {
    /// `server_pid` is a process on this machine, if there is one.
    pub fn start(server_pid: Option<u32>) -> Result<Self, BenchError> {
        let server = server_pid.map(CpuTime::of).transpose()?.unwrap_or_default();
        let own = CpuTime::of(std::process::id())?;
        Ok(LapWatch { server_pid, server, own, watch: Stopwatch::start() })
    }

    pub fn stop(self) -> Result<Lap, BenchError> {
        let elapsed = self.watch.elapsed();
        let server = self.server_pid.map(CpuTime::of).transpose()?.unwrap_or_default();
        let own = CpuTime::of(std::process::id())?;
        Ok(Lap { elapsed, server: server.since(self.server).used(), own: own.since(self.own).used() })
    }
}

impl RateComparison {
    pub fn new(name: impl Into<String>) -> Self {
        RateComparison { name: name.into(), ..RateComparison::default() }
    }

    /// Adds a round of so many entries.
    pub fn add(&mut self, entries: usize, product: Lap, raw: Lap) {
        let rate = |lap: Lap| entries as f64 / lap.elapsed.as_secs_f64().max(1e-9);
        self.product.push(rate(product));
        self.raw.push(rate(raw));
        self.cpu.entries += entries;
        self.cpu.product_server += product.server;
        self.cpu.product_own += product.own;
        self.cpu.raw_server += raw.server;
    }

    /// The product's rate as a share of the raw one.
    pub fn ratio(&self) -> f64 {
        median(self.product.iter().zip(&self.raw).map(|(product, raw)| product / raw))
    }

    /// The last line of progress.
    pub fn summary(&self) -> String {
        format!("{:.0} entries/s, {:.3} of the raw limit", median(self.product.iter().copied()), self.ratio())
    }

    /// A line of the table.
    pub fn row(&self, budget: Option<Budget>, note: &str) -> Row {
        let rate = median(self.product.iter().copied());
        let limit = median(self.raw.iter().copied());
        let row = Row::plain(self.name.clone(), rate, "/s").against(limit, self.ratio());
        let row = row.noting(format!("{note}{}", self.cpu.note()));
        match budget {
            Some(budget) => row.judged_by(budget),
            None => row,
        }
    }
}

impl RateComparisonCpu {
    fn note(&self) -> String {
        let per_entry = |time: Duration| time.as_nanos() as f64 / self.entries.max(1) as f64;
        if self.raw_server.is_zero() {
            return String::new();
        }
        format!(
            "; processor time per entry: the server's {:.0} ns for ours and {:.0} ns for the limit, our own {:.0} ns",
            per_entry(self.product_server),
            per_entry(self.raw_server),
            per_entry(self.product_own)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_compared_with_its_neighbour_so_a_slow_spell_cancels_out() {
        let mut comparison = RateComparison::new("x");
        let ms = |ms| Lap { elapsed: Duration::from_millis(ms), server: Duration::ZERO, own: Duration::ZERO };
        comparison.add(100, ms(125), ms(100));
        comparison.add(100, ms(1_250), ms(1_000));
        comparison.add(100, ms(250), ms(100));
        assert_eq!(comparison.ratio(), 0.8);
    }
}
