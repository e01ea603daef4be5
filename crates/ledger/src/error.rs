//! Errors of the ledger, and which are retryable.

use database::{DatabaseError, SqlError};
use journal::ViewError;

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database cannot be opened or migrated.
    #[error(transparent)]
    Open(#[from] DatabaseError),
    #[error("the ledger's database failed: {0}")]
    Sql(#[from] SqlError),
    /// A row contains an invalid value.
    #[error("the ledger holds {what} that cannot be read: \"{value}\"; correct the row, or remove it")]
    Unreadable {
        /// What the value should be.
        what: &'static str,
        value: String,
    },
    /// Rows of users or torrents are deleted while their entries are applied. Not caused by the entries.
    #[error(
        "rows of the ledger are deleted as soon as they are created: stop the program that deletes rows from ledger_users or ledger_torrents"
    )]
    RowsDeleted,
    /// Entries have unknown users or torrents, and the directory cannot be refreshed to check whether they were
    /// registered since.
    #[error(
        "entries have unknown users or torrents, and the database cannot be asked whether they were registered since"
    )]
    DirectoryBehind,
    #[error("a multiplier must end after it starts")]
    EndsBeforeItStarts,
    #[error("a note has at most {max} characters")]
    NoteTooLong { max: usize },
    /// The row of a consumer is damaged.
    #[error("the column applied of a consumer cannot be read: restore its row in ledger_consumers")]
    DamagedConsumer,
    /// Too long, or with other characters than printable ASCII.
    #[error("a consumer name has 1 to 200 printable ASCII characters: \"{name}\" is invalid")]
    ConsumerName { name: String },
}

impl LedgerError {
    /// Whether the same call can succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            LedgerError::Open(error) => error.is_retryable(),
            LedgerError::Sql(error) => error.is_retryable(),
            // None of these is caused by an entry: all wait until an operator has corrected it.
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
