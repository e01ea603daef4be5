//! The table of torrents.

use domain::{InfoHash, TorrentId, UnixTime};
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite};

use super::rows::{read_torrent, readable, sql_integer};
use super::{BULK_ROWS, Store};
use crate::error::{AccessError, is_constraint};

/// A torrent as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torrent {
    /// Its number.
    pub id: TorrentId,
    /// Its one name: the v1 infohash, or the truncated v2 hash of a torrent that has no v1.
    pub info_hash: InfoHash,
    /// The truncated v2 hash of a hybrid torrent, by which some clients announce it.
    pub info_hash_v2: Option<InfoHash>,
    /// What people call it.
    pub name: String,
    /// The size of its content; 0 where it is not known.
    pub total_bytes: u64,
    /// Whether it may be announced.
    pub enabled: bool,
    /// When it was added.
    pub created_at: UnixTime,
}

/// A torrent to be added; enabled from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTorrent {
    /// None means the next free one.
    pub id: Option<TorrentId>,
    /// Its one name (see [`Torrent::info_hash`]).
    pub info_hash: InfoHash,
    /// The truncated v2 hash of a hybrid torrent.
    pub info_hash_v2: Option<InfoHash>,
    /// What people call it.
    pub name: String,
    /// The size of its content; 0 where it is not known.
    pub total_bytes: u64,
    /// The present moment.
    pub created_at: UnixTime,
}

