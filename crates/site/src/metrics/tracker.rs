//! Metrics of the tracker.

use std::sync::Arc;

use tracker::Tracker;

use super::{Page, Source};

pub(super) struct TrackerMetrics(pub(super) Arc<Tracker>);

impl Source for TrackerMetrics {
    fn encode(&self, page: &mut Page) {
        self.announces(page);
        self.answers(page);
        self.swarms(page);
        self.connections(page);
        self.tables(page);
    }
}

impl TrackerMetrics {
    fn announces(&self, page: &mut Page) {
        let counters = self.0.counters();
        let family =
            page.counter("rollcall_tracker_announces_total", "Accepted announces, by protocol and event.");
        for (wire, announces) in [("http", &counters.announces_http), ("udp", &counters.announces_udp)] {
            for (event, count) in announces.all() {
                family.with(&[("wire", wire), ("event", event.name())], count);
            }
        }
        let family = page.counter(
            "rollcall_tracker_refused_total",
            "Refused requests, packets and connections, by reason. A reason appears with its first refusal.",
        );
        for (reason, count) in counters.refused.all() {
            family.with(&[("reason", reason)], count);
        }
        page.counter(
            "rollcall_tracker_packets_deferred_total",
            "UDP packets with an unverified passkey: deferred until the answer, or dropped \
             because too many waited or no verifier is configured.",
        )
        .with(&[("outcome", "waited")], counters.packets_set_aside.get())
        .with(&[("outcome", "dropped")], counters.packets_not_set_aside.get());
        for (name, help, count) in [
            ("rollcall_tracker_scrapes_total", "Scraped torrents.", &counters.scrapes),
            (
                "rollcall_tracker_too_soon_total",
                "Announces before the minimum interval. They are credited, but get no peers.",
                &counters.too_soon,
            ),
            (
                "rollcall_tracker_peer_lists_withheld_total",
                "Announces without peers, because the user exceeded the number of peer lists for new peers on the torrent.",
                &counters.lists_withheld,
            ),
            (
                "rollcall_tracker_upload_without_leechers_total",
                "Announces with upload although no other user leeched the torrent since the previous one.",
                &counters.upload_without_leechers,
            ),
            (
                "rollcall_tracker_stops_not_journaled_total",
                "Stopped announces of unknown peers by users over a limit: answered, but not written to the journal.",
                &counters.stops_unrecorded,
            ),
            (
                "rollcall_tracker_implausible_total",
                "Announces above the rate ceiling; the excess is not credited.",
                &counters.implausible,
            ),
            ("rollcall_tracker_uploaded_bytes_total", "Raw bytes uploaded.", &counters.uploaded_bytes),
            ("rollcall_tracker_downloaded_bytes_total", "Raw bytes downloaded.", &counters.downloaded_bytes),
        ] {
            page.counter(name, help).is(count.get());
        }
    }

    fn answers(&self, page: &mut Page) {
        let counters = self.0.counters();
        page.histogram(
            "rollcall_tracker_answer_seconds",
            "Time from a complete request to its reply, without waiting for the journal.",
        )
        .measured(&[("wire", "http")], &counters.answers_http.snapshot())
        .measured(&[("wire", "udp")], &counters.answers_udp.snapshot());
        page.histogram(
            "rollcall_tracker_journal_wait_seconds",
            "Time that replies waited for the journal, where they wait for it.",
        )
        .measured(&[], &counters.journal_waits.snapshot());
    }

    fn swarms(&self, page: &mut Page) {
        let (totals, counters) = (self.0.swarms().totals(), self.0.counters());
        page.gauge("rollcall_swarm_torrents", "Torrents with peers since the start.").is(totals.swarms);
        page.gauge("rollcall_swarm_peers", "Peers in all swarms, by state.")
            .with(&[("state", "seeding")], totals.seeders)
            .with(&[("state", "leeching")], totals.leechers());
        page.counter("rollcall_swarm_expired_total", "Expired peers.").is(counters.peers_expired.get());
        page.counter(
            "rollcall_swarm_evicted_total",
            "Peers evicted because their user, torrent or client is no longer admitted.",
        )
        .is(counters.peers_evicted.get());
        page.gauge("rollcall_swarm_evictions_pending", "Pending eviction orders.")
            .is(self.0.evictions_pending());
    }

    fn connections(&self, page: &mut Page) {
        let (counters, connections) = (self.0.counters(), self.0.connections());
        page.counter("rollcall_tracker_connections_total", "Accepted HTTP and HTTPS connections.")
            .is(counters.connections.get());
        page.gauge("rollcall_tracker_connections_open", "Open HTTP and HTTPS connections.")
            .is(connections.count());
        page.gauge(
            "rollcall_tracker_connections_max",
            "Maximum number of HTTP and HTTPS connections (limits.connections_max).",
        )
        .is(self.0.live().limits.connections_max);
        page.gauge(
            "rollcall_tracker_connection_addresses",
            "Addresses (IPv6: networks) with open HTTP connections.",
        )
        .is(connections.address_count());
        page.counter("rollcall_tracker_packets_total", "Received UDP packets.").is(counters.packets.get());
        page.counter(
            "rollcall_tracker_replies_unsent_total",
            "UDP replies that could not be sent; clients retry.",
        )
        .is(counters.replies_unsent.get());
        page.counter(
            "rollcall_tracker_errors_suppressed_total",
            "UDP error replies suppressed because the client repeats its packet immediately.",
        )
        .is(counters.errors_suppressed.get());
    }

    fn tables(&self, page: &mut Page) {
        let (flood, recent) = (self.0.flood_limiter(), self.0.recent_addresses());
        let (shared, users) = (self.0.shared_addresses(), self.0.user_limiter());
        let family = page.gauge(
            "rollcall_tracker_table_addresses_max",
            "Capacity of a table in addresses: rate limit (flood), recent announces \
             (recent), addresses shared by users (shared).",
        );
        family
            .with(&[("table", "flood")], flood.capacity())
            .with(&[("table", "recent")], recent.capacity())
            .with(&[("table", "shared")], shared.capacity());
        page.gauge(
            "rollcall_tracker_table_users_max",
            "Capacity of the rate limit table in users (limits.announces_per_user_per_s).",
        )
        .is(users.capacity());
        let family = page.counter(
            "rollcall_tracker_table_displaced_total",
            "Active addresses, users (users) or users with new peers on a torrent (joins) evicted from a full table, \
             by table.",
        );
        family
            .with(&[("table", "flood")], flood.displaced())
            .with(&[("table", "recent")], recent.displaced())
            .with(&[("table", "shared")], shared.displaced())
            .with(&[("table", "users")], users.displaced())
            .with(&[("table", "joins")], self.0.swarms().join_budgets_displaced());
        let throttle = self.0.risk_throttle();
        page.gauge("rollcall_risk_users_tracked", "Users with a risk event within the last minute.")
            .is(throttle.tracked());
        page.gauge("rollcall_risk_users_tracked_max", "Maximum number of such users.")
            .is(journal::risk::USERS_MAX);
        page.counter(
            "rollcall_risk_unreported_total",
            "Risk events suppressed because their user had one within the last minute.",
        )
        .is(throttle.unreported());
        page.counter(
            "rollcall_risk_untracked_total",
            "Risk events of users that could not be tracked, because the table was full.",
        )
        .is(throttle.untracked());
    }
}
