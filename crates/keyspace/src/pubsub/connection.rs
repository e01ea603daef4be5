//! One pub/sub connection with reconnects, and the poller of the masters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::Backoff;
use futures_util::StreamExt;
use redis::Msg;
use redis::aio::{PubSub, PubSubSink};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{PubSubEvent, Shared};
use crate::error::RedisError;
use crate::handle::Redis;
use crate::link::BACKOFF_MIN;
use crate::notify;
use crate::settings::{Mode, Node};

const PING_INTERVAL: Duration = Duration::from_secs(2);

/// What a connection subscribes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// Single server or sentinels: expired keys and channels.
    All,
    /// One master of a cluster: its expired keys.
    ExpiredKeys(Node),
    /// Any master of a cluster: channels.
    Channels,
}

/// Sent to the supervisor.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    /// The present masters.
    Masters(Vec<Node>),
    Subscribed(Scope, Node),
    /// Also sent after each failed attempt.
    Disconnected(Scope),
}

/// A background task that is aborted on drop.
pub(super) struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends the masters at this interval until the returned handle is dropped.
pub(super) fn poll_masters(
    redis: Redis,
    events: mpsc::Sender<ConnectionEvent>,
    interval: Duration,
) -> Connection {
    let polling = async move {
        loop {
            // An unreachable cluster keeps the masters last sent.
            if let Ok(masters) = redis.masters().await
                && events.send(ConnectionEvent::Masters(masters)).await.is_err()
            {
                return;
            }
            tokio::time::sleep(interval).await;
        }
    };
    Connection(tokio::spawn(polling).abort_handle())
}

impl Connection {
    pub(super) fn spawn(
        shared: Arc<Shared>,
        scope: Scope,
        events: mpsc::Sender<ConnectionEvent>,
    ) -> Connection {
        let task = ConnectionTask { shared, scope, events, attempts: AtomicUsize::new(0) };
        Connection(tokio::spawn(task.run()).abort_handle())
    }
}

struct ConnectionTask {
    shared: Arc<Shared>,
    scope: Scope,
    events: mpsc::Sender<ConnectionEvent>,
    attempts: AtomicUsize,
}

impl ConnectionTask {
    async fn run(self) {
        let mut backoff = Backoff::new(BACKOFF_MIN, self.shared.redis.settings().backoff_max);
        loop {
            let (was_subscribed, error) = self.receive().await;
            tracing::debug!(scope = ?self.scope, %error, "redis pub/sub connection closed");
            if self.events.send(ConnectionEvent::Disconnected(self.scope.clone())).await.is_err() {
                return;
            }
            if was_subscribed {
                backoff.reset();
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Connects, subscribes and receives until an error. Returns whether it had subscribed, and the error.
    async fn receive(&self) -> (bool, RedisError) {
        let (node, pubsub) = match self.connect().await {
            Ok(connected) => connected,
            Err(error) => return (false, error),
        };
        let (mut sink, mut messages) = pubsub.split();
        if let Err(error) = self.subscribe(&mut sink, &node).await {
            return (false, error);
        }
        let _ = self.events.send(ConnectionEvent::Subscribed(self.scope.clone(), node.clone())).await;
        let timeout = self.shared.redis.settings().response_timeout;
        let mut pinging = std::pin::pin!(ping_until_lost(sink, timeout, &node));
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.handle(&message),
                    None => return (true, RedisError::unavailable(format!("{node} closed the connection"))),
                },
                error = &mut pinging => return (true, error),
            }
        }
    }

    async fn connect(&self) -> Result<(Node, PubSub), RedisError> {
        let dialer = self.shared.redis.dialer();
        let timeout = Some(dialer.settings().response_timeout);
        let node = match &self.scope {
            Scope::All if dialer.settings().mode == Mode::Sentinel => dialer.dial_master(timeout).await?.1,
            Scope::ExpiredKeys(node) => node.clone(),
            Scope::All | Scope::Channels => self.any_master().await?,
        };
        if self.includes_expired_keys() {
            let mut connection = dialer.dial(&node, timeout).await?;
            let found = notify::ensure_enabled(&mut connection).await;
            self.shared.record_notifications(&node, found);
        }
        let pubsub = dialer.dial_pubsub(&node).await?;
        Ok((node, pubsub))
    }

    /// The next master with each attempt, so that one dead node does not block the channels.
    async fn any_master(&self) -> Result<Node, RedisError> {
        let masters = self.shared.redis.masters().await?;
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let chosen = masters.get(attempt % masters.len().max(1)).cloned();
        chosen.ok_or_else(|| RedisError::unavailable("the cluster has no masters"))
    }

    fn includes_expired_keys(&self) -> bool {
        self.scope != Scope::Channels && !self.shared.subscriptions.expired_keys.is_empty()
    }

    async fn subscribe(&self, sink: &mut PubSubSink, node: &Node) -> Result<(), RedisError> {
        let subscriptions = &self.shared.subscriptions;
        let subscribing = async {
            if self.includes_expired_keys() {
                let prefix = self.keyspace_prefix();
                let patterns: Vec<String> =
                    subscriptions.expired_keys.iter().map(|pattern| format!("{prefix}{pattern}")).collect();
                sink.psubscribe(patterns).await?;
            }
            if !matches!(self.scope, Scope::ExpiredKeys(_)) && !subscriptions.channels.is_empty() {
                sink.subscribe(&subscriptions.channels).await?;
            }
            Ok(())
        };
        let timeout = self.shared.redis.settings().response_timeout;
        match tokio::time::timeout(timeout, subscribing).await {
            Ok(subscribed) => subscribed
                .map_err(|error: redis::RedisError| RedisError::from_send(&node.to_string(), &error)),
            Err(_) => Err(RedisError::unavailable(format!("{node} did not answer SUBSCRIBE"))),
        }
    }

    fn keyspace_prefix(&self) -> String {
        format!("__keyspace@{}__:", self.shared.redis.settings().db)
    }

    fn handle(&self, message: &Msg) {
        let (channel, payload) = (message.get_channel_name(), message.get_payload::<String>());
        let Ok(payload) = payload else {
            self.shared.counters.not_utf8.fetch_add(1, Ordering::Relaxed);
            return;
        };
        match channel.strip_prefix(self.keyspace_prefix().as_str()) {
            Some(key) if payload == "expired" => self.shared.enqueue(PubSubEvent::Expired(key.to_owned())),
            // Other keyspace events, if the server has more flags enabled than we need.
            Some(_) => {}
            None => self.shared.enqueue(PubSubEvent::Message { channel: channel.to_owned(), payload }),
        }
    }
}

/// Pings until there is no reply; returns that error.
async fn ping_until_lost(mut sink: PubSubSink, timeout: Duration, node: &Node) -> RedisError {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        match tokio::time::timeout(timeout, sink.ping::<redis::Value>()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return RedisError::from_send(&node.to_string(), &error),
            Err(_) => return RedisError::unavailable(format!("{node} did not answer PING")),
        }
    }
}
