//! The site's own HTTP server on the page.

use std::sync::atomic::Ordering;

use access::Sessions;

use super::{Page, Source};
use crate::auth::Callers;
use crate::counters::SiteCounters;
use crate::ranking::Rankings;
use crate::settings::SiteLimits;

impl Source for SiteCounters {
    fn encode(&self, page: &mut Page) {
        let family = page.counter(
            "rollcall_site_requests_total",
            "Requests to the site that were answered, by route and HTTP status.",
        );
        for ((route, status), count) in self.requests.by_route() {
            family.with(&[("route", &route), ("status", &status.to_string())], count);
        }
        page.histogram(
            "rollcall_site_request_seconds",
            "Time that the site took for a request, until its answer could be sent.",
        )
        .measured(&[], &self.requests.durations().snapshot());
        let family = page.counter(
            "rollcall_site_connections_refused_total",
            "Connections to the site that were turned away or cut off, by reason.",
        );
        for (reason, count) in self.connections_refused.all() {
            family.with(&[("reason", reason)], count);
        }
        let family = page.counter(
            "rollcall_site_sign_ins_refused_total",
            "Sign-ins to the dashboard that were refused, by reason.",
        );
        for (reason, count) in self.sign_ins_refused.all() {
            family.with(&[("reason", reason)], count);
        }
        let family = page.counter(
            "rollcall_site_scans_refused_total",
            "Searches that found no place among those under way, by what they wanted to look through.",
        );
        for (scan, count) in self.scans_refused.all() {
            family.with(&[("scan", scan)], count);
        }
        page.gauge("rollcall_site_connections_open", "Connections to the site that are open now.")
            .is(self.connections_open.load(Ordering::Relaxed));
        page.counter("rollcall_site_verified_total", "Verify calls that the site answered, by its answer.")
            .with(&[("answer", "valid")], self.verified_valid.get())
            .with(&[("answer", "invalid")], self.verified_invalid.get());
        for (name, help, counter) in [
            (
                "rollcall_site_connections_total",
                "Connections to the site that were accepted.",
                &self.connections,
            ),
            (
                "rollcall_site_unauthorized_total",
                "Requests to the site without a valid key where one is needed.",
                &self.unauthorized,
            ),
            (
                "rollcall_site_forbidden_total",
                "Requests to the site with a key that may not do what was asked.",
                &self.forbidden,
            ),
            (
                "rollcall_site_csrf_refused_total",
                "Changes of somebody who is signed in that were refused because no page of ours sent them.",
                &self.csrf_refused,
            ),
            ("rollcall_site_sign_ins_total", "Sign-ins to the dashboard.", &self.sign_ins),
            ("rollcall_site_sign_outs_total", "Sign-outs from the dashboard.", &self.sign_outs),
            ("rollcall_site_timeouts_total", "Requests to the site that took too long.", &self.timeouts),
            (
                "rollcall_site_searches_cut_total",
                "Searches that found more torrents than are put in order by how many are on them.",
                &self.searches_cut,
            ),
            (
                "rollcall_site_hit_and_runs_forgotten_total",
                "Counts of people's hit-and-runs that were no longer kept, to make room for others.",
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
        page.gauge(
            "rollcall_site_sessions",
            "Operators' sessions in the database, when it was last looked at.",
        )
        .is(figures.open);
        for (name, help, count) in [
            (
                "rollcall_site_sessions_swept_total",
                "Sessions that were over and have been removed.",
                figures.swept,
            ),
            (
                "rollcall_site_sessions_evicted_total",
                "Sessions that gave way to newer ones of the same key.",
                figures.pushed_out,
            ),
            (
                "rollcall_site_sessions_forgotten_total",
                "Sessions that were no longer kept in memory, to make room for others.",
                figures.forgotten,
            ),
            (
                "rollcall_site_session_failures_total",
                "Times that the database did not say whether there is a session, or did not remove those that are over.",
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
            "Pages of swarms that were asked for when the ranking they belong to was no longer kept.",
        )
        .is(self.expired_cursors.get());
    }
}

impl Source for SiteLimits {
    fn encode(&self, page: &mut Page) {
        page.gauge(
            "rollcall_site_connections_max",
            "Connections to the site that may be open at the same time (site.connections_max).",
        )
        .is(self.connections_max as u64);
    }
}

impl Source for Callers {
    fn encode(&self, page: &mut Page) {
        page.counter(
            "rollcall_site_rate_limited_total",
            "Requests to the site that came too often and were answered with 429, by what they were counted by.",
        )
        .with(&[("by", "key")], self.by_key.refused())
        .with(&[("by", "address")], self.by_address.refused())
        .with(&[("by", "user")], self.by_user.refused())
        .with(&[("by", "wrong_key")], self.wrong_keys.refused());
        page.counter(
            "rollcall_site_callers_forgotten_total",
            "Callers whose requests were no longer counted, to make room for others.",
        )
        .with(&[("by", "key")], self.by_key.forgotten())
        .with(&[("by", "address")], self.by_address.forgotten())
        .with(&[("by", "user")], self.by_user.forgotten())
        .with(&[("by", "wrong_key")], self.wrong_keys.forgotten());
    }
}
