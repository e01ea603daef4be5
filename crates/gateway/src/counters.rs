//! Counters of the gateway, read by the metrics page.
//!
//! # Guarantees
//!
//! - Every bound of the gateway has a counter that grows when it is reached.
//! - Label values come from lists fixed here, and are all exported from the start, at zero.
//!
//! # Deliberately absent
//!
//! Anything by user, device, room or address.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use domain::{Counter, Histogram, Level, Named, named};
use friends::ChangeFeedCounters;
use presence::Cause;

#[derive(Debug)]
pub struct ByKind<K> {
    counts: Box<[Counter]>,
    kind: PhantomData<fn(K)>,
}

impl<K: Named> Default for ByKind<K> {
    fn default() -> Self {
        ByKind { counts: K::ALL.iter().map(|_| Counter::default()).collect(), kind: PhantomData }
    }
}

impl<K: Named> ByKind<K> {
    pub fn count(&self, kind: K) {
        if let Some(counter) = self.counter(kind) {
            counter.increment();
        }
    }

    pub fn get(&self, kind: K) -> u64 {
        self.counter(kind).map_or(0, Counter::get)
    }

    /// Every kind with its count.
    pub fn all(&self) -> impl Iterator<Item = (K, u64)> + '_ {
        K::ALL.iter().copied().zip(self.counts.iter().map(Counter::get))
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(Counter::get).sum()
    }

    fn counter(&self, kind: K) -> Option<&Counter> {
        let place = K::ALL.iter().position(|known| *known == kind)?;
        self.counts.get(place)
    }
}

named! {
    /// Why a request for a WebSocket got none.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum UpgradeRefusal {
        /// Not a WebSocket of version 13.
        NotAWebSocket = "not_a_websocket",
        /// An origin that may not connect (gateway.allowed_origins).
        Origin = "origin",
        /// No offered subprotocol is supported; includes SDKs in protobuf mode, which are closed with 3501.
        Protocol = "protocol",
        /// gateway.connections_max is reached.
        Full = "full",
        /// gateway.connections_per_address_max is reached.
        AddressFull = "address_full",
        /// The server is about to stop.
        Stopping = "stopping",
    }
}

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Ending {
        Clean = "clean",
        /// The connection broke, or ended without a close frame.
        Dropped = "dropped",
        /// It stopped answering pings: 3012.
        NoPong = "no_pong",
        /// The client did not read in time: 3008.
        Slow = "slow",
        /// The server stops: 3001.
        Shutdown = "shutdown",
        /// The server took too long: 3004.
        Failed = "failed",
        /// Its token expired: 3005.
        Expired = "expired",
        /// Its token is invalid: 3500.
        InvalidToken = "invalid_token",
        /// Malformed input: 3501, or an error of the WebSocket protocol.
        BadRequest = "bad_request",
        /// No `connect` in time: 3502.
        Stale = "stale",
        /// Signed out, or disconnected by the site: 3503, 3000.
        SignedOut = "signed_out",
        /// A limit was exceeded: 3504, or 3013 for far too many commands.
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

    /// Unintended disconnects; many of them indicate a problem (P17).
    pub fn is_abnormal(self) -> bool {
        matches!(self, Ending::Dropped | Ending::NoPong | Ending::Slow)
    }
}

named! {
    /// Why a command was not done.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum CommandRefusal {
        /// More commands than gateway.commands_per_s.
        TooMany = "too_many",
        BadRequest = "bad_request",
        UnknownMethod = "unknown_method",
        /// It may not do this.
        Denied = "denied",
        /// A limit was exceeded: devices, rooms, tracked users, the length of a text.
        Limit = "limit",
        NotAvailable = "not_available",
        /// The token is invalid or expired.
        Token = "token",
        /// The database did not answer; temporary.
        Internal = "internal",
    }
}

named! {
    /// Outcome of an attempt to deliver a webhook.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum WebhookOutcome {
        Delivered = "delivered",
        TimedOut = "timed_out",
        /// No connection, a connection that broke, or a certificate that is not trusted.
        Unreachable = "unreachable",
        /// Another status than 2xx.
        WrongStatus = "wrong_status",
    }
}

#[derive(Debug, Default)]
pub struct AcceptCounters {
    pub opened: Counter,
    pub refused: ByKind<UpgradeRefusal>,
    /// Open connections, before and after `connect`.
    pub open: Level,
}

#[derive(Debug, Default)]
pub struct SessionCounters {
    /// Successful `connect` commands.
    pub connected: Counter,
    pub ended: ByKind<Ending>,
    pub messages_read: Counter,
    /// Bytes read.
    pub bytes_read: Counter,
    pub frames_written: Counter,
    /// Bytes written.
    pub bytes_written: Counter,
    pub commands: Counter,
    /// Commands not done, by reason.
    pub commands_refused: ByKind<CommandRefusal>,
    pub pings: Counter,
    /// From a ping to its answer: the delay of heartbeats (P17).
    pub ping_answers: Histogram,
    pub probes: Counter,
    pub probes_answered: Counter,
    /// Statuses replaced by later ones before they were written.
    pub changes_coalesced: Counter,
    pub changes_written: Counter,
}

