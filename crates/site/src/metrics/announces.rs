//! The tracker on the page.

use std::sync::Arc;

use tracker::Tracker;

use super::{Page, Source};

/// What the tracker counts and holds.
pub(super) struct TrackerFigures(pub(super) Arc<Tracker>);

impl Source for TrackerFigures {
    fn encode(&self, page: &mut Page) {
        self.announces(page);
        self.answers(page);
        self.swarms(page);
        self.connections(page);
        self.tables(page);
    }
}

impl TrackerFigures {
    fn announces(&self, page: &mut Page) {
        let counters = self.0.counters();
        let family = page.counter(
            "rollcall_tracker_announces_total",
            "Announces that were accepted, by the wire they came over and the event they named.",
        );
        for (wire, announces) in [("http", &counters.announces_http), ("udp", &counters.announces_udp)] {
            for (event, count) in announces.all() {
                family.with(&[("wire", wire), ("event", event.name())], count);
            }
        }
        let family = page.counter(
            "rollcall_tracker_refused_total",
            "Requests, packets and connections that were refused, by reason. A reason appears with its first refusal.",
        );
        for (reason, count) in counters.refused.all() {
            family.with(&[("reason", reason)], count);
        }
        page.counter(
            "rollcall_tracker_packets_set_aside_total",
            "UDP packets with a passkey that somebody had to be asked about: those that waited for the answer, and those \
             that were dropped because too many waited or nobody could be asked.",
        )
        .with(&[("outcome", "waited")], counters.packets_set_aside.get())
        .with(&[("outcome", "dropped")], counters.packets_not_set_aside.get());
        for (name, help, count) in [
            (
                "rollcall_tracker_scrapes_total",
                "Torrents that clients asked the counts of, over any wire.",
                &counters.scrapes,
            ),
            (
                "rollcall_tracker_too_soon_total",
                "Announces that came before the minimum interval was over. They are credited, but given no peers.",
                &counters.too_soon,
            ),
            (
                "rollcall_tracker_lists_withheld_total",
                "Announces that were given no peers because their user had used up the lists for new peers on the torrent.",
                &counters.lists_withheld,
            ),
            (
                "rollcall_tracker_upload_without_leechers_total",
                "Announces that claimed upload although no other user leeched the torrent since their last one.",
                &counters.upload_without_leechers,
            ),
            (
                "rollcall_tracker_stops_unwritten_total",
                "Announces with stopped of unknown peers, of users over a limit: answered, but not written to the journal.",
                &counters.stops_unrecorded,
            ),
            (
                "rollcall_tracker_implausible_total",
                "Announces that claimed more bytes than the configured rate allows; the excess is not credited.",
                &counters.implausible,
            ),
            (
                "rollcall_tracker_uploaded_bytes_total",
                "Bytes that clients uploaded, as credited by the tracker.",
                &counters.uploaded_bytes,
            ),
            (
                "rollcall_tracker_downloaded_bytes_total",
                "Bytes that clients downloaded, as credited by the tracker.",
                &counters.downloaded_bytes,
            ),
        ] {
            page.counter(name, help).is(count.get());
        }
    }

    fn answers(&self, page: &mut Page) {
        let counters = self.0.counters();
        page.histogram(
            "rollcall_tracker_answer_seconds",
            "Time from a request that has arrived whole to an answer that can be sent, without any wait for the journal.",
        )
        .measured(&[("wire", "http")], &counters.answers_http.snapshot())
        .measured(&[("wire", "udp")], &counters.answers_udp.snapshot());
        page.histogram(
            "rollcall_tracker_journal_wait_seconds",
            "Time that announces waited until the journal had stored them, of those that are answered only then.",
        )
        .measured(&[], &counters.journal_waits.snapshot());
    }

