//! Tries dead letters again, later and later, and gives up in the end (J6).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::UnixTime;
use tracing::{info, warn};

use super::intake::{Ended, Intake, Request, Trouble, delay_of};
use super::{PAUSE_POLL, Shared};
use crate::backoff::Backoff;
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::letter::Letter;
use crate::port::{Lane, Stored, Transfer};
use crate::view::Arrival;

/// Letters held at once. While they are not due, later ones wait, too.
const LETTERS_MAX: usize = 100;

/// Reads letters until told to stop.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut desk = Desk(Intake::new(Arc::clone(&shared), Lane::Dead, "letters".to_owned()));
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    let mut stop = shared.stop.clone();
    while !shared.is_stopping() {
        if shared.is_paused() {
            if shared.sleep(PAUSE_POLL).await {
                break;
            }
            continue;
        }
        let wait = shared.settings.borrow().read_wait;
        let reading = desk.0.read(LETTERS_MAX, wait);
        let read = tokio::select! {
            biased;
            read = reading => read,
            _ = stop.wait_for(|stopped| *stopped) => break,
        };
        match read {
            Ok(letters) => {
                backoff.reset();
                if desk.answer(&letters).await == Ended::Stopped {
                    break;
                }
            }
            Err(JournalError::NoGroup { .. }) => shared.prepare_groups().await,
            Err(_) => {
                if desk.0.wait(backoff.next()).await {
                    break;
                }
            }
        }
    }
}

/// Where letters are answered.
pub(super) struct Desk(pub(super) Intake);

impl Desk {
    /// Answers letters, each when it is due.
    pub(super) async fn answer(&mut self, stored: &[Stored]) -> Ended {
        let (own, foreign) = self.sort(stored);
        if let ended @ (Ended::Stopped | Ended::Fenced) = self.0.acknowledge(&foreign).await {
            return ended;
        }
        for (id, letter) in own {
            if self.wait_until(letter.due_at).await {
                return Ended::Stopped;
            }
            if let ended @ (Ended::Stopped | Ended::Fenced) = self.answer_one(id, letter).await {
                return ended;
            }
        }
        Ended::Done
    }

    /// This view's letters, the most urgent first; and those of others, which are theirs to answer.
    fn sort(&self, stored: &[Stored]) -> (Vec<(EntryId, Letter)>, Vec<EntryId>) {
        let settings = self.0.shared.settings.borrow();
        let (mut own, mut foreign) = (Vec::new(), Vec::new());
        for stored in stored {
            let letter = Letter::from_fields(&stored.fields);
            let is_own =
                letter.group == settings.group || letter.group.is_empty() && settings.takes_unnamed_letters;
            match is_own {
                true => own.push((stored.id, letter)),
                false => foreign.push(stored.id),
            }
        }
        own.sort_by_key(|(id, letter)| (letter.due_at, *id));
        (own, foreign)
    }

    async fn wait_until(&self, due_at: UnixTime) -> bool {
        loop {
            let rest = due_at.since(self.0.shared.clock.now());
            if rest.0 == 0 {
                return false;
            }
            if self.0.wait(Duration::from_secs(rest.0.min(5).into())).await {
                return true;
            }
        }
    }

    async fn answer_one(&mut self, id: EntryId, letter: Letter) -> Ended {
        // An operator may have dropped or replayed it while it was waiting. Should that happen right now, the view
        // still takes it once, by its origin.
        match self.0.shared.journal.get(Lane::Dead, id).await {
            Ok(None) => return self.0.acknowledge(&[id]).await,
            Ok(Some(_)) | Err(_) => {}
        }
        let origin = if letter.origin == EntryId::ZERO { id } else { letter.origin };
        let outcome = match TrafficEntry::parse(&letter.original) {
            Ok(entry) => {
                let arrival = Arrival { id, origin, entry };
                match self.0.apply(&[arrival], None).await {
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
        let ended = self.0.insist(Request::Delete(id)).await;
        if ended == Ended::Done {
            self.0.shared.counters.revived.fetch_add(1, Ordering::Relaxed);
            info!(view = self.0.shared.view.name(), %id, "a dead letter was taken after all");
        }
        ended
    }

    /// It failed again: back among the letters, or given up.
    async fn send_back(&self, id: EntryId, letter: Letter, reason: String) -> Ended {
        let shared = &self.0.shared;
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
        if is_over {
            warn!(view = shared.view.name(), origin = %letter.origin, reason, "an entry has failed for good");
        }
        let due_at = now + delay_of(retry, retry_delay);
        let group = shared.group();
        let letter = Letter { retry, reason, failed_at: now, due_at, group, ..letter };
        let transfer = [Transfer { id, fields: letter.to_fields() }];
        let ended = self.0.insist(Request::Move { to, letters: &transfer }).await;
        if ended == Ended::Done {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        ended
    }
}
