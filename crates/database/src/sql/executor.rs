//! Where the statements of a transaction run.

use std::any::Any;
use std::future::ready;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::error::SqlError;
use super::statement::Statement;
use super::transaction::Transaction;
use super::value::{FromRow, Rows, Value};
use crate::Kind;
use crate::sqlite::SqliteSession;

/// The result of a statement.
type Outcome<'a, T> = BoxFuture<'a, Result<T, SqlError>>;

/// A transaction for code that runs on every database. On a server, each statement is a round trip; on SQLite, all run
/// on the thread of the connection ([`at_once`] in [`crate::SqliteDatabase::write`]), without a switch of threads.
pub trait Executor {
    fn kind(&self) -> Kind;

    /// All rows of a query.
    fn query<'a, T: FromRow + Send + 'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        values: &'a [Value],
    ) -> Outcome<'a, Vec<T>>;

    /// The rows of a query whose only parameter are keys: `{rows N}`; on SQLite, or the columns of one key.
    fn find<'a, T: FromRow + Send + 'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        keys: Rows,
    ) -> Outcome<'a, Vec<T>>;

    /// Returns the number of affected rows.
    fn execute<'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        values: &'a [Value],
    ) -> Outcome<'a, u64>;

    /// Runs a statement whose only parameter are rows: `{values}` or `{rows N}`. Without rows it does not run.
    fn write_rows<'a>(&'a mut self, statement: impl Into<Statement<'a>>, rows: &'a Rows) -> Outcome<'a, u64>;

    /// See [`SqliteSession::keep`]. On servers nothing is kept.
    fn keep(&mut self, value: impl Any + Send) -> Result<(), SqlError>;

    /// See [`SqliteSession::take_kept`].
    fn take_kept<T: Any>(&mut self) -> Result<Option<Box<T>>, SqlError>;
}

impl Executor for Transaction {
    fn kind(&self) -> Kind {
        Transaction::kind(self)
    }

    fn query<'a, T: FromRow + Send + 'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        values: &'a [Value],
    ) -> Outcome<'a, Vec<T>> {
        let statement = statement.into();
        Box::pin(async move { Transaction::query(self, statement, values).await })
    }

    fn find<'a, T: FromRow + Send + 'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        keys: Rows,
    ) -> Outcome<'a, Vec<T>> {
        let statement = statement.into();
        Box::pin(async move { Transaction::find(self, statement, keys).await })
    }

    fn execute<'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        values: &'a [Value],
    ) -> Outcome<'a, u64> {
        let statement = statement.into();
        Box::pin(async move { Transaction::execute(self, statement, values).await })
    }

    fn write_rows<'a>(&'a mut self, statement: impl Into<Statement<'a>>, rows: &'a Rows) -> Outcome<'a, u64> {
        let statement = statement.into();
        Box::pin(async move { Transaction::write_rows(self, statement, rows).await })
    }

    fn keep(&mut self, _value: impl Any + Send) -> Result<(), SqlError> {
        Ok(())
    }

    fn take_kept<T: Any>(&mut self) -> Result<Option<Box<T>>, SqlError> {
        Ok(None)
    }
}

/// The result of code that awaits nothing but the statements of a [`SqliteSession`].
pub fn at_once<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never()
        .unwrap_or_else(|| unreachable!("statements of SQLite are done when their methods return"))
}

/// Every statement is done when its method returns.
impl Executor for &SqliteSession {
    fn kind(&self) -> Kind {
        Kind::Sqlite
    }

    fn query<'a, T: FromRow + Send + 'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        values: &'a [Value],
    ) -> Outcome<'a, Vec<T>> {
        let sql = statement.into().render(Kind::Sqlite, values);
        Box::pin(ready(SqliteSession::query(self, &sql, values)))
    }

    fn find<'a, T: FromRow + Send + 'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        keys: Rows,
    ) -> Outcome<'a, Vec<T>> {
        Box::pin(ready(SqliteSession::find(self, statement.into(), keys)))
    }

    fn execute<'a>(
        &'a mut self,
        statement: impl Into<Statement<'a>>,
        values: &'a [Value],
    ) -> Outcome<'a, u64> {
        let sql = statement.into().render(Kind::Sqlite, values);
        Box::pin(ready(SqliteSession::execute(self, &sql, values)))
    }

    fn write_rows<'a>(&'a mut self, statement: impl Into<Statement<'a>>, rows: &'a Rows) -> Outcome<'a, u64> {
        Box::pin(ready(match rows.is_empty() {
            true => Ok(0),
            false => SqliteSession::write_rows(self, statement.into(), rows),
        }))
    }

    fn keep(&mut self, value: impl Any + Send) -> Result<(), SqlError> {
        SqliteSession::keep(self, value)
    }

    fn take_kept<T: Any>(&mut self) -> Result<Option<Box<T>>, SqlError> {
        SqliteSession::take_kept(self)
    }
}
