//! Where statements run: single ones on the database, several in a transaction or on a connection of their own.

use futures_util::StreamExt as _;
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, MySql, Postgres};

use super::error::SqlError;
use super::statement::Statement;
use super::value::{FromRow, Row, Rows, Value};
use super::{mysql, postgres};
use crate::sqlite::{SqliteLease, SqliteSession};
use crate::{Database, Kind};

/// One snapshot; the default isolation level is read committed.
const POSTGRES_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
/// Likewise; `SET TRANSACTION` applies to the next transaction only.
const MYSQL_READING: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY";

/// A connection that is held.
enum Held<'c> {
    Sqlite(&'c SqliteLease),
    Postgres(&'c mut PgConnection),
    MySql(&'c mut MySqlConnection),
}

impl Held<'_> {
    async fn rows(self, statement: Statement<'_>, values: &[Value]) -> Result<Vec<Row>, SqlError> {
        match self {
            Held::Sqlite(lease) => lease.read(statement, values).await,
            Held::Postgres(connection) => postgres::read(connection, statement, values).await,
            Held::MySql(connection) => mysql::read(connection, statement, values).await,
        }
    }

    async fn query<T: FromRow>(self, statement: Statement<'_>, values: &[Value]) -> Result<Vec<T>, SqlError> {
        let mut rows = self.rows(statement, values).await?;
        rows.iter_mut().map(T::from_row).collect()
    }

    async fn find<T: FromRow>(self, statement: Statement<'_>, keys: Rows) -> Result<Vec<T>, SqlError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let Held::Sqlite(lease) = self else {
            return self.query(statement, &[Value::Rows(keys)]).await;
        };
        let mut rows = lease.find(statement, keys).await?;
        rows.iter_mut().map(T::from_row).collect()
    }

    async fn execute(self, statement: Statement<'_>, values: &[Value]) -> Result<u64, SqlError> {
        match self {
            Held::Sqlite(lease) => lease.execute(statement, values).await,
            Held::Postgres(connection) => postgres::execute(connection, statement, values).await,
            Held::MySql(connection) => mysql::execute(connection, statement, values).await,
        }
    }

    async fn write_rows(self, statement: Statement<'_>, rows: &Rows) -> Result<u64, SqlError> {
        if rows.is_empty() {
            return Ok(0);
        }
        if !statement.is_bulk() {
            return self.execute(statement, &[Value::Rows(rows.clone())]).await;
        }
        match self {
            Held::Sqlite(lease) => lease.write_rows(statement, rows).await,
            Held::Postgres(connection) => postgres::write_rows(connection, statement, rows).await,
            Held::MySql(connection) => mysql::write_rows(connection, statement, rows).await,
        }
    }

    /// Runs SQL without parameters, several statements too.
    async fn batch(self, sql: &str) -> Result<(), SqlError> {
        let text = AssertSqlSafe(sql.to_owned());
        match self {
            Held::Sqlite(lease) => lease.batch(sql).await,
            Held::Postgres(connection) => Ok(sqlx::raw_sql(text).execute(connection).await.map(drop)?),
            Held::MySql(connection) => Ok(sqlx::raw_sql(text).execute(connection).await.map(drop)?),
        }
    }
}

/// The same methods for everything that holds a connection.
macro_rules! statements {
    () => {
        /// All rows of a query.
        pub async fn query<'s, T: FromRow>(
            &mut self,
            statement: impl Into<Statement<'s>>,
            values: &[Value],
        ) -> Result<Vec<T>, SqlError> {
            self.held().query(statement.into(), values).await
        }

        /// The first row of a query.
        pub async fn query_one<'s, T: FromRow>(
            &mut self,
            statement: impl Into<Statement<'s>>,
            values: &[Value],
        ) -> Result<Option<T>, SqlError> {
            Ok(self.query(statement, values).await?.into_iter().next())
        }

        /// The rows of a query whose only parameter are keys: `{rows N}`.
        pub async fn find<'s, T: FromRow>(
            &mut self,
            statement: impl Into<Statement<'s>>,
            keys: Rows,
        ) -> Result<Vec<T>, SqlError> {
            self.held().find(statement.into(), keys).await
        }

        /// Returns the number of affected rows.
        pub async fn execute<'s>(
            &mut self,
            statement: impl Into<Statement<'s>>,
            values: &[Value],
        ) -> Result<u64, SqlError> {
            self.held().execute(statement.into(), values).await
        }

        /// Runs a statement whose only parameter are rows: `{values}` or `{rows N}`. Without rows it does not run. Returns the number of affected rows as the database counts them.
        pub async fn write_rows<'s>(
            &mut self,
            statement: impl Into<Statement<'s>>,
            rows: &Rows,
        ) -> Result<u64, SqlError> {
            self.held().write_rows(statement.into(), rows).await
        }
    };
}

