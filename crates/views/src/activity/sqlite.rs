//! Activity in a SQLite file of its own.
//!
//! One row per user and torrent, with all clients in one value ([`super::record`]). An index by expiry replaces the
//! user index of Redis.

use std::collections::HashMap;

use async_trait::async_trait;
use database::{
    FromRow, Kind, Migrations, Schema, SqlError, SqliteDatabase, SqliteSession, Value, migrate_sqlite,
};
use domain::{InfoHash, Passkey, UnixTime};

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
        let cutoff = window.cutoff();
        loop {
            // Usually nothing has expired, and a read need not wait for a writer.
            let values = [passkey.into(), cutoff.0.into()];
            let select = "SELECT EXISTS (SELECT 1 FROM activity WHERE passkey = ? AND until <= ?)";
            let has_expired = self.database.read(move |session| session.query_one(select, &values)).await?;
            if has_expired != Some(true) {
                return Ok(());
            }
            self.remove_some(passkey, cutoff).await?;
        }
    }

    /// Removes expired reports from up to [`REMOVE_MAX`] torrents of one user. Returns the number of torrents.
    async fn remove_some(&self, passkey: &str, cutoff: UnixTime) -> Result<u64, ViewsError> {
        let passkey = passkey.to_owned();
        Ok(self.database.write(move |session| remove_some(session, &passkey, cutoff)).await?)
    }

    async fn query<T: FromRow + Send + 'static>(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, ViewsError> {
        Ok(self.database.read(move |session| session.query(sql, &values)).await?)
    }
}

#[async_trait]
impl ActivityStore for SqliteActivity {
    async fn apply(&self, users: &[UserChanges], window: &Window) -> Result<Applied, ViewsError> {
        let (users, cutoff) = (users.to_vec(), window.cutoff());
        let apply = move |session: &SqliteSession| -> Result<Applied, SqlError> {
            let mut applied = Applied::default();
            for user in &users {
                let passkey = user.passkey.to_string();
                for changes in user.changes.chunk_by(|a, b| a.info_hash == b.info_hash) {
                    applied.clients_evicted += apply_changes(session, &passkey, changes, cutoff)?;
                }
            }
            Ok(applied)
        };
        Ok(self.database.write(apply).await?)
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
        let select = "SELECT info_hash, at FROM activity \
             WHERE passkey = ? AND standing = ? AND until > ? AND (at, info_hash) < (?, ?) \
             ORDER BY at DESC, info_hash DESC LIMIT ?";
        let values = vec![
            passkey.into(),
            state_number(state).into(),
            window.cutoff().0.into(),
            after.at.0.into(),
            after.info_hash.0.as_slice().into(),
            (page.torrents_max() as i64 + 1).into(),
        ];
        let rows: Vec<(Vec<u8>, i64)> = self.query(select, values).await?;
        let found = rows.into_iter().map(|(info_hash, at)| torrent_of(&info_hash, at));
        Ok(Listing::of(found.collect::<Result<_, _>>()?, page))
    }

    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError> {
        let passkey = passkey.to_string();
        self.remove_expired(&passkey, window).await?;
        let select = "SELECT \
             (SELECT count(*) FROM activity WHERE passkey = ?1 AND standing = 0 AND until > ?2), \
             (SELECT count(*) FROM activity WHERE passkey = ?1 AND standing = 1 AND until > ?2)";
        let rows: Vec<(i64, i64)> =
            self.query(select, vec![passkey.into(), window.cutoff().0.into()]).await?;
        let (seeding, leeching) = rows.first().copied().unwrap_or_default();
        Ok(Counts { seeding: seeding.unsigned_abs(), leeching: leeching.unsigned_abs() })
    }

