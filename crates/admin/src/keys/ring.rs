//! The active keys in memory.
//!
//! The ring hashes the presented text and compares the hash, in constant time, with that of the key whose id is in the text,
//! and with that of the configured key, without lock, allocation or query.
//!
//! [`KeyRing::follow`] reads the keys again five times a second, so that every process applies revocations by command or SQL.
//! While the database fails, the ring uses the keys already read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::UnixTime;
use domain::clock::Clock;
use tokio::time::MissedTickBehavior;

use super::table::KeyRow;
use super::text::KeyHash;
use super::{ApiKeys, KeyId, Scope, Scopes};
use crate::error::AdminError;

/// Longer texts are refused without hashing.
pub const PRESENTED_BYTES_MAX: usize = 1024;
const POLL_EVERY: Duration = Duration::from_millis(200);
/// An unreachable server would block a query until the kernel gives up, after many minutes.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// Polls between two writes of the times of last use: a minute.
const POLLS_PER_WRITE: u32 = 300;
/// Polls between two warnings while the database fails: a minute.
const POLLS_PER_WARNING: u32 = 300;

/// The caller of an authenticated request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub key_id: KeyId,
    pub scopes: Scopes,
}

/// Counts since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingFigures {
    /// Active keys, without the configured one.
    pub keys: u64,
    pub accepted: u64,
    pub refused: u64,
    /// Failed reads of the keys.
    pub failures: u64,
}

#[derive(Clone)]
struct RingKey {
    id: KeyId,
    hash: KeyHash,
    scopes: Scopes,
    name: Arc<str>,
    /// Shared with the previous list of keys, so that no use is lost.
    usage: Arc<Usage>,
}

/// Times of last use, in Unix seconds.
#[derive(Default)]
struct Usage {
    used_at: AtomicU32,
    /// The one in the database.
    stored: AtomicU32,
}

pub struct KeyRing {
    keys: ApiKeys,
    clock: Arc<dyn Clock>,
    /// Sorted by id.
    active: ArcSwap<Vec<RingKey>>,
    configured: Option<KeyHash>,
    accepted: AtomicU64,
    refused: AtomicU64,
    failures: AtomicU64,
    unreadable: AtomicU64,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// `configured` is `site.tracker_api_key`, a key with the scope `verify`.
    pub async fn load(
        keys: ApiKeys,
        configured: Option<&str>,
        clock: Arc<dyn Clock>,
    ) -> Result<KeyRing, AdminError> {
        let ring = KeyRing {
            keys,
            clock,
            active: ArcSwap::default(),
            configured: configured.filter(|text| !text.is_empty()).map(KeyHash::of),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        };
        ring.reload().await?;
        Ok(ring)
    }

