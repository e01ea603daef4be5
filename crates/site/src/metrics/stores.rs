//! Metrics of ledger, activity lists, gate, databases, Redis, audit trail and certificates.

use std::sync::Arc;

use access::{FollowCounters, Gate};
use admin::Audit;
use database::Database;
use keyspace::Redis;
use ledger::Ledger;
use net::Certificate;
use views::Activity;

use super::page::metrics;
use super::{Page, Source};

pub(super) struct LedgerMetrics(pub(super) Arc<Ledger>);

impl Source for LedgerMetrics {
    fn encode(&self, page: &mut Page) {
        let counts = self.0.counts();
        metrics! { page =>
            counter "rollcall_ledger_entries_total" by "result" {
                "applied" => counts.applied, "repeated" => counts.repeated, "rejected" => counts.rejected,
            }, "Entries delivered to the ledger, by result.";
            counter "rollcall_ledger_late_entries_total" = counts.late,
                "Entries whose bytes are not counted, because their client's runs are no longer kept.";
            counter "rollcall_ledger_batches_total" = counts.batches, "Committed batches.";
            counter "rollcall_ledger_risks_total" = counts.risks, "Risk events found by the ledger.";
            counter "rollcall_ledger_settled_runs_total" = counts.settled_runs,
                "Runs merged into a sum, because a client had too many.";
            counter "rollcall_ledger_pruned_clients_total" = counts.pruned_clients,
                "Clients removed because they did not announce for too long.";
            counter "rollcall_ledger_removed_clients_total" = counts.removed_clients,
                "Clients removed before that, because a user had too many on a torrent.";
            counter "rollcall_ledger_cache_resets_total" = counts.cache_resets,
                "Times that the ledger's cache of rows was full and began again; each reads rows of SQLite once more.";
        }
    }
}

pub(super) struct ActivityMetrics(pub(super) Activity);

impl Source for ActivityMetrics {
    fn encode(&self, page: &mut Page) {
        let counts = self.0.counters();
        metrics! { page =>
            counter "rollcall_activity_entries_total" by "result" {
                "taken" => counts.entries.get().saturating_sub(counts.superseded.get()),
                "superseded" => &counts.superseded, "too_old" => &counts.too_old,
                "without_passkey" => &counts.without_passkey, "rejected" => &counts.rejected,
            }, "Entries delivered to the activity lists, by result.";
            counter "rollcall_activity_clients_evicted_total" = &counts.clients_evicted,
                "Clients removed because a user has too many on one torrent, or too many torrents.";
            counter "rollcall_activity_swept_users_total" = &counts.swept_users,
                "Users checked by sweeps for expired clients.";
            counter "rollcall_activity_swept_torrents_total" = &counts.swept_torrents,
                "User-torrent pairs with expired clients found by sweeps.";
            counter "rollcall_activity_damaged_users_total" = &counts.damaged_users,
                "Users whose keys have an unexpected type, counted per sweep.";
            counter "rollcall_activity_sweeps_behind_total" = &counts.sweeps_behind,
                "Sweeps that reached their maximum number of users and left some for the next one.";
            counter "rollcall_activity_superseded_total" = self.0.times_superseded(),
                "Times that another writer had claimed the keys of the activity lists in Redis, or Redis had lost them.";
        }
        let memory = self.0.memory_usage();
        metrics! { page =>
            gauge "rollcall_activity_memory_torrents" = memory.torrents,
                "User-torrent pairs of the activity lists in memory.";
            gauge "rollcall_activity_memory_bytes" = memory.bytes, "Memory of the activity lists, in bytes.";
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
        metrics! { page =>
            gauge "rollcall_access_users" = gate.user_count(), "Users, enabled and disabled.";
            gauge "rollcall_access_torrents" = gate.torrent_count(), "Torrents, enabled and disabled.";
            gauge "rollcall_access_client_rules" = gate.client_count(), "Client rules.";
            counter "rollcall_access_removed_passkeys_evicted_total" = gate.removed_forgotten(),
                "Removed users whose last passkey was evicted from memory; their peers are removed without one.";
        }
        if let Some(unknown_passkeys) = gate.unknown_passkeys() {
            unknown_passkeys.encode(page);
        }
        let Some(follower) = &self.follower else { return };
        metrics! { page =>
            counter "rollcall_access_polls_total" by "outcome" {
                "ok" => &follower.polls, "failed" => &follower.failures,
            }, "Polls for changes of users, torrents and clients in the database, by outcome.";
            gauge "rollcall_access_poll_failures_in_a_row" = &follower.failures_in_a_row,
                "Consecutive failed polls. Zero while the database of users and torrents answers.";
            counter "rollcall_access_reloads_total" = &follower.reloads,
                "Complete reloads of users and torrents, because the change log did not reach back far enough.";
        }
    }
}

pub(super) struct RedisMetrics(pub(super) Vec<(&'static str, Redis)>);

impl Source for RedisMetrics {
    fn encode(&self, page: &mut Page) {
        for (purpose, redis) in &self.0 {
            let counters = redis.counters();
            metrics! { page =>
                counter "rollcall_redis_connections_total" with(&[("use", purpose)]) = &counters.connected,
                    "Connections opened to Redis.";
                counter "rollcall_redis_connect_failures_total" with(&[("use", purpose)]) = &counters.connect_failures,
                    "Failed attempts to connect to Redis.";
                counter "rollcall_redis_redirected_total" with(&[("use", purpose)]) = &counters.redirected,
                    "Commands redirected by a node of a Redis cluster.";
                counter "rollcall_redis_unanswered_total" with(&[("use", purpose)]) = &counters.unanswered,
                    "Commands without a reply: the connection broke or timed out.";
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
            metrics! { page =>
                gauge "rollcall_database_connections_max" with(&[("use", purpose)]) = usage.max,
                    "Maximum number of connections to the database.";
            }
        }
    }
}

impl Source for Audit {
    fn encode(&self, page: &mut Page) {
        let counters = self.counters();
        metrics! { page =>
            counter "rollcall_audit_records_total" = &counters.records, "Records written to the audit trail.";
            counter "rollcall_audit_written_bytes_total" = &counters.written_bytes,
                "Bytes written to the audit trail.";
            counter "rollcall_audit_failures_total" = &counters.failures,
                "Failed writes, checks and syncs of the audit trail.";
            counter "rollcall_audit_repairs_total" = &counters.repairs,
                "Incomplete lines found at the end of the audit trail, and recorded.";
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
