//! The table `torrents`.

use database::SqlError;
use domain::{InfoHash, TorrentId, UnixTime};

use super::rows::sql_integer;
use super::tables::Tables;
use super::{BULK_ROWS, Store};
use crate::error::AccessError;
use crate::leech_slots::LeechSlots;

/// Limit of the API and the commands.
pub const TORRENT_NAME_CHARS_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torrent {
    pub id: TorrentId,
    /// The primary infohash: v1, or the truncated v2 hash of a torrent without v1.
    pub info_hash: InfoHash,
    /// The truncated v2 hash of a hybrid torrent, which some clients announce.
    pub info_hash_v2: Option<InfoHash>,
    pub name: String,
    /// 0 if unknown.
    pub total_bytes: u64,
    pub enabled: bool,
    /// False while it is pending.
    pub approved: bool,
    /// How many peers may leech it at once.
    pub leech_slots: LeechSlots,
    pub created_at: UnixTime,
}

/// None leaves a field unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorrentChange {
    pub enabled: Option<bool>,
    pub approved: Option<bool>,
    pub leech_slots: Option<LeechSlots>,
}

/// New torrents are enabled and approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTorrent {
    /// None for the next free one.
    pub id: Option<TorrentId>,
    /// See [`Torrent::info_hash`].
    pub info_hash: InfoHash,
    /// The truncated v2 hash of a hybrid torrent.
    pub info_hash_v2: Option<InfoHash>,
    pub name: String,
    /// 0 if unknown.
    pub total_bytes: u64,
    pub created_at: UnixTime,
}

impl Store {
    pub async fn add_torrent(&self, torrent: NewTorrent) -> Result<Torrent, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_torrent(&mut transaction, &torrent).await?;
        self.commit(transaction).await?;
        Ok(added)
    }

    /// Adds a torrent that is not approved yet.
    pub async fn add_pending_torrent(&self, torrent: NewTorrent) -> Result<Torrent, AccessError> {
        let mut transaction = self.begin().await?;
        let added = self.insert_torrent(&mut transaction, &torrent).await?;
        let pending = TorrentChange { approved: Some(false), ..TorrentChange::default() };
        let changed = transaction.change_torrent(sql_integer(added.id.get()), &pending).await;
        changed.map_err(|error| self.explain(error))?;
        self.commit(transaction).await?;
        Ok(Torrent { approved: false, ..added })
    }

    /// Adds all torrents or none. Returns how many.
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

    pub async fn torrent(&self, id: TorrentId) -> Result<Option<Torrent>, AccessError> {
        let found = self.tables().row(sql_integer(id.get())).await;
        found.map_err(|error| self.explain(error))?.transpose()
    }

    /// By v1 or truncated v2 infohash.
    pub async fn torrent_by_info_hash(&self, info_hash: &InfoHash) -> Result<Option<Torrent>, AccessError> {
        let found = self.tables().torrent_by_info_hash(info_hash).await;
        found.map_err(|error| self.explain(error))?.transpose()
    }

    /// The first `limit` torrents after `after`, by id. Fewer than `limit` are the last ones.
    pub async fn list_torrents(
        &self,
        after: Option<TorrentId>,
        limit: u32,
    ) -> Result<Vec<Torrent>, AccessError> {
        self.list(after.map_or(0, |id| sql_integer(id.get())), limit).await
    }

    pub async fn count_torrents(&self) -> Result<u64, AccessError> {
        let count = self.tables().count::<Torrent>().await.map_err(|error| self.explain(error))?;
        Ok(count.unsigned_abs())
    }

    pub async fn remove_torrent(&self, id: TorrentId) -> Result<(), AccessError> {
        let removed = self.tables().delete::<Torrent>(sql_integer(id.get())).await;
        match removed.map_err(|error| self.explain(error))? {
            0 => Err(AccessError::UnknownTorrent(id)),
            _ => Ok(()),
        }
    }

    pub async fn set_torrent_enabled(&self, id: TorrentId, enabled: bool) -> Result<(), AccessError> {
        self.change_torrent(id, TorrentChange { enabled: Some(enabled), ..TorrentChange::default() }).await
    }

    pub async fn change_torrent(&self, id: TorrentId, change: TorrentChange) -> Result<(), AccessError> {
        let found = self.tables().change_torrent(sql_integer(id.get()), &change).await;
        match found.map_err(|error| self.explain(error))? {
            0 => Err(AccessError::UnknownTorrent(id)),
            _ => Ok(()),
        }
    }

    async fn insert_torrent(
        &self,
        transaction: &mut Tables<'_>,
        torrent: &NewTorrent,
    ) -> Result<Torrent, AccessError> {
        check_size(torrent)?;
        match transaction.insert_torrent(torrent).await {
            Ok(read) => read,
            Err(error) => Err(self.explain_torrent(transaction, error, torrent).await),
        }
    }

    async fn insert_torrents(
        &self,
        transaction: &mut Tables<'_>,
        batch: &[NewTorrent],
    ) -> Result<(), AccessError> {
        batch.iter().try_for_each(check_size)?;
        match transaction.insert_torrents(batch).await {
            Ok(read) => read,
            Err(error) if error.is_constraint() => {
                // Inserted one by one, to name the row at fault.
                for torrent in batch {
                    self.insert_torrent(transaction, torrent).await?;
                }
                Err(self.explain(error))
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Turns a constraint violation into the error that names its cause.
    async fn explain_torrent(
        &self,
        transaction: &mut Tables<'_>,
        error: SqlError,
        torrent: &NewTorrent,
    ) -> AccessError {
        if !error.is_constraint() {
            return self.explain(error);
        }
        if let Some(id) = torrent.id
            && matches!(transaction.row::<Torrent>(sql_integer(id.get())).await, Ok(Some(_)))
        {
            return AccessError::TorrentIdTaken(id);
        }
        for info_hash in [Some(torrent.info_hash), torrent.info_hash_v2].into_iter().flatten() {
            if let Ok(Some(Ok(holder))) = transaction.torrent_by_info_hash(&info_hash).await {
                return AccessError::InfoHashTaken { info_hash, holder: holder.id, name: holder.name };
            }
        }
        self.explain(error)
    }
}

fn check_size(torrent: &NewTorrent) -> Result<(), AccessError> {
    let fits = i64::try_from(torrent.total_bytes).is_ok();
    if fits { Ok(()) } else { Err(AccessError::TooManyBytes(torrent.total_bytes)) }
}
