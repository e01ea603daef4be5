//! The log in MariaDB and MySQL: a row that is locked until the commit gives out the numbers, so they follow the order
//! of commits, without gaps.

use async_trait::async_trait;
use sqlx::mysql::MySqlConnection;

use super::log::{ChangeLog, Entry, Known, News, read_behind, trim_before};

/// The log over a connection of its own.
pub(super) struct MySqlLog(pub(super) MySqlConnection);

impl MySqlLog {
    /// The number of the last change ever, 0 if there was none. It stays when the log is trimmed.
    async fn newest(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT newest FROM people_counters WHERE name = 'changes'")
            .fetch_one(&mut self.0)
            .await
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
impl ChangeLog for MySqlLog {
    async fn present(&mut self) -> Result<Known, sqlx::Error> {
        self.newest().await.map(Known::Number)
    }

    async fn news(&mut self, known: &Known) -> Result<News, sqlx::Error> {
        let newest = self.newest().await?;
        if Known::Number(newest) == *known {
            return Ok(News::None(Known::Number(newest)));
        }
        // Another follower may trim between two statements: one view for all of them, which stands still, unlike that
        // of other sessions.
        sqlx::raw_sql(
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
             START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        )
        .execute(&mut self.0)
        .await?;
        let newest = self.newest().await?;
        let news = match read_behind(known, newest, self.oldest().await?) {
            Some(behind) => News::Some(self.read(behind, newest).await?, Known::Number(newest)),
            None => News::Lost(Known::Number(newest)),
        };
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await?;
        Ok(news)
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let (oldest, newest) = (self.oldest().await?, self.newest().await?);
        let Some(before) = trim_before(newest, oldest, rows_max) else { return Ok(()) };
        let delete = sqlx::query("DELETE FROM people_changes WHERE seq < ?").bind(before);
        delete.execute(&mut self.0).await.map(|_| ())
    }
}
