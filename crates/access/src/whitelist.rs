//! The whitelist (W1, W2): passkeys that may announce although no user of ours has them, kept by a site with users of
//! its own. Anybody may ask it and write it: in Redis it is the set `pt:passkeys`, otherwise a table of the database.
//!
//! # Duties of every adapter
//!
//! - **A refresh shows at once, whole.** Until [`Refresh::commit`] every reader sees the set as it was, afterwards the
//!   new one; nobody ever sees a part, or nothing.
//! - **Refreshes do not mix.** Two at once build two sets; the one that commits last is what remains.
//! - **One step back.** What a refresh replaced is kept until the next one: [`Whitelist::undo`].
//! - **What is abandoned is cleared away**, also after a crash.
//! - **Errors tell the truth** about whether waiting helps ([`AccessError::is_retryable`]).

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

/// What a refresh, or going back, did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// How many passkeys there were.
    pub before: u64,
    /// How many there are.
    pub after: u64,
}

/// The whitelist.
#[async_trait]
pub trait Whitelist: Send + Sync + 'static {
    /// Puts passkeys in. Tells how many were not there before.
    async fn add(&self, passkeys: &[Passkey]) -> Result<u64, AccessError>;

    /// Takes passkeys out. Tells how many were there.
    async fn remove(&self, passkeys: &[Passkey]) -> Result<u64, AccessError>;

    /// Whether each of these is in it, in the order asked.
    async fn contains(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError>;

    /// Likewise, for whoever lets in or refuses by it: a set that is missing altogether, and was there within the last
    /// hour, is [`AccessError::WhitelistMissing`]. It is about to be replaced, or was lost (W2).
    async fn check(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        self.contains(passkeys).await
    }

    /// The set was changed through us: if it is missing now, that is because it is empty.
    fn believe_missing(&self) {}

    /// How many passkeys there are.
    async fn count(&self) -> Result<u64, AccessError>;

    /// Begins to build another set aside.
    async fn begin_refresh(&self) -> Result<Box<dyn Refresh>, AccessError>;

    /// Exchanges the set and the one before the last refresh. None if there is no such set, or it is empty: going back
    /// never leaves nobody.
    async fn undo(&self) -> Result<Option<Replaced>, AccessError>;

    /// Clears away a part of what earlier refreshes left behind, in a step that holds nobody up. True if there may be
    /// more.
    async fn tidy(&self) -> Result<bool, AccessError>;
}

/// A set that is being built aside. What is added to the whitelist meanwhile is not in it.
///
/// Once an `add` has failed, a commit is refused: the set has a hole. A commit that fails because the answer got lost
/// may have been made. Dropped without a commit, it is as if it had never been.
#[async_trait]
pub trait Refresh: Send {
    /// Puts passkeys into the set that is being built. Twice is once.
    async fn add(&mut self, passkeys: &[Passkey]) -> Result<(), AccessError>;

    /// Makes it the whitelist.
    async fn commit(self: Box<Self>) -> Result<Replaced, AccessError>;

    /// Throws it away.
    async fn abandon(self: Box<Self>) -> Result<(), AccessError>;
}
