//! One batch: decode, apply, move rejected entries to the dead letters, acknowledge the rest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Backoff;
use domain::clock::{Clock, Stopwatch};
use tracing::{info, warn};

use super::{PAUSE_POLL, Shared};
use crate::dead_letter::DeadLetter;
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::notes::Skipped;
use crate::pause::Applying;
use crate::port::{Lane, Stored, Transfer};
use crate::view::{Batch, DeliveredEntry, ViewError};

/// Interval at which a waiting consumer resets its idle time.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchEnd {
    /// Every entry is in the view or a dead letter, and acknowledged.
    Done,
    /// Shutdown; what is not acknowledged stays pending.
    Stopped,
    /// Another process has declared this consumer dead and has its entries.
    Fenced,
}

#[derive(Debug, Default)]
pub(super) struct BatchResult {
    pub(super) applied: Vec<EntryId>,
    /// Ids with reasons.
    pub(super) rejected: Vec<(EntryId, String)>,
}

/// Processes batches, one after the other, under one consumer name.
pub(super) struct Intake {
    pub(super) shared: Arc<Shared>,
    pub(super) lane: Lane,
    role: String,
    incarnation: u32,
    name: String,
    /// Whether entries may have been delivered to this consumer whose reply was lost.
    may_have_unreceived: bool,
    /// Time slept since the last request under this name.
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

    /// Continues under another name.
    pub(super) fn rename(&mut self) {
        self.incarnation += 1;
        self.may_have_unreceived = false;
        let name = self.shared.process.consumer(&self.role, self.incarnation);
        let former = std::mem::replace(&mut self.name, name);
        // If the process that fenced us dies as well, this process takes over what is left under the old name.
        self.shared.former_names.lock().insert(former);
    }

    /// Sleeps for [`PAUSE_POLL`] and keeps the consumer alive. True at shutdown.
    pub(super) async fn sleep_while_paused(&mut self) -> bool {
        self.since_keep_alive += PAUSE_POLL;
        if self.since_keep_alive < KEEP_ALIVE_EVERY {
            return self.shared.sleep(PAUSE_POLL).await;
        }
        self.since_keep_alive = Duration::ZERO;
        self.wait(PAUSE_POLL).await
    }

    /// Continues under another name after being fenced.
    fn continue_after_fencing(&mut self) {
        self.rename();
        self.shared.counters.fenced.fetch_add(1, Ordering::Relaxed);
        warn!(
            view = self.shared.view.name(),
            consumer = self.name,
            "consumer was fenced by another process; continuing under another name"
        );
    }

    /// Reads entries not delivered before, or those delivered to this consumer whose reply was lost.
    pub(super) async fn read(&mut self, count: usize, wait: Duration) -> Result<Vec<Stored>, JournalError> {
        let group = self.shared.group();
        if self.may_have_unreceived {
            let found = self.take_over(&self.name.clone(), count).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        // A reply that is lost or not awaited may have delivered entries.
        self.may_have_unreceived = true;
        let read = self.shared.journal.read(self.lane, &group, &self.name, count, wait).await;
        self.may_have_unreceived = read.is_err();
        read
    }

    pub(super) async fn take_over(&mut self, from: &str, count: usize) -> Result<Vec<Stored>, JournalError> {
        let group = self.shared.group();
        let had_unreceived = std::mem::replace(&mut self.may_have_unreceived, true);
        let taken = self.shared.journal.take_over(self.lane, &group, from, &self.name, count).await;
        // Once all of its own pending entries are found, none are missing.
        let has_found_all = from == self.name && taken.as_ref().is_ok_and(Vec::is_empty);
        self.may_have_unreceived = taken.is_err() || had_unreceived && !has_found_all;
        taken
    }

    /// Processes a batch of the traffic lane.
    pub(super) async fn process(&mut self, entries: &[Stored], taken_from: Option<&str>) -> BatchEnd {
        // Entries are in order.
        let not_before_ms = self.shared.settings.borrow().not_before_ms;
        let (old, entries) = entries.split_at(entries.partition_point(|stored| stored.id.ms < not_before_ms));
        if let ended @ (BatchEnd::Stopped | BatchEnd::Fenced) = self.skip_old(old, !entries.is_empty()).await
        {
            return ended;
        }
        if self.wait_for_rate_limit(entries.len()).await {
            return BatchEnd::Stopped;
        }
        // Halves of a batch with a bad entry. Each half is acknowledged before the next is applied, because a view
        // stores the ids of its last batch only.
        let mut parts = vec![entries];
        while let Some(part) = parts.pop() {
            let (arrivals, mut malformed) = parse_entries(part, &*self.shared.clock);
            let left_to_others = self.skip_malformed(&mut malformed);
            let mut batch_result = match self.apply(&arrivals, taken_from).await {
                Ok(batch_result) => batch_result,
                Err(ApplyError::Ended(ended)) => return ended,
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

    /// Acknowledges entries older than the installation and stores their number in a note (J11).
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
            warn!(view = shared.view.name(), %reason, "number of skipped entries could not be stored");
        }
        if is_last || old.len() < batch_max {
            let view = shared.view.name();
            warn!(
                view,
                count,
                remedy = format!("rollcall journal rewind {view} --from-start"),
                "entries older than this installation were skipped; run the remedy within a day to apply them"
            );
        }
        BatchEnd::Done
    }

    /// Waits until so many entries may be applied (J10). True at shutdown.
    pub(super) async fn wait_for_rate_limit(&self, entries: usize) -> bool {
        let per_s_max = self.shared.settings.borrow().entries_per_s_max;
        let wait = self.shared.rate_limiter.wait_for(entries, per_s_max);
        !wait.is_zero() && self.wait(wait).await
    }

    /// Waits for the end of a pause; none at shutdown.
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

    /// Removes malformed entries from the list if another view handles them.
    fn skip_malformed(&self, malformed: &mut Vec<(EntryId, String)>) -> Vec<EntryId> {
        if self.shared.settings.borrow().handles_malformed {
            return Vec::new();
        }
        self.shared.counters.skipped.fetch_add(malformed.len() as u64, Ordering::Relaxed);
        malformed.drain(..).map(|(id, _)| id).collect()
    }

    /// Applies a batch; retries while the view's store is unavailable.
    pub(super) async fn apply(
        &mut self,
        arrivals: &[DeliveredEntry],
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
                return Err(ApplyError::Ended(BatchEnd::Stopped));
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
                        info!(view = self.shared.view.name(), failures, "view continues");
                        self.shared.counters.failures_in_a_row.store(0, Ordering::Relaxed);
                    }
                    return Ok(batch_result(arrivals, rejected));
                }
                Err(error) => error,
            };
            match error {
                ViewError::Fenced => {
                    self.continue_after_fencing();
                    return Err(ApplyError::Ended(BatchEnd::Fenced));
                }
                ViewError::Entry { reason } => return Err(ApplyError::BadEntry(reason)),
                ViewError::Transient { reason } => {
                    failures += 1;
                    self.shared.counters.failures_in_a_row.store(failures.into(), Ordering::Relaxed);
                    self.record_transient_failure(failures, &reason);
                    if self.wait(backoff.next_delay()).await {
                        return Err(ApplyError::Ended(BatchEnd::Stopped));
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
                "view waits and retries; nothing is lost"
            );
        }
    }

