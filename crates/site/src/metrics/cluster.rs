//! Metrics of a gateway in a cluster: the store in Redis, the sync with it, and messages between gateways.

use std::sync::Arc;

use gateway::GatewayCounters;
use gateway::cluster::ClusterCounters;
use gateway::counters::{GatewayMessageCounters, SyncCounters};

use super::{Page, Source};

/// Figures of a gateway in a cluster.
pub struct ClusterMetrics {
    pub cluster: Arc<ClusterCounters>,
    pub gateway: Arc<GatewayCounters>,
    /// Seconds since the last successful contact with Redis. Called at every scrape, so it must not wait.
    pub since_contact_s: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Source for ClusterMetrics {
    fn encode(&self, page: &mut Page) {
        membership(&self.cluster, page);
        page.gauge(
            "rollcall_cluster_contact_seconds",
            "Time since the last successful renewal of the lease in Redis.",
        )
        .is((self.since_contact_s)());
        updates(&self.cluster, page);
        reaped(&self.cluster, page);
        synced(&self.gateway.sync, page);
        messages(&self.gateway.messages, page);
    }
}

fn membership(cluster: &ClusterCounters, page: &mut Page) {
    page.gauge("rollcall_cluster_nodes", "Gateways with a valid lease.").is(cluster.nodes.get());
    page.gauge("rollcall_cluster_shards_owned", "Shards of users that this gateway reaps, of 64.")
        .is(cluster.shards_owned.get());
    page.counter("rollcall_cluster_rejoins_total", "Times that this gateway was declared dead and rejoined.")
        .is(cluster.rejoins.get());
    page.counter("rollcall_cluster_failures_total", "Redis commands of the cluster store that failed.")
        .is(cluster.failures.get());
    page.counter("rollcall_cluster_malformed_total", "Malformed values found in records in Redis.")
        .is(cluster.malformed.get());
    page.histogram("rollcall_cluster_pipeline_seconds", "Duration of a Redis pipeline of the cluster store.")
        .measured(&[], &cluster.pipeline_seconds.snapshot());
}

fn updates(cluster: &ClusterCounters, page: &mut Page) {
    page.counter("rollcall_cluster_updates_total", "Updates of users' records, by outcome.")
        .with(&[("outcome", "sent")], cluster.published.get())
        .with(&[("outcome", "changed")], cluster.changed.get())
        .with(&[("outcome", "refreshed")], cluster.refreshed.get())
        .with(&[("outcome", "fenced")], cluster.fenced.get());
    page.counter("rollcall_cluster_users_read_total", "Users whose records were read.")
        .is(cluster.users_read.get());
    page.counter("rollcall_cluster_entries_total", "Entries in inboxes of gateways, by outcome.")
        .with(&[("outcome", "sent")], cluster.entries_sent.get())
        .with(&[("outcome", "undelivered")], cluster.entries_undelivered.get())
        .with(&[("outcome", "dropped")], cluster.entries_dropped.get())
        .with(&[("outcome", "received")], cluster.entries_received.get())
        .with(&[("outcome", "unknown")], cluster.entries_unknown.get());
    page.gauge("rollcall_cluster_entries_unsent", "Entries for other gateways that wait to be sent again.")
        .is(cluster.entries_unsent.get());
    page.counter(
        "rollcall_cluster_gaps_total",
        "Times that entries of this gateway's inbox may have been missed.",
    )
    .is(cluster.gaps.get());
    page.gauge("rollcall_cluster_inbox_entries", "Entries in this gateway's inbox.")
        .is(cluster.inbox_length.get());
    page.counter("rollcall_cluster_inbox_full_total", "Times that this gateway's inbox was full.")
        .is(cluster.inbox_full.get());
}

fn reaped(cluster: &ClusterCounters, page: &mut Page) {
    page.counter("rollcall_cluster_reaped_total", "Users that were reaped, by reason.")
        .with(&[("reason", "gone")], cluster.reaped_gone.get())
        .with(&[("reason", "late")], cluster.reaped_late.get())
        .with(&[("reason", "pending")], cluster.reaped_pending.get())
        .with(&[("reason", "renotified")], cluster.renotified.get())
        .with(&[("reason", "lost")], cluster.found_lost.get());
}

fn synced(sync: &SyncCounters, page: &mut Page) {
    page.gauge("rollcall_sync_dirty_users", "Users that changed and are not published yet.")
        .is(sync.dirty.get());
    page.gauge("rollcall_sync_watched_users", "Users whose records are watched.").is(sync.watched.get());
    page.counter("rollcall_sync_flushes_total", "Batches of users that were published, by outcome.")
        .with(&[("outcome", "sent")], sync.flushes.get())
        .with(&[("outcome", "failed")], sync.flush_failures.get());
    page.histogram("rollcall_sync_flush_seconds", "Duration of publishing a batch.")
        .measured(&[], &sync.flush_seconds.snapshot());
    page.counter(
        "rollcall_sync_refreshes_total",
        "Record updates that change only the time of the last activity.",
    )
    .is(sync.refreshes.get());
    page.counter("rollcall_sync_rechecks_total", "Users whose records were read again, periodically.")
        .is(sync.rechecked.get());
    page.counter("rollcall_sync_records_total", "Records received from the cluster, by outcome.")
        .with(&[("outcome", "applied")], sync.applied.get())
        .with(&[("outcome", "stale")], sync.stale.get())
        .with(&[("outcome", "unwatched")], sync.unwatched.get());
    page.counter(
        "rollcall_sync_incidents_total",
        "Incidents of the cluster sync: outages, gaps, rejoins, expired remote sessions, repaired entries, timeouts.",
    )
    .with(&[("kind", "outage")], sync.outages.get())
    .with(&[("kind", "gap")], sync.gaps.get())
    .with(&[("kind", "rejoin")], sync.rejoins.get())
    .with(&[("kind", "expired")], sync.expired.get())
    .with(&[("kind", "repaired")], sync.repaired.get())
    .with(&[("kind", "timeout")], sync.timeouts.get());
}

fn messages(messages: &GatewayMessageCounters, page: &mut Page) {
    page.counter("rollcall_cluster_messages_total", "Messages between gateways, by outcome.")
        .with(&[("outcome", "sent")], messages.messages_sent.get())
        .with(&[("outcome", "failed")], messages.messages_failed.get())
        .with(&[("outcome", "dropped")], messages.messages_dropped.get())
        .with(&[("outcome", "received")], messages.messages_received.get());
    page.gauge("rollcall_cluster_messages_waiting", "Messages for other gateways that wait to be sent.")
        .is(messages.messages_waiting.get());
    page.counter("rollcall_cluster_room_entries_total", "Entries of rooms in the cluster, by operation.")
        .with(&[("operation", "written")], messages.rooms_written.get())
        .with(&[("operation", "read")], messages.rooms_read.get())
        .with(&[("operation", "gap")], messages.room_gaps.get())
        .with(&[("operation", "failed")], messages.room_failures.get());
}