#[derive(Debug, Default)]
pub struct HubCounters {
    /// Changes of status, as the user's own devices see them, by cause.
    pub transitions: ByKind<Cause>,
    /// Statuses put into outboxes of watchers.
    pub deliveries: Counter,
    /// Batches in which friends and privacy were read for connecting users.
    pub loads: Counter,
    /// Users read in these batches.
    pub people_loaded: Counter,
    pub load_failures: Counter,
    /// How long such batches took.
    pub load_seconds: Histogram,
    /// Presence and history rows that wait for the database.
    pub writer_waiting: Level,
    pub writer_written: Counter,
    /// Failed writes, which are retried.
    pub writer_failures: Counter,
    /// Rows of history that were dropped because too many waited.
    pub writer_dropped: Counter,
    /// Users whose seeding and leeching counts were read.
    pub torrent_counts_requested: Counter,
    /// Such reads that failed; the counts stay unchanged.
    pub torrent_count_failures: Counter,
    /// Change notices dropped because the queue was full; the periodic pass makes up for them.
    pub torrent_counts_dropped: Counter,
    /// Counters of the change feed of friendships and privacy, once it is open.
    pub following: OnceLock<Arc<ChangeFeedCounters>>,
    /// Counters of the friends database, once it is open.
    pub friends: OnceLock<Arc<friends::Counters>>,
    pub http_heartbeats: Counter,
    /// Messages about typing that were passed on.
    pub typing: Counter,
    /// Typing commands within the throttle interval.
    pub typing_throttled: Counter,
    /// Rooms with at least one local connection.
    pub rooms: Level,
    /// Connections probed by the sampler (P14).
    pub sampled: Counter,
    /// Of these, without an answer.
    pub sampled_silent: Counter,
    /// Estimated dead connections, by the last sample.
    pub falsely_online: Level,
}

/// Messages between gateways that are not records.
#[derive(Debug, Default)]
pub struct GatewayMessageCounters {
    /// Messages sent to other gateways.
    pub messages_sent: Counter,
    /// Messages that could not be sent.
    pub messages_failed: Counter,
    /// Messages that wait to be sent.
    pub messages_waiting: Level,
    /// Messages dropped because too many waited.
    pub messages_dropped: Counter,
    pub messages_received: Counter,
    /// Entries of rooms that were written.
    pub rooms_written: Counter,
    /// Entries of rooms of other gateways that were read.
    pub rooms_read: Counter,
    /// Times that changes of a room were missing.
    pub room_gaps: Counter,
    /// Failed syncs of rooms, which are retried.
    pub room_failures: Counter,
}

/// Publishing to the cluster, and reading from it.
#[derive(Debug, Default)]
pub struct SyncCounters {
    /// Users that changed and are not published yet.
    pub dirty: Level,
    /// Users whose records are watched.
    pub watched: Level,
    pub flushes: Counter,
    /// Those that were not published as a whole; the rest is published again.
    pub flush_failures: Counter,
    pub flush_seconds: Histogram,
    /// Record updates that change only the time of the last activity.
    pub refreshes: Counter,
    /// Users whose records were read again, periodically.
    pub rechecked: Counter,
    /// Records that were applied.
    pub applied: Counter,
    /// Records that were not newer than the known one.
    pub stale: Counter,
    /// Records of users that are not watched any more.
    pub unwatched: Counter,
    /// Users whose remote sessions expired without a renewal.
    pub expired: Counter,
    /// Users whose entry was missing in the store: they were published again.
    pub repaired: Counter,
    /// Reads that the store did not answer in time; the local state was shown.
    pub timeouts: Counter,
    /// Times that the store could not be reached any more.
    pub outages: Counter,
    /// Times that this gateway was declared dead and rejoined.
    pub rejoins: Counter,
    /// Times that changes may have been missed.
    pub gaps: Counter,
}

#[derive(Debug, Default)]
pub struct WebhookCounters {
    /// Attempts, by outcome.
    pub attempts: ByKind<WebhookOutcome>,
    pub attempt_seconds: Histogram,
    /// Deliveries that failed permanently, after a day of retries.
    pub given_up: Counter,
    /// Messages in memory that are not delivered yet.
    pub waiting: Level,
    /// Age of the oldest of them, in seconds.
    pub oldest_seconds: Level,
    /// Times that the history could not be read, or the cursor not be saved.
    pub store_failures: Counter,
}

#[derive(Debug, Default)]
pub struct GatewayCounters {
    pub accept: AcceptCounters,
    pub sessions: SessionCounters,
    pub hub: HubCounters,
    pub sync: SyncCounters,
    pub webhooks: WebhookCounters,
    /// Messages between gateways.
    pub messages: GatewayMessageCounters,
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
    fn p17_only_unintended_endings_are_abnormal() {
        let abnormal: Vec<&str> =
            Ending::ALL.iter().filter(|ending| ending.is_abnormal()).map(|ending| ending.name()).collect();
        assert_eq!(abnormal, ["dropped", "no_pong", "slow"]);
    }
}
