//! The change log in SQLite: one writer at a time, so numbers follow the commit order.

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;

use super::log::{ChangeLog, Changes, Entry, Position, readable_after, trim_before};

pub(super) struct SqliteLog(pub(super) SqliteConnection);

impl SqliteLog {
    /// The last number ever assigned, 0 if none. Trimming does not change it.
    async fn newest(&mut self) -> Result<i64, sqlx::Error> {
        let newest: Option<i64> =
            sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'people_changes'")
                .fetch_optional(&mut self.0)
                .await?;
        Ok(newest.unwrap_or(0))
    }

    async fn oldest(&mut self) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar("SELECT min(seq) FROM people_changes").fetch_one(&mut self.0).await
    }

    async fn read(&mut self, behind: i64, up_to: i64) -> Result<Vec<Entry>, sqlx::Error> {
        sqlx::query_as("SELECT DISTINCT kind, user_a, user_b FROM people_changes WHERE seq > ? AND seq <= ?")
            .bind(behind)
            .bind(up_to)
            .fetch_all(&mut self.0)
            .await
    }
}

#[async_trait]
impl ChangeLog for SqliteLog {
    async fn position(&mut self) -> Result<Position, sqlx::Error> {
        self.newest().await.map(Position::Number)
    }

    async fn changes_since(&mut self, known: &Position) -> Result<Changes, sqlx::Error> {
        let newest = self.newest().await?;
        if Position::Number(newest) == *known {
            return Ok(Changes::None(Position::Number(newest)));
        }
        // Another feed may trim between two statements: read all of them in one snapshot.
        sqlx::raw_sql("BEGIN").execute(&mut self.0).await?;
        let newest = self.newest().await?;
        let changes = match readable_after(known, newest, self.oldest().await?) {
            Some(behind) => Changes::Some(self.read(behind, newest).await?, Position::Number(newest)),
            None => Changes::Lost(Position::Number(newest)),
        };
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await?;
        Ok(changes)
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let (oldest, newest) = (self.oldest().await?, self.newest().await?);
        let Some(before) = trim_before(newest, oldest, rows_max) else { return Ok(()) };
        let delete = sqlx::query("DELETE FROM people_changes WHERE seq < ?").bind(before);
        delete.execute(&mut self.0).await.map(|_| ())
    }
}
