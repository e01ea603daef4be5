//! Bulk statements in MariaDB and MySQL: lists of values, some hundred per statement.

use std::ops::DerefMut;

use async_trait::async_trait;
use domain::Passkey;
use sqlx::mysql::MySqlConnection;
use sqlx::{MySql, QueryBuilder};

use super::{ManyRows, OnMySql, PASSKEYS_PER_STATEMENT};

#[async_trait]
impl<C> ManyRows for OnMySql<C>
where
    C: DerefMut<Target = MySqlConnection> + Send,
{
    async fn new_generation(&mut self) -> Result<i64, sqlx::Error> {
        let begun = sqlx::query("INSERT INTO whitelist_generations () VALUES ()");
        let id = begun.execute(&mut *self.0).await?.last_insert_id();
        Ok(i64::try_from(id).unwrap_or(i64::MAX))
    }

    async fn insert(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error> {
        let mut inserted = 0;
        for batch in passkeys.chunks(PASSKEYS_PER_STATEMENT) {
            // IGNORE skips duplicates. It hides no other error: a passkey always fits the column.
            let mut insert =
                QueryBuilder::<MySql>::new("INSERT IGNORE INTO whitelist_passkeys (generation, passkey) ");
            insert.push_values(batch, |mut row, passkey| {
                row.push_bind(generation).push_bind(passkey.to_string());
            });
            inserted += insert.build().execute(&mut *self.0).await?.rows_affected();
        }
        Ok(inserted)
    }

    async fn delete(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error> {
        let mut deleted = 0;
        for batch in passkeys.chunks(PASSKEYS_PER_STATEMENT) {
            let mut delete = QueryBuilder::<MySql>::new("DELETE FROM whitelist_passkeys WHERE generation = ");
            delete.push_bind(generation).push(" AND passkey IN ");
            delete.push_tuples(batch, |mut row, passkey| {
                row.push_bind(passkey.to_string());
            });
            deleted += delete.build().execute(&mut *self.0).await?.rows_affected();
        }
        Ok(deleted)
    }

    async fn present(&mut self, passkeys: &[Passkey]) -> Result<Vec<String>, sqlx::Error> {
        if passkeys.is_empty() {
            return Ok(Vec::new());
        }
        let mut select = QueryBuilder::<MySql>::new(
            "SELECT passkey FROM whitelist_passkeys
             WHERE generation = (SELECT current_generation FROM whitelist_state) AND passkey IN ",
        );
        select.push_tuples(passkeys, |mut row, passkey| {
            row.push_bind(passkey.to_string());
        });
        select.build_query_scalar().fetch_all(&mut *self.0).await
    }

    async fn insert_changes(
        &mut self,
        first: i64,
        kind: &'static str,
        passkeys: &[Passkey],
    ) -> Result<(), sqlx::Error> {
        let named: Vec<Option<String>> = match passkeys {
            [] => vec![None],
            _ => passkeys.iter().map(|passkey| Some(passkey.to_string())).collect(),
        };
        let mut insert = QueryBuilder::<MySql>::new("INSERT INTO passkey_changes (seq, kind, passkey) ");
        insert.push_values((first..).zip(named), |mut row, (seq, passkey)| {
            row.push_bind(seq).push_bind(kind).push_bind(passkey);
        });
        insert.build().execute(&mut *self.0).await.map(|_| ())
    }
}
