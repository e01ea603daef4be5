//! Bulk statements in PostgreSQL: arrays.

use std::ops::DerefMut;

use async_trait::async_trait;
use domain::Passkey;
use sqlx::postgres::PgConnection;

use super::{ManyRows, OnPostgres, texts};

#[async_trait]
impl<C> ManyRows for OnPostgres<C>
where
    C: DerefMut<Target = PgConnection> + Send,
{
    async fn new_generation(&mut self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("INSERT INTO whitelist_generations DEFAULT VALUES RETURNING id")
            .fetch_one(&mut *self.0)
            .await
    }

    async fn insert(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error> {
        let insert = sqlx::query(
            "INSERT INTO whitelist_passkeys (generation, passkey) SELECT $1, unnest($2::TEXT[])
             ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(generation).bind(texts(passkeys));
        Ok(insert.execute(&mut *self.0).await?.rows_affected())
    }

    async fn delete(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error> {
        let delete =
            sqlx::query("DELETE FROM whitelist_passkeys WHERE generation = $1 AND passkey = ANY($2::TEXT[])");
        let delete = delete.bind(generation).bind(texts(passkeys));
        Ok(delete.execute(&mut *self.0).await?.rows_affected())
    }

    async fn present(&mut self, passkeys: &[Passkey]) -> Result<Vec<String>, sqlx::Error> {
        sqlx::query_scalar(
            "SELECT passkey FROM whitelist_passkeys
             WHERE generation = (SELECT current_generation FROM whitelist_state)
               AND passkey = ANY($1::TEXT[])",
        )
        .bind(texts(passkeys))
        .fetch_all(&mut *self.0)
        .await
    }

    async fn insert_changes(
        &mut self,
        first: i64,
        kind: &'static str,
        passkeys: &[Passkey],
    ) -> Result<(), sqlx::Error> {
        let named: Vec<Option<String>> = match passkeys {
            [] => vec![None],
            _ => texts(passkeys).into_iter().map(Some).collect(),
        };
        sqlx::query(
            "INSERT INTO passkey_changes (seq, kind, passkey)
             SELECT $1 + position - 1, $2, passkey
             FROM unnest($3::TEXT[]) WITH ORDINALITY AS named (passkey, position)",
        )
        .bind(first)
        .bind(kind)
        .bind(named)
        .execute(&mut *self.0)
        .await
        .map(|_| ())
    }
}
