//! One batch, from the journal into the view: understood, applied, its failures moved_to_dead_letters, the sleep_while_paused acknowledged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Seconds;
use domain::clock::{Clock, Stopwatch};
use tracing::{info, warn};

use super::{PAUSE_POLL, Shared};
use crate::backoff::Backoff;
use crate::dead_letter::DeadLetter;
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::notes::Skipped;
use crate::pause::Applying;
use crate::port::{Lane, Stored, Transfer};
use crate::view::{Arrival, Batch, ViewError};

/// A consumer that only waits says that it lives about this often.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(5);

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchEnd {
    /// Everything is in the view or among the dead letters, and acknowledged.
    Done,
    /// It is the end of the process; what is not acknowledged stays pending.
    Stopped,
    /// Others took us for dead and have the entries now.
    Fenced,
}

/// What came of the entries of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchResult {
    /// Taken by the view.
    pub(super) applied: Vec<EntryId>,
    /// Not taken, and why.
    pub(super) rejected: Vec<(EntryId, String)>,
}

/// Takes batches in, one after the other, under one consumer's name.
pub(super) struct Intake {
    pub(super) shared: Arc<Shared>,
    pub(super) lane: Lane,
    role: String,
    incarnation: u32,
    name: String,
    /// Whether entries may have been delivered to this consumer that never arrived.
    may_have_unreceived: bool,
    /// How long it has since_keep_alive since it last said that it lives.
    since_keep_alive: Duration,
}

