//! Metrics of the tables of an existing site.

use std::sync::Arc;

use sites::{ReaderCounters, WriterCounters};

use super::{Page, Source};

pub struct SitesMetrics {
    pub reader: Arc<ReaderCounters>,
    /// None if nothing is written.
    pub writer: Option<Arc<WriterCounters>>,
}

impl Source for SitesMetrics {
    fn encode(&self, page: &mut Page) {
        let reader = &self.reader;
        for (name, help, count) in [
            (
                "rollcall_sites_read_rounds_total",
                "Complete rounds over the site's users and torrents.",
                &reader.rounds,
            ),
            (
                "rollcall_sites_read_failures_total",
                "Attempts to read the site's tables that failed.",
                &reader.failures,
            ),
            (
                "rollcall_sites_read_changed_total",
                "Users and torrents that were added or changed here.",
                &reader.changed,
            ),
            (
                "rollcall_sites_read_removed_total",
                "Users and torrents that were removed here.",
                &reader.removed,
            ),
            (
                "rollcall_sites_read_removals_held_total",
                "Rounds in which more than half of the rows had vanished, so that none was removed yet.",
                &reader.removals_held,
            ),
        ] {
            page.counter(name, help).is(count.get());
        }
        page.gauge(
            "rollcall_sites_read_failures_in_a_row",
            "Failures since the site's tables were last read.",
        )
        .is(reader.failures_in_a_row.get());
        page.gauge(
            "rollcall_sites_read_malformed",
            "Rows of the site that could not be used, in the last round.",
        )
        .is(reader.malformed.get());
        let Some(writer) = &self.writer else { return };
        for (name, help, count) in [
            (
                "rollcall_sites_write_flushes_total",
                "Committed transactions on the site's database.",
                &writer.flushes,
            ),
            (
                "rollcall_sites_write_failures_total",
                "Attempts to write that failed; each is repeated.",
                &writer.failures,
            ),
            (
                "rollcall_sites_write_conflicts_total",
                "Deadlocks with the site's own transactions.",
                &writer.conflicts,
            ),
            ("rollcall_sites_write_rows_total", "Rows written.", &writer.rows),
            (
                "rollcall_sites_write_refused_total",
                "Rows that the site's database refused, because their user or torrent is gone.",
                &writer.refused,
            ),
            (
                "rollcall_sites_write_negative_total",
                "Differences below zero: corrections of figures that had been written.",
                &writer.negative,
            ),
            (
                "rollcall_sites_write_comparisons_total",
                "Complete comparisons of the ledger with what the site was given.",
                &writer.comparisons,
            ),
            (
                "rollcall_sites_write_overflows_total",
                "Times more rows waited than are kept, so that everything was compared instead.",
                &writer.overflows,
            ),
        ] {
            page.counter(name, help).is(count.get());
        }
        page.gauge("rollcall_sites_write_staged", "Rows that the last flush began with.")
            .is(writer.staged.get());
        page.gauge(
            "rollcall_sites_write_timestamp_seconds",
            "When everything staged was last written, in unix seconds. Zero before.",
        )
        .is(writer.written_at.get());
        page.gauge(
            "rollcall_sites_write_stopped",
            "Whether the site's tables are not written now: the log has the reason.",
        )
        .is(u64::from(writer.stopped.lock().is_some()));
    }
}
