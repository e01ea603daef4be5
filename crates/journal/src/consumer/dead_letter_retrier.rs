//! Retries dead letters with growing delays, up to a maximum (J6).
//!
//! Only the id of a waiting dead letter is held: an operator may drop or replay it meanwhile, and a replayed one is
//! read and retried at once, however many others wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::{Backoff, Seconds, UnixTime};
use tracing::{info, warn};

use super::intake::{ApplyError, BatchEnd, Intake, Request};
use super::{RETRY_BUCKETS, Shared, takeover};
use crate::dead_letter::DeadLetter;
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{Lane, Stored, Transfer};
use crate::view::DeliveredEntry;

/// Dead letters per read.
const PAGE: usize = 100;
/// Dead letters held until they are due. Beyond this, new ones stay in the lane.
pub const HELD_MAX: usize = 10_000;
/// Pause while that many are held.
const REST: Duration = Duration::from_secs(1);
/// Interval of the dead-consumer check.
const DEAD_CHECK_EVERY: Seconds = Seconds(2);

/// Reads and retries dead letters until stopped.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut retrier =
        DeadLetterRetrier::new(Intake::new(Arc::clone(&shared), Lane::Dead, "dead_letters".to_owned()));
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    while !shared.is_stopping() {
        if shared.is_idle() {
            if retrier.intake.sleep_while_paused().await {
                break;
            }
            continue;
        }
        match retrier.round().await {
            Ok(BatchEnd::Done | BatchEnd::Fenced) => backoff.reset(),
            Ok(BatchEnd::Stopped) => break,
            Err(JournalError::NoGroup { .. }) => shared.prepare_groups().await,
            Err(_) => {
                if retrier.intake.wait(backoff.next_delay()).await {
                    break;
                }
            }
        }
    }
}

struct DeadLetterRetrier {
    intake: Intake,
    /// Dead letters of this view, by due time.
    held: BTreeSet<(UnixTime, EntryId)>,
    /// Consumers whose dead letters are to be taken over.
    dead_consumers: Vec<String>,
    /// Whether dead letters may have been delivered whose reply was lost.
    may_have_unreceived: bool,
    next_dead_check: UnixTime,
}

impl DeadLetterRetrier {
    fn new(intake: Intake) -> Self {
        let (held, dead_consumers) = (BTreeSet::new(), Vec::new());
        DeadLetterRetrier {
            intake,
            held,
            dead_consumers,
            may_have_unreceived: false,
            next_dead_check: UnixTime(0),
        }
    }

    /// Retries what is due, then reads what is new.
    async fn round(&mut self) -> Result<BatchEnd, JournalError> {
        let ended = self.retry_due().await?;
        if ended != BatchEnd::Done {
            // The process that fenced this consumer has its dead letters.
            self.held.clear();
            self.dead_consumers.clear();
            self.publish_held();
            return Ok(ended);
        }
        self.publish_held();
        if self.held.len() >= HELD_MAX {
            self.intake.shared.counters.dead_letters_full.fetch_add(1, Ordering::Relaxed);
            return Ok(if self.intake.wait(REST).await { BatchEnd::Stopped } else { BatchEnd::Done });
        }
        self.check_for_dead_consumers().await?;
        let stored = match self.dead_consumers.last().cloned() {
            Some(from) => self.take_over(&from).await?,
            None => match self.read().await? {
                Some(stored) => stored,
                None => return Ok(BatchEnd::Stopped),
            },
        };
        let ended = self.hold(&stored).await;
        self.publish_held();
        Ok(ended)
    }

    fn publish_held(&self) {
        self.intake.shared.counters.dead_letters_held.store(self.held.len() as u64, Ordering::Relaxed);
    }

    /// Retries dead letters until the next one is not due.
    async fn retry_due(&mut self) -> Result<BatchEnd, JournalError> {
        while let Some((due_at, id)) = self.held.first().copied() {
            let is_due = due_at <= self.intake.shared.clock.now();
            if !is_due || self.intake.shared.is_idle() {
                break;
            }
            // An operator may have dropped or replayed it meanwhile. If that happens now, the view still applies it
            // once, by its origin.
            let ended = match self.intake.shared.journal.get(Lane::Dead, id).await? {
                Some(stored) => self.retry_one(id, DeadLetter::from_fields(&stored.fields)).await,
                None => self.intake.acknowledge(&[id]).await,
            };
            if ended != BatchEnd::Done {
                return Ok(ended);
            }
            self.held.remove(&(due_at, id));
        }
        Ok(BatchEnd::Done)
    }

    async fn check_for_dead_consumers(&mut self) -> Result<(), JournalError> {
        if std::mem::take(&mut self.may_have_unreceived) {
            // Dead letters whose delivery was lost are found by taking over everything under the old name.
            self.dead_consumers.push(self.intake.name().to_owned());
            self.intake.rename();
        }
        let now = self.intake.shared.clock.now();
        if now >= self.next_dead_check {
            self.next_dead_check = now + DEAD_CHECK_EVERY;
            for name in takeover::find_dead(&self.intake.shared, Lane::Dead).await? {
                if !self.dead_consumers.contains(&name) {
                    self.dead_consumers.push(name);
                }
            }
        }
        Ok(())
    }

