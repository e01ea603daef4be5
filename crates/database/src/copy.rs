//! Copies the rows of a table from one database into another, whatever their kinds.
//!
//! # Guarantees
//!
//! - All tables are read in one snapshot, and written in one transaction: until [`Link::commit`] nothing has changed.
//! - [`Link::sum`] of a table is the same in both databases if, and only if, its rows are the same (but for collisions
//!   of a 64-bit hash). Texts that PostgreSQL cannot keep count as it keeps them: NUL as U+FFFD.
//! - Memory is bounded: rows are copied in batches.
//!
//! # Deliberately absent
//!
//! Making tables: both databases have them, at the same version. Names of tables and columns come from the schemas, never
//! from outside.

mod cells;
mod schema;

use std::hash::{DefaultHasher, Hash, Hasher};

use futures_util::TryStreamExt;
use sqlx::mysql::{MySql, MySqlConnection};
use sqlx::postgres::{PgConnection, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, QueryBuilder};

use crate::{Database, DatabaseError};
use cells::{Cell, CellRow};
pub use schema::{Class, Column};

/// Values in one insert statement: below the lowest limit of the three kinds.
const VALUES_MAX: usize = 16_384;
/// Rows in one insert statement.
const ROWS_MAX: usize = 500;

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSum {
    /// How many rows.
    pub rows: u64,
    /// The sum of the hashes of the rows, in any order.
    pub hash: u64,
}

