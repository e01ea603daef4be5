//! Metrics of the Redis source, of the database's copies in it, and of subscriptions to Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::redis_source::{CopyCounters, RedisSourceCounters};
use keyspace::PubSubCounters;

use super::page::metrics;
use super::{Page, Source};

/// A field is none or empty if this process does not do its part.
#[derive(Clone, Debug, Default)]
pub struct RedisSourceFigures {
    pub source: Option<Arc<RedisSourceCounters>>,
    /// The copier from the database to Redis.
    pub copy: Option<Arc<CopyCounters>>,
    /// Subscriptions to Redis by purpose.
    pub listening: Vec<(&'static str, Arc<PubSubCounters>)>,
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Source for RedisSourceFigures {
    fn encode(&self, page: &mut Page) {
        if let Some(counters) = &self.source {
            source(counters, page);
        }
        if let Some(counters) = &self.copy {
            copy(counters, page);
        }
        listening(&self.listening, page);
    }
}

fn source(counters: &RedisSourceCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_redis_source_scans_total" by "outcome" {
            "complete" => &counters.scans, "failed" => &counters.scans_failed,
            "discarded" => &counters.scans_discarded,
        }, "Scans of all of the site's keys, by outcome; one that misses most of them is discarded.";
        counter "rollcall_redis_source_messages_total" by "outcome" {
            "ok" => get(&counters.messages).saturating_sub(get(&counters.messages_malformed)),
            "malformed" => &counters.messages_malformed,
        }, "Messages of the site about changed keys, by outcome.";
        counter "rollcall_redis_source_changes_total" = &counters.changes,
            "Changes of the site's keys that were applied.";
        gauge "rollcall_redis_source_skipped" by "reason" {
            "malformed" => &counters.keys_malformed, "conflicting" => &counters.keys_conflicting,
        }, "Keys of the site that the last scan skipped, by reason.";
    }
}

fn copy(counters: &CopyCounters, page: &mut Page) {
    metrics! { page =>
        counter "rollcall_redis_source_copied_total" by "operation" {
            "written" => &counters.written, "removed" => &counters.removed,
        }, "Keys written or removed so that they equal the database.";
        counter "rollcall_redis_source_copy_comparisons_total" = &counters.comparisons,
            "Comparisons of all copied keys with the database.";
        counter "rollcall_redis_source_copy_failures_total" = &counters.failures,
            "Failed writes of keys; each is retried.";
        counter "rollcall_redis_source_copy_overflows_total" = &counters.overflows,
            "Times the queue of changes was full, so that all keys were compared.";
        gauge "rollcall_redis_source_copy_conflicts" = &counters.conflicts,
            "Keys of the site that differ from the database, which takes precedence, in the last comparison.";
    }
}

pub(super) fn listening(all: &[(&'static str, Arc<PubSubCounters>)], page: &mut Page) {
    for (listener, counters) in all {
        let by = |kind| [("listener", *listener), ("kind", kind)];
        page.counter(
            "rollcall_redis_messages_total",
            "Pub/sub messages received from Redis, by subscriber and kind.",
        )
        .with(&by("expired"), get(&counters.expired))
        .with(&by("message"), get(&counters.messages))
        .with(&by("unreadable"), get(&counters.not_utf8))
        .with(&by("dropped"), get(&counters.dropped));
        let by = [("listener", *listener)];
        metrics! { page =>
            counter "rollcall_redis_subscription_gaps_total" with(&by) = &counters.gaps,
                "Times that pub/sub messages may have been missed.";
            counter "rollcall_redis_subscription_connections_total" with(&by) = &counters.connections,
                "Connections opened for pub/sub.";
            gauge "rollcall_redis_servers_without_expiry_events" with(&by) = &counters.notifications_off,
                "Redis servers that do not publish expired keys (notify-keyspace-events).";
        }
    }
}
