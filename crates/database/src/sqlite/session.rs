//! Statements on a connection of SQLite, on its thread.

use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{OpenFlags, ToSql};

use super::{BUSY_TIMEOUT, Durability};
use crate::Kind;
use crate::sql::value::{FromRow, Row, Rows, Type, Value, json_of_integers, json_of_texts};
use crate::sql::{SqlError, Statement};

/// Prepared statements that a connection keeps: more than there are in the program.
const STATEMENTS_MAX: usize = 256;
/// Pages that the writer keeps, in KiB: enough for the inner pages of large tables, which are read for every row.
const WRITER_CACHE_KIB: i64 = 16 << 10;
/// SQLite's default.
const CACHE_KIB: i64 = 2_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) durability: Durability,
    /// Whether to create a missing file.
    pub(super) create: bool,
    pub(super) is_writer: bool,
}

/// A connection; its statements are prepared once. Only its thread has it.
#[derive(Debug)]
pub struct SqliteSession(pub(super) rusqlite::Connection);

impl SqliteSession {
    pub(super) fn open(path: &Path, opening: Opening) -> Result<SqliteSession, SqlError> {
        let cache_kib = if opening.is_writer { WRITER_CACHE_KIB } else { CACHE_KIB };
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, opening.create);
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.execute_batch(&format!("PRAGMA foreign_keys = ON; PRAGMA cache_size = -{cache_kib}"))?;
        let session = SqliteSession(connection);
        session.set_durability(opening.durability)?;
        Ok(session)
    }

    pub(super) fn set_durability(&self, durability: Durability) -> Result<(), SqlError> {
        self.batch(&format!("PRAGMA synchronous = {}", durability.synchronous()))
    }

    pub(super) fn use_write_ahead_log(&self) -> Result<(), SqlError> {
        self.batch("PRAGMA journal_mode = WAL; SELECT count(*) FROM sqlite_schema")
    }

    /// Rewrites a page unchanged.
    pub(super) fn write_page(&self) -> Result<(), SqlError> {
        let version: Option<i64> = self.query_one("PRAGMA user_version", &[])?;
        let version = version.ok_or(SqlError::RowMissing)?;
        // SQLite writes the first page although the value is unchanged.
        self.transaction("BEGIN IMMEDIATE", |session| {
            session.batch(&format!("PRAGMA user_version = {version}"))
        })
    }

    /// Interrupts later statements when `is_over`, which is called between steps of SQLite's virtual machine.
    pub(crate) fn interrupt_if(
        &self,
        steps: i32,
        is_over: impl FnMut() -> bool + Send + 'static,
    ) -> Result<(), SqlError> {
        Ok(self.0.progress_handler(steps, Some(is_over))?)
    }

    /// Commits if `work` succeeds, else rolls back.
    pub(super) fn transaction<T, E: From<SqlError>>(
        &self,
        begin: &str,
        work: impl FnOnce(&SqliteSession) -> Result<T, E>,
    ) -> Result<T, E> {
        self.execute(begin, &[])?;
        let outcome = work(self).and_then(|done| {
            self.execute("COMMIT", &[]).map_err(|error| SqlError::Commit(Box::new(error)))?;
            Ok(done)
        });
        if outcome.is_err() {
            self.reset();
        }
        outcome
    }

    /// All rows of a query.
    pub fn query<T: FromRow>(&self, sql: &str, values: &[Value]) -> Result<Vec<T>, SqlError> {
        let mut statement = self.prepared(sql, values)?;
        let columns = statement.column_count();
        let mut found = statement.raw_query();
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push(T::from_row(&mut row_of(row, columns)?)?);
        }
        Ok(rows)
    }

    /// Reads the rows of a query in batches, until `take` returns false.
    pub(super) fn for_each_batch(
        &self,
        sql: &str,
        batch_rows: usize,
        mut take: impl FnMut(Vec<Row>) -> bool,
    ) -> Result<(), SqlError> {
        let mut statement = self.prepared(sql, &[])?;
        let columns = statement.column_count();
        let mut found = statement.raw_query();
        let mut batch = Vec::with_capacity(batch_rows);
        while let Some(row) = found.next()? {
            batch.push(row_of(row, columns)?);
            if batch.len() >= batch_rows && !take(std::mem::take(&mut batch)) {
                return Ok(());
            }
        }
        if !batch.is_empty() {
            take(batch);
        }
        Ok(())
    }

    /// Reads the rows of a query one by one, until `take` returns false.
    pub fn query_while<T: FromRow, E: From<SqlError>>(
        &self,
        sql: &str,
        values: &[Value],
        mut take: impl FnMut(T) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut statement = self.prepared(sql, values)?;
        let columns = statement.column_count();
        let mut found = statement.raw_query();
        while let Some(row) = found.next().map_err(SqlError::from)? {
            let mut row = row_of(row, columns)?;
            if !take(T::from_row(&mut row)?)? {
                break;
            }
        }
        Ok(())
    }

    /// The first row of a query.
    pub fn query_one<T: FromRow>(&self, sql: &str, values: &[Value]) -> Result<Option<T>, SqlError> {
        Ok(self.query(sql, values)?.into_iter().next())
    }

    /// Returns the number of affected rows.
    pub fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, SqlError> {
        let mut statement = self.prepared(sql, values)?;
        if statement.column_count() > 0 {
            // A query that is run for its effect, such as a PRAGMA.
            let mut rows = statement.raw_query();
            while rows.next()?.is_some() {}
            return Ok(0);
        }
        Ok(statement.raw_execute()? as u64)
    }

    /// Runs SQL without parameters, several statements too.
    pub fn batch(&self, sql: &str) -> Result<(), SqlError> {
        Ok(self.0.execute_batch(sql)?)
    }

    pub(super) fn write_rows(&self, statement: Statement<'_>, rows: &Rows) -> Result<u64, SqlError> {
        if !statement.is_bulk() {
            let values = [Value::Rows(rows.clone())];
            return self.execute(&statement.render(Kind::Sqlite, &values), &values);
        }
        let sql = statement.render_bulk(Kind::Sqlite, rows, "");
        let mut statement = self.0.prepare_cached(&sql)?;
        let mut written = 0;
        for row in rows.iter() {
            bind(&mut statement, row)?;
            written += statement.raw_execute()? as u64;
        }
        Ok(written)
    }

    /// The count that SQLite raises when another connection has changed the file.
    pub(crate) fn data_version(&self) -> Result<i64, SqlError> {
        self.query_one("PRAGMA data_version", &[])?.ok_or(SqlError::RowMissing)
    }

    /// Ends a transaction that was left open.
    pub(super) fn reset(&self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.batch("ROLLBACK")
        {
            tracing::warn!(%error, "cannot roll back a transaction");
        }
    }

    fn prepared(&self, sql: &str, values: &[Value]) -> Result<rusqlite::CachedStatement<'_>, SqlError> {
        let mut statement = self.0.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        Ok(statement)
    }
}

fn bind(statement: &mut rusqlite::CachedStatement<'_>, values: &[Value]) -> Result<(), SqlError> {
    for (position, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(position + 1, value)?;
    }
    Ok(())
}

impl ToSql for Value {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, rusqlite::Error> {
        Ok(match self {
            Value::Null(_) => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Boolean(flag) => ToSqlOutput::Borrowed(ValueRef::Integer((*flag).into())),
            Value::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Value::Decimal(text) | Value::Text(text) => {
                ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
            }
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::Integers(numbers) => ToSqlOutput::Owned(json_of_integers(numbers.iter().copied()).into()),
            Value::Texts(texts) => ToSqlOutput::Owned(json_of_texts(texts).into()),
            Value::Rows(rows) => ToSqlOutput::Owned(rows.to_json().into()),
        })
    }
}

fn row_of(row: &rusqlite::Row<'_>, columns: usize) -> Result<Row, SqlError> {
    let values = (0..columns).map(|n| Ok(value_of(row.get_ref(n)?)));
    Ok(Row::new(values.collect::<Result<Vec<_>, rusqlite::Error>>()?))
}

fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null(Type::Text),
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Decimal(number.to_string()),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Bytes(text.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}
