//! Several trackers with the same swarms: replication delay, warm start, and the rate of applying replicated announces.

mod delay;
mod learn_rate;
mod mirrored;
mod node;
mod warm_start;

use std::path::Path;

use serde::Serialize;

pub use delay::DelayPlan;
pub use learn_rate::LearnRate;
pub use mirrored::{Mirrored, MirroredRound};
pub use warm_start::WarmStart;

use crate::error::BenchError;
use crate::installed::need_redis;
use crate::latencies::Percentiles;
use crate::population::{Population, Shape};
use crate::process::Cores;
use crate::report::{Budget, Row};

/// A peer of one node is returned by the others within a second.
const DELAY_BUDGET: Budget = Budget::FigureAtMost(1_000.0);

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rounds of replicated and direct announces.
    pub rounds: u32,
    /// Announces on one node that the other replicates.
    pub delay: DelayPlan,
    /// Peers and torrents of the warm start.
    pub shape: Shape,
    /// Peers and torrents of the comparison with and without the Redis mirror.
    pub mirrored_shape: Shape,
    /// Announces per round of that.
    pub mirrored_announces: u64,
}

impl Sizes {
    /// Smoke test.
    pub const QUICK: Sizes = Sizes {
        rounds: 3,
        delay: DelayPlan { announces: 2_000, per_s: 1_000 },
        shape: Shape { torrents: 10_000, peers: 100_000 },
        mirrored_shape: Shape { torrents: 500, peers: 5_000 },
        mirrored_announces: 5_000,
    };
    /// Full measurement.
    pub const FULL: Sizes = Sizes {
        rounds: 5,
        delay: DelayPlan { announces: 10_000, per_s: 1_000 },
        shape: Shape { torrents: 100_000, peers: 1_000_000 },
        mirrored_shape: Shape { torrents: 5_000, peers: 50_000 },
        mirrored_announces: 100_000,
    };
}

#[derive(Debug, Default, Serialize)]
pub struct NodesCost {
    /// From an announce on one node until another has applied it.
    pub delay: Option<Percentiles>,
    pub warm_start: Option<WarmStart>,
    /// Replicated beside direct announces.
    pub learning: Vec<LearnRate>,
    /// Announces with and without the Redis mirror.
    pub mirrored: Option<Mirrored>,
    #[serde(skip)]
    rows: Vec<Row>,
}

impl NodesCost {
    /// The lines of the table.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

/// Measures what `selects` names: nodes-delay, nodes-warm-start, nodes-learn, and with a tracker's binary nodes-mirror.
pub fn measure(
    sizes: &Sizes,
    cores: Cores,
    binary: Option<&Path>,
    selects: impl Fn(&str) -> bool,
) -> Result<NodesCost, BenchError> {
    let mut found = NodesCost::default();
    if selects("nodes-delay") {
        need_redis()?;
        let delay = delay::measure(&sizes.delay, cores)?;
        found.rows.extend(delay_rows(&delay, sizes.delay.per_s));
        found.delay = Some(delay);
    }
    if selects("nodes-warm-start") {
        need_redis()?;
        let warm_start = warm_start::measure(sizes.shape, cores)?;
        found.rows.extend(warm_start.rows());
        found.warm_start = Some(warm_start);
    }
    if selects("nodes-learn") {
        found.learning = learn_rate::measure(sizes.shape, sizes.rounds);
        found.rows.extend(found.learning.iter().map(LearnRate::row));
    }
    if let Some(binary) = binary
        && selects("nodes-mirror")
    {
        need_redis()?;
        let population = Population::new(sizes.mirrored_shape);
        let mirrored = mirrored::measure(binary, &population, cores, sizes.rounds, sizes.mirrored_announces)?;
        found.rows.extend(mirrored.rows());
        found.mirrored = Some(mirrored);
    }
    Ok(found)
}

fn delay_rows(delay: &Percentiles, per_s: u32) -> [Row; 2] {
    let note = format!(
        "{} announces at {per_s}/s through one node's queue and Redis, until they are in the swarms of the other; the \
         reader sleeps 25 ms once it has read everything; the longest {:.1} ms; both nodes on one core, Redis on another",
        delay.count, delay.max_ms
    );
    [
        Row::plain("replication delay, p50", delay.p50_ms, "ms"),
        Row::plain("replication delay, p99", delay.p99_ms, "ms").judged_by(DELAY_BUDGET).noting(note),
    ]
}
