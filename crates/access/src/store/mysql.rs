//! The tables in MariaDB and MySQL.
//!
//! MySQL has no `RETURNING`: a new row is read by its id in the same transaction.

use std::ops::DerefMut;

use async_trait::async_trait;
use domain::{InfoHash, Passkey, TorrentId, UserId};
use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::{AssertSqlSafe, MySql, QueryBuilder};

use super::catalogue::{Dialect, Selection, Statement, Value};
use super::numbering::number;
use super::rows::{
    Columns, Selected, read_banned_ports, read_client, read_selected, read_torrent, read_user, readable,
    sql_integer,
};
use super::tables::{Page, Read, Tables, Transaction};
use super::users::UserWithPasskey;
use super::{NewTorrent, Torrent, TorrentChange, User, UserChange};
use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::leech_slots::LeechSlots;
use crate::ports::{BannedPorts, PortRange};

/// `C` is a pooled connection or a transaction.
pub(crate) struct MySqlTables<C>(pub(crate) C);

/// The two columns of `access_counter` that hold the highest ids.
const NEWEST_USER_ID: &str = "SELECT newest_user_id FROM access_counter FOR UPDATE";
const NEWEST_TORRENT_ID: &str = "SELECT newest_torrent_id FROM access_counter FOR UPDATE";

impl<C: DerefMut<Target = MySqlConnection> + Send> MySqlTables<C> {
    /// Ids for new rows; none if ids are exhausted. The counter is locked only if an id must be assigned.
    async fn number(
        &mut self,
        newest: &'static str,
        given: Vec<Option<u64>>,
    ) -> Result<Option<Vec<i64>>, sqlx::Error> {
        let highest = match given.contains(&None) {
            true => sqlx::query_scalar(newest).fetch_one(&mut *self.0).await?,
            false => 0,
        };
        Ok(number(given.into_iter().map(|id| id.map(sql_integer)), highest))
    }
}

