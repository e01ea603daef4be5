//! Metrics of the Redis mirror.

use std::sync::{Arc, OnceLock};

use keyspace::PubSubCounters;
use views::RedisMirror;

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
        page.gauge(
            "rollcall_redis_mirror_active",
            "Whether this process maintains the mirror. One process does, the others are on standby.",
        )
        .is(u64::from(self.mirror.is_active()));
        page.counter("rollcall_redis_mirror_entries_total", "Entries delivered to the mirror, by result.")
            .with(&[("result", "applied")], counts.applied.get())
            .with(&[("result", "repeated")], counts.repeated.get())
            .with(&[("result", "unknown_torrent")], counts.unknown_torrent.get())
            .with(&[("result", "unknown_user")], counts.unknown_user.get())
            .with(&[("result", "ahead")], counts.ahead.get())
            .with(&[("result", "damaged")], counts.damaged.get());
        page.counter(
            "rollcall_redis_mirror_reaped_total",
            "Expired peers ended by a journal entry, by how they were found.",
        )
        .with(&[("found", "message")], counts.reaped_by_message.get())
        .with(&[("found", "sweep")], counts.reaped_by_sweep.get());
        page.gauge(
            "rollcall_redis_mirror_last_round_timestamp_seconds",
            "End of the last complete reconciliation sweep, in unix seconds. Zero before the first.",
        )
        .is(counts.last_round_at.get());
        for (name, help, count) in [
            (
                "rollcall_redis_mirror_damaged_sets_total",
                "Writes to keys of users and peers that have an unexpected type.",
                counts.damaged_sets.get(),
            ),
            (
                "rollcall_redis_mirror_checked_torrents_total",
                "Torrents checked by the reconciliation sweep.",
                counts.checked.get(),
            ),
            (
                "rollcall_redis_mirror_repaired_total",
                "Values repaired by the reconciliation sweep; they are logged.",
                counts.repaired.get(),
            ),
            (
                "rollcall_redis_mirror_reaping_deferred_total",
                "Peers not expired yet, because the mirror lagged behind the journal.",
                counts.timeouts_deferred.get(),
            ),
            (
                "rollcall_redis_mirror_watermarks_reset_total",
                "Torrents whose watermark was reset, because the ids of the journal went back.",
                counts.watermarks_reset.get(),
            ),
            (
                "rollcall_redis_mirror_removed_torrents_total",
                "Removed torrents whose keys were deleted.",
                counts.removed_torrents.get(),
            ),
            ("rollcall_redis_mirror_rounds_total", "Complete reconciliation sweeps.", counts.rounds.get()),
        ] {
            page.counter(name, help).is(count);
        }
        if let Some(counters) = self.listening.get() {
            listening(&[("mirror", Arc::clone(counters))], page);
        }
    }
}
