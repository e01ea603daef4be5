//! Metrics of passkey verification.

use access::UnknownPasskeys;

use super::page::metrics;
use super::{Page, Source};

impl Source for UnknownPasskeys {
    fn encode(&self, page: &mut Page) {
        answers(self, page);
        requests(self, page);
        calls(self, page);
    }
}

fn answers(unknown_passkeys: &UnknownPasskeys, page: &mut Page) {
    let counters = unknown_passkeys.counters();
    metrics! { page =>
        counter "rollcall_access_cache_hits_total" by "answer" {
            "valid" => &counters.cache_hits_valid, "invalid" => &counters.cache_hits_invalid,
        },
            "Requests with an unknown passkey (one without a user in the database) that a cached answer decided, by \
             answer.";
        gauge "rollcall_access_cache_entries" = &counters.cache_entries, "Cached answers about unknown passkeys.";
        counter "rollcall_access_cache_misses_total" = &counters.cache_misses,
            "Requests with an unknown passkey that has no fresh cached answer.";
        counter "rollcall_access_cache_evictions_total" = &counters.cache_evictions,
            "Cached answers about unknown passkeys that were evicted because the cache was full.";
        counter "rollcall_access_refused_on_verify_failure_total" = &counters.refused_on_verify_failure,
            "Requests with an unknown passkey refused because the verify endpoint fails and on_verify_failure is \
             refuse.";
        counter "rollcall_access_stale_answers_total" = &counters.stale_kept,
            "Expired positive answers that were extended because their source was unavailable.";
        counter "rollcall_access_external_users_created_total" = &counters.external_users_created,
            "Accounts created for external users.";
        counter "rollcall_access_external_users_failed_total" = &counters.external_users_failed,
            "Accounts of external users that could not be created because the database failed.";
        counter "rollcall_access_users_revoked_total" = &counters.users_revoked,
            "External users whose peers were evicted because their passkey is no longer valid.";
    }
}

fn requests(unknown_passkeys: &UnknownPasskeys, page: &mut Page) {
    let counters = unknown_passkeys.counters();
    metrics! { page =>
        gauge "rollcall_access_requests_waiting" = &counters.waiting,
            "Verification requests that wait for an answer.";
        counter "rollcall_access_whitelist_lookups_total" by "outcome" {
            "found" => &counters.whitelist_hits, "absent" => &counters.whitelist_misses,
            "failed" => &counters.whitelist_failures,
        }, "Unknown passkeys looked up on the whitelist, by outcome.";
        counter "rollcall_access_whitelist_writes_total" by "outcome" {
            "added" => &counters.whitelist_adds, "dropped" => &counters.whitelist_adds_dropped,
            "failed" => &counters.whitelist_adds_failed, "removed" => &counters.whitelist_removals,
            "removal_failed" => &counters.whitelist_removals_failed,
        },
            "Passkeys added to the whitelist after a positive answer of the verify endpoint, and removed again, by \
             outcome.";
        counter "rollcall_access_requests_joined_total" = &counters.requests_joined,
            "Verification requests that joined a lookup of the same passkey in progress.";
        counter "rollcall_access_requests_dropped_total" = &counters.requests_dropped,
            "Verification requests dropped because a queue was full; the client is told to try again.";
        counter "rollcall_access_lookups_repeated_total" = &counters.lookups_repeated,
            "Lookups of unknown passkeys repeated because the whitelist changed meanwhile.";
    }
}

fn calls(unknown_passkeys: &UnknownPasskeys, page: &mut Page) {
    let (counters, calls) = (unknown_passkeys.counters(), &unknown_passkeys.counters().calls);
    metrics! { page =>
        counter "rollcall_access_verify_calls_total" by "outcome" {
            "valid" => &calls.valid, "invalid" => &calls.invalid, "timed_out" => &calls.timed_out,
            "unreachable" => &calls.unreachable, "wrong_status" => &calls.wrong_status,
            "unreadable" => &calls.unreadable,
        }, "Calls of the site's verify endpoint, by outcome. All but valid and invalid are failures.";
        counter "rollcall_access_verify_withheld_total" by "reason" {
            "over_rate" => &counters.calls_over_rate, "over_address_budget" => &counters.calls_over_address_budget,
            "breaker" => &counters.calls_breaker_open, "overdue" => &counters.calls_overdue,
        },
            "Calls of the verify endpoint that were not made, by reason: common rate limit, budget of the client \
             address, open circuit breaker, queued for too long.";
        counter "rollcall_access_verify_addresses_displaced_total" = &counters.addresses_displaced,
            "Busy client addresses displaced from the table of address budgets; they get their budget of one second \
             once more.";
    }
    // While a probe is under way, the breaker counts as open.
    metrics! { page =>
        gauge "rollcall_access_breaker_open" = counters.is_breaker_open(),
            "Whether the circuit breaker of the verify endpoint is open: 1 until a call succeeds.";
        counter "rollcall_access_breaker_openings_total" = &counters.breaker_openings,
            "Times the circuit breaker of the verify endpoint opened.";
    }
}
