//! Checks a SQLite file before a server uses it: whether it is a database, intact, and the one that was used before.
//!
//! # Guarantees
//!
//! - Nothing is created or changed, except by [`ensure_identity`].
//! - A check ends within its time budget, with [`Integrity::Unfinished`] if the file is too large.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::time::Instant;

use crate::SqliteDatabase;
use crate::error::{DatabaseError, is_interrupted};

/// The header of every SQLite file.
const HEADER: &[u8; 16] = b"SQLite format 3\0";
/// Steps of SQLite's virtual machine between two checks of the clock: well below a millisecond.
const STEPS_PER_CHECK: i32 = 1_000;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// No file, or an empty one: SQLite treats both as a new database.
    Empty,
    /// Checked completely.
    Intact,
    /// The budget ended first; no damage was found until then.
    Unfinished,
}

/// Checks the header and runs `PRAGMA quick_check`. Fails with [`DatabaseError::NotADatabase`] or
/// [`DatabaseError::Damaged`].
pub async fn check_sqlite(path: &Path, budget: Duration) -> Result<Integrity, DatabaseError> {
    if is_empty(path)? {
        return Ok(Integrity::Empty);
    }
    let explain = |error| DatabaseError::from_sqlite(path.to_path_buf(), error);
    let mut connection = connect(path).await.map_err(explain)?;
    let outcome = quick_check(&mut connection, budget).await;
    let outcome = match outcome {
        Ok(None) => Ok(Integrity::Intact),
        Ok(Some(reason)) => Err(DatabaseError::Damaged { path: path.to_path_buf(), reason }),
        Err(error) if is_interrupted(&error) => Ok(Integrity::Unfinished),
        Err(error) => Err(explain(error)),
    };
    connection.close().await.map_err(explain)?;
    outcome
}

/// Whether the file is missing or empty. Fails if it is not a database.
fn is_empty(path: &Path) -> Result<bool, DatabaseError> {
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER.len() as u64).read_to_end(&mut header));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => {
            let reason = error.to_string();
            return Err(DatabaseError::CannotOpen { path: path.to_path_buf(), reason });
        }
        Ok(_) => {}
    }
    match header.as_slice() {
        [] => Ok(true),
        header if header == HEADER => Ok(false),
        _ => Err(DatabaseError::NotADatabase { path: path.to_path_buf() }),
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(false);
    options.disable_statement_logging().connect().await
}

/// The first error; none if the file is intact.
async fn quick_check(
    connection: &mut SqliteConnection,
    budget: Duration,
) -> Result<Option<String>, sqlx::Error> {
    let deadline = Instant::now() + budget;
    connection.lock_handle().await?.set_progress_handler(STEPS_PER_CHECK, move || Instant::now() < deadline);
    let outcome = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *connection).await;
    connection.lock_handle().await?.remove_progress_handler();
    let found: String = outcome?;
    Ok(Some(found.trim().replace('\n', " ")).filter(|found| found != "ok"))
}

/// The number that identifies this file (SQLite's `application_id`); 0 if it has none.
pub async fn identity(path: &Path) -> Result<i32, DatabaseError> {
    let explain = |error| DatabaseError::from_sqlite(path.to_path_buf(), error);
    let mut connection = connect(path).await.map_err(explain)?;
    let identity = read_identity(&mut connection).await.map_err(explain)?;
    connection.close().await.map_err(explain)?;
    Ok(identity)
}

async fn read_identity(connection: &mut SqliteConnection) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("PRAGMA application_id").fetch_one(connection).await
}

/// As [`identity`], but sets `fresh` if the file has none. If several processes do so at once, one wins.
pub async fn ensure_identity(database: &SqliteDatabase, fresh: i32) -> Result<i32, DatabaseError> {
    let outcome = async {
        let mut connection = database.connect().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let mut identity = read_identity(&mut transaction).await?;
        if identity == 0 {
            let give = AssertSqlSafe(format!("PRAGMA application_id = {fresh}"));
            sqlx::raw_sql(give).execute(&mut *transaction).await?;
            identity = fresh;
        }
        transaction.commit().await?;
        connection.close().await?;
        Ok(identity)
    };
    outcome.await.map_err(|error| database.explain(error))
}