impl Intake {
    pub(super) fn new(shared: Arc<Shared>, lane: Lane, role: String) -> Self {
        let name = shared.process.consumer(&role, 0);
        Intake {
            shared,
            lane,
            role,
            incarnation: 0,
            name,
            may_have_unreceived: false,
            since_keep_alive: Duration::ZERO,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn may_have_unreceived(&self) -> bool {
        self.may_have_unreceived
    }

    /// Goes on under another name.
    pub(super) fn rename(&mut self) {
        self.incarnation += 1;
        self.may_have_unreceived = false;
        let name = self.shared.process.consumer(&self.role, self.incarnation);
        let former = std::mem::replace(&mut self.name, name);
        // Should whoever took us for dead die in turn, what is left under that name is ours to take over.
        self.shared.former_names.lock().insert(former);
    }

    /// Sleeps a little while the view is paused. True if it is the end.
    pub(super) async fn sleep_while_paused(&mut self) -> bool {
        self.since_keep_alive += PAUSE_POLL;
        if self.since_keep_alive < KEEP_ALIVE_EVERY {
            return self.shared.sleep(PAUSE_POLL).await;
        }
        self.since_keep_alive = Duration::ZERO;
        self.wait(PAUSE_POLL).await
    }

    /// Goes on under another name, after being fenced.
    fn continue_after_fencing(&mut self) {
        self.rename();
        self.shared.counters.fenced.fetch_add(1, Ordering::Relaxed);
        warn!(
            view = self.shared.view.name(),
            consumer = self.name,
            "taken for dead; going on under another name"
        );
    }

    /// Reads entries that nobody was given before, or those that were given to this consumer and got lost on the way.
    pub(super) async fn read(&mut self, count: usize, wait: Duration) -> Result<Vec<Stored>, JournalError> {
        let group = self.shared.group();
        if self.may_have_unreceived {
            let found = self.take_over(&self.name.clone(), count).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        // An answer that does not arrive, or is not waited for, may have been the delivery of entries.
        self.may_have_unreceived = true;
        let read = self.shared.journal.read(self.lane, &group, &self.name, count, wait).await;
        self.may_have_unreceived = read.is_err();
        read
    }

    /// Takes over entries of another consumer.
    pub(super) async fn take_over(&mut self, from: &str, count: usize) -> Result<Vec<Stored>, JournalError> {
        let group = self.shared.group();
        let had_unreceived = std::mem::replace(&mut self.may_have_unreceived, true);
        let taken = self.shared.journal.take_over(self.lane, &group, from, &self.name, count).await;
        // Once its own are all found again, nothing is lost any more.
        let has_found_all = from == self.name && taken.as_ref().is_ok_and(Vec::is_empty);
        self.may_have_unreceived = taken.is_err() || had_unreceived && !has_found_all;
        taken
    }

    /// Takes a batch of the traffic lane in.
    pub(super) async fn process(&mut self, entries: &[Stored], taken_from: Option<&str>) -> BatchEnd {
        // Entries come in order.
        let not_before_ms = self.shared.settings.borrow().not_before_ms;
        let (old, entries) = entries.split_at(entries.partition_point(|stored| stored.id.ms < not_before_ms));
        if let ended @ (BatchEnd::Stopped | BatchEnd::Fenced) = self.skip_old(old, !entries.is_empty()).await
        {
            return ended;
        }
        if self.wait_for_rate_limit(entries.len()).await {
            return BatchEnd::Stopped;
        }
        // Halves of a batch that upset the store. Each half is acknowledged before the next is applied, because a
        // view remembers only its last batch.
        let mut parts = vec![entries];
        while let Some(part) = parts.pop() {
            let (arrivals, mut malformed) = parse_entries(part, &*self.shared.clock);
            let left_to_others = self.skip_malformed(&mut malformed);
            let mut batch_result = match self.apply(&arrivals, taken_from).await {
                Ok(batch_result) => batch_result,
                Err(ApplyError::BatchEnd(ended)) => return ended,
                Err(ApplyError::BadEntry(reason)) if part.len() == 1 => {
                    BatchResult { applied: Vec::new(), rejected: vec![(part[0].id, reason)] }
                }
                Err(ApplyError::BadEntry(_)) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                    continue;
                }
            };
            malformed.append(&mut batch_result.rejected);
            if let ended @ (BatchEnd::Stopped | BatchEnd::Fenced) =
                self.move_to_dead_letters(part, malformed).await
            {
                return ended;
            }
            if let ended @ (BatchEnd::Stopped | BatchEnd::Fenced) =
                self.acknowledge(&batch_result.applied).await
            {
                return ended;
            }
            if let ended @ (BatchEnd::Stopped | BatchEnd::Fenced) = self.acknowledge(&left_to_others).await {
                return ended;
            }
            self.shared.counters.applied.fetch_add(batch_result.applied.len() as u64, Ordering::Relaxed);
        }
        BatchEnd::Done
    }

    /// Acknowledges entries that are older than the installation, and notes how many they were (J11).
    async fn skip_old(&self, old: &[Stored], is_last: bool) -> BatchEnd {
        if old.is_empty() {
            return BatchEnd::Done;
        }
        let shared = &self.shared;
        let (group, before_ms, batch_max) = {
            let settings = shared.settings.borrow();
            (settings.group.clone(), settings.not_before_ms, settings.batch_max)
        };
        let ids: Vec<EntryId> = old.iter().map(|stored| stored.id).collect();
        let ended = self.acknowledge(&ids).await;
        if ended != BatchEnd::Done {
            return ended;
        }
        let skipped = &shared.counters.skipped_old;
        let count = skipped.fetch_add(old.len() as u64, Ordering::Relaxed) + old.len() as u64;
        let note = Skipped { count, before_ms, at_ms: shared.clock.now_ms() };
        let name = Skipped::name(&group, &shared.process.to_string());
        if let Err(reason) = shared.journal.set_note(&name, Some(&note.to_text())).await {
            warn!(view = shared.view.name(), %reason, "how many entries were skipped could not be noted");
        }
        if is_last || old.len() < batch_max {
            let view = shared.view.name();
            warn!(
                view,
                count,
                remedy = format!("rollcall journal rewind {view} --from-start"),
                "entries older than this installation were skipped; the remedy takes them, within a day"
            );
        }
        BatchEnd::Done
    }

    /// Waits until so many entries may be applied (J10). True if it is the end.
    pub(super) async fn wait_for_rate_limit(&self, entries: usize) -> bool {
        let per_s_max = self.shared.settings.borrow().entries_per_s_max;
        let wait = self.shared.rate_limiter.wait_for(entries, per_s_max);
        !wait.is_zero() && self.wait(wait).await
    }

    /// Waits for the end of a pause; none if it is the end of the process.
    async fn enter<'s>(&mut self, shared: &'s Shared) -> Option<Applying<'s>> {
        loop {
            if let Some(applying) = shared.pause.begin_applying() {
                return Some(applying);
            }
            if self.sleep_while_paused().await {
                return None;
            }
        }
    }

