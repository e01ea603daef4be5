//! Metrics of the Redis mirror.

use std::sync::{Arc, OnceLock};

use keyspace::PubSubCounters;
use views::RedisMirror;

use super::page::metrics;
use super::redis_source::listening;
use super::{Page, Source};

/// The mirror and its subscription to expired keys.
pub struct RedisMirrorMetrics {
    pub mirror: Arc<RedisMirror>,
    /// Set once the subscription has started.
    pub listening: Arc<OnceLock<Arc<PubSubCounters>>>,
}

impl Source for RedisMirrorMetrics {
    fn encode(&self, page: &mut Page) {
        let counts = self.mirror.counters();
        metrics! { page =>
            gauge "rollcall_redis_mirror_active" = u64::from(self.mirror.is_active()),
                "Whether this process maintains the mirror. One process does, the others are on standby.";
            counter "rollcall_redis_mirror_entries_total" by "result" {
                "applied" => &counts.applied, "repeated" => &counts.repeated,
                "unknown_torrent" => &counts.unknown_torrent, "unknown_user" => &counts.unknown_user,
                "ahead" => &counts.ahead, "damaged" => &counts.damaged,
            }, "Entries delivered to the mirror, by result.";
            counter "rollcall_redis_mirror_reaped_total" by "found" {
                "message" => &counts.reaped_by_message, "sweep" => &counts.reaped_by_sweep,
            }, "Expired peers ended by a journal entry, by how they were found.";
            gauge "rollcall_redis_mirror_last_round_timestamp_seconds" = &counts.last_round_at,
                "End of the last complete reconciliation sweep, in unix seconds. Zero before the first.";
            counter "rollcall_redis_mirror_damaged_sets_total" = &counts.damaged_sets,
                "Writes to keys of users and peers that have an unexpected type.";
            counter "rollcall_redis_mirror_checked_torrents_total" = &counts.checked,
                "Torrents checked by the reconciliation sweep.";
            counter "rollcall_redis_mirror_repaired_total" = &counts.repaired,
                "Values repaired by the reconciliation sweep; they are logged.";
            counter "rollcall_redis_mirror_reaping_deferred_total" = &counts.timeouts_deferred,
                "Peers not expired yet, because the mirror lagged behind the journal.";
            counter "rollcall_redis_mirror_watermarks_reset_total" = &counts.watermarks_reset,
                "Torrents whose watermark was reset, because the ids of the journal went back.";
            counter "rollcall_redis_mirror_removed_torrents_total" = &counts.removed_torrents,
                "Removed torrents whose keys were deleted.";
            counter "rollcall_redis_mirror_rounds_total" = &counts.rounds, "Complete reconciliation sweeps.";
        }
        if let Some(counters) = self.listening.get() {
            listening(&[("mirror", Arc::clone(counters))], page);
        }
    }
}
