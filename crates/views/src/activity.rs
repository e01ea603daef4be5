//! Who seeds, who leeches (A1–A5), as a view of the journal.
//!
//! # Guarantees
//!
//! - The lists depend on the set of entries, not on their order or number: per user, torrent and client the later one
//!   counts ([`record::Stamp`]), so a replay neither brings a zombie back nor removes a newer state.
//! - A user who runs two clients on a torrent is in its list until both have gone.
//! - A torrent is in at most one list of a user: seeding if any client seeds, else leeching if any leeches.
//! - What was last announced longer ago than the threshold, or than the longer interval that its client was told and the
//!   grace, is not shown, and is removed by every read and by [`Activity::sweep`].
//! - Both stores, Redis and SQLite, give the same answers.
//!
//! # Deliberately absent
//!
//! Amounts and times (the ledger's), and exactly-once bookkeeping: applying an entry twice changes nothing.
//!
//! # Layout
//!
//! - [`fold`]: from a batch of entries to the few changes that matter
//! - [`record`]: the clients of one user on one torrent, and what follows from them
//! - [`store`]: the port; `sqlite`, `redis`: its adapters
//! - [`settings`], [`counters`]: what can be set, what is counted

pub mod counters;
pub mod fold;
mod rebuild;
pub mod record;
mod redis;
pub mod settings;
mod sqlite;
pub mod store;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use database::SqliteDatabase;
use domain::clock::Clock;
use domain::{AnnounceEvent, Passkey};
use futures_util::{StreamExt, TryStreamExt, stream};
use journal::{Batch, Rejected, View, ViewError};
use keyspace::{KeyNames, Redis};

use self::redis::RedisActivity;
use crate::error::ViewsError;
use counters::Counting;
use record::ClientState;
use settings::Window;
use sqlite::SqliteActivity;
use store::ActivityStore;

/// The consumer group of the view.
pub const GROUP: &str = "activity";

pub use counters::ActivityCounters;
pub use rebuild::Rebuild;
pub use settings::ActivitySettings;
pub use sqlite::schema;
pub use store::{ActiveTorrent, Counts, Cursor, Listing, Page, Swept};

/// Users whose lists are counted at the same time.
const USERS_AT_ONCE: usize = 32;

/// Who seeds, who leeches. Clones share one store.
#[derive(Clone)]
pub struct Activity {
    store: Arc<dyn ActivityStore>,
    settings: ActivitySettings,
    clock: Arc<dyn Clock>,
    counting: Arc<Counting>,
    on_change: Arc<OnceLock<ChangeCallback>>,
}

/// Is told whose lists an applied batch may have changed.
type ChangeCallback = Box<dyn Fn(&[Passkey]) + Send + Sync>;

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Activity {
    /// Keeps the lists in a SQLite file of their own, which it brings up to date.
    pub async fn on_sqlite(
        database: SqliteDatabase,
        settings: ActivitySettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Activity, ViewsError> {
        Ok(Activity::on(Arc::new(SqliteActivity::new(database).await?), settings, clock))
    }

    /// Keeps the lists in Redis, where other programs read them (A1). Nothing is asked of it yet.
    pub fn on_redis(
        redis: Redis,
        names: KeyNames,
        settings: ActivitySettings,
        clock: Arc<dyn Clock>,
    ) -> Activity {
        Activity::on(Arc::new(RedisActivity::new(redis, names)), settings, clock)
    }

    /// Keeps the lists in any store.
    pub fn on(store: Arc<dyn ActivityStore>, settings: ActivitySettings, clock: Arc<dyn Clock>) -> Activity {
        Activity { store, settings, clock, counting: Arc::default(), on_change: Arc::default() }
    }

    /// Tells somebody whose lists a batch may have changed, once it is applied: who began, completed or stopped. A
    /// heartbeat is not worth telling. They must not wait. Only the first one is told.
    pub fn on_change(&self, callback: impl Fn(&[Passkey]) + Send + Sync + 'static) {
        let _ = self.on_change.set(Box::new(callback));
    }

    /// What a user seeds, newest first.
    pub async fn seeding(&self, passkey: &Passkey, page: &Page) -> Result<Listing, ViewsError> {
        self.store.list(passkey, ClientState::Seeding, page, &self.window()).await
    }

    /// What a user downloads, newest first.
    pub async fn leeching(&self, passkey: &Passkey, page: &Page) -> Result<Listing, ViewsError> {
        self.store.list(passkey, ClientState::Leeching, page, &self.window()).await
    }

    /// How many torrents a user seeds and downloads.
    pub async fn counts(&self, passkey: &Passkey) -> Result<Counts, ViewsError> {
        self.store.counts(passkey, &self.window()).await
    }

    /// The same of many users, in their order.
    pub async fn counts_of(&self, passkeys: &[Passkey]) -> Result<Vec<Counts>, ViewsError> {
        let asking = stream::iter(passkeys.to_vec());
        let asking = asking.map(|passkey| async move { self.counts(&passkey).await });
        asking.buffered(USERS_AT_ONCE).try_collect().await
    }

    /// Everyone who seeds or downloads anything. What became too old since the last sweep is still counted.
    pub async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError> {
        self.store.active_users().await
    }

    /// Removes what is too old, of a bounded number of users. To be called every few seconds; again at once where
    /// the answer says that it is behind. Several processes may do so at once.
    pub async fn sweep(&self) -> Result<Swept, ViewsError> {
        let swept = self.store.sweep(self.settings.sweep_users_max, &self.window()).await?;
        self.counting.swept(&swept);
        Ok(swept)
    }

    /// What happened since the start.
    pub fn counters(&self) -> ActivityCounters {
        self.counting.read()
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

    /// Applies a batch. What was applied before an error stays applied: applying it again changes nothing.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        let window = self.window();
        let mut folded = fold::fold(batch.arrivals, &window);
        let applied = match folded.users.as_slice() {
            [] => store::Applied::default(),
            // Whatever the store's error is, it is none of an entry's.
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
        self.counting.applied(&folded, &applied, rejected.len());
        Ok(rejected)
    }
}

/// Whose lists a batch may have changed.
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
