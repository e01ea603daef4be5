//! Errors of the journal, and which are retryable.

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The store is unreachable, busy, loading, read-only or full.
    #[error("journal unavailable: {reason}")]
    Unavailable { reason: String },
    /// The request was sent, but whether it was executed is unknown. Retryable where a repetition is safe.
    #[error("no reply from the journal: {reason}")]
    Unanswered { reason: String },
    /// The group must be created first.
    #[error("the journal has no group {group}")]
    NoGroup { group: String },
    /// The store works, but our key, table or file holds something else.
    #[error("{what} cannot be used for the journal: {reason}")]
    Damaged {
        /// The key, the table or the file.
        what: String,
        /// The problem and the remedy.
        reason: String,
    },
}

impl JournalError {
    /// Whether the same call can succeed later.
    ///
    /// A key of the wrong type counts as well: an operator can correct it while everything waits.
    pub fn is_retryable(&self) -> bool {
        !matches!(self, JournalError::NoGroup { .. })
    }
}
