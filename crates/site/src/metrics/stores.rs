//! What stores count: accounts, lists, the gate, connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::{Audit, FollowCounters, Gate};
use database::Database;
use keyspace::Redis;
use ledger::Ledger;
use tracker::http::tls::Certificate;
use views::Activity;

use super::{Page, Source};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The accounts.
pub(super) struct LedgerFigures(pub(super) Arc<Ledger>);

impl Source for LedgerFigures {
    fn encode(&self, page: &mut Page) {
        let counts = self.0.counts();
        page.counter(
            "rollcall_ledger_entries_total",
            "Entries that the ledger was given, by what came of them.",
        )
        .with(&[("result", "applied")], counts.applied)
        .with(&[("result", "repeated")], counts.repeated)
        .with(&[("result", "rejected")], counts.rejected);
        page.counter(
            "rollcall_ledger_late_entries_total",
            "Entries that count without their bytes, because the sessions they belong to are no longer kept.",
        )
        .is(counts.late);
        for (name, help, count) in [
            ("rollcall_ledger_batches_total", "Batches that the ledger has committed.", counts.batches),
            ("rollcall_ledger_risks_total", "Risks that the ledger found.", counts.risks),
            (
                "rollcall_ledger_settled_runs_total",
                "Runs of clients that were put away, since a client had too many.",
                counts.settled_runs,
            ),
            (
                "rollcall_ledger_pruned_clients_total",
                "Clients that were forgotten, since they had not been heard of for too long.",
                counts.pruned_clients,
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

/// The lists of who seeds and who leeches.
pub(super) struct ActivityFigures(pub(super) Activity);

impl Source for ActivityFigures {
    fn encode(&self, page: &mut Page) {
        let counts = self.0.counters();
        page.counter(
            "rollcall_activity_entries_total",
            "Entries that the lists were given, by what came of them.",
        )
        .with(&[("result", "taken")], counts.entries.saturating_sub(counts.superseded))
        .with(&[("result", "superseded")], counts.superseded)
        .with(&[("result", "too_old")], counts.too_old)
        .with(&[("result", "without_passkey")], counts.without_passkey)
        .with(&[("result", "rejected")], counts.rejected);
        for (name, help, count) in [
            (
                "rollcall_activity_clients_forgotten_total",
                "Clients that were forgotten because a user has too many on one torrent.",
                counts.clients_forgotten,
            ),
            (
                "rollcall_activity_swept_users_total",
                "Users whom sweeps for silent clients looked at.",
                counts.swept_users,
            ),
            (
                "rollcall_activity_swept_torrents_total",
                "Torrents of users of which sweeps found something too old.",
                counts.swept_torrents,
            ),
            (
                "rollcall_activity_damaged_users_total",
                "Users whose keys hold something else, as often as sweeps found them so.",
                counts.damaged_users,
            ),
            (
                "rollcall_activity_sweeps_behind_total",
                "Sweeps that looked at as many users as allowed (activity.sweep_users_max) and left some for the next.",
                counts.sweeps_behind,
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

/// Who may announce, and how that follows the database.
pub(super) struct GateFigures {
    pub(super) gate: Arc<Gate>,
    pub(super) follower: Option<Arc<FollowCounters>>,
}

impl Source for GateFigures {
    fn encode(&self, page: &mut Page) {
        let gate = &self.gate;
        page.gauge("rollcall_access_users", "Users that are known, enabled or not.").is(gate.user_count());
        page.gauge("rollcall_access_torrents", "Torrents that are known, enabled or not.")
            .is(gate.torrent_count());
        page.gauge("rollcall_access_client_rules", "Client prefixes that are allowed or forbidden.")
            .is(gate.client_count());
        page.counter(
            "rollcall_access_removed_forgotten_total",
            "Removed users whose last passkey was forgotten to make room for others; their peers leave without one.",
        )
        .is(gate.removed_users_forgotten());
        if let Some(strangers) = gate.strangers() {
            strangers.encode(page);
        }
        let Some(follower) = &self.follower else { return };
        page.counter(
            "rollcall_access_polls_total",
            "Looks for changes to users, torrents and clients in the database, by outcome.",
        )
        .with(&[("outcome", "ok")], read(&follower.polls))
        .with(&[("outcome", "failed")], read(&follower.failures));
        page.gauge(
            "rollcall_access_poll_failures_in_a_row",
            "Looks that failed in a row. Zero while the database of users and torrents answers.",
        )
        .is(read(&follower.failures_in_a_row));
        page.counter(
            "rollcall_access_reloads_total",
            "Times that all users and torrents were read again, because the log of changes did not reach back.",
        )
        .is(read(&follower.reloads));
    }
}

/// Connections to Redis, by what they are used for.
pub(super) struct RedisFigures(pub(super) Vec<(&'static str, Redis)>);

impl Source for RedisFigures {
    fn encode(&self, page: &mut Page) {
        for (purpose, redis) in &self.0 {
            let counters = redis.counters();
            for (name, help, counter) in [
                (
                    "rollcall_redis_connections_total",
                    "Connections to Redis that were made.",
                    &counters.connected,
                ),
                (
                    "rollcall_redis_connect_failures_total",
                    "Attempts to connect to Redis that failed.",
                    &counters.connect_failures,
                ),
                (
                    "rollcall_redis_redirected_total",
                    "Commands that a node of a Redis cluster sent elsewhere.",
                    &counters.redirected,
                ),
                (
                    "rollcall_redis_unanswered_total",
                    "Commands that Redis did not answer: the connection broke or the answer took too long.",
                    &counters.unanswered,
                ),
            ] {
                page.counter(name, help).with(&[("use", purpose)], read(counter));
            }
        }
    }
}

/// Pools of connections to databases, by what they are used for.
pub(super) struct DatabaseFigures(pub(super) Vec<(&'static str, Database)>);

impl Source for DatabaseFigures {
    fn encode(&self, page: &mut Page) {
        for (purpose, database) in &self.0 {
            let usage = database.usage();
            page.gauge(
                "rollcall_database_connections",
                "Connections to the database that are open, by state.",
            )
            .with(&[("use", purpose), ("state", "busy")], usage.open.saturating_sub(usage.idle))
            .with(&[("use", purpose), ("state", "idle")], usage.idle);
            page.gauge(
                "rollcall_database_connections_max",
                "Connections to the database that may be open at the same time.",
            )
            .with(&[("use", purpose)], usage.max);
        }
    }
}

/// The audit trail.
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
                "Records that could not be written to the audit trail, and checks and syncs that failed.",
                counters.failures.get(),
            ),
            (
                "rollcall_audit_repairs_total",
                "Times that something else than a record was found at the end of the audit trail.",
                counters.repairs.get(),
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

/// When certificates expire, by what listens with them, such as `tracker` and `site`.
pub struct CertificateFigures(pub Vec<(&'static str, Arc<Certificate>)>);

impl Source for CertificateFigures {
    fn encode(&self, page: &mut Page) {
        let family = page.gauge(
            "rollcall_certificate_expiry_timestamp_seconds",
            "When the certificate that a listener shows expires, in seconds since 1970.",
        );
        for (listener, certificate) in &self.0 {
            if let Some(expires_at) = certificate.expires_at() {
                family.with(&[("listener", listener)], expires_at.0);
            }
        }
    }
}
