//! The whitelist as a table of the database, for a site without Redis.
//!
//! # How
//!
//! Every passkey belongs to a generation, and one row says which generation counts. A refresh fills a generation of its
//! own, in as many transactions as it takes, and changes that row in the last. Readers ask for both in one statement, so
//! each sees one whole set.
//!
//! A builder notes the time with each batch. One that has been silent for ten minutes is taken for dead, and its
//! generation is given up: what it still sends is refused, so a set with a hole is never made the whitelist. What was
//! given up or replaced is deleted in small steps ([`Whitelist::tidy`]), so that nobody waits long for a lock.

use std::time::Duration;

use async_trait::async_trait;
use domain::Passkey;

use super::tables::{self, Fate, Generations, Transaction};
use super::{Refresh, Replaced, Whitelist};
use crate::error::AccessError;
use crate::store::Store;

/// A builder that was silent for this long is taken for dead.
const SILENT_MAX: Duration = Duration::from_secs(600);
/// Passkeys deleted at a time.
const TIDY_ROWS: i64 = 5000;
/// How often a switch is tried again after the database went away without saying whether it was made.
const SWITCH_TRIES: u32 = 3;

/// The whitelist in SQLite, PostgreSQL or MariaDB. Clones share the store.
#[derive(Clone, Debug)]
pub struct SqlWhitelist {
    store: Store,
    silent_max: Duration,
}

impl SqlWhitelist {
    /// The whitelist of this store.
    pub fn new(store: Store) -> Self {
        SqlWhitelist { store, silent_max: SILENT_MAX }
    }

