//! One interface to three databases: each statement in three dialects.
//!
//! - A [`Statement`] holds the text for each database. Placeholders are used once each, in the order of the [`Value`]s;
//!   SQLite and PostgreSQL number them alike.
//! - A list of ids or pairs is one value: arrays on PostgreSQL, one JSON text on SQLite and MariaDB.
//! - A [`BulkInsert`] writes many rows: arrays and `UNNEST` on PostgreSQL, one prepared statement per row on SQLite,
//!   many rows in one statement on MariaDB.

use database::Database;
use sqlx::mysql::{MySqlArguments, MySqlConnection, MySqlRow};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{FromRow, MySql, Postgres, QueryBuilder, Sqlite, query, query_as};

const MYSQL_ROWS_MAX: usize = 250;

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(Option<i64>),
    Text(Option<String>),
    /// One placeholder.
    Numbers(Vec<i64>),
    /// Two placeholders on PostgreSQL, one on the others.
    Pairs(Vec<(i64, i64)>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(Some(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Number(Some(number.into()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(Some(text.to_owned()))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
    pub(crate) mysql: &'static str,
}

impl Statement {
    /// A statement that differs only in MariaDB's placeholders.
    pub(crate) const fn portable(numbered: &'static str, mysql: &'static str) -> Statement {
        Statement { sqlite: numbered, postgres: numbered, mysql }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkInsert {
    /// Inserts one row.
    pub(crate) sqlite: &'static str,
    /// Inserts all rows, each column an array.
    pub(crate) postgres: &'static str,
    /// The text before `VALUES`.
    pub(crate) mysql: &'static str,
    /// The text after the rows.
    pub(crate) mysql_end: &'static str,
}

/// A row type that all three drivers can decode.
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

pub(crate) enum PooledConnection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
    MySql(PoolConnection<MySql>),
}

impl PooledConnection {
    pub(crate) async fn by(database: &Database) -> Result<PooledConnection, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => PooledConnection::Sqlite(file.pool.acquire().await?),
            Database::Postgres(pool) => PooledConnection::Postgres(pool.acquire().await?),
            Database::MySql(pool) => PooledConnection::MySql(pool.acquire().await?),
        })
    }

    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            PooledConnection::Sqlite(held) => Connection::Sqlite(held),
            PooledConnection::Postgres(held) => Connection::Postgres(held),
            PooledConnection::MySql(held) => Connection::MySql(held),
        }
    }
}

/// Rolls back when dropped without a commit.
pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
    MySql(sqlx::Transaction<'static, MySql>),
}

impl Transaction {
    /// Begins a write transaction.
    pub(crate) async fn begin(database: &Database) -> Result<Transaction, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => Transaction::Sqlite(file.begin_write().await?),
            Database::Postgres(pool) => Transaction::Postgres(pool.begin().await?),
            Database::MySql(pool) => Transaction::MySql(pool.begin().await?),
        })
    }

    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            Transaction::Sqlite(transaction) => Connection::Sqlite(transaction),
            Transaction::Postgres(transaction) => Connection::Postgres(transaction),
            Transaction::MySql(transaction) => Connection::MySql(transaction),
        }
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Transaction::Sqlite(transaction) => transaction.commit().await,
            Transaction::Postgres(transaction) => transaction.commit().await,
            Transaction::MySql(transaction) => transaction.commit().await,
        }
    }
}

/// The connection that a statement runs on.
pub(crate) enum Connection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
    MySql(&'c mut MySqlConnection),
}

impl Connection<'_> {
    pub(crate) async fn read<T: AnyRow>(
        self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Vec<T>, sqlx::Error> {
        match self {
            Connection::Sqlite(held) => {
                let query: QueryAs<'_, Sqlite, T, SqliteArguments> = query_as(statement.sqlite);
                values.iter().fold(query, bind_sqlite_as).fetch_all(held).await
            }
            Connection::Postgres(held) => {
                let query: QueryAs<'_, Postgres, T, PgArguments> = query_as(statement.postgres);
                values.iter().fold(query, bind_postgres_as).fetch_all(held).await
            }
            Connection::MySql(held) => {
                let query: QueryAs<'_, MySql, T, MySqlArguments> = query_as(statement.mysql);
                values.iter().fold(query, bind_mysql_as).fetch_all(held).await
            }
        }
    }

    /// Returns the number of affected rows.
    pub(crate) async fn write(self, statement: &Statement, values: &[Value]) -> Result<u64, sqlx::Error> {
        Ok(match self {
            Connection::Sqlite(held) => {
                let query = values.iter().fold(query(statement.sqlite), bind_sqlite);
                query.execute(held).await?.rows_affected()
            }
            Connection::Postgres(held) => {
                let query = values.iter().fold(query(statement.postgres), bind_postgres);
                query.execute(held).await?.rows_affected()
            }
            Connection::MySql(held) => {
                let query = values.iter().fold(query(statement.mysql), bind_mysql);
                query.execute(held).await?.rows_affected()
            }
        })
    }

    /// Writes many rows of single values. Returns the number of affected rows as the database counts them.
    pub(crate) async fn write_rows<const WIDTH: usize>(
        self,
        bulk: &BulkInsert,
        rows: &[[Value; WIDTH]],
    ) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        match self {
            Connection::Sqlite(held) => {
                let mut count = 0;
                for row in rows {
                    let query = row.iter().fold(query(bulk.sqlite), bind_sqlite);
                    count += query.execute(&mut *held).await?.rows_affected();
                }
                Ok(count)
            }
            Connection::Postgres(held) => {
                let columns = (0..WIDTH).map(|position| Column::of(rows, position));
                let query = columns.fold(query(bulk.postgres), Column::bind);
                Ok(query.execute(held).await?.rows_affected())
            }
            Connection::MySql(held) => {
                let mut count = 0;
                for chunk in rows.chunks(MYSQL_ROWS_MAX) {
                    count += write_mysql_rows(held, bulk, chunk).await?;
                }
                Ok(count)
            }
        }
    }
}

