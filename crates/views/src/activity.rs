//! Activity: the torrents that each user seeds and leeches now (A1–A5), as a view of the journal.
//!
//! # Guarantees
//!
//! - The lists depend on the set of entries, not on their order or number: per user, torrent and client the later entry
//!   counts ([`record::Stamp`]), so a replay neither restores stopped clients nor removes newer states.
//! - A torrent with two clients of a user stays listed until both have stopped or expired.
//! - A torrent is in at most one list of a user: seeding if any client seeds, else leeching if any leeches.
//! - A client expires after the usual silence limit, or after its own longer interval plus grace. Expired clients are
//!   not returned, and are removed by every read and by [`Activity::sweep`].
//! - Both stores, memory and Redis, give the same answers. Lists in memory are rebuilt from the journal at each start,
//!   and cannot be read before that is complete ([`Rebuild`]).
//!
//! # Deliberately absent
//!
//! Amounts and times (see the ledger), and exactly-once bookkeeping: applying an entry twice changes nothing.
//!
//! # Layout
//!
//! - [`fold`]: from a batch of entries to changes per user
//! - [`record`]: the clients of one user on one torrent
//! - [`store`]: the port; [`memory`], `redis`: its adapters
//! - `user_torrents`: the torrents of one user, packed
//! - `rebuild`: applies the journal's entries again
//! - [`settings`], [`counters`]

pub mod counters;
pub mod fold;
pub mod memory;
mod rebuild;
pub mod record;
mod redis;
pub mod settings;
pub mod store;
mod user_torrents;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use domain::clock::Clock;
use domain::{AnnounceEvent, Passkey};
use futures_util::{StreamExt, TryStreamExt, stream};
use journal::{Batch, Rejected, View, ViewError};
use keyspace::{KeyNames, Redis};

use self::redis::RedisActivity;
use crate::error::ViewsError;
use memory::MemoryActivity;
use record::ClientState;
use settings::Window;
use store::ActivityStore;

/// Consumer group of the view.
pub const GROUP: &str = "activity";

pub use counters::ActivityCounters;
pub use rebuild::Rebuild;
pub use settings::ActivitySettings;
pub use store::{ActiveTorrent, Counts, Cursor, Listing, MemoryUsage, Page, Swept};

/// Concurrent requests of [`Activity::counts_of`].
const USERS_AT_ONCE: usize = 32;

/// Clones share one store.
#[derive(Clone)]
pub struct Activity {
    store: Arc<dyn ActivityStore>,
    settings: ActivitySettings,
    clock: Arc<dyn Clock>,
    counters: Arc<ActivityCounters>,
    on_change: Arc<OnceLock<ChangeCallback>>,
    /// Whether no rebuild is pending.
    is_complete: Arc<AtomicBool>,
}

