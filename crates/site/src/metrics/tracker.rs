//! Metrics of the tracker.

use std::sync::Arc;

use tracker::Tracker;

use super::page::metrics;
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
        metrics! { page =>
            counter "rollcall_tracker_refused_total" by "reason" of(counters.refused.all()),
                "Refused requests, packets and connections, by reason. A reason appears with its first refusal.";
            counter "rollcall_tracker_packets_deferred_total" by "outcome" {
                "waited" => &counters.packets_set_aside, "dropped" => &counters.packets_not_set_aside,
            },
                "UDP packets with an unverified passkey: deferred until the answer, or dropped because too many \
                 waited or no verifier is configured.";
            counter "rollcall_tracker_scrapes_total" = &counters.scrapes, "Scraped torrents.";
            counter "rollcall_tracker_too_soon_total" = &counters.too_soon,
                "Announces before the minimum interval. They are credited, but get no peers.";
            counter "rollcall_tracker_peer_lists_withheld_total" = &counters.lists_withheld,
                "Announces without peers, because the user exceeded the number of peer lists for new peers on the \
                 torrent.";
            counter "rollcall_tracker_upload_without_leechers_total" = &counters.upload_without_leechers,
                "Announces with upload although no other user leeched the torrent since the previous one.";
            counter "rollcall_tracker_stops_not_journaled_total" = &counters.stops_unrecorded,
                "Stopped announces of unknown peers by users over a limit: answered, but not written to the journal.";
            counter "rollcall_tracker_implausible_total" = &counters.implausible,
                "Announces above the rate ceiling; the excess is not credited.";
            counter "rollcall_tracker_uploaded_bytes_total" = &counters.uploaded_bytes, "Raw bytes uploaded.";
            counter "rollcall_tracker_downloaded_bytes_total" = &counters.downloaded_bytes, "Raw bytes downloaded.";
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
        metrics! { page =>
            histogram "rollcall_tracker_journal_wait_seconds" measures(&counters.journal_waits.snapshot()),
                "Time that replies waited for the journal, where they wait for it.";
        }
    }

    fn swarms(&self, page: &mut Page) {
        let (totals, counters) = (self.0.swarms().totals(), self.0.counters());
        metrics! { page =>
            gauge "rollcall_swarm_torrents" = totals.swarms, "Torrents with peers since the start.";
            gauge "rollcall_swarm_peers" by "state" { "seeding" => totals.seeders, "leeching" => totals.leechers() },
                "Peers in all swarms, by state.";
            counter "rollcall_swarm_expired_total" = &counters.peers_expired, "Expired peers.";
            counter "rollcall_swarm_evicted_total" = &counters.peers_evicted,
                "Peers evicted because their user, torrent or client is no longer admitted.";
            gauge "rollcall_swarm_evictions_pending" = self.0.evictions_pending(), "Pending eviction orders.";
        }
    }

    fn connections(&self, page: &mut Page) {
        let (counters, connections) = (self.0.counters(), self.0.connections());
        metrics! { page =>
            counter "rollcall_tracker_connections_total" = &counters.connections,
                "Accepted HTTP and HTTPS connections.";
            gauge "rollcall_tracker_connections_open" = connections.count(), "Open HTTP and HTTPS connections.";
            gauge "rollcall_tracker_connections_max" = self.0.live().limits.connections_max,
                "Maximum number of HTTP and HTTPS connections (limits.connections_max).";
            gauge "rollcall_tracker_connection_addresses" = connections.address_count(),
                "Addresses (IPv6: networks) with open HTTP connections.";
            counter "rollcall_tracker_packets_total" = &counters.packets, "Received UDP packets.";
            counter "rollcall_tracker_replies_unsent_total" = &counters.replies_unsent,
                "UDP replies that could not be sent; clients retry.";
            counter "rollcall_tracker_errors_suppressed_total" = &counters.errors_suppressed,
                "UDP error replies suppressed because the client repeats its packet immediately.";
        }
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
        metrics! { page =>
            gauge "rollcall_tracker_table_users_max" = users.capacity(),
                "Capacity of the rate limit table in users (limits.announces_per_user_per_s).";
        }
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
        metrics! { page =>
            gauge "rollcall_risk_users_tracked" = throttle.tracked(),
                "Users with a risk event within the last minute.";
            gauge "rollcall_risk_users_tracked_max" = journal::risk::USERS_MAX, "Maximum number of such users.";
            counter "rollcall_risk_unreported_total" = throttle.unreported(),
                "Risk events suppressed because their user had one within the last minute.";
            counter "rollcall_risk_untracked_total" = throttle.untracked(),
                "Risk events of users that could not be tracked, because the table was full.";
        }
    }
}
