//! Metrics of ledger, activity lists, gate, databases, Redis, audit trail and certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::{Audit, FollowCounters, Gate};
use database::Database;
use keyspace::Redis;
use ledger::Ledger;
use net::Certificate;
use views::Activity;

use super::{Page, Source};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) struct LedgerMetrics(pub(super) Arc<Ledger>);

impl Source for LedgerMetrics {
    fn encode(&self, page: &mut Page) {
        let counts = self.0.counts();
        page.counter("rollcall_ledger_entries_total", "Entries delivered to the ledger, by result.")
            .with(&[("result", "applied")], counts.applied)
            .with(&[("result", "repeated")], counts.repeated)
            .with(&[("result", "rejected")], counts.rejected);
        page.counter(
            "rollcall_ledger_late_entries_total",
            "Entries whose bytes are not counted, because their client's runs are no longer kept.",
        )
        .is(counts.late);
        for (name, help, count) in [
            ("rollcall_ledger_batches_total", "Committed batches.", counts.batches),
            ("rollcall_ledger_risks_total", "Risk events found by the ledger.", counts.risks),
            (
                "rollcall_ledger_settled_runs_total",
                "Runs merged into a sum, because a client had too many.",
                counts.settled_runs,
            ),
            (
                "rollcall_ledger_pruned_clients_total",
                "Clients removed because they did not announce for too long.",
                counts.pruned_clients,
            ),
            (
                "rollcall_ledger_removed_clients_total",
                "Clients removed before that, because a user had too many on a torrent.",
                counts.removed_clients,
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

pub(super) struct ActivityMetrics(pub(super) Activity);

impl Source for ActivityMetrics {
    fn encode(&self, page: &mut Page) {
        let counts = self.0.counters();
        page.counter(
            "rollcall_activity_entries_total",
            "Entries delivered to the activity lists, by result.",
        )
        .with(&[("result", "taken")], counts.entries.get().saturating_sub(counts.superseded.get()))
        .with(&[("result", "superseded")], counts.superseded.get())
        .with(&[("result", "too_old")], counts.too_old.get())
        .with(&[("result", "without_passkey")], counts.without_passkey.get())
        .with(&[("result", "rejected")], counts.rejected.get());
        for (name, help, count) in [
            (
                "rollcall_activity_clients_evicted_total",
                "Clients removed because a user has too many on one torrent.",
                counts.clients_evicted.get(),
            ),
            (
                "rollcall_activity_swept_users_total",
                "Users checked by sweeps for expired clients.",
                counts.swept_users.get(),
            ),
            (
                "rollcall_activity_swept_torrents_total",
                "User-torrent pairs with expired clients found by sweeps.",
                counts.swept_torrents.get(),
            ),
            (
                "rollcall_activity_damaged_users_total",
                "Users whose keys have an unexpected type, counted per sweep.",
                counts.damaged_users.get(),
            ),
            (
                "rollcall_activity_sweeps_behind_total",
                "Sweeps that reached their maximum number of users and left some for the next one.",
                counts.sweeps_behind.get(),
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

/// The gate and its polls of the database.
pub(super) struct GateMetrics {
    pub(super) gate: Arc<Gate>,
    pub(super) follower: Option<Arc<FollowCounters>>,
}

impl Source for GateMetrics {
    fn encode(&self, page: &mut Page) {
        let gate = &self.gate;
        page.gauge("rollcall_access_users", "Users, enabled and disabled.").is(gate.user_count());
        page.gauge("rollcall_access_torrents", "Torrents, enabled and disabled.").is(gate.torrent_count());
        page.gauge("rollcall_access_client_rules", "Client rules.").is(gate.client_count());
        page.counter(
            "rollcall_access_removed_passkeys_evicted_total",
            "Removed users whose last passkey was evicted from memory; their peers are removed without one.",
        )
        .is(gate.removed_forgotten());
        if let Some(unknown_passkeys) = gate.unknown_passkeys() {
            unknown_passkeys.encode(page);
        }
        let Some(follower) = &self.follower else { return };
        page.counter(
            "rollcall_access_polls_total",
            "Polls for changes of users, torrents and clients in the database, by outcome.",
        )
        .with(&[("outcome", "ok")], read(&follower.polls))
        .with(&[("outcome", "failed")], read(&follower.failures));
        page.gauge(
            "rollcall_access_poll_failures_in_a_row",
            "Consecutive failed polls. Zero while the database of users and torrents answers.",
        )
        .is(read(&follower.failures_in_a_row));
        page.counter(
            "rollcall_access_reloads_total",
            "Complete reloads of users and torrents, because the change log did not reach back far enough.",
        )
        .is(read(&follower.reloads));
    }
}

pub(super) struct RedisMetrics(pub(super) Vec<(&'static str, Redis)>);

impl Source for RedisMetrics {
    fn encode(&self, page: &mut Page) {
        for (purpose, redis) in &self.0 {
            let counters = redis.counters();
            for (name, help, counter) in [
                ("rollcall_redis_connections_total", "Connections opened to Redis.", &counters.connected),
                (
                    "rollcall_redis_connect_failures_total",
                    "Failed attempts to connect to Redis.",
                    &counters.connect_failures,
                ),
                (
                    "rollcall_redis_redirected_total",
                    "Commands redirected by a node of a Redis cluster.",
                    &counters.redirected,
                ),
                (
                    "rollcall_redis_unanswered_total",
                    "Commands without a reply: the connection broke or timed out.",
                    &counters.unanswered,
                ),
            ] {
                page.counter(name, help).with(&[("use", purpose)], read(counter));
            }
        }
    }
}

pub(super) struct DatabaseMetrics(pub(super) Vec<(&'static str, Database)>);

impl Source for DatabaseMetrics {
    fn encode(&self, page: &mut Page) {
        for (purpose, database) in &self.0 {
            let usage = database.usage();
            page.gauge("rollcall_database_connections", "Open connections to the database, by state.")
                .with(&[("use", purpose), ("state", "busy")], usage.open.saturating_sub(usage.idle))
                .with(&[("use", purpose), ("state", "idle")], usage.idle);
            page.gauge("rollcall_database_connections_max", "Maximum number of connections to the database.")
                .with(&[("use", purpose)], usage.max);
        }
    }
}

impl Source for Audit {
    fn encode(&self, page: &mut Page) {
        let counters = self.counters();
        for (name, help, count) in [
            ("rollcall_audit_records_total", "Records written to the audit trail.", counters.records.get()),
            (
                "rollcall_audit_written_bytes_total",
                "Bytes written to the audit trail.",
                counters.written_bytes.get(),
            ),
            (
                "rollcall_audit_failures_total",
                "Failed writes, checks and syncs of the audit trail.",
                counters.failures.get(),
            ),
            (
                "rollcall_audit_repairs_total",
                "Incomplete lines found at the end of the audit trail, and recorded.",
                counters.repairs.get(),
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

/// Expiry of certificates by listener, `tracker` or `site`.
pub struct CertificateMetrics(pub Vec<(&'static str, Arc<Certificate>)>);

impl Source for CertificateMetrics {
    fn encode(&self, page: &mut Page) {
        let family = page.gauge(
            "rollcall_certificate_expiry_timestamp_seconds",
            "Expiry time of a listener's certificate, in unix seconds.",
        );
        for (listener, certificate) in &self.0 {
            if let Some(expires_at) = certificate.expires_at() {
                family.with(&[("listener", listener)], expires_at.0);
            }
        }
    }
}
