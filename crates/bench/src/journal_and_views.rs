//! The journal measurements in order: appending, ledger, activity, mirror, and the queue's memory.

use serde::Serialize;
use testkit::Fsync;

use crate::activity_rate::{self, ActivityPlan};
use crate::error::BenchError;
use crate::journal_append::{self, AppendPlan};
use crate::ledger_rate::{self, Kind, LedgerPlan};
use crate::mirror_rate;
use crate::process::Cores;
use crate::queue_memory::{self, QueueMemory};
use crate::rate_comparison::RateComparison;
use crate::report::{Budget, Row};
use crate::traffic::TrafficKind;

/// Announce to entry in Redis: ratio to pipelined XADD of the same entries.
const JOURNAL_BUDGET: Budget = Budget::RatioAtLeast(0.8);
/// Ratio to raw batched upserts of the rows that the ledger must touch.
const LEDGER_BUDGET: Budget = Budget::RatioAtLeast(0.6);
/// Activity and mirror: ratio to the plainest pipelined writes of the same keys.
const VIEW_BUDGET: Budget = Budget::RatioAtLeast(0.6);

const REDIS_NOTE: &str = "limit = prepared XADDs of the same entries, pipelined over one blocking socket; ours: from \
    the queue's lock to the acknowledgement of the last stored entry, queue, task and load on one core";
const SQLITE_NOTE: &str = "limit = the same rows by one INSERT and one commit for each thousand";
const LEDGER_NOTE: &str = "limit = upserts of exactly the rows a batch of a thousand entries touches (users, torrents, \
    accounts, clients, runs, the consumer's note), in one transaction, written without having been read";
const ACTIVITY_NOTE: &str =
    "limit = a prepared ZADD and ZREM for each entry, pipelined over one blocking socket";

const MIRROR_NOTE: &str = "limit = a prepared HSET of a peer, SET of its timeout and HINCRBY of its torrent's announces \
    for each entry, pipelined over one blocking socket; ours also counts peers, keeps sets, indexes and statistics, and \
    takes no entry twice";

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub rounds: u32,
    /// Entries appended in a round.
    pub entries: u64,
    /// Entries per round where each of them is synced to disk.
    pub durable_entries: u64,
    /// Clients in the ledger from the start.
    pub pairs: u32,
    /// Batches of a thousand entries per round of the ledger.
    pub batches: u32,
    /// Clients of the activity view; all of them announce in a round.
    pub clients: u32,
    /// Events in a full queue.
    pub queued: u32,
}

impl Sizes {
    /// Smoke test, about a minute.
    pub const QUICK: Sizes = Sizes {
        rounds: 5,
        entries: 50_000,
        durable_entries: 30_000,
        pairs: 20_000,
        batches: 5,
        clients: 30_000,
        queued: 100_000,
    };
    /// Full measurement.
    pub const FULL: Sizes = Sizes {
        rounds: 9,
        entries: 100_000,
        durable_entries: 50_000,
        pairs: 100_000,
        batches: 20,
        clients: 100_000,
        queued: 100_000,
    };
}

#[derive(Debug, Default, Serialize)]
pub struct JournalAndViews {
    pub comparisons: Vec<RateComparison>,
    pub queue: Option<QueueMemory>,
    #[serde(skip)]
    rows: Vec<Row>,
}

impl JournalAndViews {
    /// The lines of the table.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn add(&mut self, comparison: RateComparison, budget: Option<Budget>, note: &str) {
        self.rows.push(comparison.row(budget, note));
        self.comparisons.push(comparison);
    }
}

/// Measures what `selects` names: journal-redis, journal-aof, journal-sqlite, ledger-sqlite, ledger-postgresql,
/// ledger-mariadb, activity, mirror, queue.
pub fn measure(
    sizes: &Sizes,
    cores: Cores,
    selects: impl Fn(&str) -> bool,
) -> Result<JournalAndViews, BenchError> {
    let mut found = JournalAndViews::default();
    let plan = AppendPlan { cores, rounds: sizes.rounds, entries: sizes.entries };
    let durable_plan = AppendPlan { entries: sizes.durable_entries, ..plan };
    if selects("journal-redis") {
        found.add(journal_append::on_redis(&plan, None)?, Some(JOURNAL_BUDGET), REDIS_NOTE);
    }
    if selects("journal-aof") {
        let comparison = journal_append::on_redis(&durable_plan, Some(Fsync::EverySecond))?;
        found.add(comparison, Some(JOURNAL_BUDGET), REDIS_NOTE);
    }
    if selects("journal-sqlite") {
        found.add(journal_append::on_sqlite(&durable_plan)?, None, SQLITE_NOTE);
    }
    let plan = LedgerPlan { cores, rounds: sizes.rounds, batches: sizes.batches, pairs: sizes.pairs };
    for kind in Kind::ALL {
        if selects(&format!("ledger-{}", kind.name().to_lowercase())) {
            found.add(ledger_rate::measure(&plan, kind)?, Some(LEDGER_BUDGET), LEDGER_NOTE);
        }
    }
    if selects("activity") {
        let plan = ActivityPlan { cores, rounds: sizes.rounds, clients: sizes.clients };
        for kind in [TrafficKind::Steady, TrafficKind::Changing] {
            found.add(activity_rate::measure(&plan, kind)?, Some(VIEW_BUDGET), ACTIVITY_NOTE);
        }
    }
    if selects("mirror") {
        let plan = ActivityPlan { cores, rounds: sizes.rounds, clients: sizes.clients };
        for kind in [TrafficKind::Steady, TrafficKind::Changing] {
            let measured = mirror_rate::measure(&plan, kind)?;
            found.add(measured.comparison, Some(VIEW_BUDGET), MIRROR_NOTE);
            found.rows.extend(measured.rows);
        }
    }
    if selects("queue") {
        let memory = queue_memory::measure(sizes.queued)?;
        found.rows.push(memory_row(&memory));
        found.queue = Some(memory);
    }
    Ok(found)
}

fn memory_row(memory: &QueueMemory) -> Row {
    Row::plain("memory per queued entry", memory.allocated_per_event, "bytes").noting(format!(
        "by the allocator's counters, with {} in the queue and room for more; an entry itself has {} bytes",
        memory.events, memory.bytes_per_event
    ))
}
