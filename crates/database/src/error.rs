//! Errors with their remedy, and which are retryable.
//!
//! There are two answers: [`DatabaseError::is_retryable`] for opening a database, where a missing permission must end
//! the start; and [`is_retryable`] for statements on an open database, where a disk that is full or read-only for now
//! must never be attributed to the row.

use std::path::PathBuf;

use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::sql::SqlError;

/// For operators. Contains no password.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error(
        "the database address {shown:?} is invalid: write sqlite: and a path (sqlite:data/rollcall.db), postgres://USER:PASSWORD@HOST/NAME, or mysql://USER:PASSWORD@HOST/NAME"
    )]
    UnsupportedUrl {
        /// Without password.
        shown: String,
    },
    #[error(
        "the database address {shown:?} cannot be read ({source}): write USER:PASSWORD@HOST:PORT/NAME after the scheme, and percent-encode special characters of a password (@ as %40)"
    )]
    MalformedUrl {
        /// Without password.
        shown: String,
        source: sqlx::Error,
    },
    #[error("the database address {shown:?} names no database: write its name after the last slash")]
    NoDatabaseNamed {
        /// Without password.
        shown: String,
    },
    /// A database in memory belongs to one process: commands could not reach the server's.
    #[error("a database in memory cannot be shared with the server: write sqlite: and the path of a file")]
    InMemory,
    #[error("cannot create the folder {}: {source}; create it, or choose another folder for the database", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("cannot open {}: {reason}; check that the path is a file, and that this user may read and write it and its folder", path.display())]
    CannotOpen { path: PathBuf, reason: String },
    #[error("cannot write {}: give this user write permission on the file and its folder", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} is not a SQLite database: move it away, or choose another path", path.display())]
    NotADatabase { path: PathBuf },
    #[error("{} is damaged ({reason}): restore a backup, or save what is left with: sqlite3 FILE .recover", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "the database {shown} cannot be reached ({reason}): check that it runs, and that its address is right"
    )]
    Unreachable {
        /// Without password.
        shown: String,
        reason: String,
    },
    #[error(
        "the database {shown} refuses access ({reason}): check user, password and the privileges of this user"
    )]
    Refused {
        /// Without password.
        shown: String,
        reason: String,
    },
    #[error("there is no database {shown} ({reason}): create it first")]
    Missing {
        /// Without password.
        shown: String,
        reason: String,
    },
    #[error("{shown} was created by another version of rollcall ({reason}): use that version or a newer one")]
    Schema { shown: String, reason: String },
    /// Another process was writing, or no connection was free, for longer than the timeout.
    #[error("the database is busy: another process is writing to it, or its disk is slow; try again")]
    Busy,
    #[error("the disk of {} is full: free some space, and writes resume by themselves", path.display())]
    DiskFull { path: PathBuf },
    #[error("the database failed: {0}")]
    Sql(#[source] SqlError),
}

impl DatabaseError {
    /// Converts an error of the SQLite file at `path`.
    pub(crate) fn from_sqlite(path: PathBuf, error: SqlError) -> Self {
        match error.sqlite_code() {
            Some(code::BUSY | code::LOCKED) => DatabaseError::Busy,
            Some(code::FULL) => DatabaseError::DiskFull { path },
            Some(code::READONLY) => DatabaseError::ReadOnly { path },
            Some(code::CORRUPT) => DatabaseError::Damaged { path, reason: error.message() },
            Some(code::NOT_A_DATABASE) => DatabaseError::NotADatabase { path },
            Some(code::CANNOT_OPEN) => DatabaseError::CannotOpen { path, reason: error.message() },
            _ if matches!(error, SqlError::TimedOut | SqlError::Server(sqlx::Error::PoolTimedOut)) => {
                DatabaseError::Busy
            }
            _ => DatabaseError::Sql(error),
        }
    }

    /// Converts an error of the server `shown`.
    pub(crate) fn from_server(shown: String, error: SqlError) -> Self {
        let reason = error.message();
        match &error {
            SqlError::Server(refused) if is_refusal(refused) => DatabaseError::Refused { shown, reason },
            SqlError::Server(missing) if is_missing_database(missing) => {
                DatabaseError::Missing { shown, reason }
            }
            SqlError::Server(sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut)
            | SqlError::TimedOut => DatabaseError::Unreachable { shown, reason },
            _ => DatabaseError::Sql(error),
        }
    }

    /// Whether the same call can succeed later without an operator.
    pub fn is_retryable(&self) -> bool {
        match self {
            DatabaseError::Busy | DatabaseError::Unreachable { .. } | DatabaseError::DiskFull { .. } => true,
            DatabaseError::Sql(error) => error.is_retryable(),
            _ => false,
        }
    }
}

