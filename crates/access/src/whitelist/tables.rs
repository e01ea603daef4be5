//! The tables of the whitelist and of its change feed, over one connection.
//!
//! What the three kinds of databases say alike is written once, by a macro that puts in what differs: how parameters
//! are written, how a row is locked, what time it is. What each does in a way of its own, such as many rows in one
//! statement, stands in a file for each.
//!
//! Locks are always taken in this order: the row of `whitelist_state`, the row of a generation, passkeys. So nobody
//! waits in a circle. Time is the database's own, so that processes on machines whose clocks differ agree on who has
//! been silent.

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

/// Passkeys in one statement, at the most: databases bound their parameters.
const PASSKEYS_PER_STATEMENT: usize = 1000;

/// Which generations matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generations {
    /// The one that counts.
    pub(super) current: i64,
    /// The one that counted before the last refresh.
    pub(super) previous: Option<i64>,
}

/// What became of a generation that is no longer being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It counts, or may again.
    Kept,
    /// It is to be deleted.
    Dropped,
}

impl Fate {
    const fn state(self) -> &'static str {
        match self {
            Fate::Kept => "kept",
            Fate::Dropped => "dropped",
        }
    }
}

/// An entry of the change feed as it stands in its table.
pub(super) type ChangeRow = (i64, String, Option<String>);

/// What all databases say alike.
#[async_trait]
pub(super) trait Statements: Send {
    /// Which generations matter. Nobody else can change this, nor add or remove passkeys, until the commit.
    async fn lock_generations(&mut self) -> Result<Generations, sqlx::Error>;
    async fn set_generations(&mut self, generations: Generations) -> Result<(), sqlx::Error>;
    /// Notes a sign of life of a builder. False if its generation is not being built any more.
    async fn touch(&mut self, generation: i64) -> Result<bool, sqlx::Error>;
    async fn set_fate(&mut self, generation: i64, fate: Fate) -> Result<(), sqlx::Error>;
    /// Gives up the generations whose builders have been silent for so long. Tells how many.
    async fn drop_silent(&mut self, silent_s: i64) -> Result<u64, sqlx::Error>;
    /// How many passkeys count.
    async fn count(&mut self) -> Result<i64, sqlx::Error>;
    async fn count_in(&mut self, generation: i64) -> Result<i64, sqlx::Error>;
    /// A generation that is to be deleted, locked, and how far it is deleted already.
    async fn first_dropped(&mut self) -> Result<Option<(i64, String)>, sqlx::Error>;
    /// The passkey that has so many others between itself and `behind`.
    async fn nth_behind(
        &mut self,
        generation: i64,
        behind: &str,
        between: i64,
    ) -> Result<Option<String>, sqlx::Error>;
    /// Deletes from a generation what lies behind the first and up to the second passkey.
    async fn delete_between(&mut self, generation: i64, behind: &str, up_to: &str)
    -> Result<(), sqlx::Error>;
    /// Deletes a generation, and what it has behind this passkey.
    async fn delete_rest(&mut self, generation: i64, behind: &str) -> Result<(), sqlx::Error>;
    /// Takes so many numbers for changes. Gives back the last of them.
    async fn take_numbers(&mut self, count: i64) -> Result<i64, sqlx::Error>;
    async fn newest_change(&mut self) -> Result<i64, sqlx::Error>;
    /// The changes behind the first number, up to the second.
    async fn changes(&mut self, behind: i64, up_to: i64) -> Result<Vec<ChangeRow>, sqlx::Error>;
    async fn trim_changes(&mut self, up_to: i64) -> Result<(), sqlx::Error>;
}

