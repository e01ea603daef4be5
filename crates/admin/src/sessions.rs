//! Dashboard sessions: an API key is exchanged for a secret in a cookie.
//!
//! # Layout
//!
//! - [`secret`]: the secret in the cookie, and the CSRF token
//! - `table`: the rows in the database
//! - `cache`: recently used sessions in memory
//!
//! # Guarantees
//!
//! - **Only a hash is stored**, so read access to the database does not permit signing in.
//! - **A session survives a restart and is valid in every process on the database.** It ends at its expiry or by signing out,
//!   which takes effect in other processes within a second. The caller checks that its key is still active
//!   ([`crate::keys::KeyRing::working`]).
//! - **Cached sessions stay valid while the database fails**; other sessions are refused then.
//! - A key has at most [`PER_KEY_MAX`] sessions; the oldest is removed, and counted.
//!
//! Use does not extend a session: a forgotten tab must not stay signed in for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use database::{Database, SqlError};
use domain::clock::Clock;
use domain::{Seconds, UnixTime};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;

use crate::error::AdminError;
use crate::keys::KeyId;

mod cache;
pub mod secret;
mod table;

use cache::{Cached, SessionCache};
pub use secret::SessionSecret;
use table::SessionRow;

pub const PER_KEY_MAX: u32 = 100;
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
/// Concurrent lookups of secrets that are not cached: clients can invent secrets, and cached sessions must not wait for them.
const UNCACHED_AT_ONCE: usize = 2;
/// Interval of the removal of expired rows.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Sweeps between two warnings while the database fails: ten minutes.
const SWEEPS_PER_WARNING: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub key_id: KeyId,
    pub created_at: UnixTime,
    pub expires_at: UnixTime,
}

/// Counts since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFigures {
    /// Sessions in the database, at the last count.
    pub open: u64,
    /// Expired sessions that were removed.
    pub swept: u64,
    /// Sessions removed because their key had too many.
    pub pushed_out: u64,
    /// Failed lookups and sweeps.
    pub failures: u64,
    /// Sessions dropped from the cache because it was full.
    pub forgotten: u64,
}

#[derive(Debug)]
pub struct Sessions {
    database: Database,
    cache: SessionCache,
    uncached: Semaphore,
    open: AtomicU64,
    swept: AtomicU64,
    pushed_out: AtomicU64,
    failures: AtomicU64,
}

impl Sessions {
    pub fn on(database: &Database) -> Sessions {
        Sessions {
            database: database.clone(),
            cache: SessionCache::default(),
            uncached: Semaphore::new(UNCACHED_AT_ONCE),
            open: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            pushed_out: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Begins a session for an authenticated key. The result is the only place that has the secret.
    pub async fn begin(
        &self,
        key_id: KeyId,
        now: UnixTime,
        length: Seconds,
    ) -> Result<(SessionSecret, Session), AdminError> {
        let secret = SessionSecret::random()?;
        let expires_at = UnixTime(now.0.saturating_add(length.0));
        let session = Session { key_id, created_at: now, expires_at };
        let database = &self.database;
        let explain = |error| database.explain(error);
        table::insert(database, &SessionRow { hash: secret.hash(), session }).await.map_err(explain)?;
        let pushed_out = table::remove_surplus(database, key_id, PER_KEY_MAX).await.map_err(explain)?;
        self.pushed_out.fetch_add(pushed_out, Ordering::Relaxed);
        self.count().await?;
        Ok((secret, session))
    }

    /// The session of a secret, if it is not expired.
    pub async fn find(&self, secret: &SessionSecret, now_ms: u64) -> Result<Option<Session>, AdminError> {
        let hash = secret.hash();
        let is_valid = |session: &Session| u64::from(session.expires_at.0) * 1000 > now_ms;
        let cached = match self.cache.get(&hash, now_ms) {
            Cached::Fresh(session) => return Ok(Some(session).filter(is_valid)),
            Cached::Stale(session) => Some(session),
            Cached::Missing => None,
        };
        let endings = self.cache.endings();
        let lookup = async {
            // The semaphore is never closed.
            let _permit = match cached {
                Some(_) => None,
                None => Some(self.uncached.acquire().await.map_err(|_| SqlError::Closed)?),
            };
            table::find(&self.database, &hash).await
        };
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, lookup).await;
        match found.unwrap_or(Err(SqlError::TimedOut)) {
            Ok(Some(session)) => {
                self.cache.insert(hash, session, now_ms, endings);
                Ok(Some(session).filter(is_valid))
            }
            Ok(None) => {
                self.cache.remove(&hash);
                Ok(None)
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                match cached {
                    Some(session) => Ok(Some(session).filter(is_valid)),
                    None => Err(self.database.explain(error).into()),
                }
            }
        }
    }

    /// Returns whether the session existed.
    pub async fn end(&self, secret: &SessionSecret) -> Result<bool, AdminError> {
        let hash = secret.hash();
        self.cache.end(&hash);
        let removed = table::remove(&self.database, &hash).await;
        // Again: a request may have cached it before the row was deleted.
        self.cache.end(&hash);
        let removed = removed.map_err(|error| self.database.explain(error))?;
        self.count().await?;
        Ok(removed)
    }

    /// Removes expired sessions, and those of revoked keys.
    pub async fn sweep(&self, now: UnixTime) -> Result<(), AdminError> {
        let swept = table::sweep(&self.database, now).await;
        let swept = swept.map_err(|error| self.database.explain(error))?;
        self.swept.fetch_add(swept, Ordering::Relaxed);
        self.cache.remove_expired(now);
        self.count().await
    }

    /// Sweeps periodically until `shutdown` is ready.
    pub async fn keep_swept(self: Arc<Self>, clock: Arc<dyn Clock>, shutdown: impl Future) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sweeping = async {
            let mut failures = 0_u32;
            loop {
                ticks.tick().await;
                let Err(error) = self.sweep(clock.now()).await else {
                    failures = 0;
                    continue;
                };
                self.failures.fetch_add(1, Ordering::Relaxed);
                if failures.is_multiple_of(SWEEPS_PER_WARNING) {
                    tracing::warn!(%error, "expired sessions could not be removed from the database; they are refused nevertheless");
                }
                failures = failures.saturating_add(1);
            }
        };
        tokio::select! {
            () = sweeping => {}
            _ = shutdown => {}
        }
    }

    /// Counts since the start of the process.
    pub fn figures(&self) -> SessionFigures {
        SessionFigures {
            open: self.open.load(Ordering::Relaxed),
            swept: self.swept.load(Ordering::Relaxed),
            pushed_out: self.pushed_out.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            forgotten: self.cache.dropped(),
        }
    }

    async fn count(&self) -> Result<(), AdminError> {
        let count = table::count(&self.database).await.map_err(|error| self.database.explain(error))?;
        self.open.store(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }
}
