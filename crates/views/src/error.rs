//! What can go wrong with a view's store, and whether waiting helps.

use database::DatabaseError;
use journal::JournalError;
use keyspace::RedisError;

/// Why a view's store did not do what it was asked. Never with a passkey in it.
#[derive(Debug, thiserror::Error)]
pub enum ViewsError {
    /// Redis cannot be reached, does not answer, or refuses.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// The journal did not take what was to be written into it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A key of ours holds something else. Kinds of keys are named, not the key: it may hold a passkey.
    #[error("the key {key} holds another type of value: rename or remove it")]
    WrongType {
        /// The kind of key, such as `tracker:user:seed:<passkey>`.
        key: &'static str,
    },
    /// The view did not take what the lists are made from.
    #[error("{reason}")]
    NotApplied {
        /// What its store said.
        reason: String,
    },
    /// The database cannot be opened or brought up to date.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The database failed under way.
    #[error("the database failed: {0}")]
    Sql(#[from] sqlx::Error),
}

impl ViewsError {
    /// Whether the same call may well succeed later, with nobody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        match self {
            ViewsError::Redis(error) => error.is_retryable(),
            ViewsError::Journal(error) => error.is_retryable(),
            ViewsError::WrongType { .. } => false,
            ViewsError::NotApplied { .. } => true,
            ViewsError::Database(error) => error.is_retryable(),
            ViewsError::Sql(error) => database::is_retryable(error),
        }
    }
}
