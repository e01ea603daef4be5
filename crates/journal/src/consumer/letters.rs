//! Tries dead letters again, later and later, and gives up in the end (J6).
//!
//! Of a letter whose time has yet to come no more is held than its id: an operator may drop or replay it meanwhile, and
//! what is replayed is read and tried at once, however many others wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::{Seconds, UnixTime};
use tracing::{info, warn};

use super::intake::{Ended, Intake, Request, Trouble, delay_of};
use super::{Shared, TRIES, caretaker};
use crate::backoff::Backoff;
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::letter::Letter;
use crate::port::{Lane, Stored, Transfer};
use crate::view::Arrival;

/// Letters read at once.
const PAGE: usize = 100;
/// Letters that wait for their time, at most. With more, what is new waits in the lane until some are answered.
pub const HELD_MAX: usize = 10_000;
/// How long to rest while there are that many.
const REST: Duration = Duration::from_secs(1);
/// How often the dead are looked for.
const BURIAL_EVERY: Seconds = Seconds(2);

/// Reads and answers letters until told to stop.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut desk = Desk::new(Intake::new(Arc::clone(&shared), Lane::Dead, "letters".to_owned()));
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    while !shared.is_stopping() {
        if shared.is_paused() {
            if desk.intake.rest().await {
                break;
            }
            continue;
        }
        match desk.round().await {
            Ok(Ended::Done | Ended::Fenced) => backoff.reset(),
            Ok(Ended::Stopped) => break,
            Err(JournalError::NoGroup { .. }) => shared.prepare_groups().await,
            Err(_) => {
                if desk.intake.wait(backoff.pause()).await {
                    break;
                }
            }
        }
    }
}

/// Where letters are answered.
struct Desk {
    intake: Intake,
    /// Letters of this view, by when they are due.
    held: BTreeSet<(UnixTime, EntryId)>,
    /// Consumers whose letters are to be taken over.
    bereft: Vec<String>,
    /// Whether letters may have been delivered that never arrived.
    may_have_lost: bool,
    next_burial: UnixTime,
}

impl Desk {
    fn new(intake: Intake) -> Self {
        let (held, bereft) = (BTreeSet::new(), Vec::new());
        Desk { intake, held, bereft, may_have_lost: false, next_burial: UnixTime(0) }
    }

    /// Answers what is due, and takes what is new.
    async fn round(&mut self) -> Result<Ended, JournalError> {
        let ended = self.answer_due().await?;
        if ended != Ended::Done {
            // Whoever took us for dead has our letters.
            self.held.clear();
            self.bereft.clear();
            self.tell_held();
            return Ok(ended);
        }
        self.tell_held();
        if self.held.len() >= HELD_MAX {
            self.intake.shared.counters.letters_full.fetch_add(1, Ordering::Relaxed);
            return Ok(if self.intake.wait(REST).await { Ended::Stopped } else { Ended::Done });
        }
        self.look_for_the_dead().await?;
        let stored = match self.bereft.last().cloned() {
            Some(from) => self.take_over(&from).await?,
            None => match self.read().await? {
                Some(stored) => stored,
                None => return Ok(Ended::Stopped),
            },
        };
        let ended = self.hold(&stored).await;
        self.tell_held();
        Ok(ended)
    }

    fn tell_held(&self) {
        self.intake.shared.counters.letters_held.store(self.held.len() as u64, Ordering::Relaxed);
    }

    /// Answers letters until the next one is not due.
    async fn answer_due(&mut self) -> Result<Ended, JournalError> {
        while let Some((due_at, id)) = self.held.first().copied() {
            let is_due = due_at <= self.intake.shared.clock.now();
            if !is_due || self.intake.shared.is_paused() {
                break;
            }
            // An operator may have dropped or replayed it while it was waiting. Should that happen right now, the
            // view still takes it once, by its origin.
            let ended = match self.intake.shared.journal.get(Lane::Dead, id).await? {
                Some(stored) => self.answer_one(id, Letter::from_fields(&stored.fields)).await,
                None => self.intake.acknowledge(&[id]).await,
            };
            if ended != Ended::Done {
                return Ok(ended);
            }
            self.held.remove(&(due_at, id));
        }
        Ok(Ended::Done)
    }

    /// Finds out now and then whose letters are to be taken over.
    async fn look_for_the_dead(&mut self) -> Result<(), JournalError> {
        if std::mem::take(&mut self.may_have_lost) {
            // What was delivered under a name and never arrived is found by taking over all that the name has.
            self.bereft.push(self.intake.name().to_owned());
            self.intake.rename();
        }
        let now = self.intake.shared.clock.now();
        if now >= self.next_burial {
            self.next_burial = now + BURIAL_EVERY;
            for name in caretaker::find_dead(&self.intake.shared, Lane::Dead).await? {
                if !self.bereft.contains(&name) {
                    self.bereft.push(name);
                }
            }
        }
        Ok(())
    }

