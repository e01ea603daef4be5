//! Activity in a SQLite file of its own.
//!
//! One row per user and torrent, with all clients in one value ([`super::record`]). An index by expiry replaces the
//! user index of Redis.

use std::collections::HashMap;

use async_trait::async_trait;
use database::{Kind, Migrations, Schema, SqliteDatabase, migrate_sqlite};
use domain::{InfoHash, Passkey, UnixTime};
use sqlx::{Sqlite, SqliteConnection, Transaction};

use super::fold::{Change, UserChanges};
use super::record::{ClientState, Record};
use super::settings::Window;
use super::store::{ActiveTorrent, ActivityStore, Applied, Counts, Cursor, Listing, Page, REMOVE_MAX, Swept};
use crate::error::ViewsError;

static MIGRATIONS: Migrations = database::migrations!("activity_migrations" in "migrations/activity": sqlite "0001_activity", sqlite "0002_until");

/// The schema that this version requires.
pub fn schema() -> Schema {
    MIGRATIONS.schema(Kind::Sqlite)
}

/// Precedes every torrent of a list.
const FIRST: Cursor = Cursor { at: UnixTime(u32::MAX), info_hash: InfoHash([0xff; 20]) };

#[derive(Debug)]
pub(super) struct SqliteActivity {
    database: SqliteDatabase,
}

/// The columns `info_hash` and `clients`.
type ClientsRow = (Vec<u8>, Vec<u8>);

impl SqliteActivity {
    /// Migrates the file.
    pub(super) async fn new(database: SqliteDatabase) -> Result<Self, ViewsError> {
        migrate_sqlite(&database, MIGRATIONS).await?;
        Ok(SqliteActivity { database })
    }

    /// Removes all expired reports of one user.
    async fn remove_expired(&self, passkey: &str, window: &Window) -> Result<(), ViewsError> {
        // Usually nothing has expired, and a read need not wait for a writer.
        while has_expired(&self.database, passkey, window).await? {
            let mut transaction = self.database.begin_write().await?;
            remove_some(&mut transaction, passkey, window).await?;
            transaction.commit().await?;
        }
        Ok(())
    }
}

#[async_trait]
impl ActivityStore for SqliteActivity {
    async fn apply(&self, users: &[UserChanges], window: &Window) -> Result<Applied, ViewsError> {
        let mut applied = Applied::default();
        let mut transaction = self.database.begin_write().await?;
        for user in users {
            let passkey = user.passkey.to_string();
            for changes in user.changes.chunk_by(|a, b| a.info_hash == b.info_hash) {
                applied.clients_evicted += apply_changes(&mut transaction, &passkey, changes, window).await?;
            }
        }
        transaction.commit().await?;
        Ok(applied)
    }

    async fn list(
        &self,
        passkey: &Passkey,
        state: ClientState,
        page: &Page,
        window: &Window,
    ) -> Result<Listing, ViewsError> {
        let passkey = passkey.to_string();
        self.remove_expired(&passkey, window).await?;
        let after = page.after.unwrap_or(FIRST);
        let rows: Vec<(Vec<u8>, i64)> = sqlx::query_as(
            "SELECT info_hash, at FROM activity \
             WHERE passkey = ? AND standing = ? AND until > ? AND (at, info_hash) < (?, ?) \
             ORDER BY at DESC, info_hash DESC LIMIT ?",
        )
        .bind(passkey)
        .bind(state_number(state))
        .bind(i64::from(window.cutoff().0))
        .bind(i64::from(after.at.0))
        .bind(after.info_hash.0.to_vec())
        .bind(page.torrents_max() as i64 + 1)
        .fetch_all(&self.database.pool)
        .await?;
        let found = rows.into_iter().map(|(info_hash, at)| torrent_of(&info_hash, at));
        Ok(Listing::of(found.collect::<Result<_, _>>()?, page))
    }

    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError> {
        let passkey = passkey.to_string();
        self.remove_expired(&passkey, window).await?;
        let (seeding, leeching): (i64, i64) = sqlx::query_as(
            "SELECT \
             (SELECT count(*) FROM activity WHERE passkey = ?1 AND standing = 0 AND until > ?2), \
             (SELECT count(*) FROM activity WHERE passkey = ?1 AND standing = 1 AND until > ?2)",
        )
        .bind(passkey)
        .bind(i64::from(window.cutoff().0))
        .fetch_one(&self.database.pool)
        .await?;
        Ok(Counts { seeding: seeding.unsigned_abs(), leeching: leeching.unsigned_abs() })
    }