    /// Takes out what cannot be understood, where another view answers for that.
    fn skip_malformed(&self, malformed: &mut Vec<(EntryId, String)>) -> Vec<EntryId> {
        if self.shared.settings.borrow().handles_malformed {
            return Vec::new();
        }
        self.shared.counters.skipped.fetch_add(malformed.len() as u64, Ordering::Relaxed);
        malformed.drain(..).map(|(id, _)| id).collect()
    }

    /// Applies a batch, however long the view's store is away.
    pub(super) async fn apply(
        &mut self,
        arrivals: &[Arrival],
        taken_from: Option<&str>,
    ) -> Result<BatchResult, ApplyError> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        let mut failures = 0;
        loop {
            if arrivals.is_empty() {
                return Ok(BatchResult::default());
            }
            let shared = Arc::clone(&self.shared);
            let Some(applying) = self.enter(&shared).await else {
                return Err(ApplyError::BatchEnd(BatchEnd::Stopped));
            };
            let batch =
                Batch { lane: self.lane, consumer: &self.name, taken_from, is_retry: failures > 0, arrivals };
            let stopwatch = Stopwatch::start();
            let applied = self.shared.view.apply(&batch).await;
            drop(applying);
            self.shared.counters.applies.record(stopwatch.elapsed());
            let error = match applied {
                Ok(rejected) => {
                    if failures > 0 {
                        info!(view = self.shared.view.name(), failures, "the view goes on");
                        self.shared.counters.failures_in_a_row.store(0, Ordering::Relaxed);
                    }
                    return Ok(batch_result(arrivals, rejected));
                }
                Err(error) => error,
            };
            match error {
                ViewError::Fenced => {
                    self.continue_after_fencing();
                    return Err(ApplyError::BatchEnd(BatchEnd::Fenced));
                }
                ViewError::Entry { reason } => return Err(ApplyError::BadEntry(reason)),
                ViewError::Transient { reason } => {
                    failures += 1;
                    self.shared.counters.failures_in_a_row.store(failures.into(), Ordering::Relaxed);
                    self.record_transient_failure(failures, &reason);
                    if self.wait(backoff.pause()).await {
                        return Err(ApplyError::BatchEnd(BatchEnd::Stopped));
                    }
                }
            }
        }
    }

    fn record_transient_failure(&self, failures: u32, reason: &str) {
        self.shared.counters.transient_failures.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.shared.log.waits.admit(self.shared.clock.now()) {
            let view = self.shared.view.name();
            warn!(
                view,
                failures,
                reason,
                lines_left_out = left_out,
                "the view waits; nothing is lost, nothing is acknowledged"
            );
        }
    }

    /// Sleeps and says meanwhile that this consumer lives. True if it is the end.
    pub(super) async fn wait(&self, length: Duration) -> bool {
        let mut sleep_while_paused = length;
        loop {
            let nap = sleep_while_paused.min(KEEP_ALIVE_EVERY);
            if self.shared.sleep(nap).await {
                return true;
            }
            // A journal that is away has nobody to tell it that we are dead, either.
            let _ = self.shared.journal.keep_alive(self.lane, &self.shared.group(), &self.name).await;
            sleep_while_paused -= nap;
            if sleep_while_paused.is_zero() {
                return false;
            }
        }
    }

    /// Moves what the view cannot take to the dead letters, which acknowledges it (J5).
    async fn move_to_dead_letters(&self, entries: &[Stored], rejected: Vec<(EntryId, String)>) -> BatchEnd {
        if rejected.is_empty() {
            return BatchEnd::Done;
        }
        let now = self.shared.clock.now();
        let (group, retry_delay) = {
            let settings = self.shared.settings.borrow();
            (settings.group.clone(), settings.retry_delay)
        };
        let reasons: std::collections::HashMap<EntryId, String> = rejected.into_iter().collect();
        let dead_letters: Vec<Transfer> = entries
            .iter()
            .filter_map(|stored| Some((stored, reasons.get(&stored.id)?)))
            .map(|(stored, reason)| Transfer {
                id: stored.id,
                fields: DeadLetter {
                    original: stored.fields.clone(),
                    group: group.clone(),
                    retry: 0,
                    reason: reason.clone(),
                    origin: stored.id,
                    failed_at: now,
                    due_at: now + retry_delay,
                }
                .to_fields(),
            })
            .collect();
        let first_reason = reasons.values().next().map(String::as_str).unwrap_or_default();
        if let Some(left_out) = self.shared.log.rejected.admit(now) {
            warn!(
                view = self.shared.view.name(),
                count = dead_letters.len(),
                reason = first_reason,
                lines_left_out = left_out,
                "entries cannot be taken"
            );
        }
        let ended =
            self.retry_until_done(Request::Move { to: Lane::Dead, dead_letters: &dead_letters }).await;
        if ended == BatchEnd::Done {
            self.shared
                .counters
                .moved_to_dead_letters
                .fetch_add(dead_letters.len() as u64, Ordering::Relaxed);
        }
        ended
    }

    pub(super) async fn acknowledge(&self, ids: &[EntryId]) -> BatchEnd {
        if ids.is_empty() {
            return BatchEnd::Done;
        }
        self.retry_until_done(Request::Acknowledge(ids)).await
    }

    /// Asks the journal until it does what it is asked.
    pub(super) async fn retry_until_done(&self, request: Request<'_>) -> BatchEnd {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        loop {
            match self.execute(request).await {
                // Without its group nothing is pending any more: there is nothing left to say.
                Ok(()) | Err(JournalError::NoGroup { .. }) => return BatchEnd::Done,
                Err(error) => {
                    self.record_transient_failure(1, &error.to_string());
                    if self.wait(backoff.pause()).await {
                        return BatchEnd::Stopped;
                    }
                }
            }
        }
    }

    async fn execute(&self, request: Request<'_>) -> Result<(), JournalError> {
        let (journal, group) = (&self.shared.journal, self.shared.group());
        match request {
            Request::Acknowledge(ids) => journal.acknowledge(self.lane, &group, ids).await,
            Request::Move { to, dead_letters } => {
                journal.transfer(self.lane, to, Some(&group), dead_letters).await.map(drop)
            }
            Request::Delete(id) => journal.delete(self.lane, Some(&group), &[id]).await.map(drop),
        }
    }
}

