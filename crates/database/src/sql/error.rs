//! Errors of statements, and what a caller may do about them.

use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::error::{code, is_retryable, is_retryable_sqlite};

/// An error of a statement. [`crate::Database::explain`] adds which database it was, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL, MariaDB or MySQL.
    #[error(transparent)]
    Server(#[from] sqlx::Error),
    /// The commit of a transaction failed.
    #[error(transparent)]
    Commit(Box<SqlError>),
    #[error("no connection was free, or no answer came, in time")]
    TimedOut,
    #[error("the database was closed")]
    Closed,
    #[error("a column has another type than expected")]
    ColumnType,
    #[error("a row has fewer columns than expected")]
    ColumnMissing,
    #[error("a row that must exist is missing")]
    RowMissing,
}

impl SqlError {
    /// Whether a retry can succeed; see [`crate::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        match self {
            SqlError::Server(error) => is_retryable(error),
            SqlError::TimedOut => true,
            SqlError::Commit(error) => error.is_retryable(),
            _ => self.sqlite_code().is_some_and(is_retryable_sqlite),
        }
    }

    /// Whether the transaction was rolled back by a deadlock or a serialization failure, so that it may succeed when it
    /// is repeated.
    pub fn is_conflict(&self) -> bool {
        // deadlock; row changed since it was read
        self.mysql().is_some_and(|error| matches!(error.number(), 1213 | 1020))
            // serialization failure; deadlock
            || self.postgres().is_some_and(|error| matches!(error.code(), "40001" | "40P01"))
    }

    /// Whether a statement violated a constraint.
    pub fn is_constraint(&self) -> bool {
        let is_class_23 = |code: &str| code.starts_with("23");
        self.sqlite_code() == Some(code::CONSTRAINT)
            || self.postgres().is_some_and(|error| is_class_23(error.code()))
            // A failed CHECK has its own number in MariaDB and in MySQL, and no class.
            || self.mysql().is_some_and(|error| {
                error.code().is_some_and(is_class_23) || matches!(error.number(), 3819 | 4025)
            })
    }

    /// Whether a value of a row does not fit: a constraint, a range, a type.
    pub fn is_row_error(&self) -> bool {
        let is_class_22 = |code: &str| code.starts_with("22");
        self.is_constraint()
            || self.postgres().is_some_and(|error| is_class_22(error.code()))
            // out of range, also of an expression; too long; not a value of the type
            || self.mysql().is_some_and(|error| {
                error.code().is_some_and(is_class_22) || matches!(error.number(), 1264 | 1690 | 1406 | 1366)
            })
    }

    /// Whether the disk did not confirm: after a crash, a commit that failed so may turn out to be complete.
    pub fn is_io_error(&self) -> bool {
        self.sqlite_code() == Some(code::IO_ERROR)
    }

    /// SQLite's primary result code.
    pub(crate) fn sqlite_code(&self) -> Option<i32> {
        match self {
            SqlError::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => Some(error.extended_code & 0xff),
            SqlError::Sqlite(rusqlite::Error::SqlInputError { error, .. }) => {
                Some(error.extended_code & 0xff)
            }
            SqlError::Commit(error) => error.sqlite_code(),
            _ => None,
        }
    }

    fn postgres(&self) -> Option<&PgDatabaseError> {
        let SqlError::Server(error) = self else { return None };
        crate::error::database_error(error)
    }

    fn mysql(&self) -> Option<&MySqlDatabaseError> {
        let SqlError::Server(error) = self else { return None };
        crate::error::database_error(error)
    }

    /// The message of the database.
    pub(crate) fn message(&self) -> String {
        match self {
            SqlError::Sqlite(rusqlite::Error::SqliteFailure(_, Some(message))) => message.clone(),
            SqlError::Server(error) => crate::error::message(error),
            SqlError::Commit(error) => error.message(),
            _ => self.to_string(),
        }
    }
}
