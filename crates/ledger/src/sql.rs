//! One interface for the three databases.
//!
//! - A [`Statement`] holds the SQL for each. Most are portable and written once; those that read or write many rows are
//!   generated from the description of their table ([`table`]).
//! - Parameters are [`Cell`]s, rows are structs of numbers and strings ([`crate::rows`]).
//! - Many rows take one round trip: arrays and `UNNEST` on PostgreSQL, one JSON text on SQLite and MariaDB. MariaDB
//!   searches each column of a JSON row from the row's beginning, so wide rows are written into the statement there.

mod mysql;
mod postgres;
mod sqlite;
pub(crate) mod table;

use database::Database;
use domain::hex;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, MySql, Postgres, Sqlite, Transaction};

/// Placeholder for many rows on SQLite.
const ROWS_AS_JSON: &str = "json_each(?)";
/// Placeholder for many rows on MariaDB.
const ROWS_AS_TEXT: &str = "/* rows */";

/// One snapshot; the default isolation level is read committed.
const POSTGRES_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
/// Likewise; `SET TRANSACTION` applies to the next transaction only.
const MYSQL_READING: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY";

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Number(i64),
    /// For numbers only.
    Null,
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Number(number)
    }
}

impl From<Option<i64>> for Cell {
    fn from(number: Option<i64>) -> Cell {
        number.map_or(Cell::Null, Cell::Number)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

/// The cells of many rows, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    width: usize,
    cells: Vec<Cell>,
}

impl Rows {
    pub(crate) fn new<const WIDTH: usize>(rows: impl IntoIterator<Item = [Cell; WIDTH]>) -> Rows {
        Rows { width: WIDTH, cells: rows.into_iter().flatten().collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunks_exact(self.width)
    }

    fn column(&self, position: usize) -> impl Iterator<Item = &Cell> {
        self.cells.iter().skip(position).step_by(self.width)
    }

    /// `[[1,"23"],[4,null]]`. Strings contain only characters that need no escape; bytes are hexadecimal strings.
    fn to_json(&self) -> String {
        format!("[{}]", self.to_text(&RowFormat { row: ["[", "]"], quote: '"', null: "null", bytes: "" }))
    }

    /// `(1,'23'),(4,NULL)`, likewise; bytes are `x'0f'`.
    fn to_values(&self) -> String {
        self.to_text(&RowFormat { row: ["(", ")"], quote: '\'', null: "NULL", bytes: "x" })
    }

    fn to_text(&self, format: &RowFormat) -> String {
        let [open, close] = format.row;
        let mut out = String::with_capacity(self.cells.len() * 12);
        for (number, row) in self.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            out.push_str(open);
            for (position, cell) in row.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                push_cell(&mut out, cell, format);
            }
            out.push_str(close);
        }
        out
    }
}

struct RowFormat {
    row: [&'static str; 2],
    quote: char,
    null: &'static str,
    /// Prefix of hexadecimal bytes.
    bytes: &'static str,
}

fn push_cell(out: &mut String, cell: &Cell, format: &RowFormat) {
    use std::fmt::Write as _;
    let quote = format.quote;
    match cell {
        Cell::Number(number) => write!(out, "{number}").expect("writing to memory cannot fail"),
        Cell::Null => out.push_str(format.null),
        Cell::Bytes(bytes) => {
            out.push_str(format.bytes);
            out.push(quote);
            hex::push(out, bytes);
            out.push(quote);
        }
        Cell::Text(text) => {
            out.push(quote);
            out.extend(text.chars().filter(|character| is_plain(*character)));
            out.push(quote);
        }
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_graphic() && !matches!(character, '"' | '\'' | '\\')
}

/// SQL for each database.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) sqlite: String,
    pub(crate) postgres: String,
    pub(crate) mysql: String,
}

impl Statement {
    /// The same SQL for all three, except for the placeholders.
    pub(crate) fn portable(text: &str) -> Statement {
        Statement { sqlite: text.to_owned(), postgres: numbered(text), mysql: text.to_owned() }
    }

    /// Locks the rows it reads, except on SQLite, which has one writer at a time.
    pub(crate) fn locking(text: &str) -> Statement {
        let locking = format!("{text} FOR UPDATE");
        Statement { sqlite: text.to_owned(), postgres: numbered(&locking), mysql: locking }
    }
}

/// PostgreSQL numbers its placeholders.
fn numbered(text: &str) -> String {
    let mut parts = text.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        numbered.push_str(&format!("${}{part}", number + 1));
    }
    numbered
}

/// A row type for all three.
pub(crate) trait AnyRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, MySqlRow> + Send + Unpin
{
}

impl<T> AnyRow for T where
    T: for<'r> FromRow<'r, SqliteRow>
        + for<'r> FromRow<'r, PgRow>
        + for<'r> FromRow<'r, MySqlRow>
        + Send
        + Unpin
{
}

