//! The tables of users, torrents, clients and ports.
//!
//! - An insert that violates a constraint leaves the transaction usable.
//! - Passkeys and infohashes are found in upper or lower case.
//! - Returned row counts include rows that were found but did not change.
//! - A row that cannot be parsed is an error inside the result, so that it does not hide other rows.

use database::{Database, FromRow, Kind, Row, Rows, Session, SqlError, Statement, Value};
use domain::{InfoHash, Passkey, TorrentId, UserId};

use super::catalogue::Selection;
use super::numbering::{is_of_sandbox, number};
use super::rows::{
    NumberedRow, Selected, read_banned_ports, read_client, read_selected, readable, sql_integer,
};
use super::users::UserWithPasskey;
use super::{NewTorrent, Torrent, TorrentChange, User, UserChange};
use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::leech_slots::LeechSlots;
use crate::ports::{BannedPorts, PortRange};

/// A row, or why it cannot be parsed.
pub(crate) type Read<T> = Result<T, AccessError>;

/// Rows in the order of their ids.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// The id of the last row, parsed or not; none if there was no row.
    pub(crate) last: Option<i64>,
}

/// Where statements run.
pub(crate) enum Tables<'c> {
    Database(&'c Database),
    Transaction(database::Transaction),
    Session(&'c mut Session),
}

fn select<T: NumberedRow>(which: &str) -> String {
    format!("SELECT {} FROM {} {which}", T::COLUMNS, T::TABLE)
}

/// Ids for new rows.
struct Numbered {
    ids: Vec<i64>,
    /// SQLite: the highest id before them, outside of the sandbox.
    highest: i64,
}

impl Tables<'_> {
    pub(super) async fn query<T: FromRow>(
        &mut self,
        statement: impl Into<Statement<'_>>,
        values: &[Value],
    ) -> Result<Vec<T>, SqlError> {
        let statement = statement.into();
        match self {
            Tables::Database(database) => database.query(statement, values).await,
            Tables::Transaction(transaction) => transaction.query(statement, values).await,
            Tables::Session(session) => session.query(statement, values).await,
        }
    }

    async fn query_one<T: FromRow>(
        &mut self,
        statement: impl Into<Statement<'_>>,
        values: &[Value],
    ) -> Result<Option<T>, SqlError> {
        Ok(self.query(statement, values).await?.into_iter().next())
    }

    /// An error leaves a transaction usable.
    pub(super) async fn execute(
        &mut self,
        statement: impl Into<Statement<'_>>,
        values: &[Value],
    ) -> Result<u64, SqlError> {
        let statement = statement.into();
        match self {
            Tables::Database(database) => database.execute(statement, values).await,
            Tables::Transaction(transaction) => transaction.attempt(statement, values).await,
            Tables::Session(session) => session.execute(statement, values).await,
        }
    }

    pub(super) async fn write_rows(&mut self, statement: &str, rows: &Rows) -> Result<(), SqlError> {
        match self {
            Tables::Database(_) => Err(SqlError::Closed),
            Tables::Transaction(transaction) => transaction.attempt_rows(statement, rows).await.map(drop),
            Tables::Session(session) => session.write_rows(statement, rows).await.map(drop),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Tables::Database(database) => database.kind(),
            Tables::Transaction(transaction) => transaction.kind(),
            Tables::Session(session) => session.kind(),
        }
    }

    pub(crate) async fn commit(self) -> Result<(), SqlError> {
        match self {
            Tables::Transaction(transaction) => transaction.commit().await,
            Tables::Database(_) | Tables::Session(_) => Ok(()),
        }
    }

    pub(crate) async fn count<T: NumberedRow>(&mut self) -> Result<i64, SqlError> {
        let count = self.query_one(&format!("SELECT count(*) FROM {}", T::TABLE), &[]).await?;
        count.ok_or(SqlError::RowMissing)
    }

    /// Ids for new rows; none if ids are exhausted. MariaDB's counter is locked only if an id must be assigned.
    async fn number<T: NumberedRow>(
        &mut self,
        given: Vec<Option<u64>>,
    ) -> Result<Option<Numbered>, SqlError> {
        let mut given: Vec<Option<i64>> = given.into_iter().map(|id| id.map(sql_integer)).collect();
        let missing = given.iter().filter(|id| id.is_none()).count();
        let name = T::TABLE;
        let highest: Option<i64> = match self.kind() {
            Kind::Sqlite => {
                self.query_one("SELECT seq FROM sqlite_sequence WHERE name = ?", &[name.into()]).await?
            }
            Kind::MySql if missing > 0 => {
                let locked = format!("SELECT {} FROM access_counter FOR UPDATE", T::NEWEST_ID);
                self.query_one(&locked, &[]).await?
            }
            Kind::Postgres if missing > 0 => {
                let next = format!("SELECT nextval('{name}_id_seq') FROM generate_series(1, ?)");
                let next: Vec<i64> = self.query(&next, &[(missing as i64).into()]).await?;
                let free = given.iter_mut().filter(|id| id.is_none());
                free.zip(next).for_each(|(id, next)| *id = Some(next));
                None
            }
            Kind::Postgres | Kind::MySql => None,
        };
        let highest = highest.unwrap_or(0);
        Ok(number(given.into_iter(), highest).map(|ids| Numbered { ids, highest }))
    }

    /// SQLite: resets the sequence, which has moved to an id of the sandbox.
    async fn exclude_sandbox<T: NumberedRow>(&mut self, numbered: &Numbered) -> Result<(), SqlError> {
        if self.kind() != Kind::Sqlite || !numbered.ids.iter().any(|id| is_of_sandbox(*id)) {
            return Ok(());
        }
        let others = numbered.ids.iter().copied().filter(|id| !is_of_sandbox(*id));
        let highest = others.max().unwrap_or(0).max(numbered.highest);
        let reset = "UPDATE sqlite_sequence SET seq = ? WHERE name = ?";
        self.execute(reset, &[highest.into(), T::TABLE.into()]).await.map(drop)
    }

    pub(crate) async fn row<T: NumberedRow>(&mut self, id: i64) -> Result<Option<Read<T>>, SqlError> {
        Ok(self.query_one(&select::<T>("WHERE id = ?"), &[id.into()]).await?.map(T::read))
    }

    /// Rows by id, with ids after `after`.
    pub(crate) async fn page<T: NumberedRow>(&mut self, after: i64, limit: u32) -> Result<Page<T>, SqlError> {
        let select = select::<T>("WHERE id > ? ORDER BY id LIMIT ?");
        let rows: Vec<Row> = self.query(&select, &[after.into(), limit.into()]).await?;
        let last = rows.last().map(|row| row.clone().get()).transpose()?;
        Ok(Page { last, rows: rows.into_iter().filter_map(|row| readable(T::read(row))).collect() })
    }

    /// Inserts one row and returns it as stored. The first value is the id.
    async fn insert<T: NumberedRow, const N: usize>(
        &mut self,
        statement: &str,
        given: Option<u64>,
        values: impl FnOnce(i64) -> [Value; N],
    ) -> Result<Read<T>, SqlError> {
        let Some(numbered) = self.number::<T>(vec![given]).await? else {
            return Ok(Err(AccessError::NoNextId));
        };
        let id = numbered.ids[0];
        self.execute(statement, &values(id)).await?;
        self.exclude_sandbox::<T>(&numbered).await?;
        self.row(id).await?.ok_or(SqlError::RowMissing)
    }

    /// Inserts rows by one statement. The first value is the id.
    async fn insert_all<T: NumberedRow, New, const N: usize>(
        &mut self,
        statement: &str,
        batch: &[New],
        (given, values): (impl Fn(&New) -> Option<u64>, impl Fn(i64, &New) -> [Value; N]),
    ) -> Result<Read<()>, SqlError> {
        let Some(numbered) = self.number::<T>(batch.iter().map(given).collect()).await? else {
            return Ok(Err(AccessError::NoNextId));
        };
        let rows = Rows::new(batch.iter().zip(&numbered.ids).map(|(new, id)| values(*id, new)));
        self.write_rows(statement, &rows).await?;
        self.exclude_sandbox::<T>(&numbered).await.map(Ok)
    }

    pub(crate) async fn delete<T: NumberedRow>(&mut self, id: i64) -> Result<u64, SqlError> {
        self.execute(&format!("DELETE FROM {} WHERE id = ?", T::TABLE), &[id.into()]).await
    }

    pub(crate) async fn user_by_passkey(
        &mut self,
        passkey: &Passkey,
    ) -> Result<Option<Read<User>>, SqlError> {
        let text = select::<User>("WHERE passkey = ?");
        let lower = select::<User>("WHERE lower(passkey) = ?");
        let statement = Statement::each(&text, &lower, &text);
        let row = self.query_one(statement, &[passkey.to_string().into()]).await?;
        Ok(row.map(User::read))
    }

    /// The ids of users with this id or this passkey.
    pub(crate) async fn user_holders(
        &mut self,
        id: Option<i64>,
        passkey: &Passkey,
    ) -> Result<Vec<i64>, SqlError> {
        let select = "SELECT id FROM users WHERE id = ? OR passkey = ?";
        let lower = "SELECT id FROM users WHERE id = ? OR lower(passkey) = ?";
        self.query(Statement::each(select, lower, select), &[id.into(), passkey.to_string().into()]).await
    }

    pub(crate) async fn insert_user(
        &mut self,
        (user, passkey): &UserWithPasskey,
        is_external: bool,
    ) -> Result<Read<User>, SqlError> {
        let insert = "INSERT INTO users (id, passkey, created_at, vouched) VALUES (?, ?, ?, ?)";
        let values =
            |id: i64| [id.into(), passkey.to_string().into(), user.created_at.0.into(), is_external.into()];
        self.insert(insert, user.id.map(UserId::get), values).await
    }

    pub(crate) async fn insert_users(&mut self, batch: &[UserWithPasskey]) -> Result<Read<()>, SqlError> {
        let insert = "INSERT INTO users (id, passkey, created_at) {values}";
        let values = |id: i64, (user, passkey): &UserWithPasskey| {
            [id.into(), passkey.to_string().into(), user.created_at.0.into()]
        };
        let given = |(user, _): &UserWithPasskey| user.id.map(UserId::get);
        self.insert_all::<User, _, 3>(insert, batch, (given, values)).await
    }

    pub(crate) async fn set_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, SqlError> {
        let set = "UPDATE users SET passkey = ? WHERE id = ?";
        self.execute(set, &[passkey.to_string().into(), id.into()]).await
    }

    /// Changes external users only.
    pub(crate) async fn set_external_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, SqlError> {
        let set = "UPDATE users SET passkey = ? WHERE id = ? AND vouched";
        self.execute(set, &[passkey.to_string().into(), id.into()]).await
    }

    pub(crate) async fn change_user(&mut self, id: i64, change: &UserChange) -> Result<u64, SqlError> {
        let set = "UPDATE users SET enabled = coalesce(?, enabled),
                 leech_slots = CASE WHEN ? THEN ? ELSE leech_slots END,
                 name = CASE WHEN ? THEN ? ELSE name END
             WHERE id = ?";
        let values = [
            change.enabled.into(),
            change.leech_slots.is_some().into(),
            change.leech_slots.and_then(LeechSlots::to_number).into(),
            change.name.is_some().into(),
            change.name_text().into(),
            id.into(),
        ];
        self.execute(set, &values).await
    }

    pub(crate) async fn mark_sandbox(&mut self, id: i64) -> Result<u64, SqlError> {
        self.execute("UPDATE users SET sandbox = TRUE WHERE id = ?", &[id.into()]).await
    }

    /// Makes an external user a user of the database.
    pub(crate) async fn clear_external(&mut self, id: i64) -> Result<u64, SqlError> {
        self.execute("UPDATE users SET vouched = FALSE WHERE id = ?", &[id.into()]).await
    }

    /// By its v1 or its truncated v2 hash.
    pub(crate) async fn torrent_by_info_hash(
        &mut self,
        info_hash: &InfoHash,
    ) -> Result<Option<Read<Torrent>>, SqlError> {
        // As the indexes are.
        let sqlite = select::<Torrent>("WHERE infohash = ? OR lower(substr(infohash_v2, 1, 40)) = ?");
        let postgres = select::<Torrent>("WHERE lower(infohash) = ? OR lower(left(infohash_v2, 40)) = ?");
        let mysql = select::<Torrent>("WHERE infohash = ? OR infohash_v2_short = ?");
        let digits = Value::from(info_hash.to_string());
        let row =
            self.query_one(Statement::each(&sqlite, &postgres, &mysql), &[digits.clone(), digits]).await?;
        Ok(row.map(Torrent::read))
    }

    pub(crate) async fn selected_torrents(
        &mut self,
        selection: &Selection,
    ) -> Result<Vec<Selected>, SqlError> {
        let (sql, values) = selection.statement(self.kind());
        Ok(self.query(&sql, &values).await?.into_iter().map(read_selected).collect())
    }

    pub(crate) async fn selected_users(
        &mut self,
        selection: &Selection,
    ) -> Result<Vec<Read<User>>, SqlError> {
        let (sql, values) = selection.statement(self.kind());
        Ok(self.query(&sql, &values).await?.into_iter().map(User::read).collect())
    }

    /// The ids of a selection, or its count.
    pub(crate) async fn selected_numbers(&mut self, selection: &Selection) -> Result<Vec<i64>, SqlError> {
        let (sql, values) = selection.statement(self.kind());
        self.query(&sql, &values).await
    }

    /// The caller has checked the size.
    pub(crate) async fn insert_torrent(&mut self, torrent: &NewTorrent) -> Result<Read<Torrent>, SqlError> {
        let insert = "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at)
             VALUES (?, ?, ?, ?, ?, ?)";
        self.insert(insert, torrent.id.map(TorrentId::get), |id| torrent_values(id, torrent)).await
    }

    /// The caller has checked the sizes.
    pub(crate) async fn insert_torrents(&mut self, batch: &[NewTorrent]) -> Result<Read<()>, SqlError> {
        let insert =
            "INSERT INTO torrents (id, infohash, infohash_v2, name, total_bytes, created_at) {values}";
        let given = |torrent: &NewTorrent| torrent.id.map(TorrentId::get);
        self.insert_all::<Torrent, _, 6>(insert, batch, (given, torrent_values)).await
    }

    pub(crate) async fn change_torrent(&mut self, id: i64, change: &TorrentChange) -> Result<u64, SqlError> {
        let set = "UPDATE torrents SET enabled = coalesce(?, enabled), approved = coalesce(?, approved),
                 leech_slots = CASE WHEN ? THEN ? ELSE leech_slots END
             WHERE id = ?";
        let values = [
            change.enabled.into(),
            change.approved.into(),
            change.leech_slots.is_some().into(),
            change.leech_slots.and_then(LeechSlots::to_number).into(),
            id.into(),
        ];
        self.execute(set, &values).await
    }

    /// All prefixes that can be parsed, sorted by their text.
    pub(crate) async fn all_clients(&mut self) -> Result<Vec<ClientRule>, SqlError> {
        let rows: Vec<Row> =
            self.query("SELECT prefix, name, allowed FROM clients ORDER BY prefix", &[]).await?;
        Ok(rows.into_iter().filter_map(|row| readable(read_client(row))).collect())
    }

    pub(crate) async fn insert_client(&mut self, rule: &ClientRule) -> Result<(), SqlError> {
        let insert = "INSERT INTO clients (prefix, name, allowed) VALUES (?, ?, ?)
             {upsert prefix} name = {new name}, allowed = {new allowed}";
        let values = [rule.prefix.to_string().into(), (&rule.name).into(), rule.allowed.into()];
        self.execute(insert, &values).await.map(drop)
    }

    /// Deletes a prefix in either spelling, plain and hexadecimal.
    pub(crate) async fn delete_client(&mut self, spelling: &str, hex: &str) -> Result<u64, SqlError> {
        let delete = "DELETE FROM clients WHERE prefix = ? OR lower(prefix) = ?";
        // Bytes have no case.
        let mysql = "DELETE FROM clients WHERE prefix = ? OR lower(convert(prefix USING latin1)) = ?";
        self.execute(Statement::each(delete, delete, mysql), &[spelling.into(), hex.into()]).await
    }

    /// All ranges that can be parsed, by port.
    pub(crate) async fn all_banned_ports(&mut self) -> Result<Vec<BannedPorts>, SqlError> {
        let select = "SELECT first_port, last_port, reason FROM banned_ports ORDER BY first_port, last_port";
        let rows: Vec<Row> = self.query(select, &[]).await?;
        Ok(rows.into_iter().filter_map(|row| readable(read_banned_ports(row))).collect())
    }

    /// Adds a range, or replaces its reason.
    pub(crate) async fn insert_banned_ports(&mut self, ban: &BannedPorts) -> Result<(), SqlError> {
        let insert = "INSERT INTO banned_ports (first_port, last_port, reason) VALUES (?, ?, ?)
             {upsert first_port,last_port} reason = {new reason}";
        let [first, last] = port_values(ban.range);
        self.execute(insert, &[first, last, (&ban.reason).into()]).await.map(drop)
    }

    /// Deletes exactly this range.
    pub(crate) async fn delete_banned_ports(&mut self, range: PortRange) -> Result<u64, SqlError> {
        let delete = "DELETE FROM banned_ports WHERE first_port = ? AND last_port = ?";
        self.execute(delete, &port_values(range)).await
    }

    /// The present rows of these ids; none for a row that is removed or cannot be read.
    pub(crate) async fn rows_now<T: NumberedRow>(
        &mut self,
        ids: Vec<i64>,
    ) -> Result<Vec<(i64, Option<T>)>, SqlError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let select =
            format!("SELECT k.c0, {} FROM {{rows 1}} LEFT JOIN {} ON id = k.c0", T::COLUMNS, T::TABLE);
        let ids = Value::Rows(Rows::new(ids.into_iter().map(|id| [id.into()])));
        let rows: Vec<Row> = self.query(&select, &[ids]).await?;
        let row = |mut row: Row| {
            let subject = row.get()?;
            let is_present = row.clone().get::<Option<i64>>()?.is_some();
            Ok((subject, if is_present { readable(T::read(row)) } else { None }))
        };
        rows.into_iter().map(row).collect()
    }
}

fn torrent_values(id: i64, torrent: &NewTorrent) -> [Value; 6] {
    [
        id.into(),
        torrent.info_hash.to_string().into(),
        torrent.info_hash_v2.map(|hash| hash.to_string()).into(),
        (&torrent.name).into(),
        sql_integer(torrent.total_bytes).into(),
        torrent.created_at.0.into(),
    ]
}

fn port_values(range: PortRange) -> [Value; 2] {
    [i64::from(range.first()).into(), i64::from(range.last()).into()]
}
