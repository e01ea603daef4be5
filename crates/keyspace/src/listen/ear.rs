//! An ear: one connection that listens, however often it breaks; and the scout, who looks for the masters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use redis::Msg;
use redis::aio::{PubSub, PubSubSink};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{Heard, Shared};
use crate::error::Trouble;
use crate::handle::Redis;
use crate::link::pause;
use crate::notify;
use crate::settings::{Mode, Node};

/// How often a connection is asked whether it is still there.
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// What an ear listens to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The one server: expired keys and channels.
    All,
    /// One master of a cluster: its expired keys.
    Keys(Node),
    /// Any master of a cluster: channels.
    Channels,
}

/// What ears and the scout tell the supervisor.
#[derive(Debug)]
pub(super) enum Report {
    /// These are the masters now.
    Masters(Vec<Node>),
    /// The ear of this place hears, at this server.
    Up(Place, Node),
    /// It does not, or no longer.
    Down(Place),
}

/// A task that listens. It ends when this is dropped.
pub(super) struct Ear(AbortHandle);

impl Drop for Ear {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Looks for the masters, again and again. Ends when what it gives back is dropped.
pub(super) fn scout(redis: Redis, reports: mpsc::Sender<Report>, every: Duration) -> Ear {
    let looking = async move {
        loop {
            // A cluster that does not answer changes nothing.
            if let Ok(masters) = redis.masters().await
                && reports.send(Report::Masters(masters)).await.is_err()
            {
                return;
            }
            tokio::time::sleep(every).await;
        }
    };
    Ear(tokio::spawn(looking).abort_handle())
}

impl Ear {
    pub(super) fn grow(shared: Arc<Shared>, place: Place, reports: mpsc::Sender<Report>) -> Ear {
        let listening = Listening { shared, place, reports, attempts: AtomicUsize::new(0) };
        Ear(tokio::spawn(listening.run()).abort_handle())
    }
}

struct Listening {
    shared: Arc<Shared>,
    place: Place,
    reports: mpsc::Sender<Report>,
    attempts: AtomicUsize,
}

impl Listening {
    async fn run(self) {
        let mut failures = 0_u32;
        loop {
            let (was_up, trouble) = self.listen().await;
            tracing::debug!(place = ?self.place, %trouble, "not listening to redis");
            if self.reports.send(Report::Down(self.place.clone())).await.is_err() {
                return;
            }
            failures = if was_up { 1 } else { failures.saturating_add(1) };
            tokio::time::sleep(pause(failures, self.shared.redis.settings().backoff_max)).await;
        }
    }

    /// Connects and listens until that breaks. Tells whether it was heard anything, and why it ended.
    async fn listen(&self) -> (bool, Trouble) {
        let (node, pubsub) = match self.connect().await {
            Ok(connected) => connected,
            Err(trouble) => return (false, trouble),
        };
        let (mut sink, mut messages) = pubsub.split();
        if let Err(trouble) = self.subscribe(&mut sink, &node).await {
            return (false, trouble);
        }
        let _ = self.reports.send(Report::Up(self.place.clone(), node.clone())).await;
        let timeout = self.shared.redis.settings().response_timeout;
        let mut probing = std::pin::pin!(probe(sink, timeout, &node));
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.take(&message),
                    None => return (true, Trouble::unavailable(format!("{node} hung up"))),
                },
                trouble = &mut probing => return (true, trouble),
            }
        }
    }

    async fn connect(&self) -> Result<(Node, PubSub), Trouble> {
        let dialer = self.shared.redis.dialer();
        let timeout = Some(dialer.settings().response_timeout);
        let node = match &self.place {
            Place::All if dialer.settings().mode == Mode::Sentinel => dialer.dial_master(timeout).await?.1,
            Place::Keys(node) => node.clone(),
            Place::All | Place::Channels => self.any_node().await?,
        };
        if self.hears_keys() {
            let mut connection = dialer.dial(&node, timeout).await?;
            let found = notify::ensure_on(&mut connection).await;
            self.shared.note_notifications(&node, found);
        }
        let pubsub = dialer.dial_pubsub(&node).await?;
        Ok((node, pubsub))
    }

    /// Another one with each attempt, so that a dead node does not keep us from hearing what the others pass on.
    async fn any_node(&self) -> Result<Node, Trouble> {
        let masters = self.shared.redis.masters().await?;
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let chosen = masters.get(attempt % masters.len().max(1)).cloned();
        chosen.ok_or_else(|| Trouble::unavailable("the cluster has no masters"))
    }

    fn hears_keys(&self) -> bool {
        self.place != Place::Channels && !self.shared.wanted.expiring.is_empty()
    }

    async fn subscribe(&self, sink: &mut PubSubSink, node: &Node) -> Result<(), Trouble> {
        let wanted = &self.shared.wanted;
        let subscribing = async {
            if self.hears_keys() {
                let prefix = self.keyspace_prefix();
                let patterns: Vec<String> =
                    wanted.expiring.iter().map(|pattern| format!("{prefix}{pattern}")).collect();
                sink.psubscribe(patterns).await?;
            }
            if !matches!(self.place, Place::Keys(_)) && !wanted.channels.is_empty() {
                sink.subscribe(&wanted.channels).await?;
            }
            Ok(())
        };
        let timeout = self.shared.redis.settings().response_timeout;
        match tokio::time::timeout(timeout, subscribing).await {
            Ok(subscribed) => {
                subscribed.map_err(|error: redis::RedisError| Trouble::of_sending(&node.to_string(), &error))
            }
            Err(_) => Err(Trouble::unavailable(format!("{node} did not answer to SUBSCRIBE"))),
        }
    }

    fn keyspace_prefix(&self) -> String {
        format!("__keyspace@{}__:", self.shared.redis.settings().db)
    }

    fn take(&self, message: &Msg) {
        let (channel, payload) = (message.get_channel_name(), message.get_payload::<String>());
        let Ok(payload) = payload else {
            self.shared.counters.unreadable.fetch_add(1, Ordering::Relaxed);
            return;
        };
        match channel.strip_prefix(self.keyspace_prefix().as_str()) {
            Some(key) if payload == "expired" => self.shared.pass_on(Heard::Expired(key.to_owned())),
            // Whoever turned on more than we need hears of more.
            Some(_) => {}
            None => self.shared.pass_on(Heard::Said { channel: channel.to_owned(), payload }),
        }
    }
}

/// Asks the server, again and again, whether it is still there. Ends when it is not.
async fn probe(mut sink: PubSubSink, timeout: Duration, node: &Node) -> Trouble {
    loop {
        tokio::time::sleep(PROBE_EVERY).await;
        match tokio::time::timeout(timeout, sink.ping::<redis::Value>()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Trouble::of_sending(&node.to_string(), &error),
            Err(_) => return Trouble::unavailable(format!("{node} does not answer any more")),
        }
    }
}