    /// Takes builders for dead that were silent for this long, instead of ten minutes.
    pub fn silent_max(mut self, silence: Duration) -> Self {
        self.silent_max = silence;
        self
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, AccessError> {
        tables::begin(self.store.database()).await.map_err(|error| self.store.explain(error))
    }

    /// Puts in or takes out, while nobody switches to another set.
    async fn change(&self, passkeys: &[Passkey], adds: bool) -> Result<u64, AccessError> {
        let explain = |error| self.store.explain(error);
        let mut transaction = self.begin().await?;
        let current = transaction.lock_generations().await.map_err(explain)?.current;
        let changed = match adds {
            true => transaction.insert(current, passkeys).await,
            false => transaction.delete(current, passkeys).await,
        };
        let changed = changed.map_err(explain)?;
        transaction.commit().await.map_err(explain)?;
        Ok(changed)
    }

    async fn undo_once(&self) -> Result<Option<Replaced>, sqlx::Error> {
        let mut transaction = tables::begin(self.store.database()).await?;
        let Generations { current, previous: Some(previous) } = transaction.lock_generations().await? else {
            return Ok(None);
        };
        let (before, after) = (transaction.count_in(current).await?, transaction.count_in(previous).await?);
        if after == 0 {
            return Ok(None);
        }
        transaction.set_generations(Generations { current: previous, previous: Some(current) }).await?;
        transaction.commit().await?;
        Ok(Some(replaced(before, after)))
    }

    async fn tidy_once(&self) -> Result<bool, sqlx::Error> {
        let mut transaction = tables::begin(self.store.database()).await?;
        let silent_s = i64::try_from(self.silent_max.as_secs()).unwrap_or(i64::MAX);
        let given_up = transaction.drop_silent(silent_s).await?;
        if given_up > 0 {
            tracing::info!(given_up, "a refresh of the whitelist was never finished, clearing it away");
        }
        let Some((generation, cleared_to)) = transaction.first_dropped().await? else {
            return Ok(false);
        };
        match transaction.nth_behind(generation, &cleared_to, TIDY_ROWS - 1).await? {
            Some(up_to) => transaction.delete_between(generation, &cleared_to, &up_to).await?,
            None => transaction.delete_rest(generation, &cleared_to).await?,
        }
        transaction.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl Whitelist for SqlWhitelist {
    async fn add(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        self.change(passkeys, true).await
    }

    async fn remove(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        self.change(passkeys, false).await
    }

    async fn contains(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        let explain = |error| self.store.explain(error);
        let mut tables = tables::acquire(self.store.database()).await.map_err(explain)?;
        tables::contains(&mut *tables, passkeys).await.map_err(explain)
    }

    async fn count(&self) -> Result<u64, AccessError> {
        let explain = |error| self.store.explain(error);
        let mut tables = tables::acquire(self.store.database()).await.map_err(explain)?;
        Ok(tables.count().await.map_err(explain)?.unsigned_abs())
    }

    async fn begin_refresh(&self) -> Result<Box<dyn Refresh>, AccessError> {
        while self.tidy().await? {}
        let explain = |error| self.store.explain(error);
        let mut transaction = self.begin().await?;
        let generation = transaction.new_generation().await.map_err(explain)?;
        transaction.commit().await.map_err(explain)?;
        Ok(Box::new(SqlRefresh { store: self.store.clone(), generation, is_whole: true }))
    }

    async fn undo(&self) -> Result<Option<Replaced>, AccessError> {
        self.undo_once().await.map_err(|error| self.store.explain(error))
    }

    async fn tidy(&self) -> Result<bool, AccessError> {
        self.tidy_once().await.map_err(|error| self.store.explain(error))
    }
}

/// A generation that is being built.
struct SqlRefresh {
    store: Store,
    generation: i64,
    /// False once a batch has failed.
    is_whole: bool,
}

impl SqlRefresh {
    /// False if the generation was given up.
    async fn insert(&mut self, passkeys: &[Passkey]) -> Result<bool, sqlx::Error> {
        let mut transaction = tables::begin(self.store.database()).await?;
        if !transaction.touch(self.generation).await? {
            return Ok(false);
        }
        transaction.insert(self.generation, passkeys).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// None if the generation was given up. Twice is once: a generation that counts already was switched to before.
    async fn switch(&self) -> Result<Option<Replaced>, sqlx::Error> {
        let mut transaction = tables::begin(self.store.database()).await?;
        let Generations { current, previous } = transaction.lock_generations().await?;
        if current == self.generation {
            let before = transaction.count_in(previous.unwrap_or_default()).await?;
            return Ok(Some(replaced(before, transaction.count_in(current).await?)));
        }
        if !transaction.touch(self.generation).await? {
            return Ok(None);
        }
        let before = transaction.count_in(current).await?;
        let after = transaction.count_in(self.generation).await?;
        transaction.set_fate(self.generation, Fate::Kept).await?;
        if let Some(previous) = previous {
            transaction.set_fate(previous, Fate::Dropped).await?;
        }
        transaction
            .set_generations(Generations { current: self.generation, previous: Some(current) })
            .await?;
        transaction.commit().await?;
        Ok(Some(replaced(before, after)))
    }
}

#[async_trait]
impl Refresh for SqlRefresh {
    async fn add(&mut self, passkeys: &[Passkey]) -> Result<(), AccessError> {
        // In order, passkeys that lie side by side in the table are written together.
        let mut sorted = passkeys.to_vec();
        sorted.sort_unstable();
        let outcome = self.insert(&sorted).await;
        self.is_whole &= matches!(outcome, Ok(true));
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(AccessError::RefreshLost),
            Err(error) => Err(self.store.explain(error)),
        }
    }

    async fn commit(self: Box<Self>) -> Result<Replaced, AccessError> {
        if !self.is_whole {
            return Err(AccessError::RefreshLost);
        }
        let mut tries = 1;
        loop {
            match self.switch().await {
                Ok(replaced) => return replaced.ok_or(AccessError::RefreshLost),
                Err(error) if tries < SWITCH_TRIES && database::is_retryable(&error) => tries += 1,
                Err(error) => return Err(self.store.explain(error)),
            }
        }
    }

    async fn abandon(self: Box<Self>) -> Result<(), AccessError> {
        let explain = |error| self.store.explain(error);
        let mut transaction = tables::begin(self.store.database()).await.map_err(explain)?;
        // Given up already, or a commit came through after all: either way there is nothing to do.
        if transaction.touch(self.generation).await.map_err(explain)? {
            transaction.set_fate(self.generation, Fate::Dropped).await.map_err(explain)?;
        }
        transaction.commit().await.map_err(explain)
    }
}

fn replaced(before: i64, after: i64) -> Replaced {
    Replaced { before: before.unsigned_abs(), after: after.unsigned_abs() }
}
