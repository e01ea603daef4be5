//! The tables in PostgreSQL.
//!
//! An error aborts a transaction, so inserts run inside a savepoint. Bulk inserts use arrays, which are twice as fast as a list
//! of values. NUL is not allowed in text, and is stored as U+FFFD.

use std::ops::DerefMut;

use async_trait::async_trait;
use domain::{InfoHash, Passkey};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Postgres};

use super::catalogue::{Dialect, Selection, Statement, Value};
use super::rows::{
    Columns, Selected, read_banned_ports, read_client, read_selected, read_torrent, read_user, readable,
    sql_integer,
};
use super::tables::{Page, Read, Tables, Transaction};
use super::users::UserWithPasskey;
use super::{NewTorrent, Torrent, TorrentChange, User, UserChange};
use crate::clients::ClientRule;
use crate::leech_slots::LeechSlots;
use crate::ports::{BannedPorts, PortRange};

/// `C` is a pooled connection or a transaction.
pub(crate) struct PgTables<C>(pub(crate) C);

#[async_trait]
impl<C> Tables for PgTables<C>
where
    C: DerefMut<Target = PgConnection> + Send,
{
    async fn user(&mut self, id: i64) -> Result<Option<Read<User>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at FROM users WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_user))
    }

    async fn user_by_passkey(&mut self, passkey: &Passkey) -> Result<Option<Read<User>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at FROM users WHERE lower(passkey) = $1",
        )
        .bind(passkey.to_string())
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_user))
    }

    async fn user_page(&mut self, after: i64, limit: u32) -> Result<Page<User>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at FROM users WHERE id > $1 ORDER BY id LIMIT $2",
        )
        .bind(after)
        .bind(i64::from(limit))
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
        sqlx::query_scalar("SELECT id FROM users WHERE id = $1 OR lower(passkey) = $2")
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
        let mut savepoint = Connection::begin(&mut *self.0).await?;
        let row = sqlx::query(
            "INSERT INTO users (id, passkey, created_at, vouched)
             VALUES (coalesce($1, nextval('users_id_seq')), $2, $3, $4)
             RETURNING id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at",
        )
        .bind(user.id.map(|id| sql_integer(id.get())))
        .bind(passkey.to_string())
        .bind(i64::from(user.created_at.0))
        .bind(is_external)
        .fetch_one(&mut *savepoint)
        .await?;
        savepoint.commit().await?;
        Ok(read_user(&row))
    }

    async fn insert_users(&mut self, batch: &[UserWithPasskey]) -> Result<Read<()>, sqlx::Error> {
        let ids: Vec<_> = batch.iter().map(|(user, _)| user.id.map(|id| sql_integer(id.get()))).collect();
        let passkeys: Vec<_> = batch.iter().map(|(_, passkey)| passkey.to_string()).collect();
        let moments: Vec<_> = batch.iter().map(|(user, _)| i64::from(user.created_at.0)).collect();
        let mut savepoint = Connection::begin(&mut *self.0).await?;
        sqlx::query(
            "INSERT INTO users (id, passkey, created_at)
             SELECT coalesce(id, nextval('users_id_seq')), passkey, created_at
             FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[]) AS new (id, passkey, created_at)",
        )
        .bind(ids)
        .bind(passkeys)
        .bind(moments)
        .execute(&mut *savepoint)
        .await?;
        savepoint.commit().await.map(Ok)
    }

    async fn set_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error> {
        let mut savepoint = Connection::begin(&mut *self.0).await?;
        let set =
            sqlx::query("UPDATE users SET passkey = $1 WHERE id = $2").bind(passkey.to_string()).bind(id);
        let found = set.execute(&mut *savepoint).await?.rows_affected();
        savepoint.commit().await?;
        Ok(found)
    }

    async fn set_external_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error> {
        let mut savepoint = Connection::begin(&mut *self.0).await?;
        let set = sqlx::query("UPDATE users SET passkey = $1 WHERE id = $2 AND vouched")
            .bind(passkey.to_string())
            .bind(id);
        let found = set.execute(&mut *savepoint).await?.rows_affected();
        savepoint.commit().await?;
        Ok(found)
    }

    async fn change_user(&mut self, id: i64, change: &UserChange) -> Result<u64, sqlx::Error> {
        let set = sqlx::query(
            "UPDATE users SET enabled = coalesce($1, enabled),
                 leech_slots = CASE WHEN $2 THEN $3 ELSE leech_slots END,
                 name = CASE WHEN $4 THEN $5 ELSE name END
             WHERE id = $6",
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
        let set = sqlx::query("UPDATE users SET sandbox = TRUE WHERE id = $1").bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn clear_external(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let set = sqlx::query("UPDATE users SET vouched = FALSE WHERE id = $1").bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn delete_user(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM users WHERE id = $1").bind(id);
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }

    async fn torrent(&mut self, id: i64) -> Result<Option<Read<Torrent>>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at FROM torrents WHERE id = $1",
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
             WHERE lower(infohash) = $1 OR lower(left(infohash_v2, 40)) = $1",
        )
        .bind(info_hash.to_string())
        .fetch_optional(&mut *self.0)
        .await?;
        Ok(row.as_ref().map(read_torrent))
    }

    async fn torrent_page(&mut self, after: i64, limit: u32) -> Result<Page<Torrent>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at FROM torrents
             WHERE id > $1 ORDER BY id LIMIT $2",
        )
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.0)
        .await?;
        let last = last_id(&rows)?;
        Ok(Page { last, rows: rows.iter().filter_map(|row| readable(read_torrent(row))).collect() })
    }

    async fn count_torrents(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT count(*) FROM torrents").fetch_one(&mut *self.0).await
    }

    async fn selected_torrents(&mut self, selection: &Selection) -> Result<Vec<Selected>, sqlx::Error> {
        let Statement { sql, values } = selection.statement(Dialect::Postgres);
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
        let Statement { sql, values } = selection.statement(Dialect::Postgres);
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
        let Statement { sql, values } = selection.statement(Dialect::Postgres);
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
        let mut savepoint = Connection::begin(&mut *self.0).await?;
        let row = sqlx::query(
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at)
             VALUES (coalesce($1, nextval('torrents_id_seq')), $2, $3, $4, $5, $6)
             RETURNING id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at",
        )
        .bind(torrent.id.map(|id| sql_integer(id.get())))
        .bind(torrent.info_hash.to_string())
        .bind(torrent.info_hash_v2.map(|hash| hash.to_string()))
        .bind(without_nul(&torrent.name))
        .bind(sql_integer(torrent.total_bytes))
        .bind(i64::from(torrent.created_at.0))
        .fetch_one(&mut *savepoint)
        .await?;
        savepoint.commit().await?;
        Ok(read_torrent(&row))
    }

    async fn insert_torrents(&mut self, batch: &[NewTorrent]) -> Result<Read<()>, sqlx::Error> {
        let column = |read: fn(&NewTorrent) -> i64| batch.iter().map(read).collect::<Vec<_>>();
        let ids: Vec<_> = batch.iter().map(|torrent| torrent.id.map(|id| sql_integer(id.get()))).collect();
        let hashes: Vec<_> = batch.iter().map(|torrent| torrent.info_hash.to_string()).collect();
        let hashes_v2: Vec<_> =
            batch.iter().map(|torrent| torrent.info_hash_v2.map(|hash| hash.to_string())).collect();
        let names: Vec<_> = batch.iter().map(|torrent| without_nul(&torrent.name)).collect();
        let mut savepoint = Connection::begin(&mut *self.0).await?;
        sqlx::query(
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at)
             SELECT coalesce(id, nextval('torrents_id_seq')), infohash, infohash_v2, name, total_bytes, created_at
             FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[])
                  AS new (id, infohash, infohash_v2, name, total_bytes, created_at)",
        )
        .bind(ids)
        .bind(hashes)
        .bind(hashes_v2)
        .bind(names)
        .bind(column(|torrent| sql_integer(torrent.total_bytes)))
        .bind(column(|torrent| i64::from(torrent.created_at.0)))
        .execute(&mut *savepoint)
        .await?;
        savepoint.commit().await.map(Ok)
    }

    async fn change_torrent(&mut self, id: i64, change: &TorrentChange) -> Result<u64, sqlx::Error> {
        let set = sqlx::query(
            "UPDATE torrents SET enabled = coalesce($1, enabled), approved = coalesce($2, approved),
                 leech_slots = CASE WHEN $3 THEN $4 ELSE leech_slots END
             WHERE id = $5",
        )
        .bind(change.enabled)
        .bind(change.approved)
        .bind(change.leech_slots.is_some())
        .bind(change.leech_slots.and_then(LeechSlots::to_number))
        .bind(id);
        Ok(set.execute(&mut *self.0).await?.rows_affected())
    }

    async fn delete_torrent(&mut self, id: i64) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM torrents WHERE id = $1").bind(id);
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
            "INSERT INTO clients (prefix, name, allowed) VALUES ($1, $2, $3)
             ON CONFLICT (prefix) DO UPDATE SET name = EXCLUDED.name, allowed = EXCLUDED.allowed",
        )
        .bind(rule.prefix.to_string())
        .bind(without_nul(&rule.name))
        .bind(rule.allowed);
        insert.execute(&mut *self.0).await.map(|_| ())
    }

    async fn delete_client(&mut self, spelling: &str, hex: &str) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM clients WHERE prefix = $1 OR lower(prefix) = $2")
            .bind(spelling)
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
            "INSERT INTO banned_ports (first_port, last_port, reason) VALUES ($1, $2, $3)
             ON CONFLICT (first_port, last_port) DO UPDATE SET reason = EXCLUDED.reason",
        )
        .bind(i64::from(ban.range.first()))
        .bind(i64::from(ban.range.last()))
        .bind(without_nul(&ban.reason));
        insert.execute(&mut *self.0).await.map(|_| ())
    }

    async fn delete_banned_ports(&mut self, range: PortRange) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query("DELETE FROM banned_ports WHERE first_port = $1 AND last_port = $2")
            .bind(i64::from(range.first()))
            .bind(i64::from(range.last()));
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }
}

#[async_trait]
impl Transaction for PgTables<sqlx::Transaction<'static, Postgres>> {
    async fn commit(self: Box<Self>) -> Result<(), sqlx::Error> {
        self.0.commit().await
    }
}

fn last_id(rows: &[PgRow]) -> Result<Option<i64>, sqlx::Error> {
    rows.last().map(|row| row.number("id")).transpose()
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