/// Called with the users whose lists an applied batch may have changed.
type ChangeCallback = Box<dyn Fn(&[Passkey]) + Send + Sync>;

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Activity {
    /// Begins empty: see [`Rebuild`].
    pub fn in_memory(settings: ActivitySettings, clock: Arc<dyn Clock>) -> Activity {
        Activity::on(Arc::new(MemoryActivity::default()), settings, clock)
    }

    /// Uses Redis, where other programs read the lists (A1). Sends no command yet.
    pub fn on_redis(
        redis: Redis,
        names: KeyNames,
        settings: ActivitySettings,
        clock: Arc<dyn Clock>,
    ) -> Activity {
        Activity::on(Arc::new(RedisActivity::new(redis, names)), settings, clock)
    }

    pub fn on(store: Arc<dyn ActivityStore>, settings: ActivitySettings, clock: Arc<dyn Clock>) -> Activity {
        let is_complete = Arc::new(AtomicBool::new(true));
        Activity { store, settings, clock, counters: Arc::default(), on_change: Arc::default(), is_complete }
    }

    /// Sets a callback for the users with a started, completed or stopped entry in an applied batch. It must not block.
    /// Only the first callback is kept.
    pub fn on_change(&self, callback: impl Fn(&[Passkey]) + Send + Sync + 'static) {
        let _ = self.on_change.set(Box::new(callback));
    }

    /// Torrents that a user seeds, newest announce first.
    pub async fn seeding(&self, passkey: &Passkey, page: &Page) -> Result<Listing, ViewsError> {
        self.check_complete()?;
        self.store.list(passkey, ClientState::Seeding, page, &self.window()).await
    }

    /// Torrents that a user leeches, newest announce first.
    pub async fn leeching(&self, passkey: &Passkey, page: &Page) -> Result<Listing, ViewsError> {
        self.check_complete()?;
        self.store.list(passkey, ClientState::Leeching, page, &self.window()).await
    }

    /// Numbers of torrents that a user seeds and leeches.
    pub async fn counts(&self, passkey: &Passkey) -> Result<Counts, ViewsError> {
        self.check_complete()?;
        self.store.counts(passkey, &self.window()).await
    }

    /// [`Activity::counts`] of many users, in their order.
    pub async fn counts_of(&self, passkeys: &[Passkey]) -> Result<Vec<Counts>, ViewsError> {
        let requests =
            stream::iter(passkeys.to_vec()).map(|passkey| async move { self.counts(&passkey).await });
        requests.buffered(USERS_AT_ONCE).try_collect().await
    }

    /// All users with a torrent in a list. Includes clients that expired since the last sweep.
    pub async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError> {
        self.check_complete()?;
        self.store.active_users().await
    }

    /// Removes expired clients of a bounded number of users. Call it every few seconds, and again at once if
    /// [`Swept::is_behind`]. Several processes may call it concurrently.
    pub async fn sweep(&self) -> Result<Swept, ViewsError> {
        let swept = self.store.sweep(self.settings.sweep_users_max, &self.window()).await?;
        self.counters.swept(&swept);
        Ok(swept)
    }

    /// Since the start of the process.
    pub fn counters(&self) -> &ActivityCounters {
        &self.counters
    }

    pub fn memory_usage(&self) -> MemoryUsage {
        self.store.memory_usage()
    }

    fn set_complete(&self, is_complete: bool) {
        self.is_complete.store(is_complete, Ordering::Release);
    }

    fn check_complete(&self) -> Result<(), ViewsError> {
        match self.is_complete.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(ViewsError::Rebuilding),
        }
    }

    fn window(&self) -> Window {
        Window { now: self.clock.steady(), silence: self.settings.silence }
    }
}

#[async_trait]
impl View for Activity {
    fn name(&self) -> &'static str {
        "activity"
    }

    /// After an error a part may have been applied; applying it again changes nothing.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        let window = self.window();
        let mut folded = fold::fold(batch.arrivals, &window);
        let applied = match folded.users.as_slice() {
            [] => store::Applied::default(),
            // No error of the store is caused by an entry.
            users => self
                .store
                .apply(users, &window)
                .await
                .map_err(|error| ViewError::Transient { reason: error.to_string() })?,
        };
        if let Some(callback) = self.on_change.get() {
            callback(&touched(batch));
        }
        let mut rejected = std::mem::take(&mut folded.rejected);
        for refused in &applied.refused {
            let indices = &folded.users[refused.user].indices;
            rejected.extend(
                indices.iter().map(|index| Rejected { index: *index, reason: refused.reason.clone() }),
            );
        }
        rejected.sort_unstable_by_key(|rejected| rejected.index);
        self.counters.applied(&folded, &applied, rejected.len());
        Ok(rejected)
    }
}

/// Users with a started, completed or stopped entry in a batch.
fn touched(batch: &Batch<'_>) -> Vec<Passkey> {
    let entries = batch.arrivals.iter().map(|arrival| &arrival.entry);
    let mut touched: Vec<Passkey> = entries
        .filter(|entry| entry.event != AnnounceEvent::None)
        .filter_map(|entry| entry.passkey)
        .collect();
    touched.sort_unstable();
    touched.dedup();
    touched
}
