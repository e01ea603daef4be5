//! The three databases behind one door: the same statements, each in its own words.
//!
//! # How
//!
//! - A [`Statement`] holds the text for each kind. Places are used once each, in the order of the [`Cell`]s; SQLite and
//!   PostgreSQL number them alike.
//! - A list of ids or pairs is one value: arrays on PostgreSQL, one JSON text on SQLite and MariaDB.
//! - Many rows are written by a [`Bulk`]: arrays and `UNNEST` on PostgreSQL, one prepared statement for each row on
//!   SQLite, many rows in one statement on MariaDB.

use database::Database;
use sqlx::mysql::{MySqlArguments, MySqlConnection, MySqlRow};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{FromRow, MySql, Postgres, QueryBuilder, Sqlite, query, query_as};

/// Rows in one statement on MariaDB.
const MYSQL_ROWS_MAX: usize = 250;

/// A value on its way into a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Number(Option<i64>),
    Text(Option<String>),
    /// A list of numbers, which takes one place.
    Numbers(Vec<i64>),
    /// A list of pairs, which takes two places on PostgreSQL and one elsewhere.
    Pairs(Vec<(i64, i64)>),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Number(Some(number))
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        Cell::Number(Some(number.into()))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(Some(text.to_owned()))
    }
}

/// What is asked, in each database's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
    pub(crate) mysql: &'static str,
}

impl Statement {
    /// One that SQLite and PostgreSQL understand alike, and that MariaDB understands with other marks for places.
    pub(crate) const fn portable(numbered: &'static str, mysql: &'static str) -> Statement {
        Statement { sqlite: numbered, postgres: numbered, mysql }
    }
}

/// How many rows are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    /// One row.
    pub(crate) sqlite: &'static str,
    /// All, each column an array.
    pub(crate) postgres: &'static str,
    /// What stands before `VALUES`.
    pub(crate) mysql: &'static str,
    /// What stands behind the rows.
    pub(crate) mysql_end: &'static str,
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

/// A connection that was lent by the pool.
pub(crate) enum Lent {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
    MySql(PoolConnection<MySql>),
}

impl Lent {
    pub(crate) async fn by(database: &Database) -> Result<Lent, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => Lent::Sqlite(file.pool.acquire().await?),
            Database::Postgres(pool) => Lent::Postgres(pool.acquire().await?),
            Database::MySql(pool) => Lent::MySql(pool.acquire().await?),
        })
    }

    pub(crate) fn on(&mut self) -> On<'_> {
        match self {
            Lent::Sqlite(held) => On::Sqlite(held),
            Lent::Postgres(held) => On::Postgres(held),
            Lent::MySql(held) => On::MySql(held),
        }
    }
}

