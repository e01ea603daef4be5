//! The tables of the whitelist and of its change feed, over one connection.
//!
//! A macro generates the statements that differ only in the syntax of parameters, row locks and the current time. Statements
//! with many rows differ more, and are in one file per database.
//!
//! Locks are always taken in this order, which prevents deadlocks: the row of `whitelist_state`, the row of a generation,
//! passkeys. Times are those of the database, because the clocks of the processes may differ.

use std::ops::DerefMut;

use async_trait::async_trait;
use database::Database;
use domain::Passkey;
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{MySql, Postgres, Sqlite};

mod mysql;
mod postgres;
mod sqlite;

/// Databases limit the number of parameters.
const PASSKEYS_PER_STATEMENT: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generations {
    pub(super) current: i64,
    /// The current one before the last refresh.
    pub(super) previous: Option<i64>,
}

/// The state of a generation after its refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GenerationState {
    /// Current or previous.
    Kept,
    /// To be deleted.
    Dropped,
}

impl GenerationState {
    const fn text(self) -> &'static str {
        match self {
            GenerationState::Kept => "kept",
            GenerationState::Dropped => "dropped",
        }
    }
}

/// An entry of the change feed: number, kind, passkey.
pub(super) type ChangeRow = (i64, String, Option<String>);

/// Statements that the macro generates.
#[async_trait]
pub(super) trait Statements: Send {
    /// Locks the state until the commit, against other switches, additions and removals.
    async fn lock_generations(&mut self) -> Result<Generations, sqlx::Error>;
    async fn set_generations(&mut self, generations: Generations) -> Result<(), sqlx::Error>;
    /// Updates the timestamp of a refresh. False if its generation was dropped or kept.
    async fn touch(&mut self, generation: i64) -> Result<bool, sqlx::Error>;
    async fn set_state(&mut self, generation: i64, state: GenerationState) -> Result<(), sqlx::Error>;
    /// Drops the generations of refreshes without a batch for this long. Returns how many.
    async fn drop_idle(&mut self, idle_s: i64) -> Result<u64, sqlx::Error>;
    /// Passkeys of the current generation.
    async fn count(&mut self) -> Result<i64, sqlx::Error>;
    async fn count_in(&mut self, generation: i64) -> Result<i64, sqlx::Error>;
    /// A dropped generation, locked, and the last passkey deleted from it.
    async fn first_dropped(&mut self) -> Result<Option<(i64, String)>, sqlx::Error>;
    /// The passkey with `between` others between itself and `after`.
    async fn nth_after(
        &mut self,
        generation: i64,
        after: &str,
        between: i64,
    ) -> Result<Option<String>, sqlx::Error>;
    /// Deletes passkeys after `after`, up to and including `up_to`.
    async fn delete_between(&mut self, generation: i64, after: &str, up_to: &str) -> Result<(), sqlx::Error>;
    /// Deletes the passkeys after `after`, and the generation.
    async fn delete_rest(&mut self, generation: i64, after: &str) -> Result<(), sqlx::Error>;
    /// Reserves numbers for changes. Returns the last of them.
    async fn take_numbers(&mut self, count: i64) -> Result<i64, sqlx::Error>;
    async fn newest_change(&mut self) -> Result<i64, sqlx::Error>;
    /// Changes after `after`, up to and including `up_to`.
    async fn changes(&mut self, after: i64, up_to: i64) -> Result<Vec<ChangeRow>, sqlx::Error>;
    async fn trim_changes(&mut self, up_to: i64) -> Result<(), sqlx::Error>;
}

