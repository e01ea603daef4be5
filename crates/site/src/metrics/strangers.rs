//! Strangers on the page: passkeys of no user here, and who vouches for them.

use access::Strangers;
use access::vouching::BreakerState;

use super::{Page, Source};

impl Source for Strangers {
    fn encode(&self, page: &mut Page) {
        verdicts(self, page);
        questions(self, page);
        calls(self, page);
    }
}

fn verdicts(strangers: &Strangers, page: &mut Page) {
    let counters = strangers.counters();
    page.counter(
        "rollcall_access_cache_hits_total",
        "Strangers (passkeys of no user here) who were judged by a remembered answer, by what it says.",
    )
    .with(&[("verdict", "valid")], counters.cache_hits_valid.get())
    .with(&[("verdict", "invalid")], counters.cache_hits_invalid.get());
    page.gauge("rollcall_access_cache_entries", "Answers about strangers that are remembered.")
        .is(counters.cache_entries.get());
    for (name, help, counter) in [
        (
            "rollcall_access_cache_misses_total",
            "Strangers about whom nothing fresh was remembered, so that somebody had to be asked.",
            &counters.cache_misses,
        ),
        (
            "rollcall_access_cache_evictions_total",
            "Answers about strangers that were forgotten to make room (access.cache_entries_max).",
            &counters.cache_evictions,
        ),
        (
            "rollcall_access_refused_unseen_total",
            "Strangers refused unseen, because the verify endpoint fails and on_verify_failure says so.",
            &counters.refused_unseen,
        ),
        (
            "rollcall_access_stale_kept_total",
            "Answers about strangers that outlived their time because nobody could be asked.",
            &counters.stale_kept,
        ),
        ("rollcall_access_adoptions_total", "Strangers who got an account.", &counters.adoptions),
        (
            "rollcall_access_adoption_failures_total",
            "Strangers who got no account, because the database failed.",
            &counters.adoptions_failed,
        ),
        ("rollcall_access_shut_out_total", "Strangers whose peers had to go.", &counters.shut_out),
    ] {
        page.counter(name, help).is(counter.get());
    }
}

fn questions(strangers: &Strangers, page: &mut Page) {
    let counters = strangers.counters();
    page.gauge(
        "rollcall_access_questions_waiting",
        "Announces of strangers that wait for an answer right now.",
    )
    .is(counters.waiting.get());
    page.counter(
        "rollcall_access_whitelist_lookups_total",
        "Passkeys of strangers that were looked up in the whitelist, by outcome.",
    )
    .with(&[("outcome", "found")], counters.whitelist_hits.get())
    .with(&[("outcome", "absent")], counters.whitelist_misses.get())
    .with(&[("outcome", "failed")], counters.whitelist_failures.get());
    page.counter(
        "rollcall_access_write_backs_total",
        "Passkeys that the verify endpoint vouched for, by whether they were written to the whitelist, and those \
         that were taken out of it again.",
    )
    .with(&[("outcome", "written")], counters.write_backs.get())
    .with(&[("outcome", "dropped")], counters.write_backs_dropped.get())
    .with(&[("outcome", "failed")], counters.write_backs_failed.get())
    .with(&[("outcome", "taken_back")], counters.take_backs.get())
    .with(&[("outcome", "taking_back_failed")], counters.take_backs_failed.get());
    for (name, help, counter) in [
        (
            "rollcall_access_questions_joined_total",
            "Questions about a passkey that somebody else was asking about already.",
            &counters.joined,
        ),
        (
            "rollcall_access_questions_dropped_total",
            "Strangers who were told to come back, because too many questions waited.",
            &counters.asks_dropped,
        ),
        (
            "rollcall_access_asked_again_total",
            "Questions that were asked again because the whitelist had changed meanwhile.",
            &counters.asked_again,
        ),
    ] {
        page.counter(name, help).is(counter.get());
    }
}

fn calls(strangers: &Strangers, page: &mut Page) {
    let (counters, calls) = (strangers.counters(), &strangers.counters().calls);
    page.counter(
        "rollcall_access_verify_calls_total",
        "Calls to the site's verify endpoint, by outcome. All but valid and invalid are failures.",
    )
    .with(&[("outcome", "valid")], calls.valid.get())
    .with(&[("outcome", "invalid")], calls.invalid.get())
    .with(&[("outcome", "timed_out")], calls.timed_out.get())
    .with(&[("outcome", "unreachable")], calls.unreachable.get())
    .with(&[("outcome", "wrong_status")], calls.wrong_status.get())
    .with(&[("outcome", "unreadable")], calls.unreadable.get());
    page.counter(
        "rollcall_access_verify_withheld_total",
        "Calls to the verify endpoint that were not made, by reason: too many in a second, for one address or for all; the endpoint \
         is left alone; too late.",
    )
    .with(&[("reason", "over_pace")], counters.calls_over_pace.get())
    .with(&[("reason", "over_share")], counters.calls_over_share.get())
    .with(&[("reason", "breaker")], counters.calls_held_back.get())
    .with(&[("reason", "overdue")], counters.calls_overdue.get());
    page.counter(
        "rollcall_access_verify_untracked_total",
        "Calls to the verify endpoint for addresses whose share was not counted, because too many addresses were busy.",
    )
    .is(counters.calls_untracked.get());
    // One call that finds out whether the endpoint answers again is no recovery yet.
    page.gauge(
        "rollcall_access_breaker_open",
        "Whether the verify endpoint is left alone after too many failures: 1 until a call succeeds again.",
    )
    .is(counters.breaker_state() != BreakerState::Closed);
    page.counter("rollcall_access_breaker_openings_total", "Times that the verify endpoint was left alone.")
        .is(counters.breaker_openings.get());
}
