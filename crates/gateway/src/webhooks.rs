//! Webhooks: tells the site when somebody comes (first device in) and goes (last device out).
//!
//! A view of the history: what is to be told is read behind a cursor that stands in the same database.
//!
//! # Layout
//!
//! - this file: reads, sends, keeps the cursor
//! - `line`: whose turn it is, when to try again, when to give up
//! - `letter`: a message as it is sent, and its signature
//!
//! # Guarantees
//!
//! - At least once: a crash repeats messages and loses none. A repetition has the same delivery id. What was delivered
//!   behind a message that is still being tried is repeated by a restart as well.
//! - Of many gateways on one database one tells, in its turn. Another goes on where that one ended; what was on its way
//!   in the moment of a crash is repeated, with the same delivery id.
//! - In order for each person: a later message waits for an earlier one. Others go on meanwhile.
//! - Bounded: so many messages in memory, so many on their way. The rest waits in the database.
//! - A message is given up, counted and logged when it is too old; until then it is tried again, ever more seldom.
//! - Neither the secret nor the address is in any log line.
//!
//! # Deliberately absent
//!
//! Redirects: what is signed for one receiver goes to no other. Changes of status: whoever wants them has the feed.

mod letter;
mod line;

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use domain::UserId;
use domain::clock::{Clock, Stopwatch};
use http::Uri;
use outbound::{CallFailure, Client, ClientError, ClientSettings, Reply};
use people::history::OccurrenceKind;
use people::{Kinds, OccurrenceId, People, PeopleError, Recorded};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::counters::{GatewayCounters, WebhookOutcome};
use crate::settings::WebhookSettings;
use crate::turn::Turn;
use letter::{Event, Letter};
use line::{Line, Message, Pace};

/// The name of our place in the history.
const CURSOR: &str = "webhooks";
/// How often the history is looked at, and the place in it kept.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long to wait before the database is asked again at the start.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// How long the receiver may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long messages on their way are waited for at the end.
const END_MAX: Duration = Duration::from_secs(2);
/// The longest answer that is read; it is not used, but a connection whose answer was read serves again.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Messages on their way at once.
const AT_ONCE_MAX: usize = 16;
/// Messages that wait in memory.
const WAITING_MAX: usize = 10_000;
/// How long a message is held where several gateways write: longer than a gateway lets a row wait, writes it, and it is
/// found here.
const HOLD: Duration = Duration::from_secs(2);
/// Messages that are read at once.
const READ_MAX: usize = 1_000;

