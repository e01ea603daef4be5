//! Rates of the product beside rates of the raw limit, round by round.
//!
//! A noisy machine is noisy for both: each round of the product is compared with the raw round right behind it, and
//! the median of these ratios is what counts.

use std::time::Duration;

use serde::Serialize;

use crate::report::{Budget, Row};
use crate::rounds::median;

/// The rounds of one comparison, in entries per second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Contest {
    /// What was measured.
    pub name: String,
    /// Of the product.
    pub product: Vec<f64>,
    /// Of the raw limit; each belongs to the product's of the same position.
    pub raw: Vec<f64>,
}

impl Contest {
    /// No rounds yet.
    pub fn new(name: impl Into<String>) -> Self {
        Contest { name: name.into(), ..Contest::default() }
    }

    /// Adds a round in which both took as long for so many entries.
    pub fn add(&mut self, entries: usize, product: Duration, raw: Duration) {
        let rate = |elapsed: Duration| entries as f64 / elapsed.as_secs_f64().max(1e-9);
        self.product.push(rate(product));
        self.raw.push(rate(raw));
    }

    /// The product's rate as a share of the raw one.
    pub fn ratio(&self) -> f64 {
        median(self.product.iter().zip(&self.raw).map(|(product, raw)| product / raw))
    }

    /// What to say when the rounds are over.
    pub fn summary(&self) -> String {
        format!("{:.0} entries/s, {:.3} of the raw limit", median(self.product.iter().copied()), self.ratio())
    }

    /// A line of the table.
    pub fn row(&self, budget: Option<Budget>, note: &str) -> Row {
        let rate = median(self.product.iter().copied());
        let limit = median(self.raw.iter().copied());
        let row = Row::plain(self.name.clone(), rate, "/s").against(limit, self.ratio()).noting(note);
        match budget {
            Some(budget) => row.judged_by(budget),
            None => row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_compared_with_its_neighbour_so_a_slow_spell_cancels_out() {
        let mut contest = Contest::new("x");
        let ms = Duration::from_millis;
        contest.add(100, ms(125), ms(100));
        contest.add(100, ms(1_250), ms(1_000));
        contest.add(100, ms(250), ms(100));
        assert_eq!(contest.ratio(), 0.8);
    }
}