impl TableSum {
    fn add(&mut self, cells: &[Cell]) {
        let mut hasher = DefaultHasher::new();
        cells.hash(&mut hasher);
        self.rows += 1;
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

/// A connection of its own with an open transaction.
pub struct Link {
    database: Database,
    connection: Held,
}

enum Held {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

impl Link {
    /// Begins to read: everything that is read is as it was at one moment, from now on.
    pub async fn read(database: &Database) -> Result<Link, DatabaseError> {
        let begin = match database {
            Database::Sqlite(_) => "BEGIN; SELECT count(*) FROM sqlite_master",
            // The snapshot is taken by the first statement.
            Database::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1",
            Database::MySql(_) => {
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
                 START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            }
        };
        Self::begin(database, begin).await
    }

    /// Begins to write. On SQLite no other process can write from here on.
    pub async fn write(database: &Database) -> Result<Link, DatabaseError> {
        let begin = match database {
            Database::Sqlite(_) => "BEGIN IMMEDIATE",
            Database::Postgres(_) => "BEGIN",
            Database::MySql(_) => "START TRANSACTION",
        };
        Self::begin(database, begin).await
    }

    async fn begin(database: &Database, begin: &str) -> Result<Link, DatabaseError> {
        let connecting = async {
            Ok(match database {
                Database::Sqlite(file) => Held::Sqlite(file.connect().await?),
                Database::Postgres(pool) => Held::Postgres(pool.acquire().await?.detach()),
                Database::MySql(pool) => Held::MySql(pool.acquire().await?.detach()),
            })
        };
        let connection = connecting.await.map_err(|error| database.explain(error))?;
        let mut link = Link { database: database.clone(), connection };
        link.execute(begin).await?;
        Ok(link)
    }

    /// Runs statements without parameters, which are literals of this program.
    pub async fn execute(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let done = match &mut self.connection {
            Held::Sqlite(connection) => sql.execute(connection).await.map(drop),
            Held::Postgres(connection) => sql.execute(connection).await.map(drop),
            Held::MySql(connection) => sql.execute(connection).await.map(drop),
        };
        done.map_err(|error| self.database.explain(error))
    }

    /// The whole number that a statement returns, in one row or none.
    pub async fn number(&mut self, sql: &str) -> Result<Option<i64>, DatabaseError> {
        let sql = AssertSqlSafe(sql.to_owned());
        let found = match &mut self.connection {
            Held::Sqlite(connection) => sqlx::query_scalar(sql).fetch_optional(connection).await,
            Held::Postgres(connection) => sqlx::query_scalar(sql).fetch_optional(connection).await,
            Held::MySql(connection) => sqlx::query_scalar(sql).fetch_optional(connection).await,
        };
        found.map(Option::flatten).map_err(|error| self.database.explain(error))
    }

    /// Makes what was written permanent.
    pub async fn commit(self) -> Result<(), DatabaseError> {
        self.end("COMMIT").await
    }

    /// Undoes what was written, or ends reading.
    pub async fn roll_back(self) -> Result<(), DatabaseError> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, sql: &str) -> Result<(), DatabaseError> {
        self.execute(sql).await?;
        let Link { database, connection } = self;
        let closed = match connection {
            Held::Sqlite(connection) => connection.close().await,
            Held::Postgres(connection) => connection.close().await,
            Held::MySql(connection) => connection.close().await,
        };
        closed.map_err(|error| database.explain(error))
    }

    /// The names of the tables in a SQLite file.
    pub async fn sqlite_tables(&mut self) -> Result<Vec<String>, DatabaseError> {
        let Held::Sqlite(connection) = &mut self.connection else { return Ok(Vec::new()) };
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
        let names = sqlx::query_scalar(sql).fetch_all(connection).await;
        names.map_err(|error| self.database.explain(error))
    }

    /// The columns of a table that can be written, by name; none if there is no such table.
    pub async fn columns(&mut self, table: &str) -> Result<Vec<Column>, DatabaseError> {
        let columns = match &mut self.connection {
            Held::Sqlite(connection) => schema::sqlite(connection, table).await,
            Held::Postgres(connection) => schema::postgres(connection, table).await,
            Held::MySql(connection) => schema::mysql(connection, table).await,
        };
        columns.map_err(|error| self.database.explain(error))
    }

    /// What the table holds, by these columns.
    pub async fn sum(&mut self, table: &str, columns: &[Column]) -> Result<TableSum, DatabaseError> {
        let mut sum = TableSum::default();
        self.each_batch(table, columns, None, &mut sum).await?;
        Ok(sum)
    }

    /// Writes all rows of the table into `target`'s table `into`, whose columns are the same by name.
    pub async fn copy_into(
        &mut self,
        table: &str,
        columns: &[Column],
        target: &mut Link,
        into: (&str, &[Column]),
    ) -> Result<TableSum, DatabaseError> {
        let mut sum = TableSum::default();
        self.each_batch(table, columns, Some((target, into)), &mut sum).await?;
        Ok(sum)
    }

    async fn each_batch(
        &mut self,
        table: &str,
        columns: &[Column],
        mut target: Option<(&mut Link, (&str, &[Column]))>,
        sum: &mut TableSum,
    ) -> Result<(), DatabaseError> {
        /// The same for each kind of connection.
        macro_rules! pump {
            ($connection:expr, $expression:path) => {{
                let list: Vec<String> = columns.iter().map($expression).collect();
                let sql = AssertSqlSafe(format!("SELECT {} FROM {table}", list.join(", ")));
                let mut rows = sqlx::query(sql).fetch($connection);
                let mut batch = Vec::new();
                loop {
                    let row = rows.try_next().await.map_err(|error| self.database.explain(error))?;
                    let is_last = row.is_none();
                    if let Some(row) = row {
                        let cells = row.cells(columns).map_err(|error| self.database.explain(error))?;
                        sum.add(&cells);
                        batch.push(cells);
                    }
                    if let Some((link, (into, classes))) = &mut target
                        && (is_last || batch.len() >= ROWS_MAX.min(VALUES_MAX / columns.len().max(1)))
                    {
                        link.insert(into, classes, &batch).await?;
                        batch.clear();
                    }
                    if target.is_none() {
                        batch.clear();
                    }
                    if is_last {
                        break;
                    }
                }
            }};
        }
        match &mut self.connection {
            Held::Sqlite(connection) => pump!(connection, schema::sqlite_expression),
            Held::Postgres(connection) => pump!(connection, schema::postgres_expression),
            Held::MySql(connection) => pump!(connection, schema::mysql_expression),
        }
        Ok(())
    }

    async fn insert(
        &mut self,
        table: &str,
        columns: &[Column],
        batch: &[Vec<Cell>],
    ) -> Result<(), DatabaseError> {
        if batch.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let head = format!("INSERT INTO {table} ({})", names.join(", "));
        let done = match &mut self.connection {
            Held::Sqlite(connection) => {
                let mut insert = QueryBuilder::<Sqlite>::new(format!("{head} "));
                insert.push_values(batch, |mut row, cells| {
                    for (cell, column) in cells.iter().zip(columns) {
                        match column.class {
                            Class::Integer | Class::Flag => row.push_bind(cell.integer()),
                            Class::Number | Class::Text => row.push_bind(cell.text()),
                            Class::Blob => row.push_bind(cell.bytes()),
                        };
                    }
                });
                insert.build().persistent(false).execute(connection).await.map(drop)
            }
            Held::Postgres(connection) => {
                let mut insert = QueryBuilder::<Postgres>::new(format!("{head} OVERRIDING SYSTEM VALUE "));
                insert.push_values(batch, |mut row, cells| {
                    for (cell, column) in cells.iter().zip(columns) {
                        match column.class {
                            Class::Integer => row.push_bind(cell.integer()),
                            Class::Flag => row.push_bind(cell.integer().map(|number| number != 0)),
                            Class::Number => row.push_bind(cell.text()).push_unseparated("::NUMERIC"),
                            Class::Text => row.push_bind(cell.text()),
                            Class::Blob => row.push_bind(cell.bytes()),
                        };
                    }
                });
                insert.build().persistent(false).execute(connection).await.map(drop)
            }
            Held::MySql(connection) => {
                let mut insert = QueryBuilder::<MySql>::new(format!("{head} "));
                insert.push_values(batch, |mut row, cells| {
                    for (cell, column) in cells.iter().zip(columns) {
                        match column.class {
                            Class::Integer | Class::Flag => row.push_bind(cell.integer()),
                            Class::Number | Class::Text => row.push_bind(cell.text()),
                            Class::Blob => row.push_bind(cell.bytes()),
                        };
                    }
                });
                insert.build().persistent(false).execute(connection).await.map(drop)
            }
        };
        done.map_err(|error| self.database.explain(error))
    }
}
