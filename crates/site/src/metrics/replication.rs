//! Metrics of replication and snapshots.

use std::sync::Arc;

use tracker::Tracker;

use super::page::metrics;
use super::{Page, Source};

pub(super) struct ReplicationMetrics(pub(super) Arc<Tracker>);

impl Source for ReplicationMetrics {
    fn encode(&self, page: &mut Page) {
        let counters = &self.0.counters().replication;
        metrics! { page =>
            counter "rollcall_replication_entries_total" by "outcome" {
                "applied" => &counters.applied, "late" => &counters.late, "own" => &counters.own,
                "skipped" => &counters.skipped, "overdue" => &counters.overdue, "ahead" => &counters.ahead,
                "no_room" => &counters.no_room,
            }, "Journal entries read for replication, by outcome.";
            counter "rollcall_replication_resyncs_total" = &counters.resyncs,
                "Resynchronisations over the last interval and grace, because entries were missing.";
            counter "rollcall_replication_failures_total" = &counters.failures,
                "Failed reads of the journal for replication.";
            counter "rollcall_replication_stops_evicted_total" = self.0.swarms().recent_stops_evicted(),
                "Remembered stops evicted for newer ones. A late entry of another node may restore such a peer until \
                 it expires.";
        }
        let lag = self.0.replication_lag();
        metrics! { page =>
            gauge "rollcall_replication_lag_seconds" = lag.map_or(0.0, |lag| lag.as_secs_f64()),
                "Time since this tracker last reached the end of the journal. Zero before the first time.";
            histogram "rollcall_replication_delay_seconds" measures(&counters.delays.snapshot()),
                "Time from storing another node's entry to applying it to the swarms.";
            counter "rollcall_snapshots_total" by "outcome" {
                "written" => &counters.snapshots, "failed" => &counters.snapshot_failures,
            }, "Snapshots of the swarms, by outcome.";
        }
    }
}
