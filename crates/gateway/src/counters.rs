//! What the gateway counts: plain numbers beside what they measure, ready for a metrics page.
//!
//! # Guarantees
//!
//! - Every bound of the gateway has a number that grows when it is met.
//! - What is told apart comes from lists that are fixed here, all of them shown from the start, at zero.
//!
//! # Deliberately absent
//!
//! Anything by person, device, room or address.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use domain::{Counter, Histogram, Level};
use people::FollowCounters;

/// One of a few things that are counted apart.
pub trait Kind: Copy + PartialEq + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// Its name on a metrics page.
    fn name(self) -> &'static str;
}

/// Counts by kind.
#[derive(Debug)]
pub struct ByKind<K> {
    counts: Box<[Counter]>,
    kind: PhantomData<fn(K)>,
}

impl<K: Kind> Default for ByKind<K> {
    fn default() -> Self {
        ByKind { counts: K::ALL.iter().map(|_| Counter::default()).collect(), kind: PhantomData }
    }
}

impl<K: Kind> ByKind<K> {
    /// Counts one.
    pub fn count(&self, kind: K) {
        if let Some(counter) = self.counter(kind) {
            counter.increment();
        }
    }

    /// The count so far of one kind.
    pub fn get(&self, kind: K) -> u64 {
        self.counter(kind).map_or(0, Counter::get)
    }

    /// Every kind with its count.
    pub fn all(&self) -> impl Iterator<Item = (K, u64)> + '_ {
        K::ALL.iter().copied().zip(self.counts.iter().map(Counter::get))
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(Counter::get).sum()
    }

    fn counter(&self, kind: K) -> Option<&Counter> {
        let place = K::ALL.iter().position(|known| *known == kind)?;
        self.counts.get(place)
    }
}

/// Names for the kinds of an enumeration.
macro_rules! kinds {
    ($(#[$about:meta])* $kind:ident { $($(#[$one:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind { $($(#[$one])* $variant,)+ }

        impl Kind for $kind {
            const ALL: &'static [Self] = &[$($kind::$variant),+];

            fn name(self) -> &'static str {
                match self { $($kind::$variant => $name),+ }
            }
        }
    };
}

kinds! {
    /// Why a request for a WebSocket got none.
    DoorRefusal {
        /// Not a WebSocket of version 13.
        NotAWebSocket = "not_a_websocket",
        /// A page that may not connect (gateway.allowed_origins).
        Origin = "origin",
        /// As many connections as may be (gateway.connections_max).
        Full = "full",
        /// As many from this address as may be (gateway.connections_per_address_max).
        AddressFull = "address_full",
        /// The server is about to stop.
        Stopping = "stopping",
    }
}

kinds! {
    /// How a connection ended.
    Ending {
        /// The client said goodbye.
        Clean = "clean",
        /// The connection broke or was closed without a word.
        Dropped = "dropped",
        /// It answered nothing any more: 3012.
        NoPong = "no_pong",
        /// It did not read what was written to it: 3008.
        Slow = "slow",
        /// The server stops: 3001.
        Shutdown = "shutdown",
        /// Something of ours took too long: 3004.
        Failed = "failed",
        /// Its token ran out: 3005.
        Expired = "expired",
        /// Its token is not good: 3500.
        InvalidToken = "invalid_token",
        /// It sent what cannot be understood: 3501, or an error of the WebSocket protocol.
        BadRequest = "bad_request",
        /// It did not say in time who it is: 3502.
        Stale = "stale",
        /// Signed out, or disconnected by the site: 3503, 3000.
        SignedOut = "signed_out",
        /// A bound was met: 3504, or 3013 for far too many commands.
        Limit = "limit",
        /// It may not do this: 3507.
        PermissionDenied = "permission_denied",
    }
}

impl Ending {
    /// The code with which it was closed; 1006 if without any.
    pub const fn code(self) -> u16 {
        match self {
            Ending::Clean => 1000,
            Ending::Dropped => 1006,
            Ending::NoPong => 3012,
            Ending::Slow => 3008,
            Ending::Shutdown => 3001,
            Ending::Failed => 3004,
            Ending::Expired => 3005,
            Ending::InvalidToken => 3500,
            Ending::BadRequest => 3501,
            Ending::Stale => 3502,
            Ending::SignedOut => 3503,
            Ending::Limit => 3504,
            Ending::PermissionDenied => 3507,
        }
    }

    /// Whether nobody wanted it to end, so that many of them mean trouble (P17).
    pub fn is_abnormal(self) -> bool {
        matches!(self, Ending::Dropped | Ending::NoPong | Ending::Slow)
    }
}

