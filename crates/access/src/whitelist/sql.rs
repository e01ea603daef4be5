//! The whitelist as a table of the database, for a site without Redis.
//!
//! Every passkey belongs to a generation, and one row names the current generation. A refresh fills another generation, in
//! any number of transactions, and the last one changes that row. Readers read both in one statement, so each sees one
//! complete set.
//!
//! Each batch of a refresh updates a timestamp. After ten minutes without a batch the generation is dropped, and further
//! batches are refused, so an incomplete set never becomes the whitelist. Dropped and replaced generations are deleted in
//! small steps ([`Whitelist::tidy`]), to keep locks short.

use std::time::Duration;

use async_trait::async_trait;
use database::SqlError;
use domain::Passkey;

use super::tables::{self, GenerationState, Generations, WhitelistTransaction};
use super::{Refresh, Replaced, Whitelist};
use crate::error::AccessError;
use crate::store::Store;

/// A refresh without a batch for this long is dropped.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Passkeys deleted per step.
const TIDY_ROWS: i64 = 5000;
/// Attempts of a switch whose outcome is unknown.
const SWITCH_TRIES: u32 = 3;

/// Clones share the store.
#[derive(Clone, Debug)]
pub struct SqlWhitelist {
    store: Store,
    idle_max: Duration,
}

impl SqlWhitelist {
    pub fn new(store: Store) -> Self {
        SqlWhitelist { store, idle_max: IDLE_MAX }
    }

    /// A refresh without a batch for this long is dropped. Default: ten minutes.
    pub fn idle_max(mut self, idle_max: Duration) -> Self {
        self.idle_max = idle_max;
        self
    }

    async fn begin(&self) -> Result<WhitelistTransaction, AccessError> {
        WhitelistTransaction::begin(self.store.database()).await.map_err(|error| self.store.explain(error))
    }

    /// Adds or removes, under the lock that excludes a switch.
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

    async fn undo_once(&self) -> Result<Option<Replaced>, SqlError> {
        let mut transaction = WhitelistTransaction::begin(self.store.database()).await?;
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

    async fn tidy_once(&self) -> Result<bool, SqlError> {
        let mut transaction = WhitelistTransaction::begin(self.store.database()).await?;
        let idle_s = i64::try_from(self.idle_max.as_secs()).unwrap_or(i64::MAX);
        let dropped = transaction.drop_idle(idle_s).await?;
        if dropped > 0 {
            tracing::info!(dropped, "an unfinished refresh of the whitelist is deleted");
        }
        let Some((generation, cleared_to)) = transaction.first_dropped().await? else {
            return Ok(false);
        };
        match transaction.nth_after(generation, &cleared_to, TIDY_ROWS - 1).await? {
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
        tables::contains(self.store.database(), passkeys).await.map_err(explain)
    }

    async fn count(&self) -> Result<u64, AccessError> {
        let explain = |error| self.store.explain(error);
        Ok(tables::count(self.store.database()).await.map_err(explain)?.unsigned_abs())
    }

    async fn begin_refresh(&self) -> Result<Box<dyn Refresh>, AccessError> {
        while self.tidy().await? {}
        let explain = |error| self.store.explain(error);
        let mut transaction = self.begin().await?;
        let generation = transaction.new_generation().await.map_err(explain)?;
        transaction.commit().await.map_err(explain)?;
        Ok(Box::new(SqlRefresh { store: self.store.clone(), generation, is_complete: true }))
    }

    async fn undo(&self) -> Result<Option<Replaced>, AccessError> {
        self.undo_once().await.map_err(|error| self.store.explain(error))
    }

    async fn tidy(&self) -> Result<bool, AccessError> {
        self.tidy_once().await.map_err(|error| self.store.explain(error))
    }
}

struct SqlRefresh {
    store: Store,
    generation: i64,
    /// False after a failed batch.
    is_complete: bool,
}

impl SqlRefresh {
    /// False if the generation was dropped.
    async fn insert(&mut self, passkeys: &[Passkey]) -> Result<bool, SqlError> {
        let mut transaction = WhitelistTransaction::begin(self.store.database()).await?;
        if !transaction.touch(self.generation).await? {
            return Ok(false);
        }
        transaction.insert(self.generation, passkeys).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// None if the generation was dropped. Idempotent: if the generation is current, it was switched to before.
    async fn switch(&self) -> Result<Option<Replaced>, SqlError> {
        let mut transaction = WhitelistTransaction::begin(self.store.database()).await?;
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
        transaction.set_state(self.generation, GenerationState::Kept).await?;
        if let Some(previous) = previous {
            transaction.set_state(previous, GenerationState::Dropped).await?;
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
        // Sorted, because neighbours in the index are written together.
        let mut sorted = passkeys.to_vec();
        sorted.sort_unstable();
        let outcome = self.insert(&sorted).await;
        self.is_complete &= matches!(outcome, Ok(true));
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(AccessError::RefreshLost),
            Err(error) => Err(self.store.explain(error)),
        }
    }

    async fn commit(self: Box<Self>) -> Result<Replaced, AccessError> {
        if !self.is_complete {
            return Err(AccessError::RefreshLost);
        }
        let mut tries = 1;
        loop {
            match self.switch().await {
                Ok(replaced) => return replaced.ok_or(AccessError::RefreshLost),
                Err(error) if tries < SWITCH_TRIES && error.is_retryable() => tries += 1,
                Err(error) => return Err(self.store.explain(error)),
            }
        }
    }

    async fn abandon(self: Box<Self>) -> Result<(), AccessError> {
        let explain = |error| self.store.explain(error);
        let mut transaction = WhitelistTransaction::begin(self.store.database()).await.map_err(explain)?;
        // False if it was dropped, or committed after all.
        if transaction.touch(self.generation).await.map_err(explain)? {
            transaction.set_state(self.generation, GenerationState::Dropped).await.map_err(explain)?;
        }
        transaction.commit().await.map_err(explain)
    }
}

fn replaced(before: i64, after: i64) -> Replaced {
    Replaced { before: before.unsigned_abs(), after: after.unsigned_abs() }
}
