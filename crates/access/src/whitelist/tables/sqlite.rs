//! Bulk statements in SQLite: JSON, so that a statement has one parameter and is parsed once.

use std::ops::DerefMut;

use async_trait::async_trait;
use domain::Passkey;
use sqlx::sqlite::SqliteConnection;

use super::{ManyRows, OnSqlite, json_array};

#[async_trait]
impl<C> ManyRows for OnSqlite<C>
where
    C: DerefMut<Target = SqliteConnection> + Send,
{
    async fn new_generation(&mut self) -> Result<i64, sqlx::Error> {
        let begun = sqlx::query("INSERT INTO whitelist_generations DEFAULT VALUES");
        Ok(begun.execute(&mut *self.0).await?.last_insert_rowid())
    }

    async fn insert(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error> {
        let insert = sqlx::query(
            "INSERT INTO whitelist_passkeys (generation, passkey) SELECT $1, value FROM json_each($2)
             WHERE TRUE ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(generation).bind(json_array(passkeys));
        Ok(insert.execute(&mut *self.0).await?.rows_affected())
    }

    async fn delete(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error> {
        let delete = sqlx::query(
            "DELETE FROM whitelist_passkeys
             WHERE generation = $1 AND passkey IN (SELECT value FROM json_each($2))",
        );
        let delete = delete.bind(generation).bind(json_array(passkeys));
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }

    async fn present(&mut self, passkeys: &[Passkey]) -> Result<Vec<String>, sqlx::Error> {
        sqlx::query_scalar(
            "SELECT passkey FROM whitelist_passkeys
             WHERE generation = (SELECT current_generation FROM whitelist_state)
               AND passkey IN (SELECT value FROM json_each($1))",
        )
        .bind(json_array(passkeys))
        .fetch_all(&mut *self.0)
        .await
    }

    async fn insert_changes(
        &mut self,
        first: i64,
        kind: &'static str,
        passkeys: &[Passkey],
    ) -> Result<(), sqlx::Error> {
        let named = match passkeys {
            [] => "[null]".to_owned(),
            _ => json_array(passkeys),
        };
        sqlx::query(
            "INSERT INTO passkey_changes (seq, kind, passkey) SELECT $1 + key, $2, value FROM json_each($3)",
        )
        .bind(first)
        .bind(kind)
        .bind(named)
        .execute(&mut *self.0)
        .await
        .map(|_| ())
    }
}
