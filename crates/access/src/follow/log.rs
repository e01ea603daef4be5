//! The log of changes: what is new in it, and keeping it short.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use crate::clients::ClientRule;
use crate::store::clients::all_clients;
use crate::store::rows::{read_torrent, read_user, readable};
use crate::store::{Torrent, User};

/// Entries taken in at a time.
const BATCH_ROWS: i64 = 2_000;
/// Entries deleted at a time, so that other writers need not wait long.
const TRIM_ROWS: i64 = 10_000;

/// What the log says to somebody who knows it up to some number.
pub(super) enum News {
    /// Nothing new.
    None,
    /// Some changes.
    Batch(Batch),
    /// What followed that number is gone, or the number was never given: all must be read again.
    Lost,
}

/// The present state of all that a part of the log names.
pub(super) struct Batch {
    /// The last number of that part.
    pub up_to: i64,
    pub users: Vec<(i64, Option<User>)>,
    pub torrents: Vec<(i64, Option<Torrent>)>,
    /// All clients, if any changed.
    pub clients: Option<Vec<ClientRule>>,
}

/// The number of the last change ever, 0 if there was none. It stays when the log is trimmed.
pub(super) async fn newest(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'access_changes'")
            .fetch_optional(connection)
            .await?;
    Ok(newest.unwrap_or(0))
}

async fn oldest(connection: &mut SqliteConnection) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT min(seq) FROM access_changes").fetch_one(connection).await
}

/// What happened after the change numbered `known`.
pub(super) async fn read_news(connection: &mut SqliteConnection, known: i64) -> Result<News, sqlx::Error> {
    if newest(connection).await? == known {
        return Ok(News::None);
    }
    // One view for the log and the rows it names.
    let mut transaction = connection.begin().await?;
    let last = newest(&mut transaction).await?;
    let reaches_back = oldest(&mut transaction).await?.is_some_and(|oldest| oldest <= known + 1);
    let news = if last < known || !reaches_back {
        News::Lost
    } else {
        News::Batch(read_batch(&mut transaction, known, last.min(known + BATCH_ROWS)).await?)
    };
    transaction.rollback().await?;
    Ok(news)
}

async fn read_batch(connection: &mut SqliteConnection, known: i64, up_to: i64) -> Result<Batch, sqlx::Error> {
    let users = sqlx::query(
        "SELECT subject, users.* FROM
             (SELECT DISTINCT subject FROM access_changes WHERE seq > ? AND seq <= ? AND kind = 'user')
         LEFT JOIN users ON id = subject",
    )
    .bind(known)
    .bind(up_to)
    .fetch_all(&mut *connection)
    .await?;
    let torrents = sqlx::query(
        "SELECT subject, torrents.* FROM
             (SELECT DISTINCT subject FROM access_changes WHERE seq > ? AND seq <= ? AND kind = 'torrent')
         LEFT JOIN torrents ON id = subject",
    )
    .bind(known)
    .bind(up_to)
    .fetch_all(&mut *connection)
    .await?;
    let clients_changed: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM access_changes WHERE seq > ? AND seq <= ? AND kind = 'client')",
    )
    .bind(known)
    .bind(up_to)
    .fetch_one(&mut *connection)
    .await?;
    Ok(Batch {
        up_to,
        users: with_subjects(&users, |row| readable(read_user(row)))?,
        torrents: with_subjects(&torrents, |row| readable(read_torrent(row)))?,
        clients: if clients_changed { Some(all_clients(connection).await?) } else { None },
    })
}

/// Pairs each row with the id that the log names; none stands for a row that is gone or cannot be read.
fn with_subjects<T>(
    rows: &[SqliteRow],
    read: impl Fn(&SqliteRow) -> Option<T>,
) -> Result<Vec<(i64, Option<T>)>, sqlx::Error> {
    rows.iter()
        .map(|row| {
            let subject: i64 = row.try_get("subject")?;
            let id: Option<i64> = row.try_get("id")?;
            Ok((subject, id.and_then(|_| read(row))))
        })
        .collect()
}

/// Deletes a part of what exceeds `rows_max`, oldest first.
pub(super) async fn trim(connection: &mut SqliteConnection, rows_max: u32) -> Result<(), sqlx::Error> {
    let Some(oldest) = oldest(connection).await? else { return Ok(()) };
    let keep_from = newest(connection).await? + 1 - i64::from(rows_max);
    if oldest >= keep_from {
        return Ok(());
    }
    sqlx::query("DELETE FROM access_changes WHERE seq < ?")
        .bind(keep_from.min(oldest + TRIM_ROWS))
        .execute(connection)
        .await?;
    Ok(())
}