#[async_trait]
impl<C> Tables for MySqlTables<C>
where
    C: DerefMut<Target = MySqlConnection> + Send,
{
    async fn user(&mut self, id: i64) -> Result<Option<Read<User>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at FROM users WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_user))
    }

    async fn user_by_passkey(&mut self, passkey: &Passkey) -> Result<Option<Read<User>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at FROM users WHERE passkey = ?",
        )
        .bind(passkey.to_string())
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_user))
    }

    async fn user_page(&mut self, after: i64, limit: u32) -> Result<Page<User>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at FROM users WHERE id > ? ORDER BY id LIMIT ?",
        )
        .bind(after)
        .bind(limit)
        .fetch_all(&mut *self.0)
        .await?;
        Ok(Page {
            last: last_id(&rows)?,
            rows: rows.iter().filter_map(|row| readable(read_user(row))).collect(),
        })
    }

    async fn count_users(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT count(*) FROM users").fetch_one(&mut *self.0).await
    }

    async fn user_holders(&mut self, id: Option<i64>, passkey: &Passkey) -> Result<Vec<i64>, sqlx::Error> {
        sqlx::query_scalar("SELECT id FROM users WHERE id = ? OR passkey = ?")
            .bind(id)
            .bind(passkey.to_string())
            .fetch_all(&mut *self.0)
            .await
    }

    async fn insert_user(
        &mut self,
        (user, passkey): &UserWithPasskey,
        is_external: bool,
    ) -> Result<Read<User>, sqlx::Error> {
        let Some(ids) = self.number(NEWEST_USER_ID, vec![user.id.map(UserId::get)]).await? else {
            return Ok(Err(AccessError::NoNextId));
        };
        sqlx::query("INSERT INTO users (id, passkey, created_at, vouched) VALUES (?, ?, ?, ?)")
            .bind(ids[0])
            .bind(passkey.to_string())
            .bind(user.created_at.0)
            .bind(is_external)
            .execute(&mut *self.0)
            .await?;
        self.user(ids[0]).await?.ok_or(sqlx::Error::RowNotFound)
    }

    async fn insert_users(&mut self, batch: &[UserWithPasskey]) -> Result<Read<()>, sqlx::Error> {
        let given = batch.iter().map(|(user, _)| user.id.map(UserId::get)).collect();
        let Some(ids) = self.number(NEWEST_USER_ID, given).await? else {
            return Ok(Err(AccessError::NoNextId));
        };
        let mut insert = QueryBuilder::<MySql>::new("INSERT INTO users (id, passkey, created_at) ");
        insert.push_values(batch.iter().zip(&ids), |mut row, ((user, passkey), id)| {
            row.push_bind(*id).push_bind(passkey.to_string()).push_bind(user.created_at.0);
        });
        insert.build().execute(&mut *self.0).await.map(|_| Ok(()))
    }

    async fn set_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error> {
        let set = sqlx::query("UPDATE users SET passkey = ? WHERE id = ?").bind(passkey.to_string()).bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn set_external_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error> {
        let set = sqlx::query("UPDATE users SET passkey = ? WHERE id = ? AND vouched")
            .bind(passkey.to_string())
            .bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn change_user(&mut self, id: i64, change: &UserChange) -> Result<u64, sqlx::Error> {
        let set = sqlx::query(
            "UPDATE users SET enabled = coalesce(?, enabled),
                 leech_slots = CASE WHEN ? THEN ? ELSE leech_slots END,
                 name = CASE WHEN ? THEN ? ELSE name END
             WHERE id = ?",
        )
        .bind(change.enabled)
        .bind(change.leech_slots.is_some())
        .bind(change.leech_slots.and_then(LeechSlots::to_number))
        .bind(change.name.is_some())
        .bind(change.name_text())
        .bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn mark_sandbox(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let set = sqlx::query("UPDATE users SET sandbox = 1 WHERE id = ?").bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn clear_external(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let set = sqlx::query("UPDATE users SET vouched = 0 WHERE id = ?").bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn delete_user(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM users WHERE id = ?").bind(id);
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }

    async fn torrent(&mut self, id: i64) -> Result<Option<Read<Torrent>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at FROM torrents WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_torrent))
    }

    async fn torrent_by_info_hash(
        &mut self,
        info_hash: &InfoHash,
    ) -> Result<Option<Read<Torrent>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at FROM torrents
             WHERE infohash = ? OR infohash_v2_short = ?",
        )
        .bind(info_hash.to_string())
        .bind(info_hash.to_string())
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_torrent))
    }

    async fn torrent_page(&mut self, after: i64, limit: u32) -> Result<Page<Torrent>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at FROM torrents
             WHERE id > ? ORDER BY id LIMIT ?",
        )
        .bind(after)
        .bind(limit)
        .fetch_all(&mut *self.0)
        .await?;
        let last = last_id(&rows)?;
        Ok(Page { last, rows: rows.iter().filter_map(|row| readable(read_torrent(row))).collect() })
    }

    async fn count_torrents(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT count(*) FROM torrents").fetch_one(&mut *self.0).await
    }

    async fn selected_torrents(&mut self, selection: &Selection) -> Result<Vec<Selected>, sqlx::Error> {
        let Statement { sql, values } = selection.statement(Dialect::MySql);
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        for value in values {
            query = match value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
            };
        }
        Ok(query.fetch_all(&mut *self.0).await?.iter().map(read_selected).collect())
    }

    async fn selected_users(&mut self, selection: &Selection) -> Result<Vec<Read<User>>, sqlx::Error> {
        let Statement { sql, values } = selection.statement(Dialect::MySql);
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        for value in values {
            query = match value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
            };
        }
        Ok(query.fetch_all(&mut *self.0).await?.iter().map(read_user).collect())
    }

    async fn selected_numbers(&mut self, selection: &Selection) -> Result<Vec<i64>, sqlx::Error> {
        let Statement { sql, values } = selection.statement(Dialect::MySql);
        let mut query = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false);
        for value in values {
            query = match value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
            };
        }
        query.fetch_all(&mut *self.0).await
    }

    async fn insert_torrent(&mut self, torrent: &NewTorrent) -> Result<Read<Torrent>, sqlx::Error> {
        let Some(ids) = self.number(NEWEST_TORRENT_ID, vec![torrent.id.map(TorrentId::get)]).await? else {
            return Ok(Err(AccessError::NoNextId));
        };
        sqlx::query(
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at)
             VALUES (?, ?, ?, ?, ?, ?)",
        )
        .bind(ids[0])
        .bind(torrent.info_hash.to_string())
        .bind(torrent.info_hash_v2.map(|hash| hash.to_string()))
        .bind(&torrent.name)
        .bind(sql_integer(torrent.total_bytes))
        .bind(torrent.created_at.0)
        .execute(&mut *self.0)
        .await?;
        self.torrent(ids[0]).await?.ok_or(sqlx::Error::RowNotFound)
    }

    async fn insert_torrents(&mut self, batch: &[NewTorrent]) -> Result<Read<()>, sqlx::Error> {
        let given = batch.iter().map(|torrent| torrent.id.map(TorrentId::get)).collect();
        let Some(ids) = self.number(NEWEST_TORRENT_ID, given).await? else {
            return Ok(Err(AccessError::NoNextId));
        };
        let mut insert = QueryBuilder::<MySql>::new(
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at) ",
        );
        insert.push_values(batch.iter().zip(&ids), |mut row, (torrent, id)| {
            row.push_bind(*id)
                .push_bind(torrent.info_hash.to_string())
                .push_bind(torrent.info_hash_v2.map(|hash| hash.to_string()))
                .push_bind(&torrent.name)
                .push_bind(sql_integer(torrent.total_bytes))
                .push_bind(torrent.created_at.0);
        });
        insert.build().execute(&mut *self.0).await.map(|_| Ok(()))
    }

    async fn change_torrent(&mut self, id: i64, change: &TorrentChange) -> Result<u64, sqlx::Error> {
        let set = sqlx::query(
            "UPDATE torrents SET enabled = coalesce(?, enabled), approved = coalesce(?, approved),
                 leech_slots = CASE WHEN ? THEN ? ELSE leech_slots END
             WHERE id = ?",
        )
        .bind(change.enabled)
        .bind(change.approved)
        .bind(change.leech_slots.is_some())
        .bind(change.leech_slots.and_then(LeechSlots::to_number))
        .bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn delete_torrent(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM torrents WHERE id = ?").bind(id);
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }

    async fn all_clients(&mut self) -> Result<Vec<ClientRule>, sqlx::Error> {
        let rows = sqlx::query("SELECT prefix, name, allowed FROM clients ORDER BY prefix")
            .fetch_all(&mut *self.0)
            .await?;
        Ok(rows.iter().filter_map(|row| readable(read_client(row))).collect())
    }

    async fn insert_client(&mut self, rule: &ClientRule) -> Result<(), sqlx::Error> {
        let insert = sqlx::query(
            "INSERT INTO clients (prefix, name, allowed) VALUES (?, ?, ?)
             ON DUPLICATE KEY UPDATE name = VALUES(name), allowed = VALUES(allowed)",
        )
        .bind(rule.prefix.to_string().into_bytes())
        .bind(&rule.name)
        .bind(rule.allowed);
        insert.execute(&mut *self.0).await.map(|_| ())
    }

    async fn delete_client(&mut self, spelling: &str, hex: &str) -> Result<u64, sqlx::Error> {
        let delete =
            sqlx::query("DELETE FROM clients WHERE prefix = ? OR lower(convert(prefix USING latin1)) = ?")
                .bind(spelling.as_bytes())
                .bind(hex);
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }

    async fn all_banned_ports(&mut self) -> Result<Vec<BannedPorts>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT first_port, last_port, reason FROM banned_ports ORDER BY first_port, last_port",
        )
        .fetch_all(&mut *self.0)
        .await?;
        Ok(rows.iter().filter_map(|row| readable(read_banned_ports(row))).collect())
    }

    async fn insert_banned_ports(&mut self, ban: &BannedPorts) -> Result<(), sqlx::Error> {
        let insert = sqlx::query(
            "INSERT INTO banned_ports (first_port, last_port, reason) VALUES (?, ?, ?)
             ON DUPLICATE KEY UPDATE reason = VALUES(reason)",
        )
        .bind(i64::from(ban.range.first()))
        .bind(i64::from(ban.range.last()))
        .bind(&ban.reason);
        insert.execute(&mut *self.0).await.map(|_| ())
    }

    async fn delete_banned_ports(&mut self, range: PortRange) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM banned_ports WHERE first_port = ? AND last_port = ?")
            .bind(i64::from(range.first()))
            .bind(i64::from(range.last()));
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }
}

#[async_trait]
impl Transaction for MySqlTables<sqlx::Transaction<'static, MySql>> {
    async fn commit(self: Box<Self>) -> Result<(), sqlx::Error> {
        self.0.commit().await
    }
}

fn last_id(rows: &[MySqlRow]) -> Result<Option<i64>, sqlx::Error> {
    rows.last().map(|row| row.number("id")).transpose()
}
