//! The change log in MariaDB and MySQL: numbers are assigned under a row lock that lasts until the commit, so they follow
//! the order of commits, without gaps.

use async_trait::async_trait;
use sqlx::mysql::MySqlConnection;

use super::{Batch, ChangeLog, Lists, LogRead, Position, Range, range_after, trim_before, with_subjects};
use crate::store::mysql::MySqlTables;
use crate::store::rows::{read_torrent, read_user, readable};
use crate::store::tables::Tables;

pub(super) struct MySqlLog {
    tables: MySqlTables<Box<MySqlConnection>>,
}

impl MySqlLog {
    pub(super) fn new(connection: MySqlConnection) -> Self {
        MySqlLog { tables: MySqlTables(Box::new(connection)) }
    }

    fn connection(&mut self) -> &mut MySqlConnection {
        &mut self.tables.0
    }

    /// The number of the last change ever, also if it was trimmed; 0 if there was none.
    async fn newest(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT newest FROM access_counter").fetch_one(self.connection()).await
    }

    /// Repeatable read, whatever the default of the server.
    async fn begin(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
             START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        )
        .execute(self.connection())
        .await
        .map(|_| ())
    }

    async fn oldest(&mut self) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar("SELECT min(seq) FROM access_changes").fetch_one(self.connection()).await
    }

    async fn read(&mut self, known: i64, up_to: i64) -> Result<Batch, sqlx::Error> {
        let users = sqlx::query(
            "SELECT changed.subject, users.* FROM
                 (SELECT DISTINCT subject FROM access_changes WHERE seq > ? AND seq <= ? AND kind = 'user')
                 AS changed
             LEFT JOIN users ON users.id = changed.subject",
        )
        .bind(known)
        .bind(up_to)
        .fetch_all(self.connection())
        .await?;
        let torrents = sqlx::query(
            "SELECT changed.subject, torrents.* FROM
                 (SELECT DISTINCT subject FROM access_changes WHERE seq > ? AND seq <= ? AND kind = 'torrent')
                 AS changed
             LEFT JOIN torrents ON torrents.id = changed.subject",
        )
        .bind(known)
        .bind(up_to)
        .fetch_all(self.connection())
        .await?;
        let lists_changed: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM access_changes WHERE seq > ? AND seq <= ? AND kind = 'client')",
        )
        .bind(known)
        .bind(up_to)
        .fetch_one(self.connection())
        .await?;
        Ok(Batch {
            up_to: Position::Number(up_to),
            users: with_subjects(&users, |row| readable(read_user(row)))?,
            torrents: with_subjects(&torrents, |row| readable(read_torrent(row)))?,
            lists: if lists_changed { Some(Lists::read(&mut self.tables).await?) } else { None },
        })
    }
}

#[async_trait]
impl ChangeLog for MySqlLog {
    async fn read_after(&mut self, known: &Position) -> Result<LogRead, sqlx::Error> {
        let newest = Position::Number(self.newest().await?);
        if newest == *known {
            return Ok(LogRead::UpToDate(newest));
        }
        // One snapshot for the log and the rows it names.
        self.begin().await?;
        let newest = self.newest().await?;
        let read = match range_after(known, newest, self.oldest().await?) {
            Range::Truncated => LogRead::Truncated,
            Range::Between(known, up_to) => LogRead::Batch(self.read(known, up_to).await?),
        };
        self.end_snapshot().await?;
        Ok(read)
    }

    async fn begin_snapshot(&mut self) -> Result<Position, sqlx::Error> {
        self.begin().await?;
        self.newest().await.map(Position::Number)
    }

    async fn end_snapshot(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("ROLLBACK").execute(self.connection()).await.map(|_| ())
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let (oldest, newest) = (self.oldest().await?, self.newest().await?);
        let Some(before) = trim_before(newest, oldest, rows_max) else { return Ok(()) };
        let delete = sqlx::query("DELETE FROM access_changes WHERE seq < ?").bind(before);
        delete.execute(self.connection()).await.map(|_| ())
    }

    fn tables(&mut self) -> &mut dyn Tables {
        &mut self.tables
    }
}