kinds! {
    /// Why a command was not done.
    CommandRefusal {
        /// More commands than may come (gateway.commands_per_s).
        TooMany = "too_many",
        /// It cannot be understood.
        BadRequest = "bad_request",
        /// There is no such command.
        UnknownMethod = "unknown_method",
        /// It may not do this.
        Denied = "denied",
        /// A bound was met: devices, rooms, tracked users, the length of a text.
        Limit = "limit",
        /// Nothing of the kind here.
        NotAvailable = "not_available",
        /// The token is not good, or has run out.
        Token = "token",
        /// The database could not be asked; again later.
        Internal = "internal",
    }
}

kinds! {
    /// What became of an attempt to deliver a webhook.
    WebhookOutcome {
        /// It was taken.
        Delivered = "delivered",
        /// No answer in time.
        TimedOut = "timed_out",
        /// No connection, a connection that broke, or a certificate that is not trusted.
        Unreachable = "unreachable",
        /// Another status than 2xx.
        WrongStatus = "wrong_status",
    }
}

/// Requests for a WebSocket.
#[derive(Debug, Default)]
pub struct DoorCounters {
    /// Answered with one.
    pub opened: Counter,
    /// Answered otherwise, by reason.
    pub refused: ByKind<DoorRefusal>,
    /// Connections that are open, whether or not they have said who they are.
    pub open: Level,
}

/// What goes over connections.
#[derive(Debug, Default)]
pub struct SessionCounters {
    /// Connections that said who they are, and were believed.
    pub connected: Counter,
    /// How connections ended.
    pub ended: ByKind<Ending>,
    /// Messages read.
    pub messages_read: Counter,
    /// Bytes read.
    pub bytes_read: Counter,
    /// Frames written.
    pub frames_written: Counter,
    /// Bytes written.
    pub bytes_written: Counter,
    /// Commands done.
    pub commands: Counter,
    /// Commands not done, by reason.
    pub commands_refused: ByKind<CommandRefusal>,
    /// Pings written.
    pub pings: Counter,
    /// From a ping to its answer: the delay of heartbeats (P17).
    pub ping_answers: Histogram,
    /// Probes written.
    pub probes: Counter,
    /// Probes answered.
    pub probes_answered: Counter,
    /// Statuses that were replaced by later ones before they were written.
    pub changes_coalesced: Counter,
    /// Statuses written.
    pub changes_written: Counter,
}

/// What the hub does with people.
#[derive(Debug, Default)]
pub struct HubCounters {
    /// Changes of status, as one's own devices see them, by cause.
    pub transitions: Named,
    /// Statuses put into outboxes of those who watch.
    pub deliveries: Counter,
    /// Batches in which friends and privacy were read for who connects.
    pub loads: Counter,
    /// People read in these batches.
    pub people_loaded: Counter,
    /// Such batches that failed.
    pub load_failures: Counter,
    /// How long such batches took.
    pub load_seconds: Histogram,
    /// What waits to be written to the database: remembered presence and history.
    pub keeper_waiting: Level,
    /// What was written.
    pub keeper_written: Counter,
    /// Writes that failed, and are tried again.
    pub keeper_failures: Counter,
    /// Rows of history that were dropped because too many waited.
    pub keeper_dropped: Counter,
    /// People whose seeding and leeching were asked for.
    pub traffic_asked: Counter,
    /// Such questions that failed; the figures stay as they were.
    pub traffic_failures: Counter,
    /// Notices of such changes that were dropped because too many waited; the rotation makes up for them.
    pub traffic_dropped: Counter,
    /// How changes of friendships and privacy are followed, once they are.
    pub following: OnceLock<Arc<FollowCounters>>,
    /// What the database of people counts, once it is used.
    pub people: OnceLock<Arc<people::Counters>>,
    /// Heartbeats over HTTP.
    pub http_heartbeats: Counter,
    /// Messages about typing that were passed on.
    pub typing: Counter,
    /// Messages about typing that came too soon after the one before.
    pub typing_throttled: Counter,
    /// Rooms with somebody in them.
    pub rooms: Level,
    /// Sessions probed to find out whether they are there (P14).
    pub sampled: Counter,
    /// Those of them that did not answer.
    pub sampled_silent: Counter,
    /// How many sessions are only seemingly there, by the last sample.
    pub falsely_online: Level,
}

/// What gateways tell each other beside records of people.
#[derive(Debug, Default)]
pub struct BetweenCounters {
    /// Messages sent to other gateways.
    pub messages_sent: Counter,
    /// Messages that could not be sent.
    pub messages_failed: Counter,
    /// Messages that wait to be sent.
    pub messages_waiting: Level,
    /// Messages dropped because too many waited.
    pub messages_dropped: Counter,
    /// Messages heard from other gateways.
    pub messages_heard: Counter,
    /// Parts of rooms that were written.
    pub rooms_written: Counter,
    /// Parts of rooms of other gateways that were read.
    pub rooms_read: Counter,
    /// Times that something about a room was missing.
    pub room_gaps: Counter,
    /// Times that rooms could not be shared, and were tried again.
    pub room_failures: Counter,
}

