//! The whitelist (W1, W2): passkeys that may announce without a user in the database. With Redis it is the set
//! `pt:passkeys`, which the site may write, too; otherwise a table of the database.
//!
//! # Duties of every adapter
//!
//! - **A refresh is atomic.** Readers see the old set until [`Refresh::commit`] and the new one afterwards, never a part.
//! - **Refreshes are isolated.** Concurrent ones build separate sets; the last commit wins.
//! - **One undo.** The replaced set is kept until the next refresh ([`Whitelist::undo`]).
//! - **Abandoned sets are deleted**, also after a crash.
//! - **Errors are classified** ([`AccessError::is_retryable`]).

use async_trait::async_trait;
use domain::Passkey;

pub mod feed;
pub mod lines;
mod passkeys;
mod redis;
mod sql;
mod tables;

pub use feed::{PasskeyChange, PasskeyFeed};
pub use lines::{LineError, LineProblem, PasskeyLines};
pub use passkeys::{Passkeys, Upload};
pub use redis::RedisWhitelist;
pub use sql::SqlWhitelist;

use crate::error::AccessError;

/// Sizes before and after a refresh or an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub before: u64,
    pub after: u64,
}

#[async_trait]
pub trait Whitelist: Send + Sync + 'static {
    /// Returns how many were not on it before.
    async fn add(&self, passkeys: &[Passkey]) -> Result<u64, AccessError>;

    /// Returns how many were on it.
    async fn remove(&self, passkeys: &[Passkey]) -> Result<u64, AccessError>;

    /// In the order of `passkeys`.
    async fn contains(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError>;

    /// The same for decisions about announces: fails with [`AccessError::WhitelistMissing`] if the set does not exist now
    /// but did within the last hour, because it is being replaced, or was lost (W2).
    async fn check(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        self.contains(passkeys).await
    }

    /// A change through Rollcall may have emptied the set: from now on a missing set counts as empty.
    fn accept_missing(&self) {}

    async fn count(&self) -> Result<u64, AccessError>;

    /// Begins to build another set.
    async fn begin_refresh(&self) -> Result<Box<dyn Refresh>, AccessError>;

    /// Exchanges the set with the one before the last refresh. None if there is no such set, or it is empty.
    async fn undo(&self) -> Result<Option<Replaced>, AccessError>;

    /// Deletes a part of what earlier refreshes left, with short locks. True if there may be more.
    async fn tidy(&self) -> Result<bool, AccessError>;
}

/// A set that is being built. Passkeys added to the whitelist meanwhile are not in it.
///
/// After a failed `add` the set is incomplete, and a commit is refused. A commit whose reply is lost may have been made.
/// Dropped without a commit, it has no effect.
#[async_trait]
pub trait Refresh: Send {
    /// Idempotent.
    async fn add(&mut self, passkeys: &[Passkey]) -> Result<(), AccessError>;

    async fn commit(self: Box<Self>) -> Result<Replaced, AccessError>;

    async fn abandon(self: Box<Self>) -> Result<(), AccessError>;
}
