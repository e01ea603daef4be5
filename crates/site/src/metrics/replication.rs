//! What this tracker hears from other nodes, on the page.

use std::sync::Arc;

use tracker::Tracker;

use super::{Page, Source};

/// What became of other nodes' entries, and the snapshots for the next start.
pub(super) struct ReplicationFigures(pub(super) Arc<Tracker>);

impl Source for ReplicationFigures {
    fn encode(&self, page: &mut Page) {
        let counters = &self.0.counters().replication;
        page.counter(
            "rollcall_replication_entries_total",
            "Entries of the journal that this tracker read behind the other nodes, by what became of them.",
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
            "Times that entries were missing, so that the last interval and grace were read again.",
        )
        .is(counters.resyncs.get());
        page.counter(
            "rollcall_replication_failures_total",
            "Attempts to read other nodes' entries that failed.",
        )
        .is(counters.failures.get());
        page.counter(
            "rollcall_replication_stops_evicted_total",
            "Goodbyes forgotten for later ones. A late entry of another node may bring such a peer back for a while.",
        )
        .is(self.0.swarms().farewells_forgotten());
        let lag = self.0.replication_lag();
        page.gauge(
            "rollcall_replication_lag_seconds",
            "Time since this tracker last had read the journal to its end. Zero before the first time.",
        )
        .is(lag.map_or(0.0, |lag| lag.as_secs_f64()));
        page.histogram(
            "rollcall_replication_delay_seconds",
            "Time from the moment another node's entry was stored until it was in the swarms here.",
        )
        .measured(&[], &counters.delays.snapshot());
        page.counter(
            "rollcall_snapshots_total",
            "Snapshots of the swarms for the next start, by what became of them.",
        )
        .with(&[("outcome", "written")], counters.snapshots.get())
        .with(&[("outcome", "failed")], counters.snapshot_failures.get());
    }
}