/// What each database does in a way of its own.
#[async_trait]
pub(super) trait ManyRows: Send {
    /// Begins a generation. Gives back its number.
    async fn new_generation(&mut self) -> Result<i64, sqlx::Error>;
    /// Puts passkeys into a generation. Tells how many were not in it.
    async fn insert(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error>;
    /// Takes passkeys out of a generation. Tells how many were in it.
    async fn delete(&mut self, generation: i64, passkeys: &[Passkey]) -> Result<u64, sqlx::Error>;
    /// Those of at most [`PASSKEYS_PER_STATEMENT`] passkeys that count, in one look.
    async fn present(&mut self, passkeys: &[Passkey]) -> Result<Vec<String>, sqlx::Error>;
    /// Notes what happened to these passkeys, or to any if there are none, under the numbers from `first` on.
    async fn insert_changes(
        &mut self,
        first: i64,
        kind: &'static str,
        passkeys: &[Passkey],
    ) -> Result<(), sqlx::Error>;
}

/// The tables over one connection.
pub(super) trait WhitelistTables: Statements + ManyRows {}
impl<T: Statements + ManyRows> WhitelistTables for T {}

/// The tables inside a transaction. Dropped without a commit, nothing has happened.
#[async_trait]
pub(super) trait Transaction: WhitelistTables {
    async fn commit(self: Box<Self>) -> Result<(), sqlx::Error>;
}

/// The tables outside of any transaction.
pub(super) async fn acquire(database: &Database) -> Result<Box<dyn WhitelistTables>, sqlx::Error> {
    Ok(match database {
        Database::Sqlite(file) => Box::new(OnSqlite(file.pool.acquire().await?)),
        Database::Postgres(pool) => Box::new(OnPostgres(pool.acquire().await?)),
        Database::MySql(pool) => Box::new(OnMySql(pool.acquire().await?)),
    })
}

/// Begins to write.
pub(super) async fn begin(database: &Database) -> Result<Box<dyn Transaction>, sqlx::Error> {
    Ok(match database {
        Database::Sqlite(file) => Box::new(OnSqlite(file.begin_write().await?)),
        Database::Postgres(pool) => Box::new(OnPostgres(pool.begin().await?)),
        Database::MySql(pool) => Box::new(OnMySql(pool.begin().await?)),
    })
}

/// Those of any number of passkeys that count, each in the order asked.
pub(super) async fn contains(
    tables: &mut dyn WhitelistTables,
    passkeys: &[Passkey],
) -> Result<Vec<bool>, sqlx::Error> {
    let mut answers = Vec::with_capacity(passkeys.len());
    for asked in passkeys.chunks(PASSKEYS_PER_STATEMENT) {
        let present = tables.present(asked).await?;
        let present: std::collections::HashSet<Passkey> =
            present.iter().filter_map(|text| text.parse().ok()).collect();
        answers.extend(asked.iter().map(|passkey| present.contains(passkey)));
    }
    Ok(answers)
}

/// Passkeys as a JSON array: one parameter for any number of them.
fn json_array(passkeys: &[Passkey]) -> String {
    use std::fmt::Write;
    let mut json = String::with_capacity(passkeys.len() * 35 + 2);
    for passkey in passkeys {
        let separator = if json.is_empty() { '[' } else { ',' };
        write!(json, "{separator}\"{passkey}\"").expect("a text can be written to");
    }
    json.push_str(if json.is_empty() { "[]" } else { "]" });
    json
}

/// Passkeys as an array of texts.
fn texts(passkeys: &[Passkey]) -> Vec<String> {
    passkeys.iter().map(Passkey::to_string).collect()
}

/// The shared statements for one kind of database: its types, its clock, its lock, its parameters.
macro_rules! statements {
    ($on:ident, $database:ty, $connection:ty, $now:literal, $lock:literal, $p1:literal, $p2:literal, $p3:literal) => {
        /// The tables over a connection, a pooled one or a transaction.
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

            async fn set_fate(&mut self, generation: i64, fate: Fate) -> Result<(), sqlx::Error> {
                sqlx::query(concat!("UPDATE whitelist_generations SET state = ", $p1, " WHERE id = ", $p2))
                    .bind(fate.state())
                    .bind(generation)
                    .execute(&mut *self.0)
                    .await
                    .map(|_| ())
            }

            async fn drop_silent(&mut self, silent_s: i64) -> Result<u64, sqlx::Error> {
                let dropped = sqlx::query(concat!(
                    "UPDATE whitelist_generations SET state = 'dropped'
                     WHERE state = 'building' AND touched_at <= ",
                    $now,
                    " - ",
                    $p1
                ))
                .bind(silent_s)
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

            async fn nth_behind(
                &mut self,
                generation: i64,
                behind: &str,
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
                .bind(behind)
                .bind(between)
                .fetch_optional(&mut *self.0)
                .await
            }

            async fn delete_between(
                &mut self,
                generation: i64,
                behind: &str,
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
                .bind(behind)
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

            async fn delete_rest(&mut self, generation: i64, behind: &str) -> Result<(), sqlx::Error> {
                sqlx::query(concat!(
                    "DELETE FROM whitelist_passkeys WHERE generation = ",
                    $p1,
                    " AND passkey > ",
                    $p2
                ))
                .bind(generation)
                .bind(behind)
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

            async fn changes(&mut self, behind: i64, up_to: i64) -> Result<Vec<ChangeRow>, sqlx::Error> {
                sqlx::query_as(concat!(
                    "SELECT seq, kind, passkey FROM passkey_changes WHERE seq > ",
                    $p1,
                    " AND seq <= ",
                    $p2,
                    " ORDER BY seq"
                ))
                .bind(behind)
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
