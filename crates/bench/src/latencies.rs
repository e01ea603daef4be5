//! Latency percentiles.

use std::time::Duration;

use serde::Serialize;

/// All measurements are kept: percentiles are exact.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    taken: Vec<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub count: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Latencies {
    pub fn add(&mut self, taken: Duration) {
        self.taken.push(taken);
    }

    pub fn count(&self) -> usize {
        self.taken.len()
    }

    /// Zeros without measurements.
    pub fn percentiles(&self) -> Percentiles {
        let mut sorted = self.taken.clone();
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