    async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError> {
        let select = "SELECT passkey, sum(standing = 0), sum(standing = 1) FROM activity WHERE standing IN (0, 1) GROUP BY passkey";
        let rows: Vec<(String, i64, i64)> = self.query(select, Vec::new()).await?;
        let read = |(passkey, seeding, leeching): (String, i64, i64)| {
            let counts = Counts { seeding: seeding.unsigned_abs(), leeching: leeching.unsigned_abs() };
            Some((passkey.parse().ok()?, counts))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    async fn sweep(&self, users_max: usize, window: &Window) -> Result<Swept, ViewsError> {
        let select = "SELECT DISTINCT passkey FROM activity WHERE until <= ? LIMIT ?";
        let values = vec![window.cutoff().0.into(), (users_max as i64).into()];
        let passkeys: Vec<String> = self.query(select, values).await?;
        let mut swept = Swept { is_behind: passkeys.len() >= users_max, ..Swept::default() };
        for passkey in passkeys {
            // One transaction per user, so that a long sweep does not block other writers.
            let torrents = self.remove_some(&passkey, window.cutoff()).await?;
            swept.users += 1;
            swept.torrents += torrents;
            swept.is_behind |= torrents as usize >= REMOVE_MAX;
        }
        Ok(swept)
    }
}

/// Applies changes of one user on one torrent. Returns the number of evicted clients.
fn apply_changes(
    session: &SqliteSession,
    passkey: &str,
    changes: &[Change],
    cutoff: UnixTime,
) -> Result<u64, SqlError> {
    let Some(first) = changes.first() else {
        return Ok(0);
    };
    let info_hash = &first.info_hash.0;
    let select = "SELECT clients FROM activity WHERE passkey = ? AND info_hash = ?";
    let stored: Option<Vec<u8>> =
        session.query_one(select, &[passkey.into(), info_hash.as_slice().into()])?;
    let before = stored.map(|clients| Record::from_bytes(&clients)).unwrap_or_default();
    let mut record = before.clone();
    record.expire(cutoff);
    let evicted = changes.iter().map(|change| record.add(&change.report)).sum();
    if record != before {
        write(session, passkey, info_hash, &record)?;
    }
    Ok(evicted)
}

fn remove_some(session: &SqliteSession, passkey: &str, cutoff: UnixTime) -> Result<u64, SqlError> {
    let select = "SELECT info_hash, clients FROM activity WHERE passkey = ? AND until <= ? LIMIT ?";
    let rows: Vec<ClientsRow> =
        session.query(select, &[passkey.into(), cutoff.0.into(), (REMOVE_MAX as i64).into()])?;
    for (info_hash, clients) in &rows {
        let mut record = Record::from_bytes(clients);
        record.expire(cutoff);
        write(session, passkey, info_hash, &record)?;
    }
    Ok(rows.len() as u64)
}

fn write(session: &SqliteSession, passkey: &str, info_hash: &[u8], record: &Record) -> Result<(), SqlError> {
    let written = match record.summary() {
        Some(summary) => session.execute(
            "INSERT INTO activity (passkey, info_hash, standing, at, until, clients) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (passkey, info_hash) DO UPDATE SET standing = excluded.standing, \
             at = excluded.at, until = excluded.until, clients = excluded.clients",
            &[
                passkey.into(),
                info_hash.into(),
                state_number(summary.state).into(),
                summary.at.0.into(),
                summary.until.0.into(),
                record.to_bytes().into(),
            ],
        ),
        None => session.execute(
            "DELETE FROM activity WHERE passkey = ? AND info_hash = ?",
            &[passkey.into(), info_hash.into()],
        ),
    };
    written.map(drop)
}

fn state_number(state: ClientState) -> i64 {
    match state {
        ClientState::Seeding => 0,
        ClientState::Leeching => 1,
        ClientState::Stopped => 2,
    }
}

fn torrent_of(info_hash: &[u8], at: i64) -> Result<ActiveTorrent, ViewsError> {
    let info_hash = info_hash.try_into().map_err(|_| SqlError::ColumnType)?;
    let at = u32::try_from(at).map_err(|_| SqlError::ColumnType)?;
    Ok(ActiveTorrent { info_hash: InfoHash(info_hash), at: UnixTime(at) })
}