/// Torrents.
impl Store {
    /// Adds a torrent.
    pub async fn add_torrent(&self, torrent: NewTorrent) -> Result<Torrent, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_torrent(&mut transaction, &torrent).await?;
        self.commit(transaction).await?;
        Ok(added)
    }

    /// Adds many torrents: all of them or, if one cannot be added, none. Tells how many.
    pub async fn add_torrents<I>(&self, torrents: I) -> Result<u64, AccessError>
    where
        I: IntoIterator<Item = NewTorrent>,
        I::IntoIter: Send,
    {
        let mut torrents = torrents.into_iter();
        let mut transaction = self.begin().await?;
        let mut added = 0;
        loop {
            let batch: Vec<NewTorrent> = torrents.by_ref().take(BULK_ROWS).collect();
            if batch.is_empty() {
                break;
            }
            self.insert_torrents(&mut transaction, &batch).await?;
            added += batch.len() as u64;
        }
        self.commit(transaction).await?;
        Ok(added)
    }

    /// The torrent with this id.
    pub async fn torrent(&self, id: TorrentId) -> Result<Option<Torrent>, AccessError> {
        let row = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, created_at FROM torrents WHERE id = ?",
        )
        .bind(sql_integer(id.get()))
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.explain(error))?;
        row.as_ref().map(read_torrent).transpose()
    }

    /// The torrent with this infohash, v1 or truncated v2.
    pub async fn torrent_by_info_hash(&self, info_hash: &InfoHash) -> Result<Option<Torrent>, AccessError> {
        let mut connection = self.pool.acquire().await.map_err(|error| self.explain(error))?;
        self.torrent_named(&mut connection, info_hash).await
    }

    /// The first `limit` torrents behind `after`, by id. Fewer than `limit` means that these were the last.
    pub async fn list_torrents(
        &self,
        after: Option<TorrentId>,
        limit: u32,
    ) -> Result<Vec<Torrent>, AccessError> {
        let mut connection = self.pool.acquire().await.map_err(|error| self.explain(error))?;
        let mut torrents = Vec::new();
        let mut last = after.map_or(0, |id| sql_integer(id.get()));
        loop {
            let wanted = limit - torrents.len() as u32;
            let page =
                torrent_page(&mut connection, last, wanted).await.map_err(|error| self.explain(error))?;
            torrents.extend(page.torrents);
            match page.last {
                // Rows that could not be read left room for more.
                Some(id) if (torrents.len() as u32) < limit => last = id,
                _ => return Ok(torrents),
            }
        }
    }

    /// How many torrents there are.
    pub async fn count_torrents(&self) -> Result<u64, AccessError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM torrents")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        Ok(count.unsigned_abs())
    }

    /// Removes a torrent.
    pub async fn remove_torrent(&self, id: TorrentId) -> Result<(), AccessError> {
        let done = sqlx::query("DELETE FROM torrents WHERE id = ?")
            .bind(sql_integer(id.get()))
            .execute(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        if done.rows_affected() == 0 { Err(AccessError::UnknownTorrent(id)) } else { Ok(()) }
    }

    /// Lets a torrent be announced, or no longer.
    pub async fn set_torrent_enabled(&self, id: TorrentId, enabled: bool) -> Result<(), AccessError> {
        let done = sqlx::query("UPDATE torrents SET enabled = ? WHERE id = ?")
            .bind(enabled)
            .bind(sql_integer(id.get()))
            .execute(&self.pool)
            .await
            .map_err(|error| self.explain(error))?;
        if done.rows_affected() == 0 { Err(AccessError::UnknownTorrent(id)) } else { Ok(()) }
    }

    async fn insert_torrent(
        &self,
        connection: &mut SqliteConnection,
        torrent: &NewTorrent,
    ) -> Result<Torrent, AccessError> {
        let row = sqlx::query(
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at)
             VALUES (?, ?, ?, ?, ?, ?)
             RETURNING id, infohash, infohash_v2, name, total_bytes, enabled, created_at",
        )
        .bind(torrent.id.map(|id| sql_integer(id.get())))
        .bind(torrent.info_hash.to_string())
        .bind(torrent.info_hash_v2.map(|hash| hash.to_string()))
        .bind(&torrent.name)
        .bind(size_of(torrent)?)
        .bind(torrent.created_at.0)
        .fetch_one(&mut *connection)
        .await;
        match row {
            Ok(row) => read_torrent(&row),
            Err(error) => Err(self.explain_torrent(connection, error, torrent).await),
        }
    }

    async fn insert_torrents(
        &self,
        connection: &mut SqliteConnection,
        batch: &[NewTorrent],
    ) -> Result<(), AccessError> {
        let sizes: Vec<i64> = batch.iter().map(size_of).collect::<Result<_, _>>()?;
        let mut insert = QueryBuilder::<Sqlite>::new(
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at) ",
        );
        insert.push_values(batch.iter().zip(sizes), |mut row, (torrent, total_bytes)| {
            row.push_bind(torrent.id.map(|id| sql_integer(id.get())))
                .push_bind(torrent.info_hash.to_string())
                .push_bind(torrent.info_hash_v2.map(|hash| hash.to_string()))
                .push_bind(&torrent.name)
                .push_bind(total_bytes)
                .push_bind(torrent.created_at.0);
        });
        match insert.build().execute(&mut *connection).await {
            Ok(_) => Ok(()),
            Err(error) if is_constraint(&error) => {
                // One of them is at fault: one at a time, it shows itself.
                for torrent in batch {
                    self.insert_torrent(connection, torrent).await?;
                }
                Err(self.explain(error))
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Finds out which rule a torrent broke.
    async fn explain_torrent(
        &self,
        connection: &mut SqliteConnection,
        error: sqlx::Error,
        torrent: &NewTorrent,
    ) -> AccessError {
        if !is_constraint(&error) {
            return self.explain(error);
        }
        if let Some(id) = torrent.id {
            let taken: Result<Option<i64>, _> = sqlx::query_scalar("SELECT id FROM torrents WHERE id = ?")
                .bind(sql_integer(id.get()))
                .fetch_optional(&mut *connection)
                .await;
            if matches!(taken, Ok(Some(_))) {
                return AccessError::TorrentIdTaken(id);
            }
        }
        for info_hash in [Some(torrent.info_hash), torrent.info_hash_v2].into_iter().flatten() {
            if let Ok(Some(holder)) = self.torrent_named(connection, &info_hash).await {
                return AccessError::InfoHashTaken { info_hash, holder: holder.id, name: holder.name };
            }
        }
        self.explain(error)
    }

    async fn torrent_named(
        &self,
        connection: &mut SqliteConnection,
        info_hash: &InfoHash,
    ) -> Result<Option<Torrent>, AccessError> {
        let row = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, created_at FROM torrents
             WHERE infohash = ?1 OR lower(substr(infohash_v2, 1, 40)) = ?1",
        )
        .bind(info_hash.to_string())
        .fetch_optional(connection)
        .await
        .map_err(|error| self.explain(error))?;
        row.as_ref().map(read_torrent).transpose()
    }
}

fn size_of(torrent: &NewTorrent) -> Result<i64, AccessError> {
    i64::try_from(torrent.total_bytes).map_err(|_| AccessError::TooManyBytes(torrent.total_bytes))
}

/// Some torrents in the order of their ids.
pub(crate) struct TorrentPage {
    pub torrents: Vec<Torrent>,
    /// The id of the last row, readable or not; none if there was no row.
    pub last: Option<i64>,
}

/// The rows behind `after`.
pub(crate) async fn torrent_page(
    connection: &mut SqliteConnection,
    after: i64,
    limit: u32,
) -> Result<TorrentPage, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, created_at FROM torrents
         WHERE id > ? ORDER BY id LIMIT ?",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    let last = rows.last().map(|row| sqlx::Row::try_get(row, "id")).transpose()?;
    Ok(TorrentPage { torrents: rows.iter().filter_map(|row| readable(read_torrent(row))).collect(), last })
}
