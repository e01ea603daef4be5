//! Rows of an existing site's users and torrents, copied into `users` and `torrents` by [`SiteUser`] and [`SiteTorrent`].
//!
//! # Guarantees
//!
//! - A batch is one transaction: all rows or none.
//! - The site's id is the id here, since its accounts are the site's. A row of another id with the same passkey or infohash is
//!   removed first: on the site it has another one by now, or it was an external user.
//! - Names that operators gave users here stay.

use std::collections::{BTreeMap, BTreeSet};

use database::{Rows, SqlError, Statement, Value};
use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};

use super::rows::sql_integer;
use super::tables::Tables;
use super::{BULK_ROWS, Store};
use crate::error::AccessError;
use crate::leech_slots::LeechSlots;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteUser {
    pub id: UserId,
    pub passkey: Passkey,
    pub enabled: bool,
    pub leech_slots: LeechSlots,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteTorrent {
    pub id: TorrentId,
    pub info_hash: InfoHash,
    pub info_hash_v2: Option<InfoHash>,
    pub enabled: bool,
    pub approved: bool,
    pub total_bytes: u64,
    pub name: String,
}

const PUT_USERS: &str = "INSERT INTO users (id, passkey, enabled, vouched, leech_slots, created_at) {values}
     {upsert id} passkey = {new passkey}, enabled = {new enabled}, vouched = {new vouched},
     leech_slots = {new leech_slots}";
const PUT_TORRENTS: &str = "INSERT INTO torrents
     (id, infohash, infohash_v2, enabled, approved, total_bytes, name, created_at) {values}
     {upsert id} infohash = {new infohash}, infohash_v2 = {new infohash_v2}, enabled = {new enabled},
     approved = {new approved}, total_bytes = {new total_bytes}, name = {new name}";

/// As the indexes are.
const USERS_WITH: Statement = Statement::each(
    "SELECT id, lower(passkey) FROM users WHERE passkey {in}",
    "SELECT id, lower(passkey) FROM users WHERE lower(passkey) {in}",
    "SELECT id, lower(passkey) FROM users WHERE passkey {in}",
);
const TORRENTS_WITH: Statement = Statement::each(
    "SELECT id, lower(infohash) FROM torrents WHERE infohash {in}",
    "SELECT id, lower(infohash) FROM torrents WHERE lower(infohash) {in}",
    "SELECT id, lower(infohash) FROM torrents WHERE infohash {in}",
);
const TORRENTS_WITH_V2: Statement = Statement::each(
    "SELECT id, lower(substr(infohash_v2, 1, 40)) FROM torrents WHERE lower(substr(infohash_v2, 1, 40)) {in}",
    "SELECT id, lower(left(infohash_v2, 40)) FROM torrents WHERE lower(left(infohash_v2, 40)) {in}",
    "SELECT id, infohash_v2_short FROM torrents WHERE infohash_v2_short {in}",
);

impl Store {
    /// Inserts or updates users. `now` becomes the creation time of new rows.
    pub async fn put_site_users(&self, users: &[SiteUser], now: UnixTime) -> Result<(), AccessError> {
        for batch in users.chunks(BULK_ROWS) {
            // By passkey: of several users with the same, the last one.
            let owners: BTreeMap<String, i64> =
                batch.iter().map(|user| (user.passkey.to_string(), sql_integer(user.id.get()))).collect();
            let rows = batch
                .iter()
                .filter(|user| owners.get(&user.passkey.to_string()) == Some(&sql_integer(user.id.get())));
            let rows = Rows::new(rows.map(|user| {
                [
                    sql_integer(user.id.get()).into(),
                    user.passkey.to_string().into(),
                    user.enabled.into(),
                    false.into(),
                    user.leech_slots.to_number().into(),
                    now.0.into(),
                ]
            }));
            let mut transaction = self.begin().await?;
            let put = async {
                let stale = others_with(&mut transaction, USERS_WITH, &owners).await?;
                transaction.delete_rows("DELETE FROM users WHERE id {in}", stale).await?;
                transaction.write_rows(PUT_USERS, &rows).await
            };
            put.await.map_err(|error| self.explain(error))?;
            self.commit(transaction).await?;
        }
        Ok(())
    }

    /// Inserts or updates torrents. `now` becomes the creation time of new rows.
    pub async fn put_site_torrents(
        &self,
        torrents: &[SiteTorrent],
        now: UnixTime,
    ) -> Result<(), AccessError> {
        for batch in torrents.chunks(BULK_ROWS) {
            let hashes = |torrent: &SiteTorrent| {
                let id = sql_integer(torrent.id.get());
                [Some(torrent.info_hash), torrent.info_hash_v2]
                    .into_iter()
                    .flatten()
                    .map(move |hash| (hash.to_string(), id))
            };
            let owners: BTreeMap<String, i64> = batch.iter().flat_map(hashes).collect();
            let is_owner =
                |torrent: &&SiteTorrent| hashes(torrent).all(|(hash, id)| owners.get(&hash) == Some(&id));
            let rows = Rows::new(batch.iter().filter(is_owner).map(|torrent| {
                [
                    sql_integer(torrent.id.get()).into(),
                    torrent.info_hash.to_string().into(),
                    torrent.info_hash_v2.map(|hash| hash.to_string()).into(),
                    torrent.enabled.into(),
                    torrent.approved.into(),
                    sql_integer(torrent.total_bytes).into(),
                    (&torrent.name).into(),
                    now.0.into(),
                ]
            }));
            let mut transaction = self.begin().await?;
            let put = async {
                let mut stale = others_with(&mut transaction, TORRENTS_WITH, &owners).await?;
                stale.extend(others_with(&mut transaction, TORRENTS_WITH_V2, &owners).await?);
                transaction.delete_rows("DELETE FROM torrents WHERE id {in}", stale).await?;
                transaction.write_rows(PUT_TORRENTS, &rows).await
            };
            put.await.map_err(|error| self.explain(error))?;
            self.commit(transaction).await?;
        }
        Ok(())
    }

    /// Those that do not exist are ignored.
    pub async fn remove_users(&self, ids: &[UserId]) -> Result<(), AccessError> {
        self.remove("DELETE FROM users WHERE id {in}", ids.iter().map(|id| id.get())).await
    }

    /// Those that do not exist are ignored.
    pub async fn remove_torrents(&self, ids: &[TorrentId]) -> Result<(), AccessError> {
        self.remove("DELETE FROM torrents WHERE id {in}", ids.iter().map(|id| id.get())).await
    }

    async fn remove(&self, delete: &str, ids: impl Iterator<Item = u64>) -> Result<(), AccessError> {
        let ids: Vec<i64> = ids.map(sql_integer).collect();
        for batch in ids.chunks(BULK_ROWS) {
            let deleting = self.tables().delete_rows(delete, batch.iter().copied().collect()).await;
            deleting.map_err(|error| self.explain(error))?;
        }
        Ok(())
    }
}

/// Rows that have one of these texts, and are not its owner.
async fn others_with(
    tables: &mut Tables<'_>,
    find: Statement<'_>,
    owners: &BTreeMap<String, i64>,
) -> Result<BTreeSet<i64>, SqlError> {
    let found: Vec<(i64, String)> = tables.query(find, &[Value::texts(owners.keys().cloned())]).await?;
    Ok(found.into_iter().filter(|(id, text)| owners.get(text) != Some(id)).map(|(id, _)| id).collect())
}

impl Tables<'_> {
    async fn delete_rows(&mut self, delete: &str, ids: BTreeSet<i64>) -> Result<(), SqlError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.execute(delete, &[Value::integers(ids)]).await.map(drop)
    }
}
