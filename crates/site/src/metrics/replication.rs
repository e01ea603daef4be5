//! Metrics of replication and snapshots.

use std::sync::Arc;

use tracker::Tracker;

use super::{Page, Source};

pub(super) struct ReplicationMetrics(pub(super) Arc<Tracker>);

impl Source for ReplicationMetrics {
    fn encode(&self, page: &mut Page) {
        let counters = &self.0.counters().replication;
        page.counter(
            "rollcall_replication_entries_total",
            "Journal entries read for replication, by outcome.",
        )
        .with(&[("outcome", "applied")], counters.applied.get())
        .with(&[("outcome", "late")], counters.late.get())
        .with(&[("outcome", "own")], counters.own.get())
        .with(&[("outcome", "skipped")], counters.skipped.get())
        .with(&[("outcome", "overdue")], counters.overdue.get())
        .with(&[("outcome", "ahead")], counters.ahead.get())
        .with(&[("outcome", "no_room")], counters.no_room.get());
        page.counter(
            "rollcall_replication_resyncs_total",
            "Resynchronisations over the last interval and grace, because entries were missing.",
        )
        .is(counters.resyncs.get());
        page.counter("rollcall_replication_failures_total", "Failed reads of the journal for replication.")
            .is(counters.failures.get());
        page.counter(
            "rollcall_replication_stops_evicted_total",
            "Remembered stops evicted for newer ones. A late entry of another node may restore such a peer until it expires.",
        )
        .is(self.0.swarms().recent_stops_evicted());
        let lag = self.0.replication_lag();
        page.gauge(
            "rollcall_replication_lag_seconds",
            "Time since this tracker last reached the end of the journal. Zero before the first time.",
        )
        .is(lag.map_or(0.0, |lag| lag.as_secs_f64()));
        page.histogram(
            "rollcall_replication_delay_seconds",
            "Time from storing another node's entry to applying it to the swarms.",
        )
        .measured(&[], &counters.delays.snapshot());
        page.counter("rollcall_snapshots_total", "Snapshots of the swarms, by outcome.")
            .with(&[("outcome", "written")], counters.snapshots.get())
            .with(&[("outcome", "failed")], counters.snapshot_failures.get());
    }
}
