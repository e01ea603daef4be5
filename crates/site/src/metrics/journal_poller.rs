//! What has to be asked of the journal: lengths, lags, pauses. QueryParams now and then, so that no scrape waits for it.
//!
//! # Guarantees
//!
//! - The journal is asked by one task, one look at a time, each with a deadline.
//! - A look that fails changes nothing but its counter: the last good answer stays, and its age shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::clock::Clock;
use journal::{EntryId, Journal, JournalError, Lane, LaneStatus};
use tokio::sync::watch;

use super::{Page, Source};

/// How often the journal is looked at.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long a look may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Groups that are shown. Any program may read the journal under a group of its own.
const GROUPS_MAX: usize = 50;

/// Looks at the journal now and then, and shows what it saw.
pub struct JournalPoller {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    /// Which view reads under which group.
    views: BTreeMap<String, &'static str>,
    polled: ArcSwapOption<Polled>,
    polls: AtomicU64,
    failures: AtomicU64,
}

/// What a look saw.
struct Polled {
    at_ms: u64,
    lanes: Vec<(Lane, LaneStatus)>,
    /// Of each group of the traffic lane, the oldest entry that its view does not show yet.
    oldest: BTreeMap<String, EntryId>,
    paused: BTreeSet<String>,
}

impl JournalPoller {
    /// A watch that has polled nothing yet. `views` says which view reads under which group.
    pub fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        views: BTreeMap<String, &'static str>,
    ) -> JournalPoller {
        JournalPoller {
            journal,
            clock,
            views,
            polled: ArcSwapOption::empty(),
            polls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Looks every few seconds until told to stop.
    pub async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = self.poll() => {}
            }
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Looks once. A journal that does not answer leaves everything as it was.
    pub async fn poll(&self) {
        let counter = match tokio::time::timeout(TIMEOUT, self.read()).await {
            Ok(Ok(polled)) => {
                self.polled.store(Some(Arc::new(polled)));
                &self.polls
            }
            // Whoever writes to the journal, or reads it, says in the log what is wrong with it.
            Ok(Err(_)) | Err(_) => &self.failures,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    async fn read(&self) -> Result<Polled, JournalError> {
        let mut lanes = Vec::with_capacity(Lane::ALL.len());
        let mut oldest = BTreeMap::new();
        for lane in Lane::ALL {
            let mut status = self.journal.status(lane).await?;
            if lane == Lane::Traffic {
                // Ours first, then others in the order of their names.
                status.groups.sort_by_key(|group| !self.views.contains_key(&group.name));
                for group in status.groups.iter().take(GROUPS_MAX) {
                    if let Some(id) = self.journal.oldest_unfinished(group).await? {
                        oldest.insert(group.name.clone(), id);
                    }
                }
            }
            lanes.push((lane, status));
        }
        let paused = self.journal.paused().await?;
        Ok(Polled { at_ms: self.clock.now_ms(), lanes, oldest, paused })
    }

    fn show_lanes(&self, polled: &Polled, page: &mut Page) {
        for (lane, status) in &polled.lanes {
            let labels = [("lane", lane.name())];
            page.gauge(
                "rollcall_journal_entries",
                "Entries in a lane of the journal: traffic, dead letters to be tried again (dlq), those given up (failed), risks.",
            )
            .with(&labels, status.length);
            page.counter(
                "rollcall_journal_appended_total",
                "Entries that were ever appended to a lane of the journal.",
            )
            .with(&labels, status.appended);
        }
        let newest_ms = polled.lanes.iter().filter_map(|(_, status)| status.last).map(|id| id.ms).max();
        page.gauge(
            "rollcall_journal_clock_ahead_seconds",
            "How far the newest entry of the journal lies in the future, by this machine's clock: that much the clocks differ at the least.",
        )
        .is(seconds(newest_ms.unwrap_or(0).saturating_sub(polled.at_ms)));
    }

    fn show_groups(&self, polled: &Polled, page: &mut Page) {
        let traffic = polled.lanes.iter().find(|(lane, _)| *lane == Lane::Traffic);
        let groups = traffic.map_or(&[][..], |(_, status)| status.groups.as_slice());
        page.gauge("rollcall_journal_groups", "Groups that read the journal; at most 50 of them are shown.")
            .is(groups.len());
        for group in groups.iter().take(GROUPS_MAX) {
            let view = self.views.get(&group.name).copied().unwrap_or_default();
            let labels = [("group", group.name.as_str()), ("view", view)];
            let age = |id: &EntryId| seconds(polled.at_ms.saturating_sub(id.ms));
            page.gauge(
                "rollcall_view_lag_entries",
                "Entries that a group was not given yet, or has not acknowledged: what its view does not show.",
            )
            .with(&labels, group.lag());
            page.gauge(
                "rollcall_view_lag_seconds",
                "Age of the oldest entry that a group's view does not show yet. Zero if it shows everything.",
            )
            .with(&labels, polled.oldest.get(&group.name).map_or(0.0, age));
            page.gauge(
                "rollcall_view_pending_entries",
                "Entries that a group was given and has not acknowledged.",
            )
            .with(&labels, group.pending);
            page.gauge(
                "rollcall_view_oldest_pending_seconds",
                "Age of the oldest entry that a group was given and has not acknowledged. Zero if there is none.",
            )
            .with(&labels, group.oldest_pending.as_ref().map_or(0.0, age));
            page.gauge("rollcall_view_consumers", "Consumers of a group, alive or not yet found dead.")
                .with(&labels, group.consumers);
        }
    }

    fn show_pauses(&self, polled: &Polled, page: &mut Page) {
        let family = page.gauge("rollcall_view_paused", "Whether an operator has paused the view: 1 if so.");
        for view in self.views.values() {
            family.with(&[("view", view)], polled.paused.contains(*view));
        }
    }
}

impl Source for JournalPoller {
    fn encode(&self, page: &mut Page) {
        page.counter(
            "rollcall_journal_polls_total",
            "Looks at the state of the journal for this page, by outcome.",
        )
        .with(&[("outcome", "ok")], self.polls.load(Ordering::Relaxed))
        .with(&[("outcome", "failed")], self.failures.load(Ordering::Relaxed));
        let Some(polled) = self.polled.load_full() else { return };
        page.gauge(
            "rollcall_journal_poll_age_seconds",
            "How long ago the state of the journal shown here was read. It is read every 5 seconds.",
        )
        .is(seconds(self.clock.now_ms().saturating_sub(polled.at_ms)));
        self.show_lanes(&polled, page);
        self.show_groups(&polled, page);
        self.show_pauses(&polled, page);
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
