//! Counters of the reader and the writer, for metrics.

use domain::{Counter, Level};
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub struct ReaderCounters {
    /// Complete rounds over all rows.
    pub rounds: Counter,
    /// Rounds and requests that failed.
    pub failures: Counter,
    /// Failures since the last success.
    pub failures_in_a_row: Level,
    /// Rows that were added or changed here.
    pub changed: Counter,
    pub removed: Counter,
    /// Rounds whose removals were not believed yet.
    pub removals_held: Counter,
    /// Rows that cannot be used, in the last round.
    pub malformed: Level,
}

#[derive(Debug, Default)]
pub struct WriterCounters {
    /// Times that everything staged was written.
    pub rounds: Counter,
    /// Transactions that were committed.
    pub flushes: Counter,
    /// Attempts that failed; each is repeated.
    pub failures: Counter,
    /// Of these, deadlocks and lock timeouts.
    pub conflicts: Counter,
    /// Rows written, of all statements.
    pub rows: Counter,
    /// Rows that the site's database refused.
    pub refused: Counter,
    /// Differences below zero: corrections of figures that had been written.
    pub negative: Counter,
    /// Complete comparisons of the ledger with the marks.
    pub comparisons: Counter,
    /// Times the stage was full, so that everything was compared instead.
    pub overflows: Counter,
    /// Rows that wait to be written.
    pub staged: Level,
    /// When everything staged was last written, in seconds since 1970; zero before.
    pub written_at: Level,
    /// Why nothing is written; none while the writer works.
    pub stopped: Mutex<Option<String>>,
}