    /// Takes over letters of another consumer, and forgets it once there are none.
    async fn take_over(&mut self, from: &str) -> Result<Vec<Stored>, JournalError> {
        let shared = Arc::clone(&self.intake.shared);
        let group = shared.group();
        let taken = shared.journal.take_over(Lane::Dead, &group, from, self.intake.name(), PAGE).await;
        let taken = taken.inspect_err(|_| self.may_have_lost = true)?;
        if taken.is_empty() {
            self.bereft.pop();
            caretaker::forget(&shared, Lane::Dead, from).await;
        }
        shared.counters.taken_over.fetch_add(taken.len() as u64, Ordering::Relaxed);
        Ok(taken)
    }

    /// Reads new letters; none at the end of the process.
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
        read.map(Some).inspect_err(|_| self.may_have_lost = true)
    }

    /// Keeps this view's letters until they are due; those of others are theirs to answer.
    async fn hold(&mut self, stored: &[Stored]) -> Ended {
        let mut foreign = Vec::new();
        {
            let settings = self.intake.shared.settings.borrow();
            for stored in stored {
                let letter = Letter::from_fields(&stored.fields);
                let is_unnamed = letter.group.is_empty() && settings.answers_for_all;
                if letter.group == settings.group || is_unnamed {
                    self.held.insert((letter.due_at, stored.id));
                } else {
                    foreign.push(stored.id);
                }
            }
        }
        self.intake.acknowledge(&foreign).await
    }

    async fn answer_one(&mut self, id: EntryId, letter: Letter) -> Ended {
        let origin = if letter.origin == EntryId::ZERO { id } else { letter.origin };
        let tried_before = (letter.retry as usize).min(TRIES - 1);
        self.intake.shared.counters.letters_tried[tried_before].fetch_add(1, Ordering::Relaxed);
        let outcome = match TrafficEntry::parse_dated(&letter.original, &*self.intake.shared.clock) {
            Ok(entry) => {
                let arrival = Arrival { id, origin, entry };
                if self.intake.keep_pace(1).await {
                    return Ended::Stopped;
                }
                match self.intake.apply(&[arrival], None).await {
                    Ok(verdicts) => verdicts.refused.into_iter().next().map_or(Ok(()), |(_, why)| Err(why)),
                    Err(Trouble::Upsets(reason)) => Err(reason),
                    Err(Trouble::Ended(ended)) => return ended,
                }
            }
            Err(bad) => Err(bad.to_string()),
        };
        match outcome {
            Ok(()) => self.settle(id).await,
            Err(reason) => self.send_back(id, Letter { origin, ..letter }, reason).await,
        }
    }

    /// The view has it: the letter is no more.
    async fn settle(&self, id: EntryId) -> Ended {
        let ended = self.intake.insist(Request::Delete(id)).await;
        if ended == Ended::Done {
            self.intake.shared.counters.revived.fetch_add(1, Ordering::Relaxed);
            let shared = &self.intake.shared;
            if let Some(left_out) = shared.log.taken_after_all.admit(shared.clock.now()) {
                info!(view = shared.view.name(), %id, lines_left_out = left_out, "a dead letter was taken after all");
            }
        }
        ended
    }

    /// It failed again: back among the letters, or given up.
    async fn send_back(&self, id: EntryId, letter: Letter, reason: String) -> Ended {
        let shared = &self.intake.shared;
        let (retry_max, retry_delay) = {
            let settings = shared.settings.borrow();
            (settings.retry_max, settings.retry_delay)
        };
        let now = shared.clock.now();
        let retry = letter.retry + 1;
        let is_over = retry >= retry_max;
        let (to, counter) = match is_over {
            true => (Lane::Failed, &shared.counters.failed),
            false => (Lane::Dead, &shared.counters.retried),
        };
        if is_over && let Some(left_out) = shared.log.failed_for_good.admit(now) {
            let view = shared.view.name();
            warn!(view, origin = %letter.origin, reason, lines_left_out = left_out, "an entry has failed for good");
        }
        let due_at = now + delay_of(retry, retry_delay);
        let group = shared.group();
        let letter = Letter { retry, reason, failed_at: now, due_at, group, ..letter };
        let transfer = [Transfer { id, fields: letter.to_fields() }];
        let ended = self.intake.insist(Request::Move { to, letters: &transfer }).await;
        if ended == Ended::Done {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        ended
    }
}

/// The time until a letter is due. Never nothing, which some stores take for no limit.
fn due_in(due_at: UnixTime, now: UnixTime) -> Duration {
    Duration::from_secs(due_at.since(now).0.into()).max(Duration::from_millis(100))
}