/// A transaction; rolled back if dropped without a commit.
pub(crate) enum SqlTransaction {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
    MySql(Transaction<'static, MySql>),
}

impl SqlTransaction {
    /// Begins a write transaction.
    pub(crate) async fn begin(database: &Database) -> Result<SqlTransaction, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => SqlTransaction::Sqlite(file.begin_write().await?),
            Database::Postgres(pool) => SqlTransaction::Postgres(pool.begin().await?),
            Database::MySql(pool) => SqlTransaction::MySql(pool.begin().await?),
        })
    }

    /// Begins a read transaction on one snapshot.
    pub(crate) async fn begin_reading(database: &Database) -> Result<SqlTransaction, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => SqlTransaction::Sqlite(file.pool.begin().await?),
            Database::Postgres(pool) => SqlTransaction::Postgres(pool.begin_with(POSTGRES_READING).await?),
            Database::MySql(pool) => SqlTransaction::MySql(pool.begin_with(MYSQL_READING).await?),
        })
    }

    pub(crate) async fn read<T: AnyRow>(
        &mut self,
        statement: &'static Statement,
        cells: &[Cell],
    ) -> Result<Vec<T>, sqlx::Error> {
        match self {
            SqlTransaction::Sqlite(transaction) => sqlite::read(transaction, &statement.sqlite, cells).await,
            SqlTransaction::Postgres(transaction) => {
                postgres::read(transaction, &statement.postgres, cells).await
            }
            SqlTransaction::MySql(transaction) => mysql::read(transaction, &statement.mysql, cells).await,
        }
    }

    pub(crate) async fn read_many<T: AnyRow>(
        &mut self,
        statement: &'static Statement,
        keys: &Rows,
    ) -> Result<Vec<T>, sqlx::Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            SqlTransaction::Sqlite(transaction) => {
                sqlite::read_many(transaction, &statement.sqlite, keys).await
            }
            SqlTransaction::Postgres(transaction) => {
                postgres::read_many(transaction, &statement.postgres, keys).await
            }
            SqlTransaction::MySql(transaction) => mysql::read_many(transaction, &statement.mysql, keys).await,
        }
    }

    /// Returns the number of changed rows.
    pub(crate) async fn write(
        &mut self,
        statement: &'static Statement,
        cells: &[Cell],
    ) -> Result<u64, sqlx::Error> {
        match self {
            SqlTransaction::Sqlite(transaction) => sqlite::write(transaction, &statement.sqlite, cells).await,
            SqlTransaction::Postgres(transaction) => {
                postgres::write(transaction, &statement.postgres, cells).await
            }
            SqlTransaction::MySql(transaction) => mysql::write(transaction, &statement.mysql, cells).await,
        }
    }

    /// Writes many rows, or deletes those with these keys.
    pub(crate) async fn write_many(
        &mut self,
        statement: &'static Statement,
        rows: &Rows,
    ) -> Result<(), sqlx::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        match self {
            SqlTransaction::Sqlite(transaction) => {
                sqlite::write_many(transaction, &statement.sqlite, rows).await
            }
            SqlTransaction::Postgres(transaction) => {
                postgres::write_many(transaction, &statement.postgres, rows).await
            }
            SqlTransaction::MySql(transaction) => {
                mysql::write_many(transaction, &statement.mysql, rows).await
            }
        }
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            SqlTransaction::Sqlite(transaction) => transaction.commit().await,
            SqlTransaction::Postgres(transaction) => transaction.commit().await,
            SqlTransaction::MySql(transaction) => transaction.commit().await,
        }
    }
}

/// Reads rows outside of a transaction.
pub(crate) async fn read<T: AnyRow>(
    database: &Database,
    statement: &'static Statement,
    cells: &[Cell],
) -> Result<Vec<T>, sqlx::Error> {
    match database {
        Database::Sqlite(file) => {
            sqlite::read(&mut *file.pool.acquire().await?, &statement.sqlite, cells).await
        }
        Database::Postgres(pool) => {
            postgres::read(&mut *pool.acquire().await?, &statement.postgres, cells).await
        }
        Database::MySql(pool) => mysql::read(&mut *pool.acquire().await?, &statement.mysql, cells).await,
    }
}

/// Reads the rows with these keys outside of a transaction.
pub(crate) async fn read_many<T: AnyRow>(
    database: &Database,
    statement: &'static Statement,
    keys: &Rows,
) -> Result<Vec<T>, sqlx::Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    match database {
        Database::Sqlite(file) => {
            sqlite::read_many(&mut *file.pool.acquire().await?, &statement.sqlite, keys).await
        }
        Database::Postgres(pool) => {
            postgres::read_many(&mut *pool.acquire().await?, &statement.postgres, keys).await
        }
        Database::MySql(pool) => mysql::read_many(&mut *pool.acquire().await?, &statement.mysql, keys).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_for_postgres() {
        let statement = Statement::locking("SELECT a FROM b WHERE c = ? AND d > ?");
        assert_eq!(statement.postgres, "SELECT a FROM b WHERE c = $1 AND d > $2 FOR UPDATE");
        assert_eq!(statement.sqlite, "SELECT a FROM b WHERE c = ? AND d > ?");
    }

    #[test]
    fn rows_as_text_cannot_inject_sql() {
        let rows = Rows::new([[Cell::Number(-1), Cell::from("a\"b\\c'\n")], [Cell::Null, Cell::from("")]]);
        assert_eq!(rows.to_json(), r#"[[-1,"abc"],[null,""]]"#);
        assert_eq!(rows.to_values(), "(-1,'abc'),(NULL,'')");
        let bytes = Rows::new([[Cell::Bytes(vec![0x0f, 0xa0])], [Cell::Bytes(Vec::new())]]);
        assert_eq!(bytes.to_json(), r#"[["0fa0"],[""]]"#);
        assert_eq!(bytes.to_values(), "(x'0fa0'),(x'')");
    }
}
