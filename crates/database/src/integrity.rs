//! Checks of a SQLite file before a server uses it: is it a database, is it whole, is it the one that was used before.
//!
//! # Guarantees
//!
//! - Nothing is made and nothing is changed, except by [`ensure_identity`].
//! - A check ends within its time budget, however large the file is; what it did not get to is [`Soundness::Unfinished`].

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::time::Instant;

use crate::SqliteDatabase;
use crate::error::{DatabaseError, is_interrupted};

/// What each SQLite file begins with.
const HEADER: &[u8; 16] = b"SQLite format 3\0";
/// Steps of SQLite's virtual machine between two looks at the clock: well below a millisecond.
const STEPS_PER_LOOK: i32 = 1_000;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// There is no file, or one without a single byte: SQLite takes both for a new database.
    Empty,
    /// All of it was checked.
    Sound,
    /// The time was over before all of it was checked; up to there it is sound.
    Unfinished,
}

/// Checks a file by its header and by `PRAGMA quick_check`. Fails with [`DatabaseError::NotADatabase`] or
/// [`DatabaseError::Damaged`].
pub async fn check_sqlite(path: &Path, budget: Duration) -> Result<Soundness, DatabaseError> {
    if is_empty(path)? {
        return Ok(Soundness::Empty);
    }
    let explain = |error| DatabaseError::from_sqlite(path.to_path_buf(), error);
    let mut connection = look_at(path).await.map_err(explain)?;
    let outcome = quick_check(&mut connection, budget).await;
    let outcome = match outcome {
        Ok(None) => Ok(Soundness::Sound),
        Ok(Some(reason)) => Err(DatabaseError::Damaged { path: path.to_path_buf(), reason }),
        Err(error) if is_interrupted(&error) => Ok(Soundness::Unfinished),
        Err(error) => Err(explain(error)),
    };
    connection.close().await.map_err(explain)?;
    outcome
}

/// Whether there is no file, or nothing in it. Fails for a file that is no database.
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

async fn look_at(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(false);
    options.disable_statement_logging().connect().await
}

/// The first thing that is wrong with the file; none if nothing is.
async fn quick_check(
    connection: &mut SqliteConnection,
    budget: Duration,
) -> Result<Option<String>, sqlx::Error> {
    let deadline = Instant::now() + budget;
    connection.lock_handle().await?.set_progress_handler(STEPS_PER_LOOK, move || Instant::now() < deadline);
    let outcome = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *connection).await;
    connection.lock_handle().await?.remove_progress_handler();
    let said: String = outcome?;
    Ok(Some(said.trim().replace('\n', " ")).filter(|said| said != "ok"))
}

/// The number that tells this file from others (SQLite's `application_id`); 0 if it was never given one.
pub async fn identity(path: &Path) -> Result<i32, DatabaseError> {
    let explain = |error| DatabaseError::from_sqlite(path.to_path_buf(), error);
    let mut connection = look_at(path).await.map_err(explain)?;
    let identity = identity_over(&mut connection).await.map_err(explain)?;
    connection.close().await.map_err(explain)?;
    Ok(identity)
}

async fn identity_over(connection: &mut SqliteConnection) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("PRAGMA application_id").fetch_one(connection).await
}

/// The same; a file without one is given `fresh`. Of several processes that do so at once, one wins.
pub async fn ensure_identity(database: &SqliteDatabase, fresh: i32) -> Result<i32, DatabaseError> {
    let outcome = async {
        let mut connection = database.connect().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let mut identity = identity_over(&mut transaction).await?;
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