    fn swarms(&self, page: &mut Page) {
        let (totals, counters) = (self.0.swarms().totals(), self.0.counters());
        page.gauge("rollcall_swarm_torrents", "Torrents that have, or had, peers since the start.")
            .is(totals.swarms);
        page.gauge("rollcall_swarm_peers", "Peers in all swarms, by whether they have the whole torrent.")
            .with(&[("state", "seeding")], totals.seeders)
            .with(&[("state", "leeching")], totals.leechers());
        page.counter("rollcall_swarm_expired_total", "Peers that were taken out because they fell silent.")
            .is(counters.peers_expired.get());
        page.counter(
            "rollcall_swarm_evicted_total",
            "Peers that were taken out because the site no longer lets their user, torrent or client in.",
        )
        .is(counters.peers_evicted.get());
        page.gauge(
            "rollcall_swarm_evictions_pending",
            "Orders to take out a user, a torrent or forbidden clients that have yet to be carried out.",
        )
        .is(self.0.evictions_pending());
    }

    fn connections(&self, page: &mut Page) {
        let (counters, connections) = (self.0.counters(), self.0.connections());
        page.counter("rollcall_tracker_connections_total", "HTTP and HTTPS connections that were accepted.")
            .is(counters.connections.get());
        page.gauge("rollcall_tracker_connections_open", "HTTP and HTTPS connections that are open now.")
            .is(connections.count());
        page.gauge(
            "rollcall_tracker_connections_max",
            "HTTP and HTTPS connections that may be open at the same time (limits.connections_max).",
        )
        .is(self.0.live().limits.connections_max);
        page.gauge(
            "rollcall_tracker_connection_addresses",
            "Addresses (of IPv6: networks) that have HTTP connections open now.",
        )
        .is(connections.address_count());
        page.counter("rollcall_tracker_packets_total", "UDP packets that were received.")
            .is(counters.packets.get());
        page.counter(
            "rollcall_tracker_replies_unsent_total",
            "UDP replies that the system would not take; their clients ask again.",
        )
        .is(counters.replies_unsent.get());
        page.counter(
            "rollcall_tracker_errors_untold_total",
            "UDP errors that were not told again to a client that repeats its packet at once.",
        )
        .is(counters.errors_suppressed.get());
    }

    fn tables(&self, page: &mut Page) {
        let (flood, recent) = (self.0.flood_limiter(), self.0.recent_addresses());
        let (shared, users) = (self.0.shared_addresses(), self.0.user_limiter());
        let family = page.gauge(
            "rollcall_tracker_table_addresses_max",
            "Addresses that a table of fixed size has room for: of busy ones (flood), of those that announced lately \
             (recent), of those that several users announce from (shared).",
        );
        family
            .with(&[("table", "flood")], flood.capacity())
            .with(&[("table", "recent")], recent.capacity())
            .with(&[("table", "shared")], shared.capacity());
        page.gauge(
            "rollcall_tracker_table_users_max",
            "Users that the table of busy users has room for (limits.announces_per_user_per_s).",
        )
        .is(users.capacity());
        let family = page.counter(
            "rollcall_tracker_table_displaced_total",
            "Addresses, users (users) or users with new peers on a torrent (joins) that a table of fixed size forgot, \
             while they still counted, to make room for others.",
        );
        family
            .with(&[("table", "flood")], flood.displaced())
            .with(&[("table", "recent")], recent.displaced())
            .with(&[("table", "shared")], shared.displaced())
            .with(&[("table", "users")], users.displaced())
            .with(&[("table", "joins")], self.0.swarms().join_budgets_displaced());
        let throttle = self.0.risk_throttle();
        page.gauge(
            "rollcall_risk_users_remembered",
            "Users who were reported as risks within the last minute.",
        )
        .is(throttle.remembered());
        page.gauge("rollcall_risk_users_remembered_max", "Users for whom there is room in that memory.")
            .is(journal::risk::USERS_MAX);
        page.counter(
            "rollcall_risk_unreported_total",
            "Risks that were counted but not reported, because their user had been reported within the minute before.",
        )
        .is(throttle.unreported());
        page.counter(
            "rollcall_risk_unremembered_total",
            "Risks of users for whom there was no room in the memory of those reported.",
        )
        .is(throttle.unremembered());
    }
}
