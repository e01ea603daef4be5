//! What is counted: plain numbers that only grow, ready for a metrics page.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use domain::Counter;
use domain::{AnnounceEvent, Histogram};
use parking_lot::RwLock;
use tracing::info;

use crate::replication::ReplicationCounters;

/// Everything the tracker counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// Announces accepted over HTTP and HTTPS.
    pub announces_http: ByEvent,
    /// Announces accepted over UDP.
    pub announces_udp: ByEvent,
    /// Torrents scraped, over any wire.
    pub scrapes: Counter,
    /// Announces that came sooner than they may.
    pub too_soon: Counter,
    /// Announces that got no peers because their user had used up the lists for new peers.
    pub lists_withheld: Counter,
    /// Announces that claimed upload although no other user leeched.
    pub upload_without_leechers: Counter,
    /// A `stopped` of an unknown peer, of a user over a limit: answered, but not written to the journal.
    pub stops_unwritten: Counter,
    /// Announces that claimed more than can be believed.
    pub implausible: Counter,
    /// Peers that fell silent.
    pub peers_expired: Counter,
    /// Peers that had to leave because the site no longer lets them in.
    pub peers_evicted: Counter,
    /// Bytes that clients uploaded, as credited.
    pub uploaded_bytes: Counter,
    /// Bytes that clients downloaded, as credited.
    pub downloaded_bytes: Counter,
    /// HTTP connections accepted.
    pub connections: Counter,
    /// UDP packets received.
    pub packets: Counter,
    /// UDP replies that the system would not take.
    pub replies_unsent: Counter,
    /// UDP errors that were not told again to a client that repeats its packet at once.
    pub errors_untold: Counter,
    /// UDP packets that waited until somebody was asked about their passkey.
    pub packets_set_aside: Counter,
    /// UDP packets that could not, because too many did, or nobody could be asked. Clients ask again.
    pub packets_not_set_aside: Counter,
    /// What was refused, by reason.
    pub refused: Refused,
    /// What was heard from other nodes.
    pub replication: ReplicationCounters,
    /// How long answers over HTTP and HTTPS took: from a whole head to an answer that can be sent, without any wait
    /// for the journal.
    pub answers_http: Histogram,
    /// How long answers over UDP took, likewise; those to `connect` are not measured.
    pub answers_udp: Histogram,
    /// How long announces waited until they were stored, where the answer may be sent only then. Shared with those
    /// who store.
    pub journal_waits: Arc<Histogram>,
}

/// Announces, by the event they name.
#[derive(Debug, Default)]
pub struct ByEvent([Counter; 4]);

impl ByEvent {
    /// The events, in the order of the counters.
    const EVENTS: [AnnounceEvent; 4] =
        [AnnounceEvent::None, AnnounceEvent::Started, AnnounceEvent::Completed, AnnounceEvent::Stopped];

    /// Counts one.
    pub fn count(&self, event: AnnounceEvent) {
        let place = match event {
            AnnounceEvent::None => 0,
            AnnounceEvent::Started => 1,
            AnnounceEvent::Completed => 2,
            AnnounceEvent::Stopped => 3,
        };
        self.0[place].increment();
    }

    /// All of them together.
    pub fn get(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }

    /// Every event, with its count.
    pub fn all(&self) -> impl Iterator<Item = (AnnounceEvent, u64)> + '_ {
        ByEvent::EVENTS.into_iter().zip(self.0.iter().map(Counter::get))
    }
}

/// Counts by reason. Reasons are few and fixed, so the map does not grow.
#[derive(Debug, Default)]
pub struct Refused(RwLock<BTreeMap<&'static str, Counter>>);

impl Refused {
    /// Counts one refusal.
    pub fn count(&self, reason: &'static str) {
        if let Some(counter) = self.0.read().get(reason) {
            counter.increment();
            return;
        }
        // Told once, because a new operator whose clients are all refused would otherwise see nothing for minutes.
        info!(reason, "refused for the first time since start; from now on only counted");
        self.0.write().entry(reason).or_default().increment();
    }

    /// How often something was refused for this reason.
    pub fn get(&self, reason: &str) -> u64 {
        self.0.read().get(reason).map_or(0, Counter::get)
    }

    /// All refusals.
    pub fn total(&self) -> u64 {
        self.0.read().values().map(Counter::get).sum()
    }

    /// Every reason so far, with its count.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        self.0.read().iter().map(|(reason, counter)| (*reason, counter.get())).collect()
    }
}

impl Counters {
    /// Announces accepted over any wire.
    pub fn announces(&self) -> u64 {
        self.announces_http.get() + self.announces_udp.get()
    }
}
