//! Metrics of passkey verification.

use access::UnknownPasskeys;

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
    page.counter(
        "rollcall_access_cache_hits_total",
        "Requests with an unknown passkey (one without a user in the database) that a cached answer decided, by answer.",
    )
    .with(&[("answer", "valid")], counters.cache_hits_valid.get())
    .with(&[("answer", "invalid")], counters.cache_hits_invalid.get());
    page.gauge("rollcall_access_cache_entries", "Cached answers about unknown passkeys.")
        .is(counters.cache_entries.get());
    for (name, help, counter) in [
        (
            "rollcall_access_cache_misses_total",
            "Requests with an unknown passkey that has no fresh cached answer.",
            &counters.cache_misses,
        ),
        (
            "rollcall_access_cache_evictions_total",
            "Cached answers about unknown passkeys that were evicted because the cache was full.",
            &counters.cache_evictions,
        ),
        (
            "rollcall_access_refused_on_verify_failure_total",
            "Requests with an unknown passkey refused because the verify endpoint fails and on_verify_failure is refuse.",
            &counters.refused_on_verify_failure,
        ),
        (
            "rollcall_access_stale_answers_total",
            "Expired positive answers that were extended because their source was unavailable.",
            &counters.stale_kept,
        ),
        (
            "rollcall_access_external_users_created_total",
            "Accounts created for external users.",
            &counters.external_users_created,
        ),
        (
            "rollcall_access_external_users_failed_total",
            "Accounts of external users that could not be created because the database failed.",
            &counters.external_users_failed,
        ),
        (
            "rollcall_access_users_revoked_total",
            "External users whose peers were evicted because their passkey is no longer valid.",
            &counters.users_revoked,
        ),
    ] {
        page.counter(name, help).is(counter.get());
    }
}

fn requests(unknown_passkeys: &UnknownPasskeys, page: &mut Page) {
    let counters = unknown_passkeys.counters();
    page.gauge("rollcall_access_requests_waiting", "Verification requests that wait for an answer.")
        .is(counters.waiting.get());
    page.counter(
        "rollcall_access_whitelist_lookups_total",
        "Unknown passkeys looked up on the whitelist, by outcome.",
    )
    .with(&[("outcome", "found")], counters.whitelist_hits.get())
    .with(&[("outcome", "absent")], counters.whitelist_misses.get())
    .with(&[("outcome", "failed")], counters.whitelist_failures.get());
    page.counter(
        "rollcall_access_whitelist_writes_total",
        "Passkeys added to the whitelist after a positive answer of the verify endpoint, and removed again, by outcome.",
    )
    .with(&[("outcome", "added")], counters.whitelist_adds.get())
    .with(&[("outcome", "dropped")], counters.whitelist_adds_dropped.get())
    .with(&[("outcome", "failed")], counters.whitelist_adds_failed.get())
    .with(&[("outcome", "removed")], counters.whitelist_removals.get())
    .with(&[("outcome", "removal_failed")], counters.whitelist_removals_failed.get());
    for (name, help, counter) in [
        (
            "rollcall_access_requests_joined_total",
            "Verification requests that joined a lookup of the same passkey in progress.",
            &counters.requests_joined,
        ),
        (
            "rollcall_access_requests_dropped_total",
            "Verification requests dropped because a queue was full; the client is told to try again.",
            &counters.requests_dropped,
        ),
        (
            "rollcall_access_lookups_repeated_total",
            "Lookups of unknown passkeys repeated because the whitelist changed meanwhile.",
            &counters.lookups_repeated,
        ),
    ] {
        page.counter(name, help).is(counter.get());
    }
}

fn calls(unknown_passkeys: &UnknownPasskeys, page: &mut Page) {
    let (counters, calls) = (unknown_passkeys.counters(), &unknown_passkeys.counters().calls);
    page.counter(
        "rollcall_access_verify_calls_total",
        "Calls of the site's verify endpoint, by outcome. All but valid and invalid are failures.",
    )
    .with(&[("outcome", "valid")], calls.valid.get())
    .with(&[("outcome", "invalid")], calls.invalid.get())
    .with(&[("outcome", "timed_out")], calls.timed_out.get())
    .with(&[("outcome", "unreachable")], calls.unreachable.get())
    .with(&[("outcome", "wrong_status")], calls.wrong_status.get())
    .with(&[("outcome", "unreadable")], calls.unreadable.get());
    page.counter(
        "rollcall_access_verify_withheld_total",
        "Calls of the verify endpoint that were not made, by reason: common rate limit, budget of the client address, \
         open circuit breaker, queued for too long.",
    )
    .with(&[("reason", "over_rate")], counters.calls_over_rate.get())
    .with(&[("reason", "over_address_budget")], counters.calls_over_address_budget.get())
    .with(&[("reason", "breaker")], counters.calls_breaker_open.get())
    .with(&[("reason", "overdue")], counters.calls_overdue.get());
    page.counter(
        "rollcall_access_verify_addresses_displaced_total",
        "Busy client addresses displaced from the table of address budgets; they get their budget of one second once more.",
    )
    .is(counters.addresses_displaced.get());
    // While a probe is under way, the breaker counts as open.
    page.gauge(
        "rollcall_access_breaker_open",
        "Whether the circuit breaker of the verify endpoint is open: 1 until a call succeeds.",
    )
    .is(counters.is_breaker_open());
    page.counter(
        "rollcall_access_breaker_openings_total",
        "Times the circuit breaker of the verify endpoint opened.",
    )
    .is(counters.breaker_openings.get());
}