/// A transaction. It is rolled back if it is dropped without a commit.
#[derive(Debug)]
pub enum Transaction {
    Sqlite(SqliteLease),
    Postgres(sqlx::Transaction<'static, Postgres>),
    MySql(sqlx::Transaction<'static, MySql>),
}

impl Transaction {
    statements!();

    pub fn kind(&self) -> Kind {
        match self {
            Transaction::Sqlite(_) => Kind::Sqlite,
            Transaction::Postgres(_) => Kind::Postgres,
            Transaction::MySql(_) => Kind::MySql,
        }
    }

    fn held(&mut self) -> Held<'_> {
        match self {
            Transaction::Sqlite(lease) => Held::Sqlite(lease),
            Transaction::Postgres(transaction) => Held::Postgres(transaction),
            Transaction::MySql(transaction) => Held::MySql(transaction),
        }
    }

    /// Runs a statement whose failure leaves the transaction usable, as it does by itself except on PostgreSQL.
    pub async fn attempt<'s>(
        &mut self,
        statement: impl Into<Statement<'s>>,
        values: &[Value],
    ) -> Result<u64, SqlError> {
        let statement = statement.into();
        let Transaction::Postgres(transaction) = self else {
            return self.execute(statement, values).await;
        };
        let mut savepoint = transaction.begin().await?;
        let affected = postgres::execute(&mut savepoint, statement, values).await?;
        savepoint.commit().await?;
        Ok(affected)
    }

    /// As [`Transaction::attempt`], for a bulk statement: all rows or none.
    pub async fn attempt_rows<'s>(
        &mut self,
        statement: impl Into<Statement<'s>>,
        rows: &Rows,
    ) -> Result<u64, SqlError> {
        let statement = statement.into();
        match self {
            Transaction::Sqlite(lease) => lease.attempt_rows(statement, rows).await,
            Transaction::Postgres(transaction) => {
                let mut savepoint = transaction.begin().await?;
                let affected = postgres::write_rows(&mut savepoint, statement, rows).await?;
                savepoint.commit().await?;
                Ok(affected)
            }
            Transaction::MySql(transaction) => {
                let mut savepoint = transaction.begin().await?;
                let affected = mysql::write_rows(&mut savepoint, statement, rows).await?;
                savepoint.commit().await?;
                Ok(affected)
            }
        }
    }

    pub async fn commit(self) -> Result<(), SqlError> {
        match self {
            Transaction::Sqlite(lease) => lease.batch("COMMIT").await,
            Transaction::Postgres(transaction) => Ok(transaction.commit().await?),
            Transaction::MySql(transaction) => Ok(transaction.commit().await?),
        }
    }
}

/// A connection outside of the pool. After an error its state is undefined, and it should be dropped.
#[derive(Debug)]
pub enum Session {
    Sqlite(SqliteLease),
    Postgres(Box<PgConnection>),
    MySql(Box<MySqlConnection>),
}

impl Session {
    statements!();

    pub fn kind(&self) -> Kind {
        match self {
            Session::Sqlite(_) => Kind::Sqlite,
            Session::Postgres(_) => Kind::Postgres,
            Session::MySql(_) => Kind::MySql,
        }
    }

    fn held(&mut self) -> Held<'_> {
        match self {
            Session::Sqlite(lease) => Held::Sqlite(lease),
            Session::Postgres(connection) => Held::Postgres(connection),
            Session::MySql(connection) => Held::MySql(connection),
        }
    }

    /// Begins one snapshot of all tables, until [`Session::end_snapshot`]. The first read takes it.
    pub async fn begin_snapshot(&mut self) -> Result<(), SqlError> {
        let begin = match self {
            Session::Sqlite(_) => "BEGIN",
            Session::Postgres(_) => POSTGRES_READING,
            Session::MySql(_) => {
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            }
        };
        self.batch(begin).await
    }

    pub async fn end_snapshot(&mut self) -> Result<(), SqlError> {
        self.batch("ROLLBACK").await
    }

    /// An open transaction is rolled back.
    pub async fn close(self) {
        let closed = match self {
            Session::Sqlite(lease) => {
                lease.close().await;
                Ok(())
            }
            Session::Postgres(connection) => connection.close().await,
            Session::MySql(connection) => connection.close().await,
        };
        if let Err(error) = closed {
            tracing::debug!(%error, "closing a connection to the database failed");
        }
    }

    /// SQLite's count of the commits of other connections; none for servers.
    pub(crate) async fn data_version(&mut self) -> Result<Option<i64>, SqlError> {
        match self {
            Session::Sqlite(lease) => lease.call(SqliteSession::data_version).await?.map(Some),
            Session::Postgres(_) | Session::MySql(_) => Ok(None),
        }
    }

    /// Runs SQL without parameters, several statements too.
    pub async fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        self.held().batch(sql).await
    }
}

