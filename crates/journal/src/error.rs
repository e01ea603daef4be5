//! What can go wrong with a journal, and whether waiting helps.

/// Why the journal did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The store cannot be reached, is busy, is loading, is read-only for now, is full: worth trying again.
    #[error("the journal cannot be reached: {reason}")]
    Unavailable {
        /// What the store said.
        reason: String,
    },
    /// The store was asked, but nobody knows whether it did it. Worth trying again, where that is safe.
    #[error("the journal did not answer: {reason}")]
    Unanswered {
        /// What is known.
        reason: String,
    },
    /// There is no such group; it has to be made first.
    #[error("the journal has no group {group}")]
    NoGroup {
        /// The group.
        group: String,
    },
    /// The store works, but what it holds under our name is something else.
    #[error("{what} is not what the journal expects: {reason}")]
    Damaged {
        /// The key, the table or the file.
        what: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
}

impl JournalError {
    /// Whether the same call can succeed later, without anybody changing what is asked.
    ///
    /// A wrong-typed key also counts: an operator can put it right while everything waits.
    pub fn is_retryable(&self) -> bool {
        !matches!(self, JournalError::NoGroup { .. })
    }
}
