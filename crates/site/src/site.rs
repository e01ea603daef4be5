//! State of the application: handles to every part of the process, and the site's own caches.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use access::{Gate, Passkeys, Store};
use admin::Sessions;
use admin::audit::{Audit, Verdict};
use admin::keys::KeyRing;
use domain::clock::Clock;
use friends::FriendStore;
use gateway::Gateway;
use http::StatusCode;
use journal::Journal;
use ledger::{HitAndRunPolicy, Ledger};
use tokio::sync::watch;
use tracker::Tracker;
use views::{Activity, Indexes};

use crate::api::HitAndRunCounts;
use crate::auth::Callers;
use crate::cached_value::CachedValue;
use crate::counters::SiteCounters;
use crate::health::Health;
use crate::hit_and_run_list::HitAndRunList;
use crate::metrics::Metrics;
use crate::overview::OverviewCollector;
use crate::problem::Problem;
use crate::ranking::{RankingSource, Rankings};
use crate::scan_limit::ScanLimits;
use crate::settings::SiteSettings;
use crate::user_ranking::UserRanking;

/// Minimum lifetime of the cached user ranking.
const USER_RANKING_MS: u64 = 2000;
/// Minimum lifetime of the cached hit-and-run list, which needs a scan of all accounts.
const HIT_AND_RUNS_MS: u64 = 15_000;
/// How long a request waits for that scan.
const HIT_AND_RUNS_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of the process that the site reads and changes.
#[derive(Clone)]
pub struct Parts {
    pub clock: Arc<dyn Clock>,
    pub store: Store,
    pub friends: FriendStore,
    /// Admission state of the tracker.
    pub gate: Arc<Gate>,
    /// Whitelist.
    pub passkeys: Passkeys,
    pub keys: Arc<KeyRing>,
    /// Sessions of the dashboard.
    pub sessions: Arc<Sessions>,
    pub audit: Arc<Audit>,
    pub journal: Arc<dyn Journal>,
    /// Views with their consumer groups.
    pub views: Vec<ViewGroup>,
    pub ledger: Arc<Ledger>,
    pub activity: Activity,
    pub hit_and_run: HitAndRunPolicy,
    /// None without the role `gateway`.
    pub gateway: Option<Arc<Gateway>>,
    /// None without the role `tracker`.
    pub tracker: Option<Arc<Tracker>>,
    /// Peer counts from the Redis mirror, for a process without a tracker.
    pub indexes: Option<Indexes>,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub overview: Arc<OverviewCollector>,
    /// `journal.length_alarm`.
    pub journal_length_alarm: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewGroup {
    pub view: &'static str,
    /// Consumer group.
    pub group: String,
    /// A consumer without activity for this long is dead.
    pub dead_after: Duration,
}

/// Shared by all requests.
pub struct Site {
    pub parts: Parts,
    pub settings: SiteSettings,
    pub counters: Arc<SiteCounters>,
    /// Rate limits.
    pub callers: Callers,
    /// Torrents sorted by peer counts.
    pub rankings: Rankings,
    /// Limits concurrent scans.
    pub scan_limits: ScanLimits,
    /// Cached hit-and-run counts of members.
    pub(crate) hit_and_run_counts: HitAndRunCounts,
    /// Users sorted by traffic and activity.
    pub(crate) user_ranking: CachedValue<UserRanking>,
    hit_and_run_list: CachedValue<HitAndRunList>,
    /// Verify calls so far; one of `verify_audit_every` is recorded.
    pub(crate) verify_calls: AtomicU64,
    /// Time and result of the last verification of the audit trail. Held during a verification.
    pub(crate) verified: Arc<tokio::sync::Mutex<Option<(u64, Verdict)>>>,
    /// Changes in progress, including those whose caller disconnected.
    changes: watch::Sender<usize>,
}

/// Counts a change as in progress until it is dropped.
pub(crate) struct PendingChange(Arc<Site>);

impl PendingChange {
    pub(crate) fn begin(site: &Arc<Site>) -> PendingChange {
        site.changes.send_modify(|count| *count += 1);
        PendingChange(Arc::clone(site))
    }
}

impl Drop for PendingChange {
    fn drop(&mut self) {
        self.0.changes.send_modify(|count| *count -= 1);
    }
}

impl Site {
    pub fn new(parts: Parts, settings: SiteSettings, counters: Arc<SiteCounters>) -> Arc<Site> {
        let callers = Callers::new(&settings.limits);
        let source = RankingSource::of(Arc::clone(&parts.gate), parts.tracker.clone(), parts.indexes.clone());
        Arc::new(Site {
            parts,
            settings,
            counters,
            callers,
            rankings: Rankings::new(source),
            scan_limits: ScanLimits::default(),
            hit_and_run_counts: HitAndRunCounts::default(),
            user_ranking: CachedValue::new(USER_RANKING_MS),
            hit_and_run_list: CachedValue::new(HIT_AND_RUNS_MS),
            verify_calls: AtomicU64::new(0),
            verified: Arc::default(),
            changes: watch::Sender::new(0),
        })
    }

    /// All hit-and-runs. If a scan takes long, the previous list is returned; without one, a retryable error.
    pub(crate) async fn hit_and_run_list(&self) -> Result<Arc<HitAndRunList>, Problem> {
        let reading =
            self.hit_and_run_list.get(self.parts.clock.now_ms(), HitAndRunList::read(self.parts.clone()));
        match tokio::time::timeout(HIT_AND_RUNS_TIMEOUT, reading).await {
            Ok(read) => read,
            Err(_) => self.hit_and_run_list.last().ok_or_else(|| {
                let detail = "the first scan for hit-and-runs is in progress: try again in a few seconds";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "scan_in_progress", detail).after(5)
            }),
        }
    }

    /// Waits until no change is in progress.
    pub async fn wait_for_changes(&self) {
        // Cannot fail: this struct owns the sender.
        let _ = self.changes.subscribe().wait_for(|count| *count == 0).await;
    }
}
