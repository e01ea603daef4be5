//! The whitelist for those who change it: commands and the HTTP API.
//!
//! Every change goes through here, so that nobody forgets to tell the trackers ([`super::feed`]). They are told after
//! the set has changed, and also where it turned out to have been so already: whoever repeats a call that broke off
//! half-way mends what was missed.

use std::fmt;
use std::sync::Arc;

use domain::Passkey;

use super::feed::{self, Deed};
use super::{PasskeyLines, Refresh, Replaced, Whitelist};
use crate::audit::{self, Record, Subject};
use crate::error::AccessError;
use crate::store::Store;

/// Passkeys of an upload that are held in memory (two megabytes). With fewer, SQLite writes the same pages over and
/// over: a million took 33 s in batches of 4,000 and 6 s in these.
const BATCH: usize = 65_536;
/// Bytes read at a time, so that a piece of any size is worked off in bounded memory.
const PIECE: usize = 64 * 1024;

/// The whitelist, and those who must hear of its changes. Clones share both.
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
    /// The whitelist, whose changes are told in this store.
    pub fn new(whitelist: Arc<dyn Whitelist>, store: Store) -> Self {
        Passkeys { whitelist, store }
    }

    /// Puts passkeys in. Tells how many were not there before.
    pub async fn add(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        let added = self.whitelist.add(passkeys).await?;
        feed::tell(&self.store, Deed::Added, passkeys).await.map_err(untold)?;
        Ok(added)
    }

    /// Takes passkeys out. Tells how many were there.
    pub async fn remove(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        let removed = self.whitelist.remove(passkeys).await?;
        feed::tell(&self.store, Deed::Removed, passkeys).await.map_err(untold)?;
        Ok(removed)
    }

    /// Whether each of these is in it, in the order asked.
    pub async fn contains(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        self.whitelist.contains(passkeys).await
    }

    /// Likewise, for whoever lets in or refuses by it; see [`Whitelist::check`].
    pub async fn check(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        self.whitelist.check(passkeys).await
    }

    /// How many passkeys there are.
    pub async fn count(&self) -> Result<u64, AccessError> {
        self.whitelist.count().await
    }

    /// Exchanges the set and the one before the last refresh. None if there is no such set, or it is empty.
    pub async fn undo(&self) -> Result<Option<Replaced>, AccessError> {
        let replaced = self.whitelist.undo().await?;
        if replaced.is_some() {
            feed::tell_replaced(&self.store).await.map_err(untold)?;
        }
        Ok(replaced)
    }

    /// Begins a full refresh from text that comes in pieces. Nothing changes before [`Upload::finish`].
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

    /// Clears away all that earlier refreshes left behind. It takes a while after a large one, in short steps.
    pub async fn tidy(&self) -> Result<(), AccessError> {
        while self.whitelist.tidy().await? {}
        Ok(())
    }
}

/// A full refresh under way: one passkey a line (see [`super::lines`]), in pieces of any size.
///
/// Dropped without [`Upload::finish`], it is as if it had never been. After an error it can only be abandoned.
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
    /// Takes a piece of the text. Tells how many passkeys were read so far, twice what stands there twice.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<u64, AccessError> {
        let outcome = self.take(bytes).await;
        self.is_whole &= outcome.is_ok();
        outcome.map(|()| self.passkeys)
    }

    /// The text is at its end: makes the list the whitelist, at once and whole. A list without a passkey is refused
    /// unless that is meant. On any error the whitelist is as it was, but for [`AccessError::Untold`], and for a
    /// database that went away while it switched.
    pub async fn finish(mut self, allow_empty: bool) -> Result<Replaced, AccessError> {
        if let Err(error) = self.complete(allow_empty).await {
            self.abandon().await;
            return Err(error);
        }
        let replaced = self.refresh.commit().await?;
        feed::tell_replaced(&self.store).await.map_err(untold)?;
        Ok(replaced)
    }

    /// Throws it away. Should that fail, it goes by itself later.
    pub async fn abandon(self) {
        if let Err(error) = self.refresh.abandon().await {
            tracing::debug!(%error, "a refresh that was given up will be cleared away later");
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), AccessError> {
        for piece in bytes.chunks(PIECE) {
            let read = self.lines.push(piece)?;
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

/// Passkeys that a record names; how many there were it says in any case.
const RECORDED_MAX: usize = 100;

/// Records of changes to the whitelist.
impl Record {
    /// The same about these passkeys, none of which can be told from what is recorded.
    pub fn about_passkeys(self, passkeys: &[Passkey]) -> Self {
        match passkeys {
            [passkey] => self.about(Subject::passkey(passkey)),
            _ => {
                let named: Vec<String> =
                    passkeys.iter().take(RECORDED_MAX).map(audit::passkey_subject_id).collect();
                self.about(Subject::whitelist()).with("passkeys", named).with("count", passkeys.len())
            }
        }
    }
}

fn untold(source: AccessError) -> AccessError {
    AccessError::Untold(Box::new(source))
}
