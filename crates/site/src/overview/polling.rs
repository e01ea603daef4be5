//! What has to be asked, and may not answer: each is asked in its own time, and what it said last is kept.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use domain::clock::Stopwatch;
use journal::{JournalError, Lane, LaneStatus};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use super::schema::{JournalOverview, ViewOverview};
use super::window::Window;
use super::{OverviewSources, RATE_WINDOW_S};
use crate::api::{PresenceCount, behind_s};

/// How long to wait after one look before the next.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How often the audit trail is tried: that opens a file.
const AUDIT_PAUSE: Duration = Duration::from_secs(10);

/// What was seen last.
pub(super) struct Polled {
    journal: Mutex<Result<JournalOverview, String>>,
    presence: Mutex<Option<PresenceCount>>,
    audit: Mutex<Option<AuditFailure>>,
    has_polled: watch::Sender<bool>,
}

impl Default for Polled {
    fn default() -> Polled {
        Polled {
            journal: Mutex::new(Err("it was not asked yet".to_owned())),
            presence: Mutex::default(),
            audit: Mutex::default(),
            has_polled: watch::Sender::new(false),
        }
    }
}

/// Why nothing can be recorded. The cause is in the log: it names files, which are not everybody's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuditFailure {
    /// It fails.
    Failing,
    /// It does not say whether it works.
    NotResponding,
}

/// What was counted of the journal at one moment.
struct Counted {
    appended: u64,
    /// What each view has finished, by its name: one whose group is not there yet is not among them.
    done: BTreeMap<String, u64>,
}

impl Polled {
    /// How the journal is, if it answered.
    pub(super) fn journal(&self) -> Option<JournalOverview> {
        self.journal.lock().as_ref().ok().cloned()
    }

    /// Why the journal cannot be shown, if so. Before it was asked that is no trouble.
    pub(super) fn journal_error(&self) -> Option<String> {
        let has_polled = *self.has_polled.borrow();
        self.journal.lock().as_ref().err().filter(|_| has_polled).cloned()
    }

    /// Why nothing can be recorded, if so.
    pub(super) fn audit_failure(&self) -> Option<AuditFailure> {
        *self.audit.lock()
    }

    /// How many are here.
    pub(super) fn presence(&self) -> Option<PresenceCount> {
        self.presence.lock().clone()
    }

    /// Done once the journal was asked.
    pub(super) async fn journal_polled(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.has_polled.subscribe().wait_for(|looked| *looked).await;
    }

    /// Polled at the journal, over and over.
    pub(super) async fn poll_journal(&self, sources: &OverviewSources) {
        let (since, mut window) = (Stopwatch::start(), Window::new(RATE_WINDOW_S));
        loop {
            let seen = match tokio::time::timeout(TIMEOUT, read_journal(sources)).await {
                Ok(Ok(mut seen)) => {
                    window.push(since.elapsed().as_secs_f64(), counted(&seen));
                    seen.appended_per_s = window.rate(|counted| counted.appended);
                    seen.views.iter_mut().for_each(|view| view.rate_per_s = rate_of(&view.view, &window));
                    Ok(seen)
                }
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
            };
            *self.journal.lock() = seen;
            self.has_polled.send_replace(true);
            sleep(PAUSE).await;
        }
    }

    /// Counts people over all gateways, over and over.
    pub(super) async fn poll_presence(&self, sources: &OverviewSources) {
        let Some(gateway) = &sources.gateway else { return };
        loop {
            let everywhere = tokio::time::timeout(TIMEOUT, gateway.hub.online_count_everywhere()).await;
            let count = everywhere.unwrap_or_else(|_| gateway.hub.online_count());
            *self.presence.lock() = Some(PresenceCount::of(&count));
            sleep(PAUSE).await;
        }
    }

    /// Finds out whether changes could be recorded, over and over.
    pub(super) async fn poll_audit(&self, sources: &OverviewSources) {
        loop {
            let mut checking = std::pin::pin!(sources.audit.check());
            let checked = match tokio::time::timeout(TIMEOUT, &mut checking).await {
                Ok(checked) => checked,
                // It is not asked again meanwhile: a disk that hangs would hold one more thread each time.
                Err(_) => {
                    self.set_audit(Some((AuditFailure::NotResponding, &"no answer")));
                    checking.await
                }
            };
            let failure = checked.as_ref().err();
            self.set_audit(failure.map(|error| (AuditFailure::Failing, error as &dyn Display)));
            sleep(AUDIT_PAUSE).await;
        }
    }

    /// Keeps what is wrong with the audit trail; its cause is logged when it begins.
    fn set_audit(&self, trouble: Option<(AuditFailure, &dyn Display)>) {
        let found = trouble.map(|(trouble, _)| trouble);
        let before = std::mem::replace(&mut *self.audit.lock(), found);
        if let Some((_, reason)) = trouble.filter(|_| before != found) {
            warn!(%reason, "the audit trail cannot be written, so changes over the API are refused");
        }
    }
}

async fn read_journal(sources: &OverviewSources) -> Result<JournalOverview, JournalError> {
    let journal = &sources.journal;
    let traffic = journal.status(Lane::Traffic).await?;
    let paused = journal.paused().await?;
    let now_ms = sources.clock.now_ms();
    let mut views = Vec::with_capacity(sources.views.len());
    for known in &sources.views {
        let Some(group) = traffic.groups.iter().find(|group| group.name == known.group) else { continue };
        views.push(ViewOverview {
            view: known.view.to_owned(),
            group: known.group.clone(),
            lag: group.lag(),
            behind_s: behind_s(&**journal, group, now_ms).await?,
            rate_per_s: 0.0,
            paused: paused.contains(known.view),
        });
    }
    let LaneStatus { length, appended, .. } = traffic;
    Ok(JournalOverview {
        entries: length,
        too_long: length > sources.journal_length_alarm,
        appended,
        appended_per_s: 0.0,
        dlq: journal.status(Lane::Dead).await?.length,
        failed: journal.status(Lane::Failed).await?.length,
        risks: journal.status(Lane::Risk).await?.length,
        views,
    })
}

fn counted(seen: &JournalOverview) -> Counted {
    let done = seen.views.iter().map(|view| (view.view.clone(), seen.appended.saturating_sub(view.lag)));
    Counted { appended: seen.appended, done: done.collect() }
}

/// What a view finishes in a second; zero until it has been there for as long as rates are over.
fn rate_of(view: &str, window: &Window<Counted>) -> f64 {
    match window.ends() {
        Some((first, last)) if first.done.contains_key(view) && last.done.contains_key(view) => {
            window.rate(|counted| counted.done.get(view).copied().unwrap_or(0))
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_view_is_its_own_whoever_else_is_there() {
        let counted = |done: &[(&str, u64)]| Counted {
            appended: 1_000,
            done: done.iter().map(|(view, done)| ((*view).to_owned(), *done)).collect(),
        };
        let mut window = Window::new(5.0);
        window.push(0.0, counted(&[("activity", 100)]));
        assert_eq!(rate_of("activity", &window), 0.0);
        window.push(1.0, counted(&[("activity", 110), ("ledger", 900)]));
        assert_eq!(rate_of("activity", &window), 10.0);
        assert_eq!(rate_of("ledger", &window), 0.0, "it has only just come");
        window.push(6.0, counted(&[("activity", 110), ("ledger", 905)]));
        assert_eq!(rate_of("ledger", &window), 1.0);
        window.push(11.0, counted(&[("ledger", 915)]));
        assert_eq!((rate_of("activity", &window), rate_of("ledger", &window)), (0.0, 2.0));
    }
}
