//! Webhooks: posts to the site when a user arrives (first device) and leaves (last device).
//!
//! Reads the history after a cursor in the same database.
//!
//! # Layout
//!
//! - this file: reads, sends, saves the cursor
//! - `delivery_queue`: order, retries, and when a delivery fails permanently
//! - `delivery`: the request and its signature
//!
//! # Guarantees
//!
//! - At least once: a crash repeats deliveries and loses none. A repetition has the same delivery id. Deliveries that
//!   succeeded after one that is still being retried are repeated by a restart as well.
//! - Of several gateways on one database, the holder of the leader lease sends. Another one continues after the last
//!   cursor.
//! - In order for each user: a later delivery waits for an earlier one. Other users do not wait.
//! - Bounded: deliveries in memory and in flight. The rest waits in the database.
//! - A delivery that is too old fails permanently, and is counted and logged; until then it is retried with growing
//!   delays.
//! - Neither the secret nor the URL is in any log line.
//!
//! # Deliberately absent
//!
//! Redirects: a request signed for one receiver goes to no other. Changes of status: those are in the feed.

mod delivery;
mod delivery_queue;

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use domain::UserId;
use domain::clock::{Clock, Stopwatch};
use friends::PresenceEventKind;
use friends::{EventFilter, FriendStore, FriendsError, PresenceEventId, RecordedEvent};
use http::Uri;
use net::https_client::{CallFailure, Client, ClientError, ClientSettings, Reply};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::counters::{GatewayCounters, WebhookOutcome};
use crate::leader_lease::LeaderLease;
use crate::settings::WebhookSettings;
use delivery::{Delivery, Event};
use delivery_queue::{DeliveryQueue, QueueLimits};

/// The name of the cursor.
const CURSOR: &str = "webhooks";
/// Interval at which the history is read, and the cursor saved.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Delay between reads of the database at the start.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Time limit of a request.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time limit of deliveries in flight at shutdown.
const END_MAX: Duration = Duration::from_secs(2);
/// The longest response that is read; it is not used, but a connection whose response was read can be reused.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Deliveries in flight.
const AT_ONCE_MAX: usize = 16;
/// Messages that wait in memory.
const WAITING_MAX: usize = 10_000;
/// How long a delivery is held with several gateways: longer than a row waits for its write, and then to be read.
const REORDER_WINDOW: Duration = Duration::from_secs(2);
/// Rows per read.
const READ_MAX: usize = 1_000;

