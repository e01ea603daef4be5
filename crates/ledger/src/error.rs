//! What can go wrong with the ledger, and whether waiting helps.

use database::DatabaseError;
use journal::ViewError;

/// Why the ledger did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database cannot be opened, or its tables cannot be contribution up to date.
    #[error(transparent)]
    Open(#[from] DatabaseError),
    /// The database did not do what it was asked.
    #[error("the ledger's database failed: {0}")]
    Sql(#[from] sqlx::Error),
    /// Somebody wrote what cannot be read.
    #[error("the ledger holds {what} that cannot be read: \"{value}\"; correct the row, or remove it")]
    Unreadable {
        /// What it should be.
        what: &'static str,
        /// What is there.
        value: String,
    },
    /// Somebody deletes rows of users or torrents while entries of theirs are applied. Not the entries' fault.
    #[error("rows of the ledger vanish as fast as they are made: is somebody deleting users or torrents?")]
    RowsDeleted,
    /// Entries name users or torrents that are not known, and whether they were registered since cannot be found out.
    #[error(
        "entries name unknown users or torrents, and the database does not say whether they were registered since"
    )]
    DirectoryBehind,
    /// A multiplier that would never hold.
    #[error("a multiplier must end after it starts")]
    EndsBeforeItStarts,
    /// A note too long to keep.
    #[error("a note has at most {max} characters")]
    NoteTooLong {
        /// The most there may be.
        max: usize,
    },
    /// Somebody wrote into the table of consumers.
    #[error("what a consumer of the ledger has applied cannot be read: restore its row in ledger_consumers")]
    DamagedConsumer,
    /// A name too long, or with characters that do not belong into one.
    #[error("the name of a consumer is 1 to 200 plain characters: \"{name}\" is none")]
    ConsumerName {
        /// The name.
        name: String,
    },
}

impl LedgerError {
    /// Whether the same call may well succeed later, without anybody changing what is asked.
    pub fn is_retryable(&self) -> bool {
        match self {
            LedgerError::Open(error) => error.is_retryable(),
            LedgerError::Sql(error) => database::is_retryable(error),
            // Nothing of this is the fault of an entry: all wait until an operator has seen to it.
            LedgerError::RowsDeleted
            | LedgerError::DirectoryBehind
            | LedgerError::DamagedConsumer
            | LedgerError::ConsumerName { .. } => true,
            _ => false,
        }
    }
}

impl From<LedgerError> for ViewError {
    fn from(error: LedgerError) -> ViewError {
        let reason = error.to_string();
        if error.is_retryable() { ViewError::Transient { reason } } else { ViewError::Entry { reason } }
    }
}
