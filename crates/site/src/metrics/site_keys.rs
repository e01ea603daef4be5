//! The site's keys on the page: believed or copied, and the channels that are listened to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::site_keys::{CopyCounters, SiteKeyCounters};
use keyspace::PubSubCounters;

use super::{Page, Source};

/// What is done with the site's keys. What this process does not do is left out.
#[derive(Clone, Debug, Default)]
pub struct SiteKeyFigures {
    /// The keys as the source of users, torrents and clients.
    pub source: Option<Arc<SiteKeyCounters>>,
    /// The keys as a copy of the database.
    pub copy: Option<Arc<CopyCounters>>,
    /// Whoever listens to Redis, by what for.
    pub listening: Vec<(&'static str, Arc<PubSubCounters>)>,
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Source for SiteKeyFigures {
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

fn source(counters: &SiteKeyCounters, page: &mut Page) {
    page.counter(
        "rollcall_site_keys_rounds_total",
        "Times that all of the site's keys were looked at, by outcome; empty ones are not believed.",
    )
    .with(&[("outcome", "whole")], get(&counters.rounds))
    .with(&[("outcome", "failed")], get(&counters.rounds_failed))
    .with(&[("outcome", "empty")], get(&counters.rounds_empty));
    page.counter(
        "rollcall_site_keys_messages_total",
        "Messages of the site about its keys, by whether they were understood.",
    )
    .with(&[("understood", "yes")], get(&counters.messages).saturating_sub(get(&counters.messages_bad)))
    .with(&[("understood", "no")], get(&counters.messages_bad));
    page.counter("rollcall_site_keys_changes_total", "Changes of the site's keys that were taken in.")
        .is(get(&counters.changes));
    page.gauge(
        "rollcall_site_keys_skipped",
        "Keys of the site that were skipped in the last round, by reason.",
    )
    .with(&[("reason", "bad")], get(&counters.keys_bad))
    .with(&[("reason", "surplus")], get(&counters.keys_surplus));
}

fn copy(counters: &CopyCounters, page: &mut Page) {
    page.counter(
        "rollcall_site_keys_copied_total",
        "Keys that were brought in line with the database, by what was done.",
    )
    .with(&[("done", "written")], get(&counters.written))
    .with(&[("done", "removed")], get(&counters.removed));
    for (name, help, counter) in [
        (
            "rollcall_site_keys_copy_rounds_total",
            "Times that all keys were compared with the database.",
            &counters.rounds,
        ),
        (
            "rollcall_site_keys_copy_failures_total",
            "Times that keys could not be written, and were tried again.",
            &counters.failures,
        ),
        (
            "rollcall_site_keys_copy_overflows_total",
            "Times that more changes waited than are remembered, so that all keys were compared.",
            &counters.overflows,
        ),
    ] {
        page.counter(name, help).is(get(counter));
    }
    page.gauge(
        "rollcall_site_keys_foreign",
        "Keys of the site that say something else than the database, which decides, as the last comparison found.",
    )
    .is(get(&counters.foreign));
}

/// Whoever listens to Redis, by what for.
pub(super) fn listening(all: &[(&'static str, Arc<PubSubCounters>)], page: &mut Page) {
    for (listener, counters) in all {
        let by = |kind| [("listener", *listener), ("kind", kind)];
        page.counter(
            "rollcall_redis_heard_total",
            "Messages heard from Redis, by who listens and their kind.",
        )
        .with(&by("expired"), get(&counters.expired))
        .with(&by("said"), get(&counters.messages))
        .with(&by("unreadable"), get(&counters.not_utf8))
        .with(&by("dropped"), get(&counters.dropped));
        let by = [("listener", *listener)];
        page.counter(
            "rollcall_redis_listen_gaps_total",
            "Times that messages of Redis may have been missed.",
        )
        .with(&by, get(&counters.gaps));
        page.counter("rollcall_redis_listen_connections_total", "Connections made to listen to Redis.")
            .with(&by, get(&counters.connections));
        page.gauge(
            "rollcall_redis_silent_servers",
            "Servers of Redis that do not tell of expired keys (notify-keyspace-events).",
        )
        .with(&by, get(&counters.notifications_off));
    }
}
