//! Errors, and which are retryable.

use journal::JournalError;
use keyspace::RedisError;

/// Contains no passkey.
#[derive(Debug, thiserror::Error)]
pub enum ViewsError {
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A key of this view has another type. Names the kind of key, because the key may contain a passkey.
    #[error("the key {key} holds another type of value: rename or remove it")]
    WrongType {
        /// Such as `tracker:user:seed:<passkey>`.
        key: &'static str,
    },
    /// A batch of a rebuild was not applied.
    #[error("{reason}")]
    NotApplied { reason: String },
    /// The lists in memory are not complete yet.
    #[error("the activity lists are being rebuilt from the journal")]
    Rebuilding,
}

impl ViewsError {
    /// Whether the same call can succeed later without an operator.
    pub fn is_retryable(&self) -> bool {
        match self {
            ViewsError::Redis(error) => error.is_retryable(),
            ViewsError::Journal(error) => error.is_retryable(),
            ViewsError::WrongType { .. } => false,
            ViewsError::NotApplied { .. } | ViewsError::Rebuilding => true,
        }
    }
}
