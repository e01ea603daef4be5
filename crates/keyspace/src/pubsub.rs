//! Pub/sub: keyspace notifications of expired keys, and messages on channels.
//!
//! Redis does not store messages. A subscriber therefore reports a gap whenever messages may have been missed; its
//! owner then reads the keys themselves.
//!
//! # Guarantees
//!
//! - On a single server, and with sentinels, one connection to the master receives everything.
//! - On a cluster each master publishes only its own expired keys, so each master has a connection. Channels need one
//!   connection to any node, because the cluster forwards each message to all nodes.
//! - The masters are polled every second, so a failover is followed within seconds. A connection is pinged every two
//!   seconds, so a silently lost one is detected. Reconnects use bounded exponential backoff.
//! - [`PubSubEvent::Subscribed`] is returned once every subscription is active: at first, and after every
//!   [`PubSubEvent::Gap`].
//! - Expiry notifications are enabled on each server that has an expired-key subscription ([`crate::notify`]), also on
//!   new and restarted ones.
//! - The queue is bounded. Messages that a slow owner leaves no room for are dropped, counted and reported as a gap.
//!
//! # Deliberately absent
//!
//! Sharded channels: programs written for a single Redis do not use them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::handle::Redis;
use crate::notify::{self, ExpiryNotifications};
use crate::settings::{Mode, Node};

mod connection;

use connection::{Connection, ConnectionEvent, Scope};

const MASTER_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Queued messages of one subscriber; further ones are dropped.
const QUEUE_MAX: usize = 16_384;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions {
    /// Glob patterns of keys whose expiry is reported, such as `t:ptimeout:*`.
    pub expired_keys: Vec<String>,
    /// Full channel names.
    pub channels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PubSubEvent {
    /// All subscriptions are active from now on. Earlier messages may have been missed: read the keys.
    Subscribed,
    /// Messages may be missed from now on, until [`PubSubEvent::Subscribed`].
    Gap,
    /// This key expired.
    Expired(String),
    /// A message on a subscribed channel.
    Message { channel: String, payload: String },
}

/// Counted since the subscriber was created.
#[derive(Debug, Default)]
pub struct PubSubCounters {
    /// Notifications of expired keys.
    pub expired: AtomicU64,
    /// Messages on channels.
    pub messages: AtomicU64,
    /// Messages dropped because the queue was full.
    pub dropped: AtomicU64,
    /// Messages that are not UTF-8, which are ignored.
    pub not_utf8: AtomicU64,
    pub gaps: AtomicU64,
    /// Pub/sub connections made.
    pub connections: AtomicU64,
    /// Gauge: servers whose expiry notifications are off and could not be enabled.
    pub notifications_off: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    /// Incremented whenever messages may have been missed.
    gaps: u64,
    /// Whether all subscriptions are active.
    is_complete: bool,
}

/// Receives until it is dropped.
pub struct Subscriber {
    events: mpsc::Receiver<PubSubEvent>,
    status: watch::Receiver<Status>,
    shared: Arc<Shared>,
    reported: Reported,
    supervisor: AbortHandle,
}

/// The status that [`Subscriber::next`] returned last.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    is_subscribed: bool,
    gaps: u64,
}

impl Reported {
    /// The event to return next for this status, if any.
    fn next(&mut self, status: Status) -> Option<PubSubEvent> {
        if self.is_subscribed && (status.gaps != self.gaps || !status.is_complete) {
            self.is_subscribed = false;
            return Some(PubSubEvent::Gap);
        }
        if !self.is_subscribed && status.is_complete {
            *self = Reported { is_subscribed: true, gaps: status.gaps };
            return Some(PubSubEvent::Subscribed);
        }
        None
    }
}

impl Redis {
    /// Subscribes in the background; Redis need not be reachable yet. Must be called within a Tokio runtime.
    pub fn subscribe(&self, subscriptions: Subscriptions) -> Subscriber {
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let (status_sender, status) = watch::channel(Status::default());
        let shared = Arc::new(Shared {
            redis: self.clone(),
            subscriptions,
            sender,
            status: status_sender,
            has_dropped: AtomicBool::new(false),
            counters: Arc::default(),
            notifications: Mutex::default(),
        });
        let supervisor = tokio::spawn(supervise(Arc::clone(&shared))).abort_handle();
        Subscriber { events, status, shared, reported: Reported::default(), supervisor }
    }
}

