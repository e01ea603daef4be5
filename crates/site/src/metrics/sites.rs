//! Metrics of the tables of an existing site.

use std::sync::Arc;

use sites::{ReaderCounters, WriterCounters};

use super::page::metrics;
use super::{Page, Source};

pub struct SitesMetrics {
    pub reader: Arc<ReaderCounters>,
    /// None if nothing is written.
    pub writer: Option<Arc<WriterCounters>>,
}

impl Source for SitesMetrics {
    fn encode(&self, page: &mut Page) {
        let reader = &self.reader;
        metrics! { page =>
            counter "rollcall_sites_read_rounds_total" = &reader.rounds,
                "Complete rounds over the site's users and torrents.";
            counter "rollcall_sites_read_failures_total" = &reader.failures,
                "Attempts to read the site's tables that failed.";
            counter "rollcall_sites_read_changed_total" = &reader.changed,
                "Users and torrents that were added or changed here.";
            counter "rollcall_sites_read_removed_total" = &reader.removed,
                "Users and torrents that were removed here.";
            counter "rollcall_sites_read_removals_held_total" = &reader.removals_held,
                "Rounds in which more than half of the rows had vanished, so that none was removed yet.";
            gauge "rollcall_sites_read_failures_in_a_row" = &reader.failures_in_a_row,
                "Failures since the site's tables were last read.";
            gauge "rollcall_sites_read_malformed" = &reader.malformed,
                "Rows of the site that could not be used, in the last round.";
        }
        let Some(writer) = &self.writer else { return };
        metrics! { page =>
            counter "rollcall_sites_write_flushes_total" = &writer.flushes,
                "Committed transactions on the site's database.";
            counter "rollcall_sites_write_failures_total" = &writer.failures,
                "Attempts to write that failed; each is repeated.";
            counter "rollcall_sites_write_conflicts_total" = &writer.conflicts,
                "Deadlocks with the site's own transactions.";
            counter "rollcall_sites_write_rows_total" = &writer.rows, "Rows written.";
            counter "rollcall_sites_write_refused_total" = &writer.refused,
                "Rows that the site's database refused, because their user or torrent is gone.";
            counter "rollcall_sites_write_negative_total" = &writer.negative,
                "Differences below zero: corrections of figures that had been written.";
            counter "rollcall_sites_write_comparisons_total" = &writer.comparisons,
                "Complete comparisons of the ledger with what the site was given.";
            counter "rollcall_sites_write_overflows_total" = &writer.overflows,
                "Times more rows waited than are kept, so that everything was compared instead.";
            gauge "rollcall_sites_write_staged" = &writer.staged, "Rows that the last flush began with.";
            gauge "rollcall_sites_write_timestamp_seconds" = &writer.written_at,
                "When everything staged was last written, in unix seconds. Zero before.";
            gauge "rollcall_sites_write_stopped" = u64::from(writer.stopped.lock().is_some()),
                "Whether the site's tables are not written now: the log has the reason.";
        }
    }
}
