//! Metrics of a gateway in a cluster: the store in Redis, the sync with it, and messages between gateways.

use std::sync::Arc;

use gateway::GatewayCounters;
use gateway::cluster::ClusterCounters;
use gateway::counters::{GatewayMessageCounters, SyncCounters};

use super::page::metrics;
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
        metrics! { page =>
            gauge "rollcall_cluster_contact_seconds" = (self.since_contact_s)(),
                "Time since the last successful renewal of the lease in Redis.";
        }
        updates(&self.cluster, page);
        reaped(&self.cluster, page);
        synced(&self.gateway.sync, page);
        messages(&self.gateway.messages, page);
    }
}

fn membership(cluster: &ClusterCounters, page: &mut Page) {
    metrics! { page =>
        gauge "rollcall_cluster_nodes" = &cluster.nodes, "Gateways with a valid lease.";
        gauge "rollcall_cluster_shards_owned" = &cluster.shards_owned,
            "Shards of users that this gateway reaps, of 64.";
        counter "rollcall_cluster_rejoins_total" = &cluster.rejoins,
            "Times that this gateway was declared dead and rejoined.";
        counter "rollcall_cluster_failures_total" = &cluster.failures,
            "Redis commands of the cluster store that failed.";
        counter "rollcall_cluster_malformed_total" = &cluster.malformed,
            "Malformed values found in records in Redis.";
        histogram "rollcall_cluster_pipeline_seconds" measures(&cluster.pipeline_seconds.snapshot()),
            "Duration of a Redis pipeline of the cluster store.";
    }
}

fn updates(cluster: &ClusterCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_cluster_updates_total" by "outcome" {
            "sent" => &cluster.published, "changed" => &cluster.changed, "refreshed" => &cluster.refreshed,
            "fenced" => &cluster.fenced,
        }, "Updates of users' records, by outcome.";
        counter "rollcall_cluster_users_read_total" = &cluster.users_read, "Users whose records were read.";
        counter "rollcall_cluster_entries_total" by "outcome" {
            "sent" => &cluster.entries_sent, "undelivered" => &cluster.entries_undelivered,
            "dropped" => &cluster.entries_dropped, "received" => &cluster.entries_received,
            "unknown" => &cluster.entries_unknown,
        }, "Entries in inboxes of gateways, by outcome.";
        gauge "rollcall_cluster_entries_unsent" = &cluster.entries_unsent,
            "Entries for other gateways that wait to be sent again.";
        counter "rollcall_cluster_gaps_total" = &cluster.gaps,
            "Times that entries of this gateway's inbox may have been missed.";
        gauge "rollcall_cluster_inbox_entries" = &cluster.inbox_length, "Entries in this gateway's inbox.";
        counter "rollcall_cluster_inbox_full_total" = &cluster.inbox_full,
            "Times that this gateway's inbox was full.";
    }
}

fn reaped(cluster: &ClusterCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_cluster_reaped_total" by "reason" {
            "gone" => &cluster.reaped_gone, "late" => &cluster.reaped_late, "pending" => &cluster.reaped_pending,
            "renotified" => &cluster.renotified, "lost" => &cluster.found_lost,
        }, "Users that were reaped, by reason.";
    }
}

fn synced(sync: &SyncCounters, page: &mut Page) {
    metrics! { page =>
        gauge "rollcall_sync_dirty_users" = &sync.dirty, "Users that changed and are not published yet.";
        gauge "rollcall_sync_watched_users" = &sync.watched, "Users whose records are watched.";
        counter "rollcall_sync_flushes_total" by "outcome" {
            "sent" => &sync.flushes, "failed" => &sync.flush_failures,
        }, "Batches of users that were published, by outcome.";
        histogram "rollcall_sync_flush_seconds" measures(&sync.flush_seconds.snapshot()),
            "Duration of publishing a batch.";
        counter "rollcall_sync_refreshes_total" = &sync.refreshes,
            "Record updates that change only the time of the last activity.";
        counter "rollcall_sync_rechecks_total" = &sync.rechecked,
            "Users whose records were read again, periodically.";
        counter "rollcall_sync_records_total" by "outcome" {
            "applied" => &sync.applied, "stale" => &sync.stale, "unwatched" => &sync.unwatched,
        }, "Records received from the cluster, by outcome.";
        counter "rollcall_sync_incidents_total" by "kind" {
            "outage" => &sync.outages, "gap" => &sync.gaps, "rejoin" => &sync.rejoins, "expired" => &sync.expired,
            "repaired" => &sync.repaired, "timeout" => &sync.timeouts,
        },
            "Incidents of the cluster sync: outages, gaps, rejoins, expired remote sessions, repaired entries, \
             timeouts.";
    }
}

fn messages(messages: &GatewayMessageCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_cluster_messages_total" by "outcome" {
            "sent" => &messages.messages_sent, "failed" => &messages.messages_failed,
            "dropped" => &messages.messages_dropped, "received" => &messages.messages_received,
        }, "Messages between gateways, by outcome.";
        gauge "rollcall_cluster_messages_waiting" = &messages.messages_waiting,
            "Messages for other gateways that wait to be sent.";
        counter "rollcall_cluster_room_entries_total" by "operation" {
            "written" => &messages.rooms_written, "read" => &messages.rooms_read, "gap" => &messages.room_gaps,
            "failed" => &messages.room_failures,
        }, "Entries of rooms in the cluster, by operation.";
    }
}
