//! Figures of verification for the metrics page.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::{Counter, Level};

/// Endpoint calls by outcome.
#[derive(Debug, Default)]
pub struct CallCounters {
    pub valid: Counter,
    pub invalid: Counter,
    pub timed_out: Counter,
    /// No connection, a broken connection, or an untrusted certificate.
    pub unreachable: Counter,
    /// Any status but 200, redirects included.
    pub wrong_status: Counter,
    /// A body that is truncated, too long or malformed.
    pub unreadable: Counter,
}

#[derive(Debug, Default)]
pub struct VerificationCounters {
    /// Requests admitted by a cached answer, including those that waited for it.
    pub cache_hits_valid: Counter,
    /// Requests refused by a cached answer.
    pub cache_hits_invalid: Counter,
    pub cache_misses: Counter,
    /// Requests refused because the breaker is open and [`super::OnVerifyFailure::Refuse`] is set.
    pub refused_on_verify_failure: Counter,
    pub cache_entries: Level,
    pub cache_evictions: Counter,
    /// Requests that joined a lookup in progress.
    pub requests_joined: Counter,
    /// Requests dropped because a queue was full.
    pub requests_dropped: Counter,
    /// Requests waiting for an answer.
    pub waiting: Level,
    pub whitelist_hits: Counter,
    pub whitelist_misses: Counter,
    pub whitelist_failures: Counter,
    pub calls: CallCounters,
    /// Calls not made: the budget of the client address was exhausted.
    pub calls_over_address_budget: Counter,
    /// Addresses displaced from the table of address budgets.
    pub addresses_displaced: Level,
    /// Calls not made: rate limit.
    pub calls_over_rate: Counter,
    /// Calls not made: the circuit breaker was open.
    pub calls_breaker_open: Counter,
    /// Calls not made: queued for too long.
    pub calls_overdue: Counter,
    pub breaker_openings: Counter,
    is_breaker_open: AtomicBool,
    /// Expired positive answers that were extended because their source was unavailable.
    pub stale_kept: Counter,
    /// Lookups repeated because the whitelist changed meanwhile.
    pub lookups_repeated: Counter,
    /// Passkeys added to the whitelist after a positive answer of the endpoint.
    pub whitelist_adds: Counter,
    /// Additions dropped because a queue was full.
    pub whitelist_adds_dropped: Counter,
    pub whitelist_adds_failed: Counter,
    /// Additions undone: the whitelist changed meanwhile, or the site gave the user another passkey.
    pub whitelist_removals: Counter,
    /// Removals that failed, or were dropped because a queue was full.
    pub whitelist_removals_failed: Counter,
    /// Accounts created for external users.
    pub external_users_created: Counter,
    pub external_users_failed: Counter,
    /// Users whose peers were evicted because their passkey is no longer valid.
    pub users_revoked: Counter,
}

impl VerificationCounters {
    pub fn is_breaker_open(&self) -> bool {
        self.is_breaker_open.load(Ordering::Relaxed)
    }

    pub(super) fn set_breaker_open(&self, is_open: bool) {
        self.is_breaker_open.store(is_open, Ordering::Relaxed);
    }
}
