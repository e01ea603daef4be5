//! The three databases behind one door: the same statements, each in its own words.
//!
//! # How
//!
//! - A [`Statement`] holds the text for each kind. Most are portable and written once; those that read or write many
//!   rows are made from the description of their table ([`table`]).
//! - Values go in as [`Cell`]s, rows come out as structs of plain numbers and texts ([`crate::rows`]).
//! - Many rows take one round trip: arrays and `UNNEST` on PostgreSQL, one JSON text on SQLite and MariaDB. MariaDB
//!   looks for each column of a JSON row from the row's beginning, so wide rows are written into the statement there.

mod mysql;
mod postgres;
mod sqlite;
pub(crate) mod table;

use database::Database;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, MySql, Postgres, Sqlite, Transaction};

/// Where SQLite is given many rows as one text.
const ROWS_AS_JSON: &str = "json_each(?)";
/// Where MariaDB is given many rows in the statement itself.
const ROWS_AS_TEXT: &str = "/* rows */";

/// Connections see what others commit meanwhile, unless reported otherwise.
const POSTGRES_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
/// Likewise; the first of both holds for the next transaction only.
const MYSQL_READING: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY";

/// A value on its way into a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Number(i64),
    /// No number.
    Null,
    Text(String),
    Bytes(Vec<u8>),
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    push_hex(&mut digits, bytes);
    digits
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("half a byte is one digit");
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
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

/// The cells of many rows, one row behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    width: usize,
    cells: Vec<Cell>,
}

impl Rows {
    /// Rows of as many cells as each gives.
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

    /// `[[1,"23"],[4,null]]`. Texts are digits and plain characters only, so nothing is to be escaped; bytes are texts of
    /// their digits.
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

/// How rows are written as text.
struct RowFormat {
    row: [&'static str; 2],
    quote: char,
    null: &'static str,
    /// What stands before the digits of bytes.
    bytes: &'static str,
}

fn push_cell(out: &mut String, cell: &Cell, format: &RowFormat) {
    use std::fmt::Write as _;
    let quote = format.quote;
    match cell {
        Cell::Number(number) => write!(out, "{number}").expect("memory takes every write"),
        Cell::Null => out.push_str(format.null),
        Cell::Bytes(bytes) => {
            out.push_str(format.bytes);
            out.push(quote);
            push_hex(out, bytes);
            out.push(quote);
        }
        Cell::Text(text) => {
            out.push(quote);
            out.extend(text.chars().filter(|letter| is_plain(*letter)));
            out.push(quote);
        }
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_graphic() && !matches!(letter, '"' | '\'' | '\\')
}

/// What is asked, in each database's words.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) sqlite: String,
    pub(crate) postgres: String,
    pub(crate) mysql: String,
}

impl Statement {
    /// One that all three understand, but for how places are marked.
    pub(crate) fn portable(text: &str) -> Statement {
        Statement { sqlite: text.to_owned(), postgres: numbered(text), mysql: text.to_owned() }
    }

    /// One that locks the rows it reads, where there are such locks: SQLite has one writer at a time.
    pub(crate) fn locking(text: &str) -> Statement {
        let locking = format!("{text} FOR UPDATE");
        Statement { sqlite: text.to_owned(), postgres: numbered(&locking), mysql: locking }
    }
}

/// PostgreSQL numbers its places.
fn numbered(text: &str) -> String {
    let mut parts = text.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        numbered.push_str(&format!("${}{part}", number + 1));
    }
    numbered
}

/// A row that can be read from each of the three.
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

/// A transaction. Dropped without a commit, it leaves nothing behind.
pub(crate) enum Page {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
    MySql(Transaction<'static, MySql>),
}

impl Page {
    /// Begins to write.
    pub(crate) async fn begin(database: &Database) -> Result<Page, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => Page::Sqlite(file.begin_write().await?),
            Database::Postgres(pool) => Page::Postgres(pool.begin().await?),
            Database::MySql(pool) => Page::MySql(pool.begin().await?),
        })
    }

    /// Begins to read: everything as it is at one moment, whatever others write meanwhile.
    pub(crate) async fn begin_reading(database: &Database) -> Result<Page, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => Page::Sqlite(file.pool.begin().await?),
            Database::Postgres(pool) => Page::Postgres(pool.begin_with(POSTGRES_READING).await?),
            Database::MySql(pool) => Page::MySql(pool.begin_with(MYSQL_READING).await?),
        })
    }

    /// Reads rows.
    pub(crate) async fn read<T: AnyRow>(
        &mut self,
        statement: &'static Statement,
        cells: &[Cell],
    ) -> Result<Vec<T>, sqlx::Error> {
        match self {
            Page::Sqlite(page) => sqlite::read(page, &statement.sqlite, cells).await,
            Page::Postgres(page) => postgres::read(page, &statement.postgres, cells).await,
            Page::MySql(page) => mysql::read(page, &statement.mysql, cells).await,
        }
    }

    /// Reads the rows with these keys.
    pub(crate) async fn read_many<T: AnyRow>(
        &mut self,
        statement: &'static Statement,
        keys: &Rows,
    ) -> Result<Vec<T>, sqlx::Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Page::Sqlite(page) => sqlite::read_many(page, &statement.sqlite, keys).await,
            Page::Postgres(page) => postgres::read_many(page, &statement.postgres, keys).await,
            Page::MySql(page) => mysql::read_many(page, &statement.mysql, keys).await,
        }
    }

    /// Changes rows; says how many.
    pub(crate) async fn write(
        &mut self,
        statement: &'static Statement,
        cells: &[Cell],
    ) -> Result<u64, sqlx::Error> {
        match self {
            Page::Sqlite(page) => sqlite::write(page, &statement.sqlite, cells).await,
            Page::Postgres(page) => postgres::write(page, &statement.postgres, cells).await,
            Page::MySql(page) => mysql::write(page, &statement.mysql, cells).await,
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
            Page::Sqlite(page) => sqlite::write_many(page, &statement.sqlite, rows).await,
            Page::Postgres(page) => postgres::write_many(page, &statement.postgres, rows).await,
            Page::MySql(page) => mysql::write_many(page, &statement.mysql, rows).await,
        }
    }

    /// Makes it all last.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Page::Sqlite(page) => page.commit().await,
            Page::Postgres(page) => page.commit().await,
            Page::MySql(page) => page.commit().await,
        }
    }
}

/// Reads rows outside of any transaction.
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

/// Reads the rows with these keys outside of any transaction.
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
    fn places_are_numbered_for_postgres() {
        let statement = Statement::locking("SELECT a FROM b WHERE c = ? AND d > ?");
        assert_eq!(statement.postgres, "SELECT a FROM b WHERE c = $1 AND d > $2 FOR UPDATE");
        assert_eq!(statement.sqlite, "SELECT a FROM b WHERE c = ? AND d > ?");
    }

    #[test]
    fn rows_are_written_as_text_that_nothing_can_break() {
        let rows = Rows::new([[Cell::Number(-1), Cell::from("a\"b\\c'\n")], [Cell::Null, Cell::from("")]]);
        assert_eq!(rows.to_json(), r#"[[-1,"abc"],[null,""]]"#);
        assert_eq!(rows.to_values(), "(-1,'abc'),(NULL,'')");
        let bytes = Rows::new([[Cell::Bytes(vec![0x0f, 0xa0])], [Cell::Bytes(Vec::new())]]);
        assert_eq!(bytes.to_json(), r#"[["0fa0"],[""]]"#);
        assert_eq!(bytes.to_values(), "(x'0fa0'),(x'')");
    }
}