    async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError> {
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT passkey, sum(standing = 0), sum(standing = 1) FROM activity WHERE standing IN (0, 1) GROUP BY passkey",
        )
        .fetch_all(&self.database.pool)
        .await?;
        let read = |(passkey, seeding, leeching): (String, i64, i64)| {
            let counts = Counts { seeding: seeding.unsigned_abs(), leeching: leeching.unsigned_abs() };
            Some((passkey.parse().ok()?, counts))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    async fn sweep(&self, users_max: usize, window: &Window) -> Result<Swept, ViewsError> {
        let passkeys: Vec<(String,)> =
            sqlx::query_as("SELECT DISTINCT passkey FROM activity WHERE until <= ? LIMIT ?")
                .bind(i64::from(window.cutoff().0))
                .bind(users_max as i64)
                .fetch_all(&self.database.pool)
                .await?;
        let mut swept = Swept { is_behind: passkeys.len() >= users_max, ..Swept::default() };
        for (passkey,) in passkeys {
            // One transaction per user, so that a long sweep does not block other writers.
            let mut transaction = self.database.begin_write().await?;
            let torrents = remove_some(&mut transaction, &passkey, window).await?;
            transaction.commit().await?;
            swept.users += 1;
            swept.torrents += torrents;
            swept.is_behind |= torrents as usize >= REMOVE_MAX;
        }
        Ok(swept)
    }
}

async fn has_expired(database: &SqliteDatabase, passkey: &str, window: &Window) -> Result<bool, ViewsError> {
    let (found,): (bool,) =
        sqlx::query_as("SELECT EXISTS (SELECT 1 FROM activity WHERE passkey = ? AND until <= ?)")
            .bind(passkey)
            .bind(i64::from(window.cutoff().0))
            .fetch_one(&database.pool)
            .await?;
    Ok(found)
}

/// Applies changes of one user on one torrent. Returns the number of evicted clients.
async fn apply_changes(
    transaction: &mut Transaction<'static, Sqlite>,
    passkey: &str,
    changes: &[Change],
    window: &Window,
) -> Result<u64, ViewsError> {
    let Some(first) = changes.first() else {
        return Ok(0);
    };
    let stored: Option<(Vec<u8>,)> =
        sqlx::query_as("SELECT clients FROM activity WHERE passkey = ? AND info_hash = ?")
            .bind(passkey)
            .bind(first.info_hash.0.to_vec())
            .fetch_optional(&mut **transaction)
            .await?;
    let before = stored.map(|(clients,)| Record::from_bytes(&clients)).unwrap_or_default();
    let mut record = before.clone();
    record.expire(window.cutoff());
    let evicted = changes.iter().map(|change| record.add(&change.report)).sum();
    if record != before {
        write(transaction, passkey, &first.info_hash.0, &record).await?;
    }
    Ok(evicted)
}

/// Removes expired reports from up to [`REMOVE_MAX`] torrents of one user. Returns the number of torrents.
async fn remove_some(
    transaction: &mut Transaction<'static, Sqlite>,
    passkey: &str,
    window: &Window,
) -> Result<u64, ViewsError> {
    let cutoff = window.cutoff();
    let rows: Vec<ClientsRow> =
        sqlx::query_as("SELECT info_hash, clients FROM activity WHERE passkey = ? AND until <= ? LIMIT ?")
            .bind(passkey)
            .bind(i64::from(cutoff.0))
            .bind(REMOVE_MAX as i64)
            .fetch_all(&mut **transaction)
            .await?;
    for (info_hash, clients) in &rows {
        let mut record = Record::from_bytes(clients);
        record.expire(cutoff);
        write(transaction, passkey, info_hash, &record).await?;
    }
    Ok(rows.len() as u64)
}

async fn write(
    connection: &mut SqliteConnection,
    passkey: &str,
    info_hash: &[u8],
    record: &Record,
) -> Result<(), ViewsError> {
    let query = match record.summary() {
        Some(summary) => sqlx::query(
            "INSERT INTO activity (passkey, info_hash, standing, at, until, clients) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (passkey, info_hash) DO UPDATE SET standing = excluded.standing, \
             at = excluded.at, until = excluded.until, clients = excluded.clients",
        )
        .bind(passkey.to_owned())
        .bind(info_hash.to_vec())
        .bind(state_number(summary.state))
        .bind(i64::from(summary.at.0))
        .bind(i64::from(summary.until.0))
        .bind(record.to_bytes()),
        None => sqlx::query("DELETE FROM activity WHERE passkey = ? AND info_hash = ?")
            .bind(passkey.to_owned())
            .bind(info_hash.to_vec()),
    };
    query.execute(connection).await?;
    Ok(())
}

fn state_number(state: ClientState) -> i64 {
    match state {
        ClientState::Seeding => 0,
        ClientState::Leeching => 1,
        ClientState::Stopped => 2,
    }
}

fn torrent_of(info_hash: &[u8], at: i64) -> Result<ActiveTorrent, ViewsError> {
    let malformed = |what: &str| sqlx::Error::Decode(format!("activity: malformed {what}").into());
    let info_hash = info_hash.try_into().map_err(|_| malformed("info_hash"))?;
    let at = u32::try_from(at).map_err(|_| malformed("at"))?;
    Ok(ActiveTorrent { info_hash: InfoHash(info_hash), at: UnixTime(at) })
}