/// Why webhooks cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The URL is invalid.
    #[error("gateway.webhook_url is not a URL: https://HOST/PATH")]
    Address,
    /// The HTTP client cannot be created.
    #[error("gateway.webhook_url: {0}")]
    Client(#[from] ClientError),
    /// The cursor cannot be read.
    #[error(transparent)]
    FriendStore(#[from] FriendsError),
}

pub struct Webhooks {
    friend_store: FriendStore,
    counters: Arc<GatewayCounters>,
    clock: Arc<dyn Clock>,
    receiver: Arc<Receiver>,
    limits: QueueLimits,
    queue: DeliveryQueue,
    kept: u64,
    sending: JoinSet<Sent>,
    lease: Arc<LeaderLease>,
}

struct Sent {
    user: UserId,
    outcome: Result<(), Failure>,
}

/// Why a delivery failed.
enum Failure {
    Call(CallFailure),
    Status(http::StatusCode),
}

struct Receiver {
    client: Client,
    url: Uri,
    key: Option<hmac::Key>,
}

impl Webhooks {
    /// Reads the cursor. A new one starts at the end of the history.
    pub async fn open(
        friend_store: FriendStore,
        settings: &WebhookSettings,
        counters: Arc<GatewayCounters>,
        clock: Arc<dyn Clock>,
    ) -> Result<Webhooks, WebhookError> {
        let receiver = Arc::new(Receiver::new(settings)?);
        let place = match friend_store.cursor(CURSOR).await? {
            Some(place) => place,
            None => {
                let place = friend_store.newest_event().await?;
                friend_store.set_cursor(CURSOR, place).await?;
                place
            }
        };
        let (give_up, reorder_window) = (settings.give_up, Duration::ZERO);
        let limits =
            QueueLimits { at_once_max: AT_ONCE_MAX, waiting_max: WAITING_MAX, give_up, reorder_window };
        let queue = DeliveryQueue::starting_after(place.0, limits, clock.now_ms());
        let (sending, lease) = (JoinSet::new(), Arc::new(LeaderLease::always_held()));
        Ok(Webhooks { friend_store, counters, clock, receiver, limits, queue, kept: place.0, sending, lease })
    }

    /// For several gateways on the same database.
    pub fn with_lease(self, lease: Arc<LeaderLease>) -> Webhooks {
        let reorder_window = if lease.is_unshared() { Duration::ZERO } else { REORDER_WINDOW };
        // The queue is created when the lease is acquired.
        Webhooks { lease, limits: QueueLimits { reorder_window, ..self.limits }, ..self }
    }

    /// Drops the cursor where webhooks are off, so that no history is kept for it.
    pub async fn forget(friend_store: &FriendStore) -> Result<(), FriendsError> {
        friend_store.drop_cursor(CURSOR).await
    }

    /// Sends while it holds the lease, until stopped.
    pub async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        while self.lease.wait(&mut stopped).await {
            let has_begun = tokio::select! {
                // Also if the sender was dropped.
                _ = stopped.wait_for(|stopped| *stopped) => false,
                () = self.begin_lease() => true,
            };
            let is_end = !has_begun || self.deliver_until_stopped(&mut stopped).await;
            self.end_lease().await;
            if is_end {
                return;
            }
            info!("leader lease lost; another gateway sends webhooks");
        }
    }

    /// Sends until stopped (true) or the lease is lost.
    async fn deliver_until_stopped(&mut self, stopped: &mut watch::Receiver<bool>) -> bool {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let lease = Arc::clone(&self.lease);
        let mut renewed = std::pin::pin!(keep_lease(&lease));
        let mut ended = std::pin::pin!(async {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
        loop {
            let due = due(self.queue.next_at_ms(), self.clock.now_ms());
            tokio::select! {
                () = &mut ended => return true,
                () = &mut renewed => return false,
                Some(sent) = self.sending.join_next() => self.finish(sent),
                () = due => {
                    // Checked here as well: this task may have been delayed.
                    if !lease.is_held() {
                        return false;
                    }
                    self.send_due();
                }
                _ = look.tick() => {
                    self.save_cursor().await;
                    if self.read().await {
                        look.reset_immediately();
                    }
                }
            }
            self.update_gauges();
        }
    }

    /// Continues after the cursor that the previous holder saved.
    async fn begin_lease(&mut self) {
        let place = loop {
            match self.friend_store.cursor(CURSOR).await {
                Ok(place) => break place.map_or(self.kept, |place| place.0),
                Err(error) => {
                    self.counters.webhooks.store_failures.increment();
                    warn!(%error, "cannot read the presence history; webhooks wait");
                    tokio::time::sleep(STORE_PAUSE).await;
                }
            }
        };
        self.kept = place.max(self.kept);
        self.queue = DeliveryQueue::starting_after(self.kept, self.limits, self.clock.now_ms());
    }

    /// Waits a while for deliveries in flight, saves the cursor, and releases the lease.
    async fn end_lease(&mut self) {
        let mut sending = std::mem::take(&mut self.sending);
        let arriving = async {
            while let Some(sent) = sending.join_next().await {
                self.finish(sent);
            }
        };
        let _ = tokio::time::timeout(END_MAX, arriving).await;
        self.save_cursor().await;
        self.queue = DeliveryQueue::starting_after(self.kept, self.limits, self.clock.now_ms());
        self.update_gauges();
        self.lease.release().await;
    }

    fn send_due(&mut self) {
        while let Some((delivery, attempts)) = self.queue.take(self.clock.now_ms()) {
            let (receiver, counters) = (Arc::clone(&self.receiver), Arc::clone(&self.counters));
            let now_s = self.clock.now_ms() / 1000;
            self.sending.spawn(async move {
                let watch = Stopwatch::start();
                let outcome = receiver.deliver(&delivery, attempts + 1, now_s).await;
                counters.webhooks.attempt_seconds.record(watch.elapsed());
                Sent { user: delivery.user, outcome }
            });
        }
    }

    fn finish(&mut self, sent: Result<Sent, tokio::task::JoinError>) {
        // The task neither panics nor is it aborted.
        let Ok(sent) = sent else { return };
        let counters = &self.counters.webhooks;
        let now_ms = self.clock.now_ms();
        let failure = match sent.outcome {
            Ok(()) => {
                counters.attempts.count(WebhookOutcome::Delivered);
                if self.queue.is_failing() {
                    info!("webhook endpoint accepts deliveries again");
                }
                return self.queue.delivered(sent.user, now_ms);
            }
            Err(failure) => failure,
        };
        counters.attempts.count(failure.outcome());
        let was_failing = self.queue.is_failing();
        let failed_deliveries = self.queue.failed(sent.user, now_ms);
        if self.queue.is_failing() && !was_failing {
            warn!(reason = %failure, "webhook endpoint fails; deliveries are kept and retried");
        }
        for delivery in failed_deliveries {
            counters.given_up.increment();
            warn!(user = %delivery.user, delivery = delivery.delivery_id(), reason = %failure, "webhook delivery failed permanently: no retries left");
        }
    }

    /// Reads the next rows of the history. Returns whether there may be more.
    async fn read(&mut self) -> bool {
        let limit = self.queue.room().min(READ_MAX);
        if limit == 0 {
            return false;
        }
        let after = PresenceEventId(self.queue.read_through());
        match self.friend_store.events_after(after, EventFilter::ArrivalsAndDepartures, limit as u32).await {
            Ok(found) => {
                let is_more = found.len() == limit;
                let now_ms = self.clock.now_ms();
                found
                    .into_iter()
                    .filter_map(delivery_of)
                    .for_each(|delivery| self.queue.add(delivery, now_ms));
                is_more
            }
            Err(error) => {
                self.counters.webhooks.store_failures.increment();
                warn!(%error, "cannot read the presence history; webhooks wait");
                false
            }
        }
    }

    /// Saves the cursor, up to which all deliveries are done.
    async fn save_cursor(&mut self) {
        let done = self.queue.done_through();
        if done == self.kept {
            return;
        }
        match self.friend_store.set_cursor(CURSOR, PresenceEventId(done)).await {
            Ok(()) => self.kept = done,
            Err(error) => {
                self.counters.webhooks.store_failures.increment();
                warn!(%error, "cannot save the webhook cursor; a crash now would repeat deliveries");
            }
        }
    }

    fn update_gauges(&self) {
        let counters = &self.counters.webhooks;
        counters.waiting.set(self.queue.len());
        counters.oldest_seconds.set((self.queue.oldest_ms(self.clock.now_ms()) / 1000) as usize);
    }
}

/// Renews the lease until it is lost.
async fn keep_lease(lease: &LeaderLease) {
    loop {
        tokio::time::sleep(lease.renewal()).await;
        if !lease.take().await {
            return;
        }
    }
}

/// Waits until the next delivery is due; for ever if there is none.
async fn due(at_ms: Option<u64>, now_ms: u64) {
    match at_ms {
        // The clock may have been set: check again soon.
        Some(at_ms) => {
            let wait = Duration::from_millis(at_ms.saturating_sub(now_ms));
            tokio::time::sleep(wait.min(Duration::from_secs(60))).await;
        }
        None => std::future::pending().await,
    }
}

impl Receiver {
    fn new(settings: &WebhookSettings) -> Result<Receiver, WebhookError> {
        let url: Uri = settings.url.parse().map_err(|_| WebhookError::Address)?;
        let is_secure = url.scheme_str() == Some("https");
        let client = Client::new(&ClientSettings {
            ca_file: settings.ca_file.clone(),
            timeout: ANSWER_MAX,
            connections_max: AT_ONCE_MAX,
        })?;
        if is_secure {
            client.can_trust()?;
        }
        let secret = Some(settings.secret.reveal()).filter(|secret| !secret.is_empty());
        let key = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Ok(Receiver { client, url, key })
    }

    async fn deliver(&self, delivery: &Delivery, attempt: u32, now_s: u64) -> Result<(), Failure> {
        let request = delivery.request(&self.url, self.key.as_ref(), attempt, now_s);
        let request = request.map_err(|error| Failure::Call(CallFailure::Unreachable(error.to_string())))?;
        let Reply { status, .. } =
            self.client.call(request, ANSWER_BYTES_MAX).await.map_err(Failure::Call)?;
        if status.is_success() { Ok(()) } else { Err(Failure::Status(status)) }
    }
}

impl Failure {
    fn outcome(&self) -> WebhookOutcome {
        match self {
            Failure::Call(CallFailure::TimedOut(_)) => WebhookOutcome::TimedOut,
            Failure::Call(CallFailure::Unreachable(_)) => WebhookOutcome::Unreachable,
            Failure::Status(_) => WebhookOutcome::WrongStatus,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Call(failure) => failure.fmt(f),
            Failure::Status(status) => write!(f, "the endpoint answers {status}"),
        }
    }
}

fn delivery_of(recorded: RecordedEvent) -> Option<Delivery> {
    let event_row = recorded.event;
    let event = match event_row.kind {
        PresenceEventKind::Arrived => Event::Arrived,
        PresenceEventKind::Left => Event::Left,
        PresenceEventKind::Transition { .. } => return None,
    };
    Some(Delivery {
        place: recorded.id.0,
        user: event_row.user,
        at_ms: event_row.at_ms,
        event,
        cause: event_row.cause,
        device: event_row.device,
    })
}