    /// Takes over dead letters of another consumer, and deletes it once it has none.
    async fn take_over(&mut self, from: &str) -> Result<Vec<Stored>, JournalError> {
        let shared = Arc::clone(&self.intake.shared);
        let group = shared.group();
        let taken = shared.journal.take_over(Lane::Dead, &group, from, self.intake.name(), PAGE).await;
        let taken = taken.inspect_err(|_| self.may_have_unreceived = true)?;
        if taken.is_empty() {
            self.dead_consumers.pop();
            takeover::delete_consumer(&shared, Lane::Dead, from).await;
        }
        shared.counters.taken_over.fetch_add(taken.len() as u64, Ordering::Relaxed);
        Ok(taken)
    }

    /// None at shutdown.
    async fn read(&mut self) -> Result<Option<Vec<Stored>>, JournalError> {
        let shared = Arc::clone(&self.intake.shared);
        let (group, read_wait) = {
            let settings = shared.settings.borrow();
            (settings.group.clone(), settings.read_wait)
        };
        let wait = match self.held.first() {
            Some((due_at, _)) => read_wait.min(due_in(*due_at, shared.clock.now())),
            None => read_wait,
        };
        let mut stop = shared.stop.clone();
        let reading = shared.journal.read(Lane::Dead, &group, self.intake.name(), PAGE, wait);
        let read = tokio::select! {
            biased;
            read = reading => read,
            _ = stop.wait_for(|stopped| *stopped) => return Ok(None),
        };
        read.map(Some).inspect_err(|_| self.may_have_unreceived = true)
    }

    /// Holds this view's dead letters until they are due and acknowledges those of other groups.
    async fn hold(&mut self, stored: &[Stored]) -> BatchEnd {
        let mut foreign = Vec::new();
        {
            let settings = self.intake.shared.settings.borrow();
            for stored in stored {
                let dead_letter = DeadLetter::from_fields(&stored.fields);
                let is_unnamed = dead_letter.group.is_empty() && settings.handles_malformed;
                if dead_letter.group == settings.group || is_unnamed {
                    self.held.insert((dead_letter.due_at, stored.id));
                } else {
                    foreign.push(stored.id);
                }
            }
        }
        self.intake.acknowledge(&foreign).await
    }

    async fn retry_one(&mut self, id: EntryId, dead_letter: DeadLetter) -> BatchEnd {
        let origin = if dead_letter.origin == EntryId::ZERO { id } else { dead_letter.origin };
        let tried_before = (dead_letter.retry as usize).min(RETRY_BUCKETS - 1);
        self.intake.shared.counters.dead_letters_retried[tried_before].fetch_add(1, Ordering::Relaxed);
        let outcome = match TrafficEntry::parse_dated(&dead_letter.original, &*self.intake.shared.clock) {
            Ok(entry) => {
                let arrival = DeliveredEntry { id, origin, entry };
                if self.intake.wait_for_rate_limit(1).await {
                    return BatchEnd::Stopped;
                }
                match self.intake.apply(&[arrival], None).await {
                    Ok(batch_result) => {
                        batch_result.rejected.into_iter().next().map_or(Ok(()), |(_, why)| Err(why))
                    }
                    Err(ApplyError::BadEntry(reason)) => Err(reason),
                    Err(ApplyError::Ended(ended)) => return ended,
                }
            }
            Err(bad) => Err(bad.to_string()),
        };
        match outcome {
            Ok(()) => self.delete_restored(id).await,
            Err(reason) => self.retry_later_or_fail(id, DeadLetter { origin, ..dead_letter }, reason).await,
        }
    }

    async fn delete_restored(&self, id: EntryId) -> BatchEnd {
        let ended = self.intake.retry_until_done(Request::Delete(id)).await;
        if ended == BatchEnd::Done {
            self.intake.shared.counters.restored.fetch_add(1, Ordering::Relaxed);
            let shared = &self.intake.shared;
            if let Some(left_out) = shared.log.restored.admit(shared.clock.now()) {
                info!(view = shared.view.name(), %id, lines_left_out = left_out, "dead letter applied");
            }
        }
        ended
    }

    /// Rejected again: back to the dead letters, or failed.
    async fn retry_later_or_fail(&self, id: EntryId, dead_letter: DeadLetter, reason: String) -> BatchEnd {
        let shared = &self.intake.shared;
        let (retry_max, retry_delay) = {
            let settings = shared.settings.borrow();
            (settings.retry_max, settings.retry_delay)
        };
        let now = shared.clock.now();
        let retry = dead_letter.retry + 1;
        let is_over = retry >= retry_max;
        let (to, counter) = match is_over {
            true => (Lane::Failed, &shared.counters.failed),
            false => (Lane::Dead, &shared.counters.retried),
        };
        if is_over && let Some(left_out) = shared.log.failed.admit(now) {
            let view = shared.view.name();
            warn!(view, origin = %dead_letter.origin, reason, lines_left_out = left_out, "dead letter failed: no retries left");
        }
        let due_at = now + delay_of(retry, retry_delay);
        let group = shared.group();
        let dead_letter = DeadLetter { retry, reason, failed_at: now, due_at, group, ..dead_letter };
        let transfer = [Transfer { id, fields: dead_letter.to_fields() }];
        let ended = self.intake.retry_until_done(Request::Move { to, dead_letters: &transfer }).await;
        if ended == BatchEnd::Done {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        ended
    }
}

/// Never zero, which some stores treat as no limit.
fn due_in(due_at: UnixTime, now: UnixTime) -> Duration {
    Duration::from_secs(due_at.since(now).0.into()).max(Duration::from_millis(100))
}

/// Delay before the next retry: six times as long after each rejection.
fn delay_of(retry: u32, first: Seconds) -> Seconds {
    Seconds(first.0.saturating_mul(6_u32.saturating_pow(retry.min(10))))
}