/// What is told to other gateways, and by them.
#[derive(Debug, Default)]
pub struct SharingCounters {
    /// People who changed and are not published yet.
    pub marked: Level,
    /// People about whom the register is asked.
    pub known: Level,
    /// Batches that were published.
    pub flushes: Counter,
    /// Those that were not published as a whole; the rest is published again.
    pub flush_failures: Counter,
    /// How long batches took.
    pub flush_seconds: Histogram,
    /// Publications that told only of a new sign of life.
    pub refreshes: Counter,
    /// People about whom the register was asked again, in turn.
    pub asked_again: Counter,
    /// Records that were taken in.
    pub applied: Counter,
    /// Records that were not newer than what was known.
    pub stale: Counter,
    /// Records of people in whom nobody here is interested any more.
    pub unwanted: Counter,
    /// People of whom what was known from elsewhere became too old to be believed.
    pub lost: Counter,
    /// People who are here and whom the register did not have any more: they were published again.
    pub mended: Counter,
    /// Times that people were shown as they were known here, since the register did not answer in time.
    pub unanswered: Counter,
    /// Times that the register could not be reached any more.
    pub outages: Counter,
    /// Times that this gateway was taken for dead and joined anew.
    pub rejoins: Counter,
    /// Times that something may have been missed.
    pub gaps: Counter,
}

/// What webhooks do.
#[derive(Debug, Default)]
pub struct WebhookCounters {
    /// Attempts, by what became of them.
    pub attempts: ByKind<WebhookOutcome>,
    /// How long attempts took.
    pub attempt_seconds: Histogram,
    /// Messages given up (gateway.webhook_give_up_s).
    pub given_up: Counter,
    /// Messages in memory that are not delivered yet.
    pub waiting: Level,
    /// The age of the oldest of them, in seconds.
    pub oldest_seconds: Level,
    /// Times that the history could not be read, or the place in it not be kept.
    pub store_failures: Counter,
}

/// Operators who look on.
#[derive(Debug, Default)]
pub struct OperatorCounters {
    /// Those who look on now.
    pub here: Level,
    /// Connections of operators that were let in.
    pub connected: Counter,
    /// Those that were not, because as many look on as may (gateway.operators_max).
    pub refused: Counter,
    /// Messages put into their outboxes.
    pub published: Counter,
    /// Overviews that were replaced by newer ones before they were written: somebody reads slowly.
    pub overviews_replaced: Counter,
    /// Occurrences that operators were not told of, as too many came at once or somebody reads slowly.
    pub left_out: Counter,
}

/// Everything the gateway counts.
#[derive(Debug, Default)]
pub struct GatewayCounters {
    /// Requests for a WebSocket.
    pub door: DoorCounters,
    /// Connections.
    pub sessions: SessionCounters,
    /// People.
    pub hub: HubCounters,
    /// Other gateways.
    pub sharing: SharingCounters,
    /// Webhooks.
    pub webhooks: WebhookCounters,
    /// What gateways tell each other.
    pub between: BetweenCounters,
    /// Operators.
    pub operators: OperatorCounters,
}

/// Counts by a name out of a list that is fixed elsewhere, such as the causes of `presence`.
#[derive(Debug, Default)]
pub struct Named(parking_lot::RwLock<std::collections::BTreeMap<&'static str, Counter>>);

impl Named {
    /// Counts one.
    pub fn count(&self, name: &'static str) {
        if let Some(counter) = self.0.read().get(name) {
            counter.increment();
            return;
        }
        self.0.write().entry(name).or_default().increment();
    }

    /// Every name so far, with its count.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        self.0.read().iter().map(|(name, counter)| (*name, counter.get())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted_apart_and_shown_from_the_start() {
        let endings: ByKind<Ending> = ByKind::default();
        assert_eq!(endings.all().count(), Ending::ALL.len());
        endings.count(Ending::Slow);
        endings.count(Ending::Slow);
        endings.count(Ending::Clean);
        assert_eq!((endings.get(Ending::Slow), endings.get(Ending::Clean)), (2, 1));
        assert_eq!((endings.get(Ending::Dropped), endings.total()), (0, 3));
    }

    #[test]
    fn p17_only_endings_that_nobody_wanted_are_abnormal() {
        let abnormal: Vec<&str> =
            Ending::ALL.iter().filter(|ending| ending.is_abnormal()).map(|ending| ending.name()).collect();
        assert_eq!(abnormal, ["dropped", "no_pong", "slow"]);
    }
}
