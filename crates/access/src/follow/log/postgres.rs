//! The log in PostgreSQL: what is new is what the snapshot of the last look did not contain.
//!
//! Numbers from a sequence are taken before the commit, so a follower that remembered the highest number would never
//! see a transaction that took lower ones and committed later. A snapshot says exactly which transactions it contains:
//! each entry is found once, whenever its transaction commits, and no writer waits for another.
//!
//! A transaction that stays open for long costs a look at the entries since its begin with each poll, and holds up the
//! trimming of the log meanwhile; both end with it.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::{Batch, ChangeLog, Known, Lists, News, trim_before, with_subjects};
use crate::store::postgres::PgTables;
use crate::store::rows::{read_torrent, read_user, readable};
use crate::store::tables::Tables;

/// More subjects than this are not worth looking up one by one: all are read again, page by page.
const SUBJECTS_MAX: usize = 20_000;

/// The entries that the snapshot `$1` does not contain. Those of transactions yet to come are left over from another
/// server, whose tables were copied.
macro_rules! unseen {
    () => {
        "FROM access_changes
         WHERE xid >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT) AND xid < pg_snapshot_xmax(pg_current_snapshot())
           AND NOT pg_visible_in_snapshot(xid, $1::TEXT::PG_SNAPSHOT)"
    };
}

/// Whether anything was taken out of the log that the snapshot `$1` does not contain, or the server's transactions
/// begin again.
const LOST: &str = "SELECT pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())
        OR EXISTS (SELECT 1 FROM access_trimmed
                   WHERE trimmed_to >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT)
                     AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot())
                     AND NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT))";

/// The log over a connection of its own.
pub(super) struct PgLog {
    tables: PgTables<Box<PgConnection>>,
}

/// What a part of the log names.
#[derive(Debug, Default)]
struct Subjects {
    users: Vec<i64>,
    torrents: Vec<i64>,
    lists: bool,
}

impl PgLog {
    pub(super) fn new(connection: PgConnection) -> Self {
        PgLog { tables: PgTables(Box::new(connection)) }
    }

    fn connection(&mut self) -> &mut PgConnection {
        &mut self.tables.0
    }

    /// One look: the snapshot it is made in, and whether that contains anything that `known` does not.
    async fn look(&mut self, known: &str) -> Result<(String, bool), sqlx::Error> {
        sqlx::query_as(concat!(
            "SELECT pg_current_snapshot()::TEXT, EXISTS (SELECT 1 ",
            unseen!(),
            ") OR EXISTS (SELECT 1 FROM access_trimmed
                          WHERE NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT)
                            AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot()))
               OR pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())"
        ))
        .bind(known)
        .fetch_one(self.connection())
        .await
    }

    async fn is_lost(&mut self, known: &str) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(LOST).bind(known).fetch_one(self.connection()).await
    }

    async fn begin(&mut self) -> Result<String, sqlx::Error> {
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(self.connection()).await?;
        sqlx::query_scalar("SELECT pg_current_snapshot()::TEXT").fetch_one(self.connection()).await
    }

    /// None where there are too many.
    async fn subjects(&mut self, known: &str) -> Result<Option<Subjects>, sqlx::Error> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as(concat!("SELECT DISTINCT kind, subject ", unseen!(), " LIMIT $2"))
                .bind(known)
                .bind(SUBJECTS_MAX as i64 + 1)
                .fetch_all(self.connection())
                .await?;
        if rows.len() > SUBJECTS_MAX {
            return Ok(None);
        }
        let mut subjects = Subjects::default();
        for (kind, subject) in rows {
            match kind.as_str() {
                "user" => subjects.users.push(subject),
                "torrent" => subjects.torrents.push(subject),
                _ => subjects.lists = true,
            }
        }
        Ok(Some(subjects))
    }

    async fn read(&mut self, subjects: Subjects, up_to: String) -> Result<Batch, sqlx::Error> {
        let users = sqlx::query(
            "SELECT subject, users.* FROM unnest($1::BIGINT[]) AS subject LEFT JOIN users ON id = subject",
        )
        .bind(subjects.users)
        .fetch_all(self.connection())
        .await?;
        let torrents = sqlx::query(
            "SELECT subject, torrents.* FROM unnest($1::BIGINT[]) AS subject LEFT JOIN torrents ON id = subject",
        )
        .bind(subjects.torrents)
        .fetch_all(self.connection())
        .await?;
        Ok(Batch {
            up_to: Known::Snapshot(up_to),
            users: with_subjects(&users, |row| readable(read_user(row)))?,
            torrents: with_subjects(&torrents, |row| readable(read_torrent(row)))?,
            lists: if subjects.lists { Some(Lists::read(&mut self.tables).await?) } else { None },
        })
    }
}

#[async_trait]
impl ChangeLog for PgLog {
    async fn news(&mut self, known: &Known) -> Result<News, sqlx::Error> {
        let Known::Snapshot(known) = known else { return Ok(News::Lost) };
        let (now, is_anything_new) = self.look(known).await?;
        if !is_anything_new {
            return Ok(News::None(Known::Snapshot(now)));
        }
        // One view for the log and the rows it names.
        let up_to = self.begin().await?;
        let news = if self.is_lost(known).await? {
            News::Lost
        } else {
            match self.subjects(known).await? {
                Some(subjects) => News::Batch(self.read(subjects, up_to).await?),
                None => News::Lost,
            }
        };
        self.end_view().await?;
        Ok(news)
    }

    async fn begin_view(&mut self) -> Result<Known, sqlx::Error> {
        self.begin().await.map(Known::Snapshot)
    }

    async fn end_view(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("ROLLBACK").execute(self.connection()).await.map(|_| ())
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let ends = sqlx::query("SELECT min(seq) AS oldest, max(seq) AS newest FROM access_changes");
        let ends = ends.fetch_one(self.connection()).await?;
        let (oldest, newest): (Option<i64>, Option<i64>) = (ends.try_get("oldest")?, ends.try_get("newest")?);
        let Some(before) = trim_before(newest.unwrap_or(0), oldest, rows_max) else { return Ok(()) };
        // What some follower may not have seen yet stays: an entry is surely seen by all who have looked since the
        // oldest transaction that is still open began.
        let delete = sqlx::query(
            "DELETE FROM access_changes WHERE seq < $1
               AND (xid < pg_snapshot_xmin(pg_current_snapshot()) OR xid >= pg_snapshot_xmax(pg_current_snapshot()))",
        );
        delete.bind(before).execute(self.connection()).await.map(|_| ())
    }

    fn tables(&mut self) -> &mut dyn Tables {
        &mut self.tables
    }
}