async fn write_mysql_rows<const WIDTH: usize>(
    held: &mut MySqlConnection,
    bulk: &BulkInsert,
    rows: &[[Value; WIDTH]],
) -> Result<u64, sqlx::Error> {
    let mut insert = QueryBuilder::<MySql>::new(bulk.mysql);
    insert.push_values(rows, |mut places, row| {
        for value in row {
            match value {
                Value::Number(number) => places.push_bind(*number),
                Value::Text(text) => places.push_bind(text.clone()),
                Value::Numbers(_) | Value::Pairs(_) => places.push_bind(None::<i64>),
            };
        }
    });
    insert.push(bulk.mysql_end);
    // The last chunk has another size each time: caching its statement would evict statements that are used again.
    let is_whole = rows.len() == MYSQL_ROWS_MAX;
    Ok(insert.build().persistent(is_whole).execute(held).await?.rows_affected())
}

enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
}

impl Column {
    fn of<const WIDTH: usize>(rows: &[[Value; WIDTH]], position: usize) -> Column {
        let values = rows.iter().map(|row| &row[position]);
        match rows.first().map(|row| &row[position]) {
            Some(Value::Text(_)) => Column::Texts(
                values.map(|value| if let Value::Text(text) = value { text.clone() } else { None }).collect(),
            ),
            _ => Column::Numbers(
                values.map(|value| if let Value::Number(number) = value { *number } else { None }).collect(),
            ),
        }
    }

    fn bind<'q>(query: Query<'q, Postgres, PgArguments>, column: Column) -> Query<'q, Postgres, PgArguments> {
        match column {
            Column::Numbers(numbers) => query.bind(numbers),
            Column::Texts(texts) => query.bind(texts),
        }
    }
}

/// The same function for each query type, which share no trait. Lists are one JSON text.
macro_rules! bind_with_json {
    ($name:ident, $query:ty $(, $row:ident)?) => {
        fn $name<'q $(, $row)?>(query: $query, value: &Value) -> $query {
            match value {
                Value::Number(number) => query.bind(*number),
                Value::Text(text) => query.bind(text.clone()),
                Value::Numbers(numbers) => query.bind(json_of_numbers(numbers)),
                Value::Pairs(pairs) => query.bind(json_of_pairs(pairs)),
            }
        }
    };
}

/// The same with arrays.
macro_rules! bind_with_arrays {
    ($name:ident, $query:ty $(, $row:ident)?) => {
        fn $name<'q $(, $row)?>(query: $query, value: &Value) -> $query {
            match value {
                Value::Number(number) => query.bind(*number),
                Value::Text(text) => query.bind(text.clone()),
                Value::Numbers(numbers) => query.bind(numbers.clone()),
                Value::Pairs(pairs) => {
                    let (firsts, seconds): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
                    query.bind(firsts).bind(seconds)
                }
            }
        }
    };
}

bind_with_json!(bind_sqlite, Query<'q, Sqlite, SqliteArguments>);
bind_with_json!(bind_sqlite_as, QueryAs<'q, Sqlite, T, SqliteArguments>, T);
bind_with_json!(bind_mysql, Query<'q, MySql, MySqlArguments>);
bind_with_json!(bind_mysql_as, QueryAs<'q, MySql, T, MySqlArguments>, T);
bind_with_arrays!(bind_postgres, Query<'q, Postgres, PgArguments>);
bind_with_arrays!(bind_postgres_as, QueryAs<'q, Postgres, T, PgArguments>, T);

/// `[1,2]`.
fn json_of_numbers(numbers: &[i64]) -> String {
    let listed: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("[{}]", listed.join(","))
}

/// `[[1,2],[1,3]]`.
fn json_of_pairs(pairs: &[(i64, i64)]) -> String {
    let listed: Vec<String> = pairs.iter().map(|(first, second)| format!("[{first},{second}]")).collect();
    format!("[{}]", listed.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_json() {
        assert_eq!(json_of_numbers(&[1, 2]), "[1,2]");
        assert_eq!(json_of_numbers(&[]), "[]");
        assert_eq!(json_of_pairs(&[(1, 2), (3, 4)]), "[[1,2],[3,4]]");
    }
}
