//! What the site knows: handles to every part of the process, given at its start.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use access::audit::{Audit, Verdict};
use access::keys::KeyRing;
use access::{Gate, Passkeys, Sessions, Store};
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

/// How old the order of users may be.
const USER_RANKING_MS: u64 = 2000;
/// How old the list of all hit-and-runs may be: it takes a look at every account.
const HIT_AND_RUNS_MS: u64 = 15_000;
/// How long a request waits for it.
const HIT_AND_RUNS_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of the process that the site reads and changes.
#[derive(Clone)]
pub struct Parts {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Users, torrents, clients.
    pub store: Store,
    /// Who knows whom, and who may see what.
    pub friends: FriendStore,
    /// What the tracker goes by.
    pub gate: Arc<Gate>,
    /// The whitelist.
    pub passkeys: Passkeys,
    /// Who may use the API.
    pub keys: Arc<KeyRing>,
    /// Who is signed in to the dashboard.
    pub sessions: Arc<Sessions>,
    /// Where changes are recorded.
    pub audit: Arc<Audit>,
    /// The log of every announce.
    pub journal: Arc<dyn Journal>,
    /// The views and the groups in which they read the journal.
    pub views: Vec<ViewGroup>,
    /// Accounts.
    pub ledger: Arc<Ledger>,
    /// Who seeds and who leeches.
    pub activity: Activity,
    /// What is asked of those who download.
    pub hit_and_run: HitAndRunPolicy,
    /// The people who are here, if this process knows.
    pub gateway: Option<Arc<Gateway>>,
    /// The swarms, if this process has them.
    pub tracker: Option<Arc<Tracker>>,
    /// How many are on each torrent, for a process without swarms, if there is a Redis layout.
    pub indexes: Option<Indexes>,
    /// How everything is.
    pub health: Arc<Health>,
    /// What the metrics page shows.
    pub metrics: Arc<Metrics>,
    /// The whole at a glance.
    pub overview: Arc<OverviewCollector>,
    /// With more entries than this the journal is too long.
    pub journal_length_alarm: u64,
}

/// A view and its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewGroup {
    pub view: &'static str,
    /// The consumer group in which it reads the journal.
    pub group: String,
    /// A process that was silent for this long consumes no more.
    pub dead_after: Duration,
}

/// The state of the application: the parts, and what the site itself keeps.
pub struct Site {
    /// The parts.
    pub parts: Parts,
    /// Settings.
    pub settings: SiteSettings,
    /// What is counted.
    pub counters: Arc<SiteCounters>,
    /// How much each caller may ask.
    pub callers: Callers,
    /// Torrents by how many are on them.
    pub rankings: Rankings,
    /// Places for requests that look through much.
    pub scan_limits: ScanLimits,
    /// How many hit-and-runs each person has who asked lately.
    pub(crate) hit_and_run_counts: HitAndRunCounts,
    /// All users by what they moved.
    pub(crate) user_ranking: CachedValue<UserRanking>,
    hit_and_run_list: CachedValue<HitAndRunList>,
    /// Verify calls so far, of which some are recorded.
    pub(crate) verify_calls: AtomicU64,
    /// The audit trail as it was verified last, and when; whoever asks while that goes on waits for the same answer.
    pub(crate) verified: Arc<tokio::sync::Mutex<Option<(u64, Verdict)>>>,
    /// How many changes are under way, also those whose callers have gone.
    changes: watch::Sender<usize>,
}

/// A change that is under way; it is over when this is dropped.
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
    /// A site that shows these parts.
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

    /// All hit-and-runs. While a new list takes long to read, the last one is given; before the first one, the caller is
    /// asked to come back.
    pub(crate) async fn hit_and_run_list(&self) -> Result<Arc<HitAndRunList>, Problem> {
        let reading =
            self.hit_and_run_list.get(self.parts.clock.now_ms(), HitAndRunList::read(self.parts.clone()));
        match tokio::time::timeout(HIT_AND_RUNS_TIMEOUT, reading).await {
            Ok(read) => read,
            Err(_) => self.hit_and_run_list.last().ok_or_else(|| {
                let detail = "all accounts are being looked through for hit-and-runs: try again in a moment";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "still_reading", detail).after(5)
            }),
        }
    }

    /// Waits until no change is under way.
    pub async fn wait_for_changes(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.changes.subscribe().wait_for(|count| *count == 0).await;
    }
}
