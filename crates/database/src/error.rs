//! What can go wrong with a database, each with what to do about it.
//!
//! Whether waiting may help is asked of two things: of a [`DatabaseError`] when a database is opened, where a missing
//! permission should stop the start; and of a bare [`sqlx::Error`] by those who work on an open database, where a
//! disk that is full or read-only for now must never be taken for a fault of the row being written.

use std::path::PathBuf;

use sqlx::migrate::MigrateError;
use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

/// Why a database did not do what was asked. For operators, and never with a password in it.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The address has an unknown scheme.
    #[error(
        "the database address {shown:?} is not understood: write sqlite: and a path (sqlite:data/rollcall.db), postgres://USER:PASSWORD@HOST/NAME, or mysql://USER:PASSWORD@HOST/NAME"
    )]
    UnsupportedUrl {
        /// What was given, without a password.
        shown: String,
    },
    /// The address of a server cannot be read.
    #[error(
        "the database address {shown:?} cannot be read ({source}): write USER:PASSWORD@HOST:PORT/NAME after the scheme, and special signs of a password as %40 and the like"
    )]
    MalformedUrl {
        /// What was given, without a password.
        shown: String,
        /// What is wrong with it.
        source: sqlx::Error,
    },
    /// The address of a server names no database.
    #[error("the database address {shown:?} names no database: write its name after the last slash")]
    NoDatabaseNamed {
        /// What was given, without a password.
        shown: String,
    },
    /// A database in memory is one process's alone: commands would not reach the server.
    #[error("a database in memory cannot be shared with the server: write sqlite: and the path of a file")]
    InMemory,
    /// The folder of the database is missing and cannot be made.
    #[error("cannot create the folder {}: {source}; create it, or choose another place for the database", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file cannot be opened.
    #[error("cannot open {}: {reason}; check that the path is a file, and that this user may read and write it and its folder", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The file or its folder may not be written.
    #[error("cannot write {}: give this user write permission on the file and its folder", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a SQLite database: move it away, or choose another path", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file was a SQLite database and is broken.
    #[error("{} is damaged ({reason}): restore a backup, or save what is left with: sqlite3 FILE .recover", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The server does not answer.
    #[error(
        "the database {shown} cannot be reached ({reason}): check that it runs, and that its address is right"
    )]
    Unreachable {
        /// The server, without a password.
        shown: String,
        /// What went wrong.
        reason: String,
    },
    /// The server does not let us in.
    #[error("the database {shown} refuses us ({reason}): check user, password and the rights of this user")]
    Refused {
        /// The server, without a password.
        shown: String,
        /// What it says.
        reason: String,
    },
    /// The server has no database of this name.
    #[error("there is no database {shown} ({reason}): create it first")]
    Missing {
        /// The database, without a password.
        shown: String,
        /// What the server says.
        reason: String,
    },
    /// Another version of this program wrote the tables.
    #[error("{shown} was made by another version of rollcall ({source}): use that version or a newer one")]
    Schema {
        /// The database.
        shown: String,
        /// What does not fit.
        source: MigrateError,
    },
    /// Others have been writing, or have had all connections, for longer than we wait.
    #[error("the database is busy: others are writing to it, or its disk is slow; try again")]
    Busy,
    /// The disk of the file is full.
    #[error("the disk of {} is full: free some space, and writes go on by themselves", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// Anything else the database says.
    #[error("the database failed: {0}")]
    Sql(#[source] sqlx::Error),
}

impl DatabaseError {
    /// Puts what SQLite says about the file at `path` into our words.
    pub(crate) fn from_sqlite(path: PathBuf, error: sqlx::Error) -> Self {
        match sqlite_code(&error) {
            Some(code::BUSY | code::LOCKED) => DatabaseError::Busy,
            Some(code::FULL) => DatabaseError::DiskFull { path },
            Some(code::READONLY) => DatabaseError::ReadOnly { path },
            Some(code::CORRUPT) => DatabaseError::Damaged { path, reason: message(&error) },
            Some(code::NOT_A_DATABASE) => DatabaseError::NotADatabase { path },
            Some(code::CANNOT_OPEN) => DatabaseError::CannotOpen { path, reason: message(&error) },
            _ if matches!(error, sqlx::Error::PoolTimedOut) => DatabaseError::Busy,
            _ => DatabaseError::Sql(error),
        }
    }