    /// Sleeps and keeps the consumer alive. True at shutdown.
    pub(super) async fn wait(&self, length: Duration) -> bool {
        let mut remaining = length;
        loop {
            let nap = remaining.min(KEEP_ALIVE_EVERY);
            if self.shared.sleep(nap).await {
                return true;
            }
            // While the journal is unavailable, no process can declare this consumer dead either.
            let _ = self.shared.journal.keep_alive(self.lane, &self.shared.group(), &self.name).await;
            remaining -= nap;
            if remaining.is_zero() {
                return false;
            }
        }
    }

    /// Moves rejected entries to the dead letters, which acknowledges them (J5).
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
                "entries rejected; moving them to the dead letters"
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

    /// Repeats a request until the journal executes it.
    pub(super) async fn retry_until_done(&self, request: Request<'_>) -> BatchEnd {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        loop {
            match self.execute(request).await {
                // Without its group nothing is pending.
                Ok(()) | Err(JournalError::NoGroup { .. }) => return BatchEnd::Done,
                Err(error) => {
                    self.record_transient_failure(1, &error.to_string());
                    if self.wait(backoff.next_delay()).await {
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

/// A request about a batch, in its lane and for its group.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    Acknowledge(&'a [EntryId]),
    Move { to: Lane, dead_letters: &'a [Transfer] },
    Delete(EntryId),
}

pub(super) enum ApplyError {
    /// Not to be retried here.
    Ended(BatchEnd),
    /// An unknown entry of the batch causes an error in the view's store.
    BadEntry(String),
}

fn batch_result(arrivals: &[DeliveredEntry], rejected: Vec<crate::view::Rejected>) -> BatchResult {
    let rejected: Vec<(EntryId, String)> = rejected
        .into_iter()
        .filter_map(|rejected| Some((arrivals.get(rejected.index)?.id, rejected.reason)))
        .collect();
    let is_rejected: std::collections::HashSet<EntryId> = rejected.iter().map(|(id, _)| *id).collect();
    let applied = arrivals.iter().map(|arrival| arrival.id).filter(|id| !is_rejected.contains(id)).collect();
    BatchResult { applied, rejected }
}

/// Parses entries; malformed ones are returned with the reason.
fn parse_entries(entries: &[Stored], clock: &dyn Clock) -> (Vec<DeliveredEntry>, Vec<(EntryId, String)>) {
    let (mut arrivals, mut malformed) = (Vec::with_capacity(entries.len()), Vec::new());
    let now = (clock.now(), clock.steady());
    for stored in entries {
        match TrafficEntry::parse_at(&stored.fields, now) {
            Ok(entry) => arrivals.push(DeliveredEntry { id: stored.id, origin: stored.id, entry }),
            Err(bad) => malformed.push((stored.id, bad.to_string())),
        }
    }
    (arrivals, malformed)
}
