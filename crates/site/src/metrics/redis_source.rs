//! Metrics of the Redis source, of the database's copies in it, and of subscriptions to Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::redis_source::{CopyCounters, RedisSourceCounters};
use keyspace::PubSubCounters;

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
    page.counter(
        "rollcall_redis_source_scans_total",
        "Scans of all of the site's keys, by outcome; one that misses most of them is discarded.",
    )
    .with(&[("outcome", "complete")], get(&counters.scans))
    .with(&[("outcome", "failed")], get(&counters.scans_failed))
    .with(&[("outcome", "discarded")], get(&counters.scans_discarded));
    page.counter(
        "rollcall_redis_source_messages_total",
        "Messages of the site about changed keys, by outcome.",
    )
    .with(&[("outcome", "ok")], get(&counters.messages).saturating_sub(get(&counters.messages_malformed)))
    .with(&[("outcome", "malformed")], get(&counters.messages_malformed));
    page.counter("rollcall_redis_source_changes_total", "Changes of the site's keys that were applied.")
        .is(get(&counters.changes));
    page.gauge("rollcall_redis_source_skipped", "Keys of the site that the last scan skipped, by reason.")
        .with(&[("reason", "malformed")], get(&counters.keys_malformed))
        .with(&[("reason", "conflicting")], get(&counters.keys_conflicting));
}

fn copy(counters: &CopyCounters, page: &mut Page) {
    page.counter(
        "rollcall_redis_source_copied_total",
        "Keys written or removed so that they equal the database.",
    )
    .with(&[("operation", "written")], get(&counters.written))
    .with(&[("operation", "removed")], get(&counters.removed));
    for (name, help, counter) in [
        (
            "rollcall_redis_source_copy_comparisons_total",
            "Comparisons of all copied keys with the database.",
            &counters.comparisons,
        ),
        (
            "rollcall_redis_source_copy_failures_total",
            "Failed writes of keys; each is retried.",
            &counters.failures,
        ),
        (
            "rollcall_redis_source_copy_overflows_total",
            "Times the queue of changes was full, so that all keys were compared.",
            &counters.overflows,
        ),
    ] {
        page.counter(name, help).is(get(counter));
    }
    page.gauge(
        "rollcall_redis_source_copy_conflicts",
        "Keys of the site that differ from the database, which takes precedence, in the last comparison.",
    )
    .is(get(&counters.conflicts));
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
        page.counter(
            "rollcall_redis_subscription_gaps_total",
            "Times that pub/sub messages may have been missed.",
        )
        .with(&by, get(&counters.gaps));
        page.counter("rollcall_redis_subscription_connections_total", "Connections opened for pub/sub.")
            .with(&by, get(&counters.connections));
        page.gauge(
            "rollcall_redis_servers_without_expiry_events",
            "Redis servers that do not publish expired keys (notify-keyspace-events).",
        )
        .with(&by, get(&counters.notifications_off));
    }
}
