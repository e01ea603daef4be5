//! Counters of the tracker, monotonic, for the metrics page.

use std::sync::Arc;

use domain::{AnnounceEvent, Counter, Histogram};
use net::Refused;

use crate::replication::ReplicationCounters;

#[derive(Debug, Default)]
pub struct Counters {
    /// Announces accepted over HTTP and HTTPS.
    pub announces_http: ByEvent,
    /// Announces accepted over UDP.
    pub announces_udp: ByEvent,
    /// Torrents scraped, over any protocol.
    pub scrapes: Counter,
    /// Announces before `min interval` had passed.
    pub too_soon: Counter,
    /// Announces without peers because the user's budget of early peer lists was used up.
    pub lists_withheld: Counter,
    /// Announces that claimed upload although no other user leeched.
    pub upload_without_leechers: Counter,
    /// `stopped` of an unknown peer, from a user over a limit: answered, but not recorded.
    pub stops_unrecorded: Counter,
    /// Announces with an implausible claim.
    pub implausible: Counter,
    pub peers_expired: Counter,
    pub peers_evicted: Counter,
    /// As credited.
    pub uploaded_bytes: Counter,
    /// As credited.
    pub downloaded_bytes: Counter,
    pub connections: Counter,
    pub packets: Counter,
    /// UDP replies that `sendmmsg` rejected.
    pub replies_unsent: Counter,
    /// UDP error replies not sent to a client that repeats the refused packet immediately.
    pub errors_suppressed: Counter,
    /// UDP packets that waited for the verification of their passkey.
    pub packets_set_aside: Counter,
    /// UDP packets dropped because too many waited, or no verification was possible. Clients retry.
    pub packets_not_set_aside: Counter,
    pub refused: Refused,
    pub replication: ReplicationCounters,
    /// From a complete request head to a reply that can be sent, without the wait for the journal.
    pub answers_http: Histogram,
    /// Likewise; `connect` is not measured.
    pub answers_udp: Histogram,
    /// Time until the event was stored, for replies that wait for it. Shared with the flusher.
    pub journal_waits: Arc<Histogram>,
}

#[derive(Debug, Default)]
pub struct ByEvent([Counter; 4]);

impl ByEvent {
    /// In the order of the counters.
    const EVENTS: [AnnounceEvent; 4] =
        [AnnounceEvent::None, AnnounceEvent::Started, AnnounceEvent::Completed, AnnounceEvent::Stopped];

    pub fn count(&self, event: AnnounceEvent) {
        let index = match event {
            AnnounceEvent::None => 0,
            AnnounceEvent::Started => 1,
            AnnounceEvent::Completed => 2,
            AnnounceEvent::Stopped => 3,
        };
        self.0[index].increment();
    }

    pub fn get(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }

    pub fn all(&self) -> impl Iterator<Item = (AnnounceEvent, u64)> + '_ {
        ByEvent::EVENTS.into_iter().zip(self.0.iter().map(Counter::get))
    }
}

impl Counters {
    pub fn announces(&self) -> u64 {
        self.announces_http.get() + self.announces_udp.get()
    }
}