/// SQLite's primary result codes: the low byte of an extended code.
pub(crate) mod code {
    pub const BUSY: i32 = 5;
    pub const LOCKED: i32 = 6;
    pub const OUT_OF_MEMORY: i32 = 7;
    pub const READONLY: i32 = 8;
    pub const INTERRUPTED: i32 = 9;
    pub const IO_ERROR: i32 = 10;
    pub const CORRUPT: i32 = 11;
    pub const FULL: i32 = 13;
    pub const CANNOT_OPEN: i32 = 14;
    pub const LOCKING_PROTOCOL: i32 = 15;
    pub const CONSTRAINT: i32 = 19;
    pub const NOT_A_DATABASE: i32 = 26;
}

pub(crate) fn database_error<E: sqlx::error::DatabaseError>(error: &sqlx::Error) -> Option<&E> {
    error.as_database_error()?.try_downcast_ref()
}

pub(crate) fn message(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |reply| reply.message().to_owned())
}

/// Whether a retry can succeed: the connection is lost or refused; the database is busy, shutting down, recovering, out
/// of space or read-only for now; or this transaction was the victim of a deadlock. Never true of an error in the
/// statement or its values.
pub fn is_retryable(error: &sqlx::Error) -> bool {
    match error {
        // A protocol or TLS error concerns the connection, not the row.
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        // The transaction did not begin, so the row was not involved.
        sqlx::Error::BeginFailed | sqlx::Error::InvalidSavePointStatement => true,
        sqlx::Error::Database(_) => {
            database_error::<PgDatabaseError>(error).is_some_and(|e| is_retryable_postgres(e.code()))
                || database_error::<MySqlDatabaseError>(error).is_some_and(is_retryable_mysql)
        }
        _ => false,
    }
}

pub(crate) fn is_retryable_sqlite(primary: i32) -> bool {
    matches!(
        primary,
        code::BUSY
            | code::LOCKED
            | code::OUT_OF_MEMORY
            | code::READONLY
            | code::INTERRUPTED
            | code::IO_ERROR
            | code::FULL
            | code::CANNOT_OPEN
            | code::LOCKING_PROTOCOL
    )
}

fn is_retryable_postgres(state: &str) -> bool {
    let class = state.get(..2).unwrap_or_default();
    // Connection, transaction rollback (deadlock, serialization), resources (disk, memory, connections), system.
    let is_transient_class = matches!(class, "08" | "40" | "53" | "58");
    is_transient_class
        || matches!(
            state,
            // shutdown, crash, starting up or recovering, idle for too long, cancelled
            "57P01" | "57P02" | "57P03" | "57P05" | "57014"
            // read-only for now, idle in a transaction for too long, lock not available, object in use
            | "25006" | "25P03" | "55P03" | "55006"
        )
}

fn is_retryable_mysql(error: &MySqlDatabaseError) -> bool {
    let state = sqlx::error::DatabaseError::code(error);
    let class = state.as_deref().and_then(|state| state.get(..2)).unwrap_or_default();
    let is_transient_class = matches!(class, "08" | "40");
    is_transient_class
        || matches!(
            error.number(),
            // lock wait timeout, deadlock, a record changed since it was read
            1205 | 1213 | 1020
            // too many connections, host blocked, too many of this user, resource limit
            | 1040 | 1129 | 1203 | 1226
            // shutdown, connection killed, statement interrupted, server disconnected, connection lost
            | 1053 | 1927 | 1317 | 2006 | 2013
            // network reads and writes
            | 1158
                ..=1161
            // disk full, table full, error writing, storage engine or commit failed for now
            | 3 | 20 | 28 | 1021 | 1026 | 1030 | 1114 | 1180
            // read-only for now
            | 1290 | 1792 | 1836
        )
}

fn is_refusal(error: &sqlx::Error) -> bool {
    let by_postgres = database_error::<PgDatabaseError>(error)
        .is_some_and(|e| e.code().starts_with("28") || e.code() == "42501");
    // access denied: user, database, command, column, table; authentication method not offered
    let by_mysql = database_error::<MySqlDatabaseError>(error)
        .is_some_and(|e| matches!(e.number(), 1044 | 1045 | 1142 | 1143 | 1227 | 1251 | 1524 | 1698));
    by_postgres || by_mysql
}

fn is_missing_database(error: &sqlx::Error) -> bool {
    database_error::<PgDatabaseError>(error).is_some_and(|e| e.code() == "3D000")
        || database_error::<MySqlDatabaseError>(error).is_some_and(|e| e.number() == 1049)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_retryable_and_others_are_not() {
        for transient in ["08006", "40001", "40P01", "53100", "53300", "57P01", "57P03", "25006", "58030"] {
            assert!(is_retryable_postgres(transient), "{transient}");
        }
        for permanent in ["23505", "22003", "42P01", "42601", "22P02", "", "é"] {
            assert!(!is_retryable_postgres(permanent), "{permanent}");
        }
        assert!(is_retryable(&sqlx::Error::PoolTimedOut));
        assert!(is_retryable(&sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into())));
        assert!(is_retryable(&sqlx::Error::InvalidSavePointStatement));
        assert!(is_retryable(&sqlx::Error::BeginFailed));
        assert!(!is_retryable(&sqlx::Error::RowNotFound));
        assert!(!is_retryable(&sqlx::Error::PoolClosed));
    }
}
