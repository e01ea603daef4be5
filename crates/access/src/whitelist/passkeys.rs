//! The whitelist for its writers, the commands and the HTTP API: every change is also published ([`super::feed`]).
//!
//! Changes are published after the set has changed, and also if it did not change: repeating a call that failed halfway
//! publishes what was missed.

use std::fmt;
use std::sync::Arc;

use domain::Passkey;

use super::feed::{self, Action};
use super::{PasskeyLines, Refresh, Replaced, Whitelist};
use crate::error::AccessError;
use crate::store::Store;

/// Passkeys of an upload in memory (two megabytes). In smaller batches SQLite writes the same pages repeatedly: a million
/// passkeys took 33 s in batches of 4,000 and 6 s in these.
const BATCH: usize = 65_536;
/// Bytes parsed at a time, so that a chunk of any size needs bounded memory.
const CHUNK: usize = 64 * 1024;

/// Clones share the whitelist.
#[derive(Clone)]
pub struct Passkeys {
    whitelist: Arc<dyn Whitelist>,
    store: Store,
}

impl fmt::Debug for Passkeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passkeys").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Passkeys {
    /// Changes are published in `store`.
    pub fn new(whitelist: Arc<dyn Whitelist>, store: Store) -> Self {
        Passkeys { whitelist, store }
    }

    /// Returns how many were not on it before.
    pub async fn add(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        let added = self.whitelist.add(passkeys).await?;
        feed::publish(&self.store, Action::Added, passkeys).await.map_err(unpublished)?;
        Ok(added)
    }

    /// Returns how many were on it.
    pub async fn remove(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        let removed = self.whitelist.remove(passkeys).await?;
        feed::publish(&self.store, Action::Removed, passkeys).await.map_err(unpublished)?;
        Ok(removed)
    }

    /// In the order of `passkeys`.
    pub async fn contains(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        self.whitelist.contains(passkeys).await
    }

    /// See [`Whitelist::check`].
    pub async fn check(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        self.whitelist.check(passkeys).await
    }

    pub async fn count(&self) -> Result<u64, AccessError> {
        self.whitelist.count().await
    }

    /// See [`Whitelist::undo`].
    pub async fn undo(&self) -> Result<Option<Replaced>, AccessError> {
        let replaced = self.whitelist.undo().await?;
        if replaced.is_some() {
            feed::publish_replaced(&self.store).await.map_err(unpublished)?;
        }
        Ok(replaced)
    }

    /// Begins a refresh from text that arrives in chunks. The whitelist does not change before [`Upload::finish`].
    pub async fn upload(&self) -> Result<Upload, AccessError> {
        let refresh = self.whitelist.begin_refresh().await?;
        Ok(Upload {
            store: self.store.clone(),
            refresh,
            lines: PasskeyLines::default(),
            batch: Vec::new(),
            passkeys: 0,
            is_whole: true,
        })
    }

    /// Deletes what earlier refreshes left, in short steps.
    pub async fn tidy(&self) -> Result<(), AccessError> {
        while self.whitelist.tidy().await? {}
        Ok(())
    }
}

/// A refresh in progress: one passkey per line (see [`super::lines`]), in chunks of any size.
///
/// Dropped without [`Upload::finish`], it has no effect. After an error it can only be abandoned.
pub struct Upload {
    store: Store,
    refresh: Box<dyn Refresh>,
    lines: PasskeyLines,
    batch: Vec<Passkey>,
    passkeys: u64,
    /// False once something failed.
    is_whole: bool,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("passkeys", &self.passkeys).finish_non_exhaustive()
    }
}

impl Upload {
    /// Returns the number of passkeys read so far, including duplicates.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<u64, AccessError> {
        let outcome = self.take(bytes).await;
        self.is_whole &= outcome.is_ok();
        outcome.map(|()| self.passkeys)
    }

    /// Ends the text and makes the list the whitelist, atomically. An error leaves the whitelist unchanged, except
    /// [`AccessError::Unpublished`] and a connection lost during the switch.
    pub async fn finish(mut self, allow_empty: bool) -> Result<Replaced, AccessError> {
        if let Err(error) = self.complete(allow_empty).await {
            self.abandon().await;
            return Err(error);
        }
        let replaced = self.refresh.commit().await?;
        feed::publish_replaced(&self.store).await.map_err(unpublished)?;
        Ok(replaced)
    }

    /// Discards the new set. If that fails, it expires later.
    pub async fn abandon(self) {
        if let Err(error) = self.refresh.abandon().await {
            tracing::debug!(%error, "an abandoned refresh of the whitelist will be deleted later");
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), AccessError> {
        for chunk in bytes.chunks(CHUNK) {
            let read = self.lines.push(chunk)?;
            self.passkeys += read.len() as u64;
            self.batch.extend(read);
            if self.batch.len() >= BATCH {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn complete(&mut self, allow_empty: bool) -> Result<(), AccessError> {
        if !self.is_whole {
            return Err(AccessError::RefreshLost);
        }
        let last = std::mem::take(&mut self.lines).finish()?;
        self.passkeys += u64::from(last.is_some());
        self.batch.extend(last);
        if self.passkeys == 0 && !allow_empty {
            return Err(AccessError::EmptyRefresh);
        }
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), AccessError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let outcome = self.refresh.add(&self.batch).await;
        self.batch.clear();
        outcome
    }
}

fn unpublished(source: AccessError) -> AccessError {
    AccessError::Unpublished(Box::new(source))
}