/// Why webhooks cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address is none.
    #[error("gateway.webhook_url is not an address: https://HOST/PATH")]
    Address,
    /// No calls can be made.
    #[error("gateway.webhook_url: {0}")]
    Client(#[from] ClientError),
    /// The place in the history cannot be found.
    #[error(transparent)]
    People(#[from] PeopleError),
}

/// Tells the site who comes and goes.
pub struct Webhooks {
    people: People,
    counters: Arc<GatewayCounters>,
    clock: Arc<dyn Clock>,
    receiver: Arc<Receiver>,
    pace: Pace,
    line: Line<Letter>,
    kept: u64,
    sending: JoinSet<Sent>,
    turn: Arc<Turn>,
}

/// How a message ended.
struct Sent {
    user: UserId,
    outcome: Result<(), Failure>,
}

/// Why a message was not taken.
enum Failure {
    Call(CallFailure),
    Status(http::StatusCode),
}

/// Where messages go.
struct Receiver {
    client: Client,
    url: Uri,
    key: Option<hmac::Key>,
}

impl Webhooks {
    /// Finds the place in the history. Who turns webhooks on is told what happens from then on.
    pub async fn open(
        people: People,
        settings: &WebhookSettings,
        counters: Arc<GatewayCounters>,
        clock: Arc<dyn Clock>,
    ) -> Result<Webhooks, WebhookError> {
        let receiver = Arc::new(Receiver::new(settings)?);
        let place = match people.cursor(CURSOR).await? {
            Some(place) => place,
            None => {
                let place = people.newest_occurrence().await?;
                people.set_cursor(CURSOR, place).await?;
                place
            }
        };
        let (give_up, hold) = (settings.give_up, Duration::ZERO);
        let pace = Pace { at_once_max: AT_ONCE_MAX, waiting_max: WAITING_MAX, give_up, hold };
        let line = Line::behind(place.0, pace, clock.now_ms());
        let (sending, turn) = (JoinSet::new(), Arc::new(Turn::alone()));
        Ok(Webhooks { people, counters, clock, receiver, pace, line, kept: place.0, sending, turn })
    }

    /// The same, as one of many on the same database: it tells in its turn.
    pub fn in_turn(self, turn: Arc<Turn>) -> Webhooks {
        let hold = if turn.is_alone() { Duration::ZERO } else { HOLD };
        // The line is made anew with each turn.
        Webhooks { turn, pace: Pace { hold, ..self.pace }, ..self }
    }

    /// Forgets the place in the history where webhooks are off, so that nothing is kept for them.
    pub async fn forget(people: &People) -> Result<(), PeopleError> {
        people.drop_cursor(CURSOR).await
    }

    /// Tells whenever it is its turn, until it is stopped.
    pub async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        while self.turn.wait(&mut stopped).await {
            let has_begun = tokio::select! {
                // Whoever could stop it is gone: that stops it, too.
                _ = stopped.wait_for(|stopped| *stopped) => false,
                () = self.begin_turn() => true,
            };
            let is_end = !has_begun || self.tell(&mut stopped).await;
            self.end_turn().await;
            if is_end {
                return;
            }
            info!("another gateway tells of comings and goings from now on");
        }
    }

    /// Tells until it is stopped (true) or the turn is over.
    async fn tell(&mut self, stopped: &mut watch::Receiver<bool>) -> bool {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let turn = Arc::clone(&self.turn);
        let mut renewed = std::pin::pin!(keep_turn(&turn));
        let mut ended = std::pin::pin!(async {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
        loop {
            let due = due(self.line.next_at_ms(), self.clock.now_ms());
            tokio::select! {
                () = &mut ended => return true,
                () = &mut renewed => return false,
                Some(sent) = self.sending.join_next() => self.finish(sent),
                () = due => {
                    // Asked here as well: this task may have been held up for long.
                    if !turn.is_ours() {
                        return false;
                    }
                    self.send_due();
                }
                _ = look.tick() => {
                    self.keep_place().await;
                    if self.read().await {
                        look.reset_immediately();
                    }
                }
            }
            self.show();
        }
    }

    /// Begins where whoever told until a moment ago has ended: another process.
    async fn begin_turn(&mut self) {
        let place = loop {
            match self.people.cursor(CURSOR).await {
                Ok(place) => break place.map_or(self.kept, |place| place.0),
                Err(error) => {
                    self.counters.webhooks.store_failures.increment();
                    warn!(%error, "the history cannot be read for webhooks; they wait");
                    tokio::time::sleep(STORE_PAUSE).await;
                }
            }
        };
        self.kept = place.max(self.kept);
        self.line = Line::behind(self.kept, self.pace, self.clock.now_ms());
    }

    /// Lets what is on its way arrive, for a while, and lets another go on from there.
    async fn end_turn(&mut self) {
        let mut sending = std::mem::take(&mut self.sending);
        let arriving = async {
            while let Some(sent) = sending.join_next().await {
                self.finish(sent);
            }
        };
        let _ = tokio::time::timeout(END_MAX, arriving).await;
        self.keep_place().await;
        self.line = Line::behind(self.kept, self.pace, self.clock.now_ms());
        self.show();
        self.turn.give_back().await;
    }

    fn send_due(&mut self) {
        while let Some((letter, attempts)) = self.line.take(self.clock.now_ms()) {
            let (receiver, counters) = (Arc::clone(&self.receiver), Arc::clone(&self.counters));
            let now_s = self.clock.now_ms() / 1000;
            self.sending.spawn(async move {
                let watch = Stopwatch::start();
                let outcome = receiver.deliver(&letter, attempts + 1, now_s).await;
                counters.webhooks.attempt_seconds.record(watch.elapsed());
                Sent { user: letter.user(), outcome }
            });
        }
    }

    fn finish(&mut self, sent: Result<Sent, tokio::task::JoinError>) {
        // Sending neither panics nor is it cut off while we are here.
        let Ok(sent) = sent else { return };
        let counters = &self.counters.webhooks;
        let now_ms = self.clock.now_ms();
        let failure = match sent.outcome {
            Ok(()) => {
                counters.attempts.count(WebhookOutcome::Delivered);
                if self.line.is_failing() {
                    info!("webhooks are taken again");
                }
                return self.line.delivered(sent.user, now_ms);
            }
            Err(failure) => failure,
        };
        counters.attempts.count(failure.outcome());
        let was_failing = self.line.is_failing();
        let given_up = self.line.failed(sent.user, now_ms);
        if self.line.is_failing() && !was_failing {
            warn!(reason = %failure, "webhooks are not taken; they are kept and tried again");
        }
        for letter in given_up {
            counters.given_up.increment();
            warn!(user = %letter.user, delivery = letter.delivery_id(), reason = %failure, "a webhook was given up");
        }
    }

    /// Reads on in the history. Tells whether there may be more at once.
    async fn read(&mut self) -> bool {
        let limit = self.line.room().min(READ_MAX);
        if limit == 0 {
            return false;
        }
        let after = OccurrenceId(self.line.read_through());
        match self.people.occurrences_after(after, Kinds::ComingsAndGoings, limit as u32).await {
            Ok(found) => {
                let is_more = found.len() == limit;
                let now_ms = self.clock.now_ms();
                found.into_iter().filter_map(letter_of).for_each(|letter| self.line.add(letter, now_ms));
                is_more
            }
            Err(error) => {
                self.counters.webhooks.store_failures.increment();
                warn!(%error, "the history cannot be read for webhooks; they wait");
                false
            }
        }
    }

    /// Keeps the place up to which all is told.
    async fn keep_place(&mut self) {
        let done = self.line.done_through();
        if done == self.kept {
            return;
        }
        match self.people.set_cursor(CURSOR, OccurrenceId(done)).await {
            Ok(()) => self.kept = done,
            Err(error) => {
                self.counters.webhooks.store_failures.increment();
                warn!(%error, "the place of webhooks in the history cannot be kept; a crash now would repeat some");
            }
        }
    }

    fn show(&self) {
        let counters = &self.counters.webhooks;
        counters.waiting.set(self.line.len());
        counters.oldest_seconds.set((self.line.oldest_ms(self.clock.now_ms()) / 1000) as usize);
    }
}

/// Keeps the turn for as long as it can be kept.
async fn keep_turn(turn: &Turn) {
    loop {
        tokio::time::sleep(turn.renewal()).await;
        if !turn.take().await {
            return;
        }
    }
}

/// Waits until the next message may go; for ever if none may.
async fn due(at_ms: Option<u64>, now_ms: u64) {
    match at_ms {
        // A clock that was set may say anything: look again soon.
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

    async fn deliver(&self, letter: &Letter, attempt: u32, now_s: u64) -> Result<(), Failure> {
        let request = letter.request(&self.url, self.key.as_ref(), attempt, now_s);
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
            Failure::Status(status) => write!(f, "the receiver answers {status}"),
        }
    }
}

fn letter_of(recorded: Recorded) -> Option<Letter> {
    let told = recorded.occurrence;
    let event = match told.kind {
        OccurrenceKind::Arrived => Event::Arrived,
        OccurrenceKind::Left => Event::Left,
        OccurrenceKind::Transition { .. } => return None,
    };
    Some(Letter {
        place: recorded.id.0,
        user: told.user,
        at_ms: told.at_ms,
        event,
        cause: told.cause,
        device: told.device,
    })
}