/// What the journal is asked to do about a batch, in its lane and for its group.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    /// The view has these.
    Acknowledge(&'a [EntryId]),
    /// The view cannot take these.
    Move { to: Lane, dead_letters: &'a [Transfer] },
    /// The view has taken this dead letter.
    Delete(EntryId),
}

/// Why a batch was not applied.
pub(super) enum ApplyError {
    /// It is not to be tried again here.
    BatchEnd(BatchEnd),
    /// Some entry in it upsets the view's store.
    BadEntry(String),
}

fn batch_result(arrivals: &[Arrival], rejected: Vec<crate::view::Rejected>) -> BatchResult {
    let rejected: Vec<(EntryId, String)> = rejected
        .into_iter()
        .filter_map(|rejected| Some((arrivals.get(rejected.index)?.id, rejected.reason)))
        .collect();
    let is_rejected: std::collections::HashSet<EntryId> = rejected.iter().map(|(id, _)| *id).collect();
    let applied = arrivals.iter().map(|arrival| arrival.id).filter(|id| !is_rejected.contains(id)).collect();
    BatchResult { applied, rejected }
}

/// Reads entries; what cannot be read is told apart, with the reason.
fn parse_entries(entries: &[Stored], clock: &dyn Clock) -> (Vec<Arrival>, Vec<(EntryId, String)>) {
    let (mut arrivals, mut malformed) = (Vec::with_capacity(entries.len()), Vec::new());
    for stored in entries {
        match TrafficEntry::parse_dated(&stored.fields, clock) {
            Ok(entry) => arrivals.push(Arrival { id: stored.id, origin: stored.id, entry }),
            Err(bad) => malformed.push((stored.id, bad.to_string())),
        }
    }
    (arrivals, malformed)
}

/// How long after its `retry`-th failure a dead letter is tried again: six times as long each time.
pub(super) fn delay_of(retry: u32, first: Seconds) -> Seconds {
    Seconds(first.0.saturating_mul(6_u32.saturating_pow(retry.min(10))))
}
