//! Operators who are signed in: a key, exchanged for a secret that a browser keeps for a while.
//!
//! # Layout
//!
//! - [`secret`]: what the browser keeps, and what its pages must say besides it
//! - `table`: the rows in the database
//! - `known`: sessions that were seen lately, in memory
//!
//! # Guarantees
//!
//! - **Only a hash is stored.** Who reads the database cannot sign in.
//! - **A session outlives the server, and holds at every process on the database.** It ends at its time, or when its owner
//!   signs out: here at once, elsewhere within a second. That its key still works is for whoever asks to see
//!   ([`crate::keys::KeyRing::working`]).
//! - **Who is known stays known while the database fails**: that is when operators look. Nobody new is let in then.
//! - A key has at most [`PER_KEY_MAX`] sessions; the oldest gives way, and is counted.
//!
//! # Deliberately absent
//!
//! Sessions that grow longer by use: a forgotten tab would be signed in for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::clock::Clock;
use domain::{Seconds, UnixTime};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;

use crate::error::AccessError;
use crate::keys::KeyId;
use crate::store::Store;

mod known;
pub mod secret;
mod table;

use known::{Known, Seen};
pub use secret::SessionSecret;
use table::SessionRow;

/// Sessions of one key, at the most.
pub const PER_KEY_MAX: u32 = 100;
/// How long the database may take to say whether there is a session.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);
/// Secrets that nobody here knows are looked up so many at a time: anybody can make them up, and whoever is known must not
/// wait behind them.
const UNKNOWN_AT_ONCE: usize = 2;
/// How often rows are removed that are over.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Sweeps between two warnings of the same failure: ten minutes.
const SWEEPS_PER_WARNING: u32 = 20;

/// Somebody who is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The key they signed in with.
    pub key_id: KeyId,
    /// When.
    pub created_at: UnixTime,
    /// Until when, at the most.
    pub expires_at: UnixTime,
}

/// What was seen since the start of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFigures {
    /// Sessions in the database, when it was last looked at.
    pub open: u64,
    /// Sessions that were over and have been removed.
    pub swept: u64,
    /// Sessions that gave way to newer ones of the same key.
    pub pushed_out: u64,
    /// Times that the database did not say whether there is a session, or did not sweep.
    pub failures: u64,
    /// Sessions that were no longer kept in memory, to make room for others.
    pub forgotten: u64,
}

/// The sessions.
#[derive(Debug)]
pub struct Sessions {
    store: Store,
    known: Known,
    unknown: Semaphore,
    open: AtomicU64,
    swept: AtomicU64,
    pushed_out: AtomicU64,
    failures: AtomicU64,
}

impl Sessions {
    /// Those in this database.
    pub fn on(store: &Store) -> Sessions {
        Sessions {
            store: store.clone(),
            known: Known::default(),
            unknown: Semaphore::new(UNKNOWN_AT_ONCE),
            open: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            pushed_out: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Signs somebody in with a key that was found to be good. The secret is in the answer, and nowhere else.
    pub async fn begin(
        &self,
        key_id: KeyId,
        now: UnixTime,
        length: Seconds,
    ) -> Result<(SessionSecret, Session), AccessError> {
        let secret = SessionSecret::random()?;
        let expires_at = UnixTime(now.0.saturating_add(length.0));
        let session = Session { key_id, created_at: now, expires_at };
        let database = self.store.database();
        let explain = |error| self.store.explain(error);
        table::insert(database, &SessionRow { hash: secret.hash(), session }).await.map_err(explain)?;
        let pushed_out = table::push_out(database, key_id, PER_KEY_MAX).await.map_err(explain)?;
        self.pushed_out.fetch_add(pushed_out, Ordering::Relaxed);
        self.count().await?;
        Ok((secret, session))
    }

    /// Whose secret this is, if it is good at this moment.
    pub async fn find(&self, secret: &SessionSecret, now_ms: u64) -> Result<Option<Session>, AccessError> {
        let hash = secret.hash();
        let is_good = |session: &Session| u64::from(session.expires_at.0) * 1000 > now_ms;
        let before = match self.known.see(&hash, now_ms) {
            Seen::Lately(session) => return Ok(Some(session).filter(is_good)),
            Seen::Before(session) => Some(session),
            Seen::Never => None,
        };
        let endings = self.known.endings();
        let asking = async {
            // It is never closed; and who waits in vain waits for the database.
            let _place = match before {
                Some(_) => None,
                None => Some(self.unknown.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?),
            };
            table::find(self.store.database(), &hash).await
        };
        let asked = tokio::time::timeout(ASK_TIMEOUT, asking).await;
        match asked.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(Some(session)) => {
                self.known.keep(hash, session, now_ms, endings);
                Ok(Some(session).filter(is_good))
            }
            Ok(None) => {
                self.known.drop_unknown(&hash);
                Ok(None)
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                match before {
                    Some(session) => Ok(Some(session).filter(is_good)),
                    None => Err(self.store.explain(error)),
                }
            }
        }
    }

    /// Signs somebody out. Tells whether they were signed in until now.
    pub async fn end(&self, secret: &SessionSecret) -> Result<bool, AccessError> {
        let hash = secret.hash();
        self.known.forget(&hash);
        let removed = table::remove(self.store.database(), &hash).await;
        // Once more: a request may have asked for it while it was still there.
        self.known.forget(&hash);
        let removed = removed.map_err(|error| self.store.explain(error))?;
        self.count().await?;
        Ok(removed)
    }

    /// Removes what is over: sessions whose time has come, and those of keys that no longer work.
    pub async fn sweep(&self, now: UnixTime) -> Result<(), AccessError> {
        let swept = table::sweep(self.store.database(), now).await;
        let swept = swept.map_err(|error| self.store.explain(error))?;
        self.swept.fetch_add(swept, Ordering::Relaxed);
        self.known.forget_before(now);
        self.count().await
    }

    /// Sweeps now and then until `shutdown` is ready.
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
                    tracing::warn!(%error, "sessions that are over could not be removed; they are refused all the same");
                }
                failures = failures.saturating_add(1);
            }
        };
        tokio::select! {
            () = sweeping => {}
            _ = shutdown => {}
        }
    }

    /// What was seen since the start of this process.
    pub fn figures(&self) -> SessionFigures {
        SessionFigures {
            open: self.open.load(Ordering::Relaxed),
            swept: self.swept.load(Ordering::Relaxed),
            pushed_out: self.pushed_out.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            forgotten: self.known.forgotten(),
        }
    }

    async fn count(&self) -> Result<(), AccessError> {
        let count = table::count(self.store.database()).await.map_err(|error| self.store.explain(error))?;
        self.open.store(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }
}
