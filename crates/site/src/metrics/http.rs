//! Metrics of the site's HTTP server.

use admin::Sessions;

use super::page::metrics;
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
        metrics! { page =>
            histogram "rollcall_site_request_seconds" measures(&self.requests.durations().snapshot()),
                "Duration of a request to the site.";
            counter "rollcall_site_connections_refused_total" by "reason" of(self.connections_refused.all()),
                "Connections to the site that were refused or closed, by reason.";
            counter "rollcall_site_sign_ins_refused_total" by "reason" of(self.sign_ins_refused.all()),
                "Refused sign-ins to the dashboard, by reason.";
            counter "rollcall_site_scans_refused_total" by "scan" of(self.scans_refused.all()),
                "Scans refused because too many were running, by kind.";
            gauge "rollcall_site_connections_open" = &self.connections_open, "Open connections to the site.";
            counter "rollcall_site_verify_calls_total" by "answer" {
                "valid" => &self.verified_valid, "invalid" => &self.verified_invalid,
            }, "Verify calls to the site, by answer.";
            counter "rollcall_site_connections_total" = &self.connections, "Accepted connections to the site.";
            counter "rollcall_site_unauthorized_total" = &self.unauthorized, "Requests without a valid key.";
            counter "rollcall_site_forbidden_total" = &self.forbidden, "Requests with a key that lacks the scope.";
            counter "rollcall_site_csrf_refused_total" = &self.csrf_refused,
                "Changes refused because of a missing or wrong CSRF token.";
            counter "rollcall_site_sign_ins_total" = &self.sign_ins, "Sign-ins to the dashboard.";
            counter "rollcall_site_sign_outs_total" = &self.sign_outs, "Sign-outs from the dashboard.";
            counter "rollcall_site_timeouts_total" = &self.timeouts, "Requests that timed out.";
            counter "rollcall_site_searches_truncated_total" = &self.searches_cut,
                "Searches with more results than are sorted in memory.";
            counter "rollcall_site_hit_and_run_cache_evictions_total" = &self.hit_and_runs_forgotten,
                "Cached hit-and-run counts evicted to make room.";
        }
    }
}

impl Source for Sessions {
    fn encode(&self, page: &mut Page) {
        let figures = self.figures();
        metrics! { page =>
            gauge "rollcall_site_sessions" = figures.open, "Operator sessions in the database, at the last sweep.";
            counter "rollcall_site_sessions_swept_total" = figures.swept, "Expired sessions that were removed.";
            counter "rollcall_site_sessions_evicted_total" = figures.pushed_out,
                "Sessions replaced by newer ones of the same key.";
            counter "rollcall_site_session_cache_evictions_total" = figures.forgotten,
                "Sessions evicted from memory to make room.";
            counter "rollcall_site_session_failures_total" = figures.failures,
                "Failed lookups and sweeps of sessions.";
        }
    }
}

impl Source for Rankings {
    fn encode(&self, page: &mut Page) {
        metrics! { page =>
            counter "rollcall_site_ranking_cursors_expired_total" = &self.expired_cursors,
                "Cursors of swarm pages whose ranking had expired.";
        }
    }
}

impl Source for SiteLimits {
    fn encode(&self, page: &mut Page) {
        metrics! { page =>
            gauge "rollcall_site_connections_max" = self.connections_max as u64,
                "Maximum number of open connections (site.connections_max).";
        }
    }
}

impl Source for Callers {
    fn encode(&self, page: &mut Page) {
        metrics! { page =>
            counter "rollcall_site_rate_limited_total" by "by" {
                "key" => self.by_key.refused(), "address" => self.by_address.refused(),
                "user" => self.by_user.refused(), "wrong_key" => self.wrong_keys.refused(),
            }, "Requests refused with 429, by limit.";
            counter "rollcall_site_rate_limit_evictions_total" by "by" {
                "key" => self.by_key.displaced(), "address" => self.by_address.displaced(),
                "user" => self.by_user.displaced(), "wrong_key" => self.wrong_keys.displaced(),
            }, "Rate limit entries evicted to make room, by limit.";
        }
    }
}
