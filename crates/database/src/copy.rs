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

use crate::sql::{Rows, Session, SqlError, Statement};
use crate::{Database, DatabaseError, Kind};
use cells::Cell;
pub use schema::{Column, ColumnType};

/// Rows that are in memory at a time.
const BATCH_ROWS: usize = 500;

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
#[derive(Debug)]
pub struct CopyTransaction {
    database: Database,
    session: Session,
}

impl CopyTransaction {
    /// Begins a read transaction with one snapshot.
    pub async fn read(database: &Database) -> Result<CopyTransaction, DatabaseError> {
        let mut transaction = CopyTransaction::connect(database).await?;
        let begun = transaction.session.begin_snapshot().await;
        begun.map_err(|error| database.explain(error))?;
        // The first statement takes the snapshot.
        let first = match database.kind() {
            Kind::Sqlite => "SELECT count(*) FROM sqlite_schema",
            Kind::Postgres | Kind::MySql => "SELECT 1",
        };
        transaction.number(first).await?;
        Ok(transaction)
    }

    /// Begins a write transaction. On SQLite it blocks all other writers.
    pub async fn write(database: &Database) -> Result<CopyTransaction, DatabaseError> {
        let begin = match database {
            Database::Sqlite(_) => "BEGIN IMMEDIATE",
            Database::Postgres(_) => "BEGIN",
            Database::MySql(_) => "START TRANSACTION",
        };
        let mut transaction = CopyTransaction::connect(database).await?;
        transaction.execute(begin).await?;
        Ok(transaction)
    }

    async fn connect(database: &Database) -> Result<CopyTransaction, DatabaseError> {
        let session = database.session().await.map_err(|error| database.explain(error))?;
        Ok(CopyTransaction { database: database.clone(), session })
    }

    /// `sql` must be a literal: it has no parameters.
    pub async fn execute(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.session.batch(sql).await.map_err(|error| self.database.explain(error))
    }

    /// The integer of a query with at most one row.
    pub async fn number(&mut self, sql: &str) -> Result<Option<i64>, DatabaseError> {
        let found: Result<Option<Option<i64>>, SqlError> = self.session.query_one(sql, &[]).await;
        Ok(found.map_err(|error| self.database.explain(error))?.flatten())
    }

    pub async fn commit(mut self) -> Result<(), DatabaseError> {
        self.execute("COMMIT").await?;
        self.session.close().await;
        Ok(())
    }

    /// Discards writes, or ends a read transaction.
    pub async fn roll_back(mut self) -> Result<(), DatabaseError> {
        self.execute("ROLLBACK").await?;
        self.session.close().await;
        Ok(())
    }

    pub async fn sqlite_tables(&mut self) -> Result<Vec<String>, DatabaseError> {
        if self.database.kind() != Kind::Sqlite {
            return Ok(Vec::new());
        }
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
        self.session.query(sql, &[]).await.map_err(|error: SqlError| self.database.explain(error))
    }

    /// The writable columns of a table, ordered by name; empty if the table does not exist.
    pub async fn columns(&mut self, table: &str) -> Result<Vec<Column>, DatabaseError> {
        let columns = schema::columns(&mut self.session, table).await;
        columns.map_err(|error| self.database.explain(error))
    }

    pub async fn checksum(
        &mut self,
        table: &str,
        columns: &[Column],
    ) -> Result<TableChecksum, DatabaseError> {
        self.each_batch(table, columns, None).await
    }

    /// Copies all rows into `target`'s table `into`, whose columns have the same names.
    pub async fn copy_into(
        &mut self,
        table: &str,
        columns: &[Column],
        target: &mut CopyTransaction,
        into: (&str, &[Column]),
    ) -> Result<TableChecksum, DatabaseError> {
        self.each_batch(table, columns, Some((target, into))).await
    }

    async fn each_batch(
        &mut self,
        table: &str,
        columns: &[Column],
        mut target: Option<(&mut CopyTransaction, (&str, &[Column]))>,
    ) -> Result<TableChecksum, DatabaseError> {
        let kind = self.database.kind();
        let list: Vec<String> = columns.iter().map(|column| schema::expression(kind, column)).collect();
        let sql = format!("SELECT {} FROM {table}", list.join(", "));
        let mut sum = TableChecksum::default();
        let mut rows = self.session.stream(&sql, BATCH_ROWS);
        while let Some(batch) = rows.next().await {
            let cells = batch.and_then(|batch| cells::read_all(batch, columns));
            let cells = cells.map_err(|error| self.database.explain(error))?;
            cells.iter().for_each(|cells| sum.add(cells));
            if let Some((transaction, (into, target_columns))) = &mut target {
                transaction.insert(into, target_columns, &cells).await?;
            }
        }
        Ok(sum)
    }

    async fn insert(
        &mut self,
        table: &str,
        columns: &[Column],
        batch: &[Vec<Cell>],
    ) -> Result<(), DatabaseError> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let insert = format!("INSERT INTO {table} ({})", names.join(", "));
        let each = format!("{insert} {{values}}");
        let postgres = format!("{insert} OVERRIDING SYSTEM VALUE {{values}}");
        let values =
            batch.iter().flat_map(|cells| cells.iter().zip(columns)).map(|(cell, column)| cell.value(column));
        let rows = Rows::with_width(columns.len(), values.collect());
        let written = self.session.write_rows(Statement::each(&each, &postgres, &each), &rows).await;
        written.map(drop).map_err(|error| self.database.explain(error))
    }
}
