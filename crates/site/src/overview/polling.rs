//! Polls the sources that need I/O, each in its own loop, and keeps their last result.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::clock::Stopwatch;
use journal::{JournalError, Lane, LaneStatus};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::demand::Demand;
use super::schema::{JournalOverview, ViewOverview};
use super::window::Window;
use super::{OverviewSources, RATE_WINDOW_S};
use crate::api::{PresenceCount, behind_s};

/// Timeout of a poll.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(super) struct Polled {
    /// None if the last poll failed.
    journal: Mutex<Option<JournalOverview>>,
    journal_answered: Mutex<Stopwatch>,
    presence: Mutex<Option<PresenceCount>>,
    /// Polls of the journal.
    polls: watch::Sender<u64>,
}

impl Default for Polled {
    fn default() -> Polled {
        Polled {
            journal: Mutex::default(),
            journal_answered: Mutex::new(Stopwatch::start()),
            presence: Mutex::default(),
            polls: watch::Sender::new(0),
        }
    }
}

/// Counters of the journal at one time.
struct JournalSample {
    appended: u64,
    /// Acknowledged entries by view; views without a group are missing.
    done: BTreeMap<String, u64>,
}

impl Polled {
    pub(super) fn journal(&self) -> Option<JournalOverview> {
        self.journal.lock().clone()
    }

    /// Seconds since the journal answered, or since the start.
    pub(super) fn journal_age_s(&self) -> f64 {
        self.journal_answered.lock().elapsed().as_secs_f64()
    }

    pub(super) fn presence(&self) -> Option<PresenceCount> {
        self.presence.lock().clone()
    }

    /// Changes with each poll of the journal.
    pub(super) fn journal_polls(&self) -> watch::Receiver<u64> {
        self.polls.subscribe()
    }

    pub(super) async fn poll_journal(&self, sources: &OverviewSources, demand: &Demand) {
        let (since, mut window) = (Stopwatch::start(), Window::new(RATE_WINDOW_S));
        loop {
            let polled = match tokio::time::timeout(TIMEOUT, read_journal(sources)).await {
                Ok(Ok(mut journal)) => {
                    window.push(since.elapsed().as_secs_f64(), sample_of(&journal));
                    journal.appended_per_s = window.rate(|counted| counted.appended);
                    journal.views.iter_mut().for_each(|view| view.rate_per_s = rate_of(&view.view, &window));
                    *self.journal_answered.lock() = Stopwatch::start();
                    Some(journal)
                }
                Ok(Err(_)) | Err(_) => None,
            };
            *self.journal.lock() = polled;
            self.polls.send_modify(|polls| *polls += 1);
            demand.pause().await;
        }
    }

    /// Counts online users over all gateways.
    pub(super) async fn poll_presence(&self, sources: &OverviewSources, demand: &Demand) {
        let Some(gateway) = &sources.gateway else { return };
        loop {
            let everywhere = tokio::time::timeout(TIMEOUT, gateway.hub.admin.online_count()).await;
            let count = everywhere.unwrap_or_else(|_| gateway.hub.users.online_count());
            *self.presence.lock() = Some(PresenceCount::of(&count));
            demand.pause().await;
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

fn sample_of(journal: &JournalOverview) -> JournalSample {
    let done =
        journal.views.iter().map(|view| (view.view.clone(), journal.appended.saturating_sub(view.lag)));
    JournalSample { appended: journal.appended, done: done.collect() }
}

/// Entries per second that a view acknowledges; zero until the window has two samples of it.
fn rate_of(view: &str, window: &Window<JournalSample>) -> f64 {
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
    fn the_rate_of_a_view_does_not_depend_on_other_views() {
        let counted = |done: &[(&str, u64)]| JournalSample {
            appended: 1_000,
            done: done.iter().map(|(view, done)| ((*view).to_owned(), *done)).collect(),
        };
        let mut window = Window::new(5.0);
        window.push(0.0, counted(&[("activity", 100)]));
        assert_eq!(rate_of("activity", &window), 0.0);
        window.push(1.0, counted(&[("activity", 110), ("ledger", 900)]));
        assert_eq!(rate_of("activity", &window), 10.0);
        assert_eq!(rate_of("ledger", &window), 0.0, "it has one sample only");
        window.push(6.0, counted(&[("activity", 110), ("ledger", 905)]));
        assert_eq!(rate_of("ledger", &window), 1.0);
        window.push(11.0, counted(&[("ledger", 915)]));
        assert_eq!((rate_of("activity", &window), rate_of("ledger", &window)), (0.0, 2.0));
    }
}