    pub fn authenticate(&self, presented: &str) -> Option<Authenticated> {
        let found = self.find(presented);
        let counter = if found.is_some() { &self.accepted } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn find(&self, presented: &str) -> Option<Authenticated> {
        if presented.len() > PRESENTED_BYTES_MAX {
            return None;
        }
        let hash = KeyHash::of(presented);
        let active = self.active.load();
        let named = KeyId::within(presented)
            .and_then(|id| active.binary_search_by_key(&id, |key| key.id).ok())
            .map(|index| &active[index]);
        if let Some(key) = named.filter(|key| key.hash.equals(&hash)) {
            key.usage.used_at.store(self.clock.now().0, Ordering::Relaxed);
            return Some(Authenticated { key_id: key.id, scopes: key.scopes });
        }
        let is_configured = self.configured.as_ref().is_some_and(|configured| configured.equals(&hash));
        is_configured.then(|| Authenticated { key_id: KeyId::CONFIGURED, scopes: Scope::Verify.into() })
    }

    /// The key of a session, if it is still active.
    pub fn working(&self, id: KeyId) -> Option<Authenticated> {
        let active = self.active.load();
        let index = active.binary_search_by_key(&id, |key| key.id).ok()?;
        let key = &active[index];
        key.usage.used_at.store(self.clock.now().0, Ordering::Relaxed);
        Some(Authenticated { key_id: key.id, scopes: key.scopes })
    }

    /// The name of an active key.
    pub fn name_of(&self, id: KeyId) -> Option<Arc<str>> {
        let active = self.active.load();
        let index = active.binary_search_by_key(&id, |key| key.id).ok()?;
        Some(Arc::clone(&active[index].name))
    }

    pub fn figures(&self) -> RingFigures {
        RingFigures {
            keys: self.active.load().len() as u64,
            accepted: self.accepted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }

    /// Keeps the ring equal to the database until `shutdown` is ready, and writes the times of last use once a minute.
    pub async fn follow(&self, shutdown: impl Future) {
        let mut ticks = tokio::time::interval(POLL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let follow = async {
            let (mut polls, mut failures) = (0_u32, 0_u32);
            loop {
                ticks.tick().await;
                polls = polls.wrapping_add(1);
                let mut outcome = self.reload_in_time().await;
                if outcome.is_ok() && polls.is_multiple_of(POLLS_PER_WRITE) {
                    outcome = self.store_usage().await;
                }
                failures = self.log_outcome(outcome, failures);
            }
        };
        tokio::select! {
            () = follow => {}
            _ = shutdown => {}
        }
        if let Err(error) = self.store_usage().await {
            tracing::warn!(%error, "times of last use of API keys were not written");
        }
    }

    /// Logs the first of consecutive failures, then one a minute, then the recovery. Returns the number of consecutive
    /// failures.
    fn log_outcome(&self, outcome: Result<(), AdminError>, failures: u32) -> u32 {
        let Err(error) = outcome else {
            if failures > 0 {
                tracing::info!("API keys can be read again");
            }
            return 0;
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        if failures.is_multiple_of(POLLS_PER_WARNING) {
            tracing::warn!(%error, "API keys cannot be read; using those already read");
        }
        failures.saturating_add(1)
    }

    async fn reload_in_time(&self) -> Result<(), AdminError> {
        let reloaded = tokio::time::timeout(POLL_TIMEOUT, self.reload()).await;
        reloaded.unwrap_or_else(|_| Err(self.keys.explain(database::SqlError::TimedOut)))
    }

    pub async fn reload(&self) -> Result<(), AdminError> {
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        for read in self.keys.active().await? {
            match read {
                Ok(row) => rows.push(row),
                Err(error) => unreadable.push(error),
            }
        }
        // Logged when the number rises, not with each poll.
        if self.unreadable.swap(unreadable.len() as u64, Ordering::Relaxed) < unreadable.len() as u64 {
            unreadable.iter().for_each(|error| tracing::warn!(%error, "skipped an API key"));
        }
        rows.sort_by_key(|row| row.key.id);
        let present = self.active.load();
        if !are_same(&present, &rows) {
            let next = rows.into_iter().map(|row| ring_key(row, &present)).collect();
            self.active.store(Arc::new(next));
        }
        Ok(())
    }

    /// Writes the times of last use. [`KeyRing::follow`] does so once a minute.
    pub async fn store_usage(&self) -> Result<(), AdminError> {
        let active = self.active.load_full();
        for key in active.iter() {
            let used_at = key.usage.used_at.load(Ordering::Relaxed);
            if used_at > key.usage.stored.load(Ordering::Relaxed) {
                self.keys.set_last_used(key.id, UnixTime(used_at)).await?;
                key.usage.stored.store(used_at, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

fn are_same(present: &[RingKey], rows: &[KeyRow]) -> bool {
    let is_same = |(key, row): (&RingKey, &KeyRow)| {
        key.id == row.key.id
            && key.scopes == row.key.scopes
            && *key.name == *row.key.name
            && key.hash.equals(&row.hash)
    };
    present.len() == rows.len() && present.iter().zip(rows).all(is_same)
}

fn ring_key(row: KeyRow, before: &[RingKey]) -> RingKey {
    let known = before.binary_search_by_key(&row.key.id, |key| key.id).ok().map(|index| &before[index]);
    RingKey {
        id: row.key.id,
        hash: row.hash,
        scopes: row.key.scopes,
        name: row.key.name.into(),
        usage: known.map(|key| Arc::clone(&key.usage)).unwrap_or_default(),
    }
}
