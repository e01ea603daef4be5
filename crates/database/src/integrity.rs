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

use tokio::time::Instant;

use crate::SqliteDatabase;
use crate::error::{DatabaseError, code};
use crate::sql::SqlError;
use crate::sqlite::{SqliteLease, SqliteSession};

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
    match on_file(path, move |session| quick_check(session, budget)).await {
        Ok(None) => Ok(Integrity::Intact),
        Ok(Some(reason)) => Err(DatabaseError::Damaged { path: path.to_path_buf(), reason }),
        Err(error) if error.sqlite_code() == Some(code::INTERRUPTED) => Ok(Integrity::Unfinished),
        Err(error) => Err(DatabaseError::from_sqlite(path.to_path_buf(), error)),
    }
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

/// Runs `work` on a connection to an existing file.
async fn on_file<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&SqliteSession) -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    let connection = SqliteLease::open_existing(path).await?;
    let outcome = connection.call(work).await;
    connection.close().await;
    outcome?
}

/// The first error; none if the file is intact.
fn quick_check(session: &SqliteSession, budget: Duration) -> Result<Option<String>, SqlError> {
    let deadline = Instant::now() + budget;
    session.interrupt_if(STEPS_PER_CHECK, move || Instant::now() >= deadline)?;
    let found: Option<String> = session.query_one("PRAGMA quick_check(1)", &[])?;
    Ok(found.map(|found| found.trim().replace('\n', " ")).filter(|found| found != "ok"))
}

/// The number that identifies this file (SQLite's `application_id`); 0 if it has none.
pub async fn identity(path: &Path) -> Result<i32, DatabaseError> {
    let identity = on_file(path, read_identity).await;
    identity.map_err(|error| DatabaseError::from_sqlite(path.to_path_buf(), error))
}

fn read_identity(session: &SqliteSession) -> Result<i32, SqlError> {
    let identity: Option<i64> = session.query_one("PRAGMA application_id", &[])?;
    Ok(identity.and_then(|number| i32::try_from(number).ok()).unwrap_or(0))
}

/// As [`identity`], but sets `fresh` if the file has none. If several processes do so at once, one wins.
pub async fn ensure_identity(database: &SqliteDatabase, fresh: i32) -> Result<i32, DatabaseError> {
    let ensure = move |session: &SqliteSession| -> Result<i32, SqlError> {
        let identity = read_identity(session)?;
        if identity != 0 {
            return Ok(identity);
        }
        session.batch(&format!("PRAGMA application_id = {fresh}"))?;
        Ok(fresh)
    };
    database.write(ensure).await.map_err(|error| database.explain(error))
}