    /// Puts what the server `shown` says into our words.
    pub(crate) fn from_server(shown: String, error: sqlx::Error) -> Self {
        if is_refusal(&error) {
            return DatabaseError::Refused { shown, reason: message(&error) };
        }
        if is_missing_database(&error) {
            return DatabaseError::Missing { shown, reason: message(&error) };
        }
        match error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut => {
                DatabaseError::Unreachable { shown, reason: error.to_string() }
            }
            _ => DatabaseError::Sql(error),
        }
    }

    /// Whether the same call may well succeed a moment later, with nobody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        match self {
            DatabaseError::Busy | DatabaseError::Unreachable { .. } | DatabaseError::DiskFull { .. } => true,
            DatabaseError::Sql(error) => is_retryable(error),
            _ => false,
        }
    }
}

/// SQLite's primary result codes, the low byte of what it reports.
mod code {
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
    pub const NOT_A_DATABASE: i32 = 26;
}

/// SQLite's primary result code, where SQLite is who speaks.
fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let said = database_error::<SqliteError>(error)?;
    let code: i32 = sqlx::error::DatabaseError::code(said)?.parse().ok()?;
    Some(code & 0xff)
}

/// Whether SQLite was told to stop in the middle.
pub(crate) fn is_interrupted(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(code::INTERRUPTED)
}

fn database_error<E: sqlx::error::DatabaseError>(error: &sqlx::Error) -> Option<&E> {
    error.as_database_error()?.try_downcast_ref()
}

fn message(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |said| said.message().to_owned())
}

/// Whether waiting may help: the connection is lost or refused, the database is busy, shutting down, recovering, out
/// of space or read-only for now, or a deadlock was resolved at our cost. Never true of a fault in the statement or
/// its values, which would fail for ever.
pub fn is_retryable(error: &sqlx::Error) -> bool {
    match error {
        // A driver that no longer understands its server has lost the thread of the connection, not of the row; and
        // a handshake that fails says nothing about the row either.
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        // Of the connection, too: a transaction was not begun, so no row was looked at.
        sqlx::Error::BeginFailed | sqlx::Error::InvalidSavePointStatement => true,
        sqlx::Error::Database(_) => {
            sqlite_code(error).is_some_and(is_retryable_sqlite)
                || database_error::<PgDatabaseError>(error).is_some_and(|e| is_retryable_postgres(e.code()))
                || database_error::<MySqlDatabaseError>(error).is_some_and(is_retryable_mysql)
        }
        _ => false,
    }
}

fn is_retryable_sqlite(primary: i32) -> bool {
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
    let is_passing_class = matches!(class, "08" | "40" | "53" | "58");
    is_passing_class
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
    let is_passing_class = matches!(class, "08" | "40");
    is_passing_class
        || matches!(
            error.number(),
            // lock wait timeout, deadlock, a record changed since it was read
            1205 | 1213 | 1020
            // too many connections, host blocked, too many of this user, resource limit
            | 1040 | 1129 | 1203 | 1226
            // shutdown, connection killed, statement interrupted, server gone, connection lost
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
    // access denied: user, database, command, column, table, and the ways to sign in that are not offered
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
    fn what_passes_by_itself_is_told_from_what_does_not() {
        for passing in ["08006", "40001", "40P01", "53100", "53300", "57P01", "57P03", "25006", "58030"] {
            assert!(is_retryable_postgres(passing), "{passing}");
        }
        for lasting in ["23505", "22003", "42P01", "42601", "22P02", "", "é"] {
            assert!(!is_retryable_postgres(lasting), "{lasting}");
        }
        assert!(is_retryable(&sqlx::Error::PoolTimedOut));
        assert!(is_retryable(&sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into())));
        assert!(is_retryable(&sqlx::Error::InvalidSavePointStatement));
        assert!(is_retryable(&sqlx::Error::BeginFailed));
        assert!(!is_retryable(&sqlx::Error::RowNotFound));
        assert!(!is_retryable(&sqlx::Error::PoolClosed));
    }
}
