//! Copies rows of a table between databases of any two kinds.
//!
//! # Guarantees
//!
//! - All tables are read in one snapshot, and written in one transaction, until [`CopyTransaction::commit`].
//! - [`CopyTransaction::checksum`] of a table is equal in both databases if, and only if, its rows are equal (except
//!   for collisions of a 64-bit hash). Text that PostgreSQL cannot store is hashed as PostgreSQL stores it: NUL as
//!   U+FFFD.
//! - Memory is bounded: rows are copied in batches.
//!
//! # Deliberately absent
//!
//! Creating tables: both databases have them, at the same version. Names of tables and columns come from the schemas,
//! never from input.

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
pub use schema::{Column, ColumnType};

/// Values per INSERT: below the lowest limit of the three kinds.
const VALUES_MAX: usize = 16_384;
/// Rows per INSERT.
const ROWS_MAX: usize = 500;

/// Number and hash of the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableChecksum {
    pub rows: u64,
    /// Sum of the row hashes, independent of their order.
    pub hash: u64,
}

impl TableChecksum {
    fn add(&mut self, cells: &[Cell]) {
        let mut hasher = DefaultHasher::new();
        cells.hash(&mut hasher);
        self.rows += 1;
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

/// A dedicated connection with an open transaction.
pub struct CopyTransaction {
    database: Database,
    connection: AnyConnection,
}

enum AnyConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

impl CopyTransaction {
    /// Begins a read transaction with one snapshot.
    pub async fn read(database: &Database) -> Result<CopyTransaction, DatabaseError> {
        let begin = match database {
            Database::Sqlite(_) => "BEGIN; SELECT count(*) FROM sqlite_master",
            // The first statement takes the snapshot.
            Database::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1",
            Database::MySql(_) => {
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
                 START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            }
        };
        Self::begin(database, begin).await
    }

    /// Begins a write transaction. On SQLite it blocks all other writers.
    pub async fn write(database: &Database) -> Result<CopyTransaction, DatabaseError> {
        let begin = match database {
            Database::Sqlite(_) => "BEGIN IMMEDIATE",
            Database::Postgres(_) => "BEGIN",
            Database::MySql(_) => "START TRANSACTION",
        };
        Self::begin(database, begin).await
    }

    async fn begin(database: &Database, begin: &str) -> Result<CopyTransaction, DatabaseError> {
        let connecting = async {
            Ok(match database {
                Database::Sqlite(file) => AnyConnection::Sqlite(file.connect().await?),
                Database::Postgres(pool) => AnyConnection::Postgres(pool.acquire().await?.detach()),
                Database::MySql(pool) => AnyConnection::MySql(pool.acquire().await?.detach()),
            })
        };
        let connection = connecting.await.map_err(|error| database.explain(error))?;
        let mut transaction = CopyTransaction { database: database.clone(), connection };
        transaction.execute(begin).await?;
        Ok(transaction)
    }

    /// `sql` must be a literal: it has no parameters.
    pub async fn execute(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let done = match &mut self.connection {
            AnyConnection::Sqlite(connection) => sql.execute(connection).await.map(drop),
            AnyConnection::Postgres(connection) => sql.execute(connection).await.map(drop),
            AnyConnection::MySql(connection) => sql.execute(connection).await.map(drop),
        };
        done.map_err(|error| self.database.explain(error))
    }

    /// The integer of a query with at most one row.
    pub async fn number(&mut self, sql: &str) -> Result<Option<i64>, DatabaseError> {
        let sql = AssertSqlSafe(sql.to_owned());
        let found = match &mut self.connection {
            AnyConnection::Sqlite(connection) => sqlx::query_scalar(sql).fetch_optional(connection).await,
            AnyConnection::Postgres(connection) => sqlx::query_scalar(sql).fetch_optional(connection).await,
            AnyConnection::MySql(connection) => sqlx::query_scalar(sql).fetch_optional(connection).await,
        };
        found.map(Option::flatten).map_err(|error| self.database.explain(error))
    }

    pub async fn commit(self) -> Result<(), DatabaseError> {
        self.end("COMMIT").await
    }

    /// Discards writes, or ends a read transaction.
    pub async fn roll_back(self) -> Result<(), DatabaseError> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, sql: &str) -> Result<(), DatabaseError> {
        self.execute(sql).await?;
        let CopyTransaction { database, connection } = self;
        let closed = match connection {
            AnyConnection::Sqlite(connection) => connection.close().await,
            AnyConnection::Postgres(connection) => connection.close().await,
            AnyConnection::MySql(connection) => connection.close().await,
        };
        closed.map_err(|error| database.explain(error))
    }

    pub async fn sqlite_tables(&mut self) -> Result<Vec<String>, DatabaseError> {
        let AnyConnection::Sqlite(connection) = &mut self.connection else { return Ok(Vec::new()) };
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
        let names = sqlx::query_scalar(sql).fetch_all(connection).await;
        names.map_err(|error| self.database.explain(error))
    }

    /// The writable columns of a table, ordered by name; empty if the table does not exist.
    pub async fn columns(&mut self, table: &str) -> Result<Vec<Column>, DatabaseError> {
        let columns = match &mut self.connection {
            AnyConnection::Sqlite(connection) => schema::sqlite(connection, table).await,
            AnyConnection::Postgres(connection) => schema::postgres(connection, table).await,
            AnyConnection::MySql(connection) => schema::mysql(connection, table).await,
        };
        columns.map_err(|error| self.database.explain(error))
    }

    pub async fn checksum(
        &mut self,
        table: &str,
        columns: &[Column],
    ) -> Result<TableChecksum, DatabaseError> {
        let mut sum = TableChecksum::default();
        self.each_batch(table, columns, None, &mut sum).await?;
        Ok(sum)
    }

    /// Copies all rows into `target`'s table `into`, whose columns have the same names.
    pub async fn copy_into(
        &mut self,
        table: &str,
        columns: &[Column],
        target: &mut CopyTransaction,
        into: (&str, &[Column]),
    ) -> Result<TableChecksum, DatabaseError> {
        let mut sum = TableChecksum::default();
        self.each_batch(table, columns, Some((target, into)), &mut sum).await?;
        Ok(sum)
    }

    async fn each_batch(
        &mut self,
        table: &str,
        columns: &[Column],
        mut target: Option<(&mut CopyTransaction, (&str, &[Column]))>,
        sum: &mut TableChecksum,
    ) -> Result<(), DatabaseError> {
        /// For each kind of connection.
        macro_rules! copy_rows {
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
                    if let Some((transaction, (into, target_columns))) = &mut target
                        && (is_last || batch.len() >= ROWS_MAX.min(VALUES_MAX / columns.len().max(1)))
                    {
                        transaction.insert(into, target_columns, &batch).await?;
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
            AnyConnection::Sqlite(connection) => copy_rows!(connection, schema::sqlite_expression),
            AnyConnection::Postgres(connection) => copy_rows!(connection, schema::postgres_expression),
            AnyConnection::MySql(connection) => copy_rows!(connection, schema::mysql_expression),
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
            AnyConnection::Sqlite(connection) => {
                let mut insert = QueryBuilder::<Sqlite>::new(format!("{head} "));
                insert.push_values(batch, |mut row, cells| {
                    for (cell, column) in cells.iter().zip(columns) {
                        match column.column_type {
                            ColumnType::Integer | ColumnType::Flag => row.push_bind(cell.integer()),
                            ColumnType::Number | ColumnType::Text => row.push_bind(cell.text()),
                            ColumnType::Blob => row.push_bind(cell.bytes()),
                        };
                    }
                });
                insert.build().persistent(false).execute(connection).await.map(drop)
            }
            AnyConnection::Postgres(connection) => {
                let mut insert = QueryBuilder::<Postgres>::new(format!("{head} OVERRIDING SYSTEM VALUE "));
                insert.push_values(batch, |mut row, cells| {
                    for (cell, column) in cells.iter().zip(columns) {
                        match column.column_type {
                            ColumnType::Integer => row.push_bind(cell.integer()),
                            ColumnType::Flag => row.push_bind(cell.integer().map(|number| number != 0)),
                            ColumnType::Number => row.push_bind(cell.text()).push_unseparated("::NUMERIC"),
                            ColumnType::Text => row.push_bind(cell.text()),
                            ColumnType::Blob => row.push_bind(cell.bytes()),
                        };
                    }
                });
                insert.build().persistent(false).execute(connection).await.map(drop)
            }
            AnyConnection::MySql(connection) => {
                let mut insert = QueryBuilder::<MySql>::new(format!("{head} "));
                insert.push_values(batch, |mut row, cells| {
                    for (cell, column) in cells.iter().zip(columns) {
                        match column.column_type {
                            ColumnType::Integer | ColumnType::Flag => row.push_bind(cell.integer()),
                            ColumnType::Number | ColumnType::Text => row.push_bind(cell.text()),
                            ColumnType::Blob => row.push_bind(cell.bytes()),
                        };
                    }
                });
                insert.build().persistent(false).execute(connection).await.map(drop)
            }
        };
        done.map_err(|error| self.database.explain(error))
    }
}
