//! What has to be asked, and may not answer: each is asked in its own time, and what it said last is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::clock::Stopwatch;
use journal::{JournalError, Lane, LaneStatus};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;

use super::overview::{JournalPulse, ViewPulse};
use super::window::Window;
use super::{PulseSources, RATE_S};
use crate::api::{CountShown, behind_s};

/// How long to wait after one look before the next.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was seen last.
pub(super) struct Looks {
    /// None while it does not answer.
    journal: Mutex<Option<JournalPulse>>,
    journal_answered: Mutex<Stopwatch>,
    people: Mutex<Option<CountShown>>,
    has_looked: watch::Sender<bool>,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks {
            journal: Mutex::default(),
            journal_answered: Mutex::new(Stopwatch::start()),
            people: Mutex::default(),
            has_looked: watch::Sender::new(false),
        }
    }
}

/// What was counted of the journal at one moment.
struct Counted {
    appended: u64,
    /// What each view has finished, by its name: one whose group is not there yet is not among them.
    done: BTreeMap<String, u64>,
}

impl Looks {
    /// How the journal is, if it answered.
    pub(super) fn journal(&self) -> Option<JournalPulse> {
        self.journal.lock().clone()
    }

    /// Seconds since the journal answered, or since the start.
    pub(super) fn journal_age_s(&self) -> f64 {
        self.journal_answered.lock().elapsed().as_secs_f64()
    }

    /// How many are here.
    pub(super) fn people(&self) -> Option<CountShown> {
        self.people.lock().clone()
    }

    /// Done once the journal was asked.
    pub(super) async fn looked_once(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.has_looked.subscribe().wait_for(|looked| *looked).await;
    }

    /// Looks at the journal, over and over.
    pub(super) async fn at_journal(&self, sources: &PulseSources) {
        let (since, mut window) = (Stopwatch::start(), Window::new(RATE_S));
        loop {
            let seen = match tokio::time::timeout(PATIENCE, see_journal(sources)).await {
                Ok(Ok(mut seen)) => {
                    window.push(since.elapsed().as_secs_f64(), counted(&seen));
                    seen.appended_per_s = window.rate(|counted| counted.appended);
                    seen.views.iter_mut().for_each(|view| view.rate_per_s = rate_of(&view.view, &window));
                    *self.journal_answered.lock() = Stopwatch::start();
                    Some(seen)
                }
                Ok(Err(_)) | Err(_) => None,
            };
            *self.journal.lock() = seen;
            self.has_looked.send_replace(true);
            sleep(PAUSE).await;
        }
    }

    /// Counts people over all gateways, over and over.
    pub(super) async fn at_people(&self, sources: &PulseSources) {
        let Some(gateway) = &sources.gateway else { return };
        loop {
            let everywhere = tokio::time::timeout(PATIENCE, gateway.hub.online_count_everywhere()).await;
            let count = everywhere.unwrap_or_else(|_| gateway.hub.online_count());
            *self.people.lock() = Some(CountShown::of(&count));
            sleep(PAUSE).await;
        }
    }
}

async fn see_journal(sources: &PulseSources) -> Result<JournalPulse, JournalError> {
    let journal = &sources.journal;
    let traffic = journal.status(Lane::Traffic).await?;
    let paused = journal.paused().await?;
    let now_ms = sources.clock.now_ms();
    let mut views = Vec::with_capacity(sources.views.len());
    for known in &sources.views {
        let Some(group) = traffic.groups.iter().find(|group| group.name == known.group) else { continue };
        views.push(ViewPulse {
            view: known.view.to_owned(),
            group: known.group.clone(),
            lag: group.lag(),
            behind_s: behind_s(&**journal, group, now_ms).await?,
            rate_per_s: 0.0,
            paused: paused.contains(known.view),
        });
    }
    let LaneStatus { length, appended, .. } = traffic;
    Ok(JournalPulse {
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

fn counted(seen: &JournalPulse) -> Counted {
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
