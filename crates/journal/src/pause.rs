//! Pausing a view for all processes on a journal (J9), with confirmation (J10).
//!
//! A pause is a note with a token. Each process that consumes for the view stops, and confirms with a note of its own
//! with the same token once none of its tasks applies entries. The token distinguishes confirmations of different
//! pauses.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use domain::clock::Stopwatch;
use tracing::info;

use crate::consumer::ProcessName;
use crate::error::JournalError;
use crate::notes::PAUSED;
use crate::port::{Journal, Lane};

/// Interval of the check for confirmations.
const POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct PausedView<'a> {
    pub name: &'a str,
    pub group: &'a str,
    /// A process that was idle for this long is dead, and applies nothing.
    pub dead_after: Duration,
}

/// Pauses a view and waits until no process applies further entries. Returns the processes that have not confirmed
/// within `timeout`. `token` must be unique to this pause.
pub async fn pause(
    journal: &dyn Journal,
    view: PausedView<'_>,
    token: &str,
    timeout: Duration,
) -> Result<BTreeSet<String>, JournalError> {
    let pause = format!("{PAUSED} {token}");
    journal.set_note(view.name, Some(&pause)).await?;
    let waiting = Stopwatch::start();
    loop {
        let unconfirmed = unconfirmed(journal, view, &pause).await?;
        if unconfirmed.is_empty() || waiting.elapsed() >= timeout {
            return Ok(unconfirmed);
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn unconfirmed(
    journal: &dyn Journal,
    view: PausedView<'_>,
    pause: &str,
) -> Result<BTreeSet<String>, JournalError> {
    let mut processes = BTreeSet::new();
    for lane in [Lane::Traffic, Lane::Dead] {
        let consumers = match journal.consumers(lane, view.group).await {
            Err(JournalError::NoGroup { .. }) => continue,
            found => found?,
        };
        let live = consumers.iter().filter(|consumer| consumer.idle < view.dead_after);
        processes.extend(live.filter_map(|consumer| ProcessName::of_consumer(&consumer.name)));
    }
    let notes = journal.notes().await?;
    let has_confirmed = |process: &String| {
        notes.get(&confirmation_name(view.name, process)).is_some_and(|note| note == pause)
    };
    processes.retain(|process| !has_confirmed(process));
    Ok(processes)
}

pub async fn resume(journal: &dyn Journal, view: &str) -> Result<(), JournalError> {
    journal.set_note(view, None).await?;
    // Notes of processes that died meanwhile would remain. A live process writes its own again until it resumes.
    let prefix = confirmation_name(view, "");
    for name in journal.notes().await?.keys().filter(|name| name.starts_with(&prefix)) {
        journal.set_note(name, None).await?;
    }
    Ok(())
}

fn confirmation_name(view: &str, process: &str) -> String {
    format!("held {view} {process}")
}

/// Whether the tasks of one consumer may apply entries.
#[derive(Debug, Default)]
pub(crate) struct PauseSwitch {
    is_paused: AtomicBool,
    applying: AtomicUsize,
}

/// Guard of a task that applies entries.
pub(crate) struct Applying<'a>(&'a AtomicUsize);

impl Drop for Applying<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PauseSwitch {
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::SeqCst)
    }

    /// To be held while entries are applied; none during a pause. The count rises before the flag is read, so that a
    /// pause is not confirmed in between.
    pub(crate) fn begin_applying(&self) -> Option<Applying<'_>> {
        self.applying.fetch_add(1, Ordering::SeqCst);
        let applying = Applying(&self.applying);
        (!self.is_paused()).then_some(applying)
    }

    /// Reads whether the view is paused, and confirms a pause once no task applies entries. If the journal is
    /// unavailable, nothing changes.
    pub(crate) async fn refresh(
        &self,
        journal: &dyn Journal,
        view: &str,
        process: &ProcessName,
    ) -> Result<(), JournalError> {
        let notes = journal.notes().await?;
        let note = confirmation_name(view, &process.to_string());
        let Some(pause) = notes.get(view).filter(|text| text.starts_with(PAUSED)) else {
            if self.is_paused() {
                // Removed first: no confirmation may exist while entries are applied.
                journal.set_note(&note, None).await?;
                self.is_paused.store(false, Ordering::SeqCst);
                info!(view, "view resumed");
            }
            return Ok(());
        };
        if !self.is_paused.swap(true, Ordering::SeqCst) {
            info!(view, "view paused");
        }
        let holds = self.applying.load(Ordering::SeqCst) == 0;
        if holds && notes.get(&note) != Some(pause) {
            journal.set_note(&note, Some(pause)).await?;
        }
        Ok(())
    }
}
