//! Metrics of the site's HTTP server.

use std::sync::atomic::Ordering;

use admin::Sessions;

use super::{Page, Source};
use crate::auth::Callers;
use crate::counters::SiteCounters;
use crate::ranking::Rankings;
use crate::settings::SiteLimits;

impl Source for SiteCounters {
    fn encode(&self, page: &mut Page) {
        let family =
            page.counter("rollcall_site_requests_total", "Requests to the site, by route and HTTP status.");
        for ((route, status), count) in self.requests.by_route() {
            family.with(&[("route", &route), ("status", &status.to_string())], count);
        }
        page.histogram("rollcall_site_request_seconds", "Duration of a request to the site.")
            .measured(&[], &self.requests.durations().snapshot());
        let family = page.counter(
            "rollcall_site_connections_refused_total",
            "Connections to the site that were refused or closed, by reason.",
        );
        for (reason, count) in self.connections_refused.all() {
            family.with(&[("reason", reason)], count);
        }
        let family = page
            .counter("rollcall_site_sign_ins_refused_total", "Refused sign-ins to the dashboard, by reason.");
        for (reason, count) in self.sign_ins_refused.all() {
            family.with(&[("reason", reason)], count);
        }
        let family = page.counter(
            "rollcall_site_scans_refused_total",
            "Scans refused because too many were running, by kind.",
        );
        for (scan, count) in self.scans_refused.all() {
            family.with(&[("scan", scan)], count);
        }
        page.gauge("rollcall_site_connections_open", "Open connections to the site.")
            .is(self.connections_open.load(Ordering::Relaxed));
        page.counter("rollcall_site_verify_calls_total", "Verify calls to the site, by answer.")
            .with(&[("answer", "valid")], self.verified_valid.get())
            .with(&[("answer", "invalid")], self.verified_invalid.get());
        for (name, help, counter) in [
            ("rollcall_site_connections_total", "Accepted connections to the site.", &self.connections),
            ("rollcall_site_unauthorized_total", "Requests without a valid key.", &self.unauthorized),
            ("rollcall_site_forbidden_total", "Requests with a key that lacks the scope.", &self.forbidden),
            (
                "rollcall_site_csrf_refused_total",
                "Changes refused because of a missing or wrong CSRF token.",
                &self.csrf_refused,
            ),
            ("rollcall_site_sign_ins_total", "Sign-ins to the dashboard.", &self.sign_ins),
            ("rollcall_site_sign_outs_total", "Sign-outs from the dashboard.", &self.sign_outs),
            ("rollcall_site_timeouts_total", "Requests that timed out.", &self.timeouts),
            (
                "rollcall_site_searches_truncated_total",
                "Searches with more results than are sorted in memory.",
                &self.searches_cut,
            ),
            (
                "rollcall_site_hit_and_run_cache_evictions_total",
                "Cached hit-and-run counts evicted to make room.",
                &self.hit_and_runs_forgotten,
            ),
        ] {
            page.counter(name, help).is(counter.get());
        }
    }
}

impl Source for Sessions {
    fn encode(&self, page: &mut Page) {
        let figures = self.figures();
        page.gauge("rollcall_site_sessions", "Operator sessions in the database, at the last sweep.")
            .is(figures.open);
        for (name, help, count) in [
            ("rollcall_site_sessions_swept_total", "Expired sessions that were removed.", figures.swept),
            (
                "rollcall_site_sessions_evicted_total",
                "Sessions replaced by newer ones of the same key.",
                figures.pushed_out,
            ),
            (
                "rollcall_site_session_cache_evictions_total",
                "Sessions evicted from memory to make room.",
                figures.forgotten,
            ),
            (
                "rollcall_site_session_failures_total",
                "Failed lookups and sweeps of sessions.",
                figures.failures,
            ),
        ] {
            page.counter(name, help).is(count);
        }
    }
}

impl Source for Rankings {
    fn encode(&self, page: &mut Page) {
        page.counter(
            "rollcall_site_ranking_cursors_expired_total",
            "Cursors of swarm pages whose ranking had expired.",
        )
        .is(self.expired_cursors.get());
    }
}

impl Source for SiteLimits {
    fn encode(&self, page: &mut Page) {
        page.gauge(
            "rollcall_site_connections_max",
            "Maximum number of open connections (site.connections_max).",
        )
        .is(self.connections_max as u64);
    }
}

impl Source for Callers {
    fn encode(&self, page: &mut Page) {
        page.counter("rollcall_site_rate_limited_total", "Requests refused with 429, by limit.")
            .with(&[("by", "key")], self.by_key.refused())
            .with(&[("by", "address")], self.by_address.refused())
            .with(&[("by", "user")], self.by_user.refused())
            .with(&[("by", "wrong_key")], self.wrong_keys.refused());
        page.counter(
            "rollcall_site_rate_limit_evictions_total",
            "Rate limit entries evicted to make room, by limit.",
        )
        .with(&[("by", "key")], self.by_key.displaced())
        .with(&[("by", "address")], self.by_address.displaced())
        .with(&[("by", "user")], self.by_user.displaced())
        .with(&[("by", "wrong_key")], self.wrong_keys.displaced());
    }
}
