//! Polls lengths, lags and pauses of the journal, so that no scrape waits for it.
//!
//! # Guarantees
//!
//! - One task polls, one poll at a time, each with a timeout.
//! - After a failed poll the last result stays, and its age is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::clock::Clock;
use journal::{EntryId, Journal, JournalError, Lane, LaneStatus};
use tokio::sync::watch;

use super::page::metrics;
use super::{Page, Source};

const INTERVAL: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of groups on the page: any program may create groups.
const GROUPS_MAX: usize = 50;

/// Polls the journal and encodes the last result.
pub struct JournalPoller {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    /// View by consumer group.
    views: BTreeMap<String, &'static str>,
    polled: ArcSwapOption<Polled>,
    polls: AtomicU64,
    failures: AtomicU64,
}

/// Result of a poll.
struct Polled {
    at_ms: u64,
    lanes: Vec<(Lane, LaneStatus)>,
    /// Oldest entry that is not acknowledged, by group of the traffic lane.
    oldest: BTreeMap<String, EntryId>,
    paused: BTreeSet<String>,
}

impl JournalPoller {
    /// `views` maps consumer groups to views.
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

    /// Polls periodically until stopped.
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

    /// Polls once; a failure keeps the last result.
    pub async fn poll(&self) {
        let counter = match tokio::time::timeout(TIMEOUT, self.read()).await {
            Ok(Ok(polled)) => {
                self.polled.store(Some(Arc::new(polled)));
                &self.polls
            }
            // Not logged: producers and consumers log errors of the journal.
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
                // Our views first, then other groups by name.
                status.groups.sort_by_key(|group| !self.views.contains_key(&group.name));
                for group in status.groups.iter().take(GROUPS_MAX) {
                    if let Some(id) = self.journal.oldest_unacknowledged(group).await? {
                        oldest.insert(group.name.clone(), id);
                    }
                }
            }
            lanes.push((lane, status));
        }
        let paused = self.journal.paused().await?;
        Ok(Polled { at_ms: self.clock.now_ms(), lanes, oldest, paused })
    }

    fn encode_lanes(&self, polled: &Polled, page: &mut Page) {
        for (lane, status) in &polled.lanes {
            let labels = [("lane", lane.name())];
            metrics! { page =>
                gauge "rollcall_journal_entries" with(&labels) = status.length,
                    "Entries in a lane of the journal: traffic, dead letters (dlq), dead letters after their last \
                     retry (failed), risk events.";
                counter "rollcall_journal_appended_total" with(&labels) = status.appended,
                    "Entries appended to a lane of the journal.";
            }
        }
        let newest_ms = polled.lanes.iter().filter_map(|(_, status)| status.last).map(|id| id.ms).max();
        metrics! { page =>
            gauge "rollcall_journal_clock_ahead_seconds" = seconds(newest_ms.unwrap_or(0).saturating_sub(polled.at_ms)),
                "Time by which the newest entry is ahead of this machine's clock: the minimum clock difference.";
        }
    }

    fn encode_groups(&self, polled: &Polled, page: &mut Page) {
        let traffic = polled.lanes.iter().find(|(lane, _)| *lane == Lane::Traffic);
        let groups = traffic.map_or(&[][..], |(_, status)| status.groups.as_slice());
        metrics! { page =>
            gauge "rollcall_journal_groups" = groups.len(),
                "Consumer groups of the journal; at most 50 are on this page.";
        }
        for group in groups.iter().take(GROUPS_MAX) {
            let view = self.views.get(&group.name).copied().unwrap_or_default();
            let labels = [("group", group.name.as_str()), ("view", view)];
            let age = |id: &EntryId| seconds(polled.at_ms.saturating_sub(id.ms));
            metrics! { page =>
                gauge "rollcall_view_lag_entries" with(&labels) = group.lag(),
                    "Entries of a group that are not delivered or not acknowledged.";
                gauge "rollcall_view_lag_seconds" with(&labels) = polled.oldest.get(&group.name).map_or(0.0, age),
                    "Age of the oldest entry that a group has not acknowledged. Zero if there is none.";
                gauge "rollcall_view_pending_entries" with(&labels) = group.pending,
                    "Entries delivered to a group and not acknowledged.";
                gauge "rollcall_view_oldest_pending_seconds" with(&labels) = group.oldest_pending.as_ref().map_or(0.0, age),
                    "Age of the oldest entry delivered to a group and not acknowledged. Zero if there is none.";
                gauge "rollcall_view_consumers" with(&labels) = group.consumers,
                    "Consumers of a group, including dead ones that are not removed yet.";
            }
        }
    }

    fn encode_pauses(&self, polled: &Polled, page: &mut Page) {
        let family = page.gauge("rollcall_view_paused", "Whether an operator paused the view.");
        for view in self.views.values() {
            family.with(&[("view", view)], polled.paused.contains(*view));
        }
    }
}

impl Source for JournalPoller {
    fn encode(&self, page: &mut Page) {
        metrics! { page =>
            counter "rollcall_journal_polls_total" by "outcome" { "ok" => &self.polls, "failed" => &self.failures },
                "Polls of the journal for this page, by outcome.";
        }
        let Some(polled) = self.polled.load_full() else { return };
        metrics! { page =>
            gauge "rollcall_journal_poll_age_seconds" = seconds(self.clock.now_ms().saturating_sub(polled.at_ms)),
                "Age of the journal state on this page. It is polled every 5 seconds.";
        }
        self.encode_lanes(&polled, page);
        self.encode_groups(&polled, page);
        self.encode_pauses(&polled, page);
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
