//! Errors, and which are retryable.

use access::AccessError;
use database::{DatabaseError, SqlError};
use journal::JournalError;
use ledger::LedgerError;

#[derive(Debug, thiserror::Error)]
pub enum SitesError {
    #[error("the site's database: {0}")]
    Site(DatabaseError),
    /// Of a statement on the site's server.
    #[error("the site's database, {what}: {source}")]
    Statement { what: &'static str, source: SqlError },
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the number of this ledger is missing in the database")]
    NoLedgerNumber,
    #[error("the system's random numbers are unavailable: {0}")]
    Random(getrandom::Error),
    /// The tables are not as the profile needs them.
    #[error("{0}")]
    Mismatch(String),
}

impl SitesError {
    pub(crate) fn statement(what: &'static str) -> impl Fn(SqlError) -> SitesError {
        move |source| SitesError::Statement { what, source }
    }
}
