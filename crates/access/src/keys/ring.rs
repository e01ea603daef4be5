//! The keys in memory, as every request asks them.
//!
//! A request presents a text; the ring hashes it and compares the hash, in constant time, with that of the key whose id
//! the text names, and with that of the configured key. No lock, no allocation, no database.
//!
//! [`KeyRing::follow`] reads the keys again five times a second: there are few, and whoever revokes one, with a command
//! or with SQL, is heard by every process. While the database fails, the ring goes on with what it knows.

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
use crate::error::AccessError;

/// What is longer than this is no key, and not worth hashing.
pub const PRESENTED_BYTES_MAX: usize = 1024;
/// How often the keys are read again.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// How long one reading may take.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// Polls between two notes of when keys were used: a minute.
const POLLS_PER_NOTE: u32 = 300;
/// Polls between two warnings of the same failure: a minute.
const POLLS_PER_WARNING: u32 = 300;

/// Whoever presented a key that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// Which key.
    pub key_id: KeyId,
    /// What it may do.
    pub scopes: Scopes,
}

/// What the ring saw since the start of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingFigures {
    /// Keys that work now, without the configured one.
    pub keys: u64,
    /// Texts that were a key.
    pub accepted: u64,
    /// Texts that were none.
    pub refused: u64,
    /// Times that the keys could not be read again.
    pub failures: u64,
}

/// A key in memory.
#[derive(Clone)]
struct RingKey {
    id: KeyId,
    hash: KeyHash,
    scopes: Scopes,
    name: Arc<str>,
    /// Shared with the ring before, so that no use is forgotten.
    usage: Arc<Usage>,
}

/// When a key was used last, and what the database knows of it, in Unix seconds.
#[derive(Default)]
struct Usage {
    seen: AtomicU32,
    noted: AtomicU32,
}

/// The keys in memory.
pub struct KeyRing {
    keys: ApiKeys,
    clock: Arc<dyn Clock>,
    /// By their ids.
    working: ArcSwap<Vec<RingKey>>,
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
    /// Reads the keys. `configured` is one more, which may verify and nothing else (`site.tracker_api_key`).
    pub async fn load(
        keys: ApiKeys,
        configured: Option<&str>,
        clock: Arc<dyn Clock>,
    ) -> Result<KeyRing, AccessError> {
        let ring = KeyRing {
            keys,
            clock,
            working: ArcSwap::default(),
            configured: configured.filter(|text| !text.is_empty()).map(KeyHash::of),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        };
        ring.reload().await?;
        Ok(ring)
    }

    /// Whose key this is. Anything may be presented.
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
        let working = self.working.load();
        let named = KeyId::within(presented)
            .and_then(|id| working.binary_search_by_key(&id, |key| key.id).ok())
            .map(|place| &working[place]);
        if let Some(key) = named.filter(|key| key.hash.equals(&hash)) {
            key.usage.seen.store(self.clock.now().0, Ordering::Relaxed);
            return Some(Authenticated { key_id: key.id, scopes: key.scopes });
        }
        let is_configured = self.configured.as_ref().is_some_and(|configured| configured.equals(&hash));
        is_configured.then(|| Authenticated { key_id: KeyId::CONFIGURED, scopes: Scope::Verify.into() })
    }

    /// What a key may do that was presented before, for a session; none if it no longer works.
    pub fn working(&self, id: KeyId) -> Option<Authenticated> {
        let working = self.working.load();
        let place = working.binary_search_by_key(&id, |key| key.id).ok()?;
        let key = &working[place];
        key.usage.seen.store(self.clock.now().0, Ordering::Relaxed);
        Some(Authenticated { key_id: key.id, scopes: key.scopes })
    }

    /// What people call a key that works.
    pub fn name_of(&self, id: KeyId) -> Option<Arc<str>> {
        let working = self.working.load();
        let place = working.binary_search_by_key(&id, |key| key.id).ok()?;
        Some(Arc::clone(&working[place].name))
    }

    /// What it saw since the start of this process.
    pub fn figures(&self) -> RingFigures {
        RingFigures {
            keys: self.working.load().len() as u64,
            accepted: self.accepted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }

    /// Keeps the ring equal to the database until `shutdown` is ready, and notes once a minute which keys were used.
    pub async fn follow(&self, shutdown: impl Future) {
        let mut ticks = tokio::time::interval(POLL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let follow = async {
            let (mut polls, mut failures) = (0_u32, 0_u32);
            loop {
                ticks.tick().await;
                polls = polls.wrapping_add(1);
                let mut outcome = self.reload_in_time().await;
                if outcome.is_ok() && polls.is_multiple_of(POLLS_PER_NOTE) {
                    outcome = self.note_uses().await;
                }
                failures = self.hear(outcome, failures);
            }
        };
        tokio::select! {
            () = follow => {}
            _ = shutdown => {}
        }
        if let Err(error) = self.note_uses().await {
            tracing::warn!(%error, "when API keys were used last was not noted");
        }
    }

    /// Logs the first failure of a row, then one a minute, then the recovery. Tells how many there are in a row.
    fn hear(&self, outcome: Result<(), AccessError>, failures: u32) -> u32 {
        let Err(error) = outcome else {
            if failures > 0 {
                tracing::info!("API keys can be read again");
            }
            return 0;
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        if failures.is_multiple_of(POLLS_PER_WARNING) {
            tracing::warn!(%error, "API keys cannot be read, going on with those that are known");
        }
        failures.saturating_add(1)
    }

    async fn reload_in_time(&self) -> Result<(), AccessError> {
        // A server that went away without a word would be waited for by the kernel for many minutes.
        let reloaded = tokio::time::timeout(POLL_TIMEOUT, self.reload()).await;
        reloaded.unwrap_or_else(|_| Err(self.keys.explain(sqlx::Error::PoolTimedOut)))
    }

    /// Reads the keys again, now.
    pub async fn reload(&self) -> Result<(), AccessError> {
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        for read in self.keys.working().await? {
            match read {
                Ok(row) => rows.push(row),
                Err(error) => unreadable.push(error),
            }
        }
        // Told when it begins, not with each poll.
        if self.unreadable.swap(unreadable.len() as u64, Ordering::Relaxed) < unreadable.len() as u64 {
            unreadable.iter().for_each(|error| tracing::warn!(%error, "skipped an API key"));
        }
        rows.sort_by_key(|row| row.key.id);
        let present = self.working.load();
        if !are_same(&present, &rows) {
            let next = rows.into_iter().map(|row| ring_key(row, &present)).collect();
            self.working.store(Arc::new(next));
        }
        Ok(())
    }

    /// Writes down when keys were used last. [`KeyRing::follow`] does so once a minute.
    pub async fn note_uses(&self) -> Result<(), AccessError> {
        let working = self.working.load_full();
        for key in working.iter() {
            let seen = key.usage.seen.load(Ordering::Relaxed);
            if seen > key.usage.noted.load(Ordering::Relaxed) {
                self.keys.note_use(key.id, UnixTime(seen)).await?;
                key.usage.noted.store(seen, Ordering::Relaxed);
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
    let known = before.binary_search_by_key(&row.key.id, |key| key.id).ok().map(|place| &before[place]);
    RingKey {
        id: row.key.id,
        hash: row.hash,
        scopes: row.key.scopes,
        name: row.key.name.into(),
        usage: known.map(|key| Arc::clone(&key.usage)).unwrap_or_default(),
    }
}