/// A transaction. Dropped without a commit, it leaves nothing behind.
pub(crate) enum Page {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
    MySql(sqlx::Transaction<'static, MySql>),
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

    pub(crate) fn on(&mut self) -> On<'_> {
        match self {
            Page::Sqlite(page) => On::Sqlite(page),
            Page::Postgres(page) => On::Postgres(page),
            Page::MySql(page) => On::MySql(page),
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

/// The connection that a statement is made on.
pub(crate) enum On<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
    MySql(&'c mut MySqlConnection),
}

impl On<'_> {
    /// Reads rows.
    pub(crate) async fn read<T: AnyRow>(
        self,
        statement: &Statement,
        cells: &[Cell],
    ) -> Result<Vec<T>, sqlx::Error> {
        match self {
            On::Sqlite(held) => {
                let asked: QueryAs<'_, Sqlite, T, SqliteArguments> = query_as(statement.sqlite);
                cells.iter().fold(asked, bind_sqlite_as).fetch_all(held).await
            }
            On::Postgres(held) => {
                let asked: QueryAs<'_, Postgres, T, PgArguments> = query_as(statement.postgres);
                cells.iter().fold(asked, bind_postgres_as).fetch_all(held).await
            }
            On::MySql(held) => {
                let asked: QueryAs<'_, MySql, T, MySqlArguments> = query_as(statement.mysql);
                cells.iter().fold(asked, bind_mysql_as).fetch_all(held).await
            }
        }
    }

    /// Changes rows; says how many.
    pub(crate) async fn write(self, statement: &Statement, cells: &[Cell]) -> Result<u64, sqlx::Error> {
        Ok(match self {
            On::Sqlite(held) => {
                let asked = cells.iter().fold(query(statement.sqlite), bind_sqlite);
                asked.execute(held).await?.rows_affected()
            }
            On::Postgres(held) => {
                let asked = cells.iter().fold(query(statement.postgres), bind_postgres);
                asked.execute(held).await?.rows_affected()
            }
            On::MySql(held) => {
                let asked = cells.iter().fold(query(statement.mysql), bind_mysql);
                asked.execute(held).await?.rows_affected()
            }
        })
    }

    /// Writes many rows of single values; says how many were added or changed, in the database's own count.
    pub(crate) async fn write_rows<const WIDTH: usize>(
        self,
        bulk: &Bulk,
        rows: &[[Cell; WIDTH]],
    ) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        match self {
            On::Sqlite(held) => {
                let mut count = 0;
                for row in rows {
                    let asked = row.iter().fold(query(bulk.sqlite), bind_sqlite);
                    count += asked.execute(&mut *held).await?.rows_affected();
                }
                Ok(count)
            }
            On::Postgres(held) => {
                let columns = (0..WIDTH).map(|position| Column::of(rows, position));
                let asked = columns.fold(query(bulk.postgres), Column::bind);
                Ok(asked.execute(held).await?.rows_affected())
            }
            On::MySql(held) => {
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
    bulk: &Bulk,
    rows: &[[Cell; WIDTH]],
) -> Result<u64, sqlx::Error> {
    let mut insert = QueryBuilder::<MySql>::new(bulk.mysql);
    insert.push_values(rows, |mut places, row| {
        for cell in row {
            match cell {
                Cell::Number(number) => places.push_bind(*number),
                Cell::Text(text) => places.push_bind(text.clone()),
                Cell::Numbers(_) | Cell::Pairs(_) => places.push_bind(None::<i64>),
            };
        }
    });
    insert.push(bulk.mysql_end);
    // No two rests have as many rows: keeping their statements would push out those that come again.
    let is_whole = rows.len() == MYSQL_ROWS_MAX;
    Ok(insert.build().persistent(is_whole).execute(held).await?.rows_affected())
}

/// One column of many rows, as `UNNEST` takes it.
enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
}

impl Column {
    fn of<const WIDTH: usize>(rows: &[[Cell; WIDTH]], position: usize) -> Column {
        let cells = rows.iter().map(|row| &row[position]);
        match rows.first().map(|row| &row[position]) {
            Some(Cell::Text(_)) => Column::Texts(
                cells.map(|cell| if let Cell::Text(text) = cell { text.clone() } else { None }).collect(),
            ),
            _ => Column::Numbers(
                cells.map(|cell| if let Cell::Number(number) = cell { *number } else { None }).collect(),
            ),
        }
    }

    fn bind<'q>(asked: Query<'q, Postgres, PgArguments>, column: Column) -> Query<'q, Postgres, PgArguments> {
        match column {
            Column::Numbers(numbers) => asked.bind(numbers),
            Column::Texts(texts) => asked.bind(texts),
        }
    }
}

/// The same for each kind of query, which have no trait in common. Lists are one JSON text.
macro_rules! bind_with_json {
    ($name:ident, $query:ty $(, $row:ident)?) => {
        fn $name<'q $(, $row)?>(asked: $query, cell: &Cell) -> $query {
            match cell {
                Cell::Number(number) => asked.bind(*number),
                Cell::Text(text) => asked.bind(text.clone()),
                Cell::Numbers(numbers) => asked.bind(json_of_numbers(numbers)),
                Cell::Pairs(pairs) => asked.bind(json_of_pairs(pairs)),
            }
        }
    };
}

/// Likewise with arrays.
macro_rules! bind_with_arrays {
    ($name:ident, $query:ty $(, $row:ident)?) => {
        fn $name<'q $(, $row)?>(asked: $query, cell: &Cell) -> $query {
            match cell {
                Cell::Number(number) => asked.bind(*number),
                Cell::Text(text) => asked.bind(text.clone()),
                Cell::Numbers(numbers) => asked.bind(numbers.clone()),
                Cell::Pairs(pairs) => {
                    let (firsts, seconds): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
                    asked.bind(firsts).bind(seconds)
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