impl Subscriber {
    /// Cancel-safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> PubSubEvent {
        loop {
            let status = *self.status.borrow_and_update();
            if let Some(event) = self.reported.next(status) {
                return event;
            }
            if let Ok(event) = self.events.try_recv() {
                return event;
            }
            // Reported only when the queue is empty: one gap, and one read of the keys, for the whole overload.
            if self.shared.has_dropped.swap(false, Ordering::AcqRel) {
                self.shared.record_gap();
                continue;
            }
            tokio::select! {
                biased;
                // Both senders live in `self.shared`.
                _ = self.status.changed() => {}
                Some(event) = self.events.recv() => return event,
            }
        }
    }

    pub fn counters(&self) -> Arc<PubSubCounters> {
        Arc::clone(&self.shared.counters)
    }

    /// The expiry notifications of each server that was connected to.
    pub fn notifications(&self) -> Vec<(Node, ExpiryNotifications)> {
        let by_node = self.shared.notifications.lock();
        by_node.iter().map(|(node, found)| (node.clone(), found.clone())).collect()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

/// Shared by the supervisor, the connections and the subscriber.
struct Shared {
    redis: Redis,
    subscriptions: Subscriptions,
    sender: mpsc::Sender<PubSubEvent>,
    status: watch::Sender<Status>,
    /// Whether messages were dropped since the last reported gap.
    has_dropped: AtomicBool,
    counters: Arc<PubSubCounters>,
    notifications: Mutex<HashMap<Node, ExpiryNotifications>>,
}

impl Shared {
    /// Queues an event, or drops it if the queue is full.
    fn enqueue(&self, event: PubSubEvent) {
        let counter = match &event {
            PubSubEvent::Expired(_) => &self.counters.expired,
            _ => &self.counters.messages,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(event).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            self.has_dropped.store(true, Ordering::Release);
        }
    }

    fn record_gap(&self) {
        self.counters.gaps.fetch_add(1, Ordering::Relaxed);
        self.status.send_modify(|status| status.gaps = status.gaps.wrapping_add(1));
    }

    fn set_complete(&self, is_complete: bool) {
        self.status.send_if_modified(|status| {
            std::mem::replace(&mut status.is_complete, is_complete) != is_complete
        });
    }

    /// Stores the expiry notifications of a server; logs a change.
    fn record_notifications(&self, node: &Node, found: ExpiryNotifications) {
        let mut by_node = self.notifications.lock();
        if by_node.get(node) != Some(&found) {
            match &found {
                ExpiryNotifications::AlreadyEnabled => {}
                ExpiryNotifications::Enabled { flags } => {
                    tracing::info!(server = %node, flags, "enabled notify-keyspace-events on redis");
                }
                ExpiryNotifications::Refused { reason } => {
                    tracing::warn!(server = %node, reason, "redis does not report expired keys: {}", notify::REMEDY);
                }
            }
        }
        by_node.insert(node.clone(), found);
        self.count_notifications_off(&by_node);
    }

    fn retain_notifications_of(&self, masters: &[Node]) {
        let mut by_node = self.notifications.lock();
        by_node.retain(|node, _| masters.contains(node));
        self.count_notifications_off(&by_node);
    }

    fn count_notifications_off(&self, by_node: &HashMap<Node, ExpiryNotifications>) {
        let off = by_node.values().filter(|found| !found.is_enabled()).count();
        self.counters.notifications_off.store(off as u64, Ordering::Relaxed);
    }
}

/// Keeps one connection per required scope.
struct Supervisor {
    shared: Arc<Shared>,
    events: mpsc::Sender<ConnectionEvent>,
    masters: Vec<Node>,
    connections: HashMap<Scope, Supervised>,
}

struct Supervised {
    /// The server it is subscribed to; none while it is connecting.
    subscribed_to: Option<Node>,
    _connection: Connection,
}

async fn supervise(shared: Arc<Shared>) {
    let (events, mut incoming) = mpsc::channel(64);
    let _poller = connection::poll_masters(shared.redis.clone(), events.clone(), MASTER_POLL_INTERVAL);
    let mut supervisor = Supervisor { shared, events, masters: Vec::new(), connections: HashMap::new() };
    supervisor.reconcile();
    while let Some(event) = incoming.recv().await {
        supervisor.handle(event);
        supervisor.reconcile();
    }
}

impl Supervisor {
    fn handle(&mut self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Masters(masters) => {
                self.shared.retain_notifications_of(&masters);
                self.masters = masters;
            }
            ConnectionEvent::Subscribed(scope, node) => {
                self.shared.counters.connections.fetch_add(1, Ordering::Relaxed);
                if let Some(supervised) = self.connections.get_mut(&scope) {
                    supervised.subscribed_to = Some(node);
                }
            }
            ConnectionEvent::Disconnected(scope) => {
                let supervised = self.connections.get_mut(&scope);
                if supervised.and_then(|supervised| supervised.subscribed_to.take()).is_some() {
                    self.shared.record_gap();
                }
            }
        }
    }

    /// Drops connections that are no longer required, opens missing ones, and updates the status.
    fn reconcile(&mut self) {
        let scopes = self.required_scopes();
        let (mode, masters) = (self.shared.redis.mode(), &self.masters);
        let is_required = |scope: &Scope, supervised: &Supervised| {
            // A former master publishes nothing, or only what the other nodes forward.
            let is_demoted =
                |node: &Node| mode != Mode::Single && !masters.is_empty() && !masters.contains(node);
            scopes.contains(scope) && !supervised.subscribed_to.as_ref().is_some_and(is_demoted)
        };
        let mut has_unsubscribed = false;
        self.connections.retain(|scope, supervised| {
            let is_kept = is_required(scope, supervised);
            has_unsubscribed |= !is_kept && supervised.subscribed_to.is_some();
            is_kept
        });
        if has_unsubscribed {
            self.shared.record_gap();
        }
        let has_scopes = !scopes.is_empty();
        for scope in scopes {
            if !self.connections.contains_key(&scope) {
                let connection =
                    Connection::spawn(Arc::clone(&self.shared), scope.clone(), self.events.clone());
                self.connections.insert(scope, Supervised { subscribed_to: None, _connection: connection });
            }
        }
        let mut all = self.connections.values();
        self.shared.set_complete(has_scopes && all.all(|supervised| supervised.subscribed_to.is_some()));
    }

    fn required_scopes(&self) -> Vec<Scope> {
        if self.shared.redis.mode() != Mode::Cluster {
            return vec![Scope::All];
        }
        if self.masters.is_empty() {
            return Vec::new();
        }
        let Subscriptions { expired_keys, channels } = &self.shared.subscriptions;
        let keys = self.masters.iter().filter(|_| !expired_keys.is_empty()).cloned().map(Scope::ExpiredKeys);
        let channels = (!channels.is_empty()).then_some(Scope::Channels);
        keys.chain(channels).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_is_reported_once() {
        let mut reported = Reported::default();
        let status = |gaps, is_complete| Status { gaps, is_complete };
        assert_eq!(reported.next(status(0, false)), None);
        assert_eq!(reported.next(status(0, true)), Some(PubSubEvent::Subscribed));
        assert_eq!(reported.next(status(0, true)), None);
        // Disconnected and reconnected between two calls.
        assert_eq!(reported.next(status(2, true)), Some(PubSubEvent::Gap));
        assert_eq!(reported.next(status(2, true)), Some(PubSubEvent::Subscribed));
        assert_eq!(reported.next(status(2, false)), Some(PubSubEvent::Gap));
        assert_eq!(reported.next(status(3, false)), None);
        assert_eq!(reported.next(status(3, true)), Some(PubSubEvent::Subscribed));
        assert_eq!(reported.next(status(3, true)), None);
    }
}