/// Statements that each database has in its own form.
#[async_trait]
pub(super) trait ManyRows: Send {
    /// Returns its id.
    async fn new_generation(&mut self) -> Result<i64, sqlx::Error>;
    /// Returns how many were not in it.
    async fn insert(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error>;
    /// Returns how many were in it.
    async fn delete(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error>;
    /// Those of at most [`PASSKEYS_PER_STATEMENT`] passkeys that are in the current generation.
    async fn present(&mut self, passkeys: &[Passkey]) -> Result<Vec<String>, sqlx::Error>;
    /// Appends to the change feed, with numbers from `first`. No passkeys stand for all.
    async fn insert_changes(
        &mut self,
        first: i64,
        kind: &'static str,
        passkeys: &[Passkey],
    ) -> Result<(), sqlx::Error>;
}

pub(super) trait WhitelistTables: Statements + ManyRows {}
impl<T: Statements + ManyRows> WhitelistTables for T {}

/// Rolled back if dropped without a commit.
#[async_trait]
pub(super) trait Transaction: WhitelistTables {
    async fn commit(self: Box<Self>) -> Result<(), sqlx::Error>;
}

/// Outside of a transaction.
pub(super) async fn acquire(database: &Database) -> Result<Box<dyn WhitelistTables>, sqlx::Error> {
    Ok(match database {
        Database::Sqlite(file) => Box::new(OnSqlite(file.pool.acquire().await?)),
        Database::Postgres(pool) => Box::new(OnPostgres(pool.acquire().await?)),
        Database::MySql(pool) => Box::new(OnMySql(pool.acquire().await?)),
    })
}

/// Begins a write transaction.
pub(super) async fn begin(database: &Database) -> Result<Box<dyn Transaction>, sqlx::Error> {
    Ok(match database {
        Database::Sqlite(file) => Box::new(OnSqlite(file.begin_write().await?)),
        Database::Postgres(pool) => Box::new(OnPostgres(pool.begin().await?)),
        Database::MySql(pool) => Box::new(OnMySql(pool.begin().await?)),
    })
}

/// In the order of `passkeys`, of any number.
pub(super) async fn contains(
    tables: &mut dyn WhitelistTables,
    passkeys: &[Passkey],
) -> Result<Vec<bool>, sqlx::Error> {
    let mut answers = Vec::with_capacity(passkeys.len());
    for batch in passkeys.chunks(PASSKEYS_PER_STATEMENT) {
        let present = tables.present(batch).await?;
        let present: std::collections::HashSet<Passkey> =
            present.iter().filter_map(|text| text.parse().ok()).collect();
        answers.extend(batch.iter().map(|passkey| present.contains(passkey)));
    }
    Ok(answers)
}

/// One parameter for any number of passkeys.
fn json_array(passkeys: &[Passkey]) -> String {
    use std::fmt::Write;
    let mut json = String::with_capacity(passkeys.len() * 35 + 2);
    for passkey in passkeys {
        let separator = if json.is_empty() { '[' } else { ',' };
        write!(json, "{separator}\"{passkey}\"").expect("writing to a string cannot fail");
    }
    json.push_str(if json.is_empty() { "[]" } else { "]" });
    json
}

fn texts(passkeys: &[Passkey]) -> Vec<String> {
    passkeys.iter().map(Passkey::to_string).collect()
}

macro_rules! statements {
    ($on:ident, $database:ty, $connection:ty, $now:literal, $lock:literal, $p1:literal, $p2:literal, $p3:literal) => {
        /// `C` is a pooled connection or a transaction.
        pub(super) struct $on<C>(pub(super) C);

        #[async_trait]
        impl Transaction for $on<sqlx::Transaction<'static, $database>> {
            async fn commit(self: Box<Self>) -> Result<(), sqlx::Error> {
                self.0.commit().await
            }
        }

        #[async_trait]
        impl<C> Statements for $on<C>
        where
            C: DerefMut<Target = $connection> + Send,
        {
            async fn lock_generations(&mut self) -> Result<Generations, sqlx::Error> {
                let (current, previous) = sqlx::query_as(concat!(
                    "SELECT current_generation, previous_generation FROM whitelist_state",
                    $lock
                ))
                .fetch_one(&mut *self.0)
                .await?;
                Ok(Generations { current, previous })
            }

            async fn set_generations(&mut self, generations: Generations) -> Result<(), sqlx::Error> {
                sqlx::query(concat!(
                    "UPDATE whitelist_state SET current_generation = ",
                    $p1,
                    ", previous_generation = ",
                    $p2
                ))
                .bind(generations.current)
                .bind(generations.previous)
                .execute(&mut *self.0)
                .await
                .map(|_| ())
            }

            async fn touch(&mut self, generation: i64) -> Result<bool, sqlx::Error> {
                let touched = sqlx::query(concat!(
                    "UPDATE whitelist_generations SET touched_at = ",
                    $now,
                    " WHERE id = ",
                    $p1,
                    " AND state = 'building'"
                ))
                .bind(generation)
                .execute(&mut *self.0)
                .await?;
                Ok(touched.rows_affected() > 0)
            }

            async fn set_state(&mut self, generation: i64, state: GenerationState) -> Result<(), sqlx::Error> {
                sqlx::query(concat!("UPDATE whitelist_generations SET state = ", $p1, " WHERE id = ", $p2))
                    .bind(state.text())
                    .bind(generation)
                    .execute(&mut *self.0)
                    .await
                    .map(|_| ())
            }

            async fn drop_idle(&mut self, idle_s: i64) -> Result<u64, sqlx::Error> {
                let dropped = sqlx::query(concat!(
                    "UPDATE whitelist_generations SET state = 'dropped'
                     WHERE state = 'building' AND touched_at <= ",
                    $now,
                    " - ",
                    $p1
                ))
                .bind(idle_s)
                .execute(&mut *self.0)
                .await?;
                Ok(dropped.rows_affected())
            }

            async fn count(&mut self) -> Result<i64, sqlx::Error> {
                sqlx::query_scalar(
                    "SELECT count(*) FROM whitelist_passkeys
                     WHERE generation = (SELECT current_generation FROM whitelist_state)",
                )
                .fetch_one(&mut *self.0)
                .await
            }

            async fn count_in(&mut self, generation: i64) -> Result<i64, sqlx::Error> {
                sqlx::query_scalar(concat!(
                    "SELECT count(*) FROM whitelist_passkeys WHERE generation = ",
                    $p1
                ))
                .bind(generation)
                .fetch_one(&mut *self.0)
                .await
            }

            async fn first_dropped(&mut self) -> Result<Option<(i64, String)>, sqlx::Error> {
                sqlx::query_as(concat!(
                    "SELECT id, cleared_to FROM whitelist_generations WHERE state = 'dropped' ORDER BY id LIMIT 1",
                    $lock
                ))
                .fetch_optional(&mut *self.0)
                .await
            }

            async fn nth_after(
                &mut self,
                generation: i64,
                after: &str,
                between: i64,
            ) -> Result<Option<String>, sqlx::Error> {
                sqlx::query_scalar(concat!(
                    "SELECT passkey FROM whitelist_passkeys WHERE generation = ",
                    $p1,
                    " AND passkey > ",
                    $p2,
                    " ORDER BY passkey LIMIT 1 OFFSET ",
                    $p3
                ))
                .bind(generation)
                .bind(after)
                .bind(between)
                .fetch_optional(&mut *self.0)
                .await
            }

            async fn delete_between(
                &mut self,
                generation: i64,
                after: &str,
                up_to: &str,
            ) -> Result<(), sqlx::Error> {
                sqlx::query(concat!(
                    "DELETE FROM whitelist_passkeys WHERE generation = ",
                    $p1,
                    " AND passkey > ",
                    $p2,
                    " AND passkey <= ",
                    $p3
                ))
                .bind(generation)
                .bind(after)
                .bind(up_to)
                .execute(&mut *self.0)
                .await?;
                sqlx::query(concat!(
                    "UPDATE whitelist_generations SET cleared_to = ",
                    $p1,
                    " WHERE id = ",
                    $p2
                ))
                .bind(up_to)
                .bind(generation)
                .execute(&mut *self.0)
                .await
                .map(|_| ())
            }

            async fn delete_rest(&mut self, generation: i64, after: &str) -> Result<(), sqlx::Error> {
                sqlx::query(concat!(
                    "DELETE FROM whitelist_passkeys WHERE generation = ",
                    $p1,
                    " AND passkey > ",
                    $p2
                ))
                .bind(generation)
                .bind(after)
                .execute(&mut *self.0)
                .await?;
                sqlx::query(concat!("DELETE FROM whitelist_generations WHERE id = ", $p1))
                    .bind(generation)
                    .execute(&mut *self.0)
                    .await
                    .map(|_| ())
            }

            async fn take_numbers(&mut self, count: i64) -> Result<i64, sqlx::Error> {
                sqlx::query(concat!("UPDATE whitelist_state SET newest_change = newest_change + ", $p1))
                    .bind(count)
                    .execute(&mut *self.0)
                    .await?;
                self.newest_change().await
            }

            async fn newest_change(&mut self) -> Result<i64, sqlx::Error> {
                sqlx::query_scalar("SELECT newest_change FROM whitelist_state").fetch_one(&mut *self.0).await
            }

            async fn changes(&mut self, after: i64, up_to: i64) -> Result<Vec<ChangeRow>, sqlx::Error> {
                sqlx::query_as(concat!(
                    "SELECT seq, kind, passkey FROM passkey_changes WHERE seq > ",
                    $p1,
                    " AND seq <= ",
                    $p2,
                    " ORDER BY seq"
                ))
                .bind(after)
                .bind(up_to)
                .fetch_all(&mut *self.0)
                .await
            }

            async fn trim_changes(&mut self, up_to: i64) -> Result<(), sqlx::Error> {
                sqlx::query(concat!("DELETE FROM passkey_changes WHERE seq <= ", $p1))
                    .bind(up_to)
                    .execute(&mut *self.0)
                    .await
                    .map(|_| ())
            }
        }
    };
}

statements!(OnSqlite, Sqlite, SqliteConnection, "unixepoch()", "", "$1", "$2", "$3");
statements!(
    OnPostgres,
    Postgres,
    PgConnection,
    "extract(epoch FROM clock_timestamp())::BIGINT",
    " FOR UPDATE",
    "$1",
    "$2",
    "$3"
);
statements!(OnMySql, MySql, MySqlConnection, "unix_timestamp()", " FOR UPDATE", "?", "?", "?");