impl Database {
    /// Begins a write transaction. On SQLite it excludes other writers; elsewhere it locks rows.
    pub async fn begin(&self) -> Result<Transaction, SqlError> {
        Ok(match self {
            Database::Sqlite(file) => Transaction::Sqlite(file.begin().await?),
            Database::Postgres(pool) => Transaction::Postgres(pool.begin().await?),
            Database::MySql(pool) => Transaction::MySql(pool.begin().await?),
        })
    }

    /// Begins a read transaction on one snapshot.
    pub async fn begin_read(&self) -> Result<Transaction, SqlError> {
        Ok(match self {
            Database::Sqlite(file) => Transaction::Sqlite(file.begin_read().await?),
            Database::Postgres(pool) => Transaction::Postgres(pool.begin_with(POSTGRES_READING).await?),
            Database::MySql(pool) => Transaction::MySql(pool.begin_with(MYSQL_READING).await?),
        })
    }

    pub async fn session(&self) -> Result<Session, SqlError> {
        Ok(match self {
            Database::Sqlite(file) => Session::Sqlite(file.session().await?),
            Database::Postgres(pool) => Session::Postgres(Box::new(pool.acquire().await?.detach())),
            Database::MySql(pool) => Session::MySql(Box::new(pool.acquire().await?.detach())),
        })
    }

    /// All rows of a query outside of a transaction.
    pub async fn query<'s, T: FromRow>(
        &self,
        statement: impl Into<Statement<'s>>,
        values: &[Value],
    ) -> Result<Vec<T>, SqlError> {
        let statement = statement.into();
        match self {
            Database::Sqlite(file) => Held::Sqlite(&file.reader().await?).query(statement, values).await,
            Database::Postgres(pool) => {
                Held::Postgres(&mut *pool.acquire().await?).query(statement, values).await
            }
            Database::MySql(pool) => Held::MySql(&mut *pool.acquire().await?).query(statement, values).await,
        }
    }

    /// The first row of a query outside of a transaction.
    pub async fn query_one<'s, T: FromRow>(
        &self,
        statement: impl Into<Statement<'s>>,
        values: &[Value],
    ) -> Result<Option<T>, SqlError> {
        Ok(self.query(statement, values).await?.into_iter().next())
    }

    /// The rows of a query whose only parameter are keys: `{rows N}`.
    pub async fn find<'s, T: FromRow>(
        &self,
        statement: impl Into<Statement<'s>>,
        keys: Rows,
    ) -> Result<Vec<T>, SqlError> {
        let statement = statement.into();
        match self {
            Database::Sqlite(file) => Held::Sqlite(&file.reader().await?).find(statement, keys).await,
            _ if keys.is_empty() => Ok(Vec::new()),
            _ => self.query(statement, &[Value::Rows(keys)]).await,
        }
    }

    /// Runs one statement, which is a transaction of its own. Returns the number of affected rows.
    pub async fn execute<'s>(
        &self,
        statement: impl Into<Statement<'s>>,
        values: &[Value],
    ) -> Result<u64, SqlError> {
        let statement = statement.into();
        match self {
            Database::Sqlite(file) => Held::Sqlite(&file.writer().await?).execute(statement, values).await,
            Database::Postgres(pool) => {
                Held::Postgres(&mut *pool.acquire().await?).execute(statement, values).await
            }
            Database::MySql(pool) => {
                Held::MySql(&mut *pool.acquire().await?).execute(statement, values).await
            }
        }
    }
}

/// The rows of a query without parameters, in batches, so that memory is bounded.
pub(crate) enum RowStream<'c> {
    Sqlite(tokio::sync::mpsc::Receiver<Result<Vec<Row>, SqlError>>),
    Server(futures_util::stream::BoxStream<'c, Vec<Result<Row, SqlError>>>),
}

impl RowStream<'_> {
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<Row>, SqlError>> {
        match self {
            RowStream::Sqlite(batches) => batches.recv().await,
            RowStream::Server(batches) => Some(batches.next().await?.into_iter().collect()),
        }
    }
}

impl Session {
    pub(crate) fn stream(&mut self, sql: &str, batch_rows: usize) -> RowStream<'_> {
        let text = AssertSqlSafe(sql.to_owned());
        match self {
            Session::Sqlite(lease) => RowStream::Sqlite(lease.stream(sql, batch_rows)),
            Session::Postgres(connection) => {
                let rows = sqlx::query(text).fetch(&mut **connection);
                RowStream::Server(rows.map(|row| postgres::row(&row?)).chunks(batch_rows).boxed())
            }
            Session::MySql(connection) => {
                let rows = sqlx::query(text).fetch(&mut **connection);
                RowStream::Server(rows.map(|row| mysql::row(&row?)).chunks(batch_rows).boxed())
            }
        }
    }
}
