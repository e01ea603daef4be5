//! Errors of keys and sessions. Each message names the remedy.

use database::DatabaseError;

use crate::keys::KeyId;

#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("there is no key {0}: see rollcall key list")]
    UnknownKey(KeyId),
    #[error("a key needs a scope: verify, read or admin")]
    KeyWithoutScope,
    #[error("a key needs a name of 1 to 100 characters, such as the program that will use it")]
    KeyName,
    /// Every process reads all keys several times a second.
    #[error("there are {0} keys already: revoke unused ones (rollcall key list)")]
    TooManyKeys(u32),
    /// A row with a value that cannot be parsed.
    #[error("{subject} in the database cannot be read: {reason}; correct the row, or remove it")]
    Unreadable { subject: String, reason: String },
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

impl AdminError {
    /// Whether the same call may succeed later without intervention.
    pub fn is_retryable(&self) -> bool {
        matches!(self, AdminError::Database(error) if error.is_retryable())
    }
}
