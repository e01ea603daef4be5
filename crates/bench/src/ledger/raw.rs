//! Upserts in the fastest way known for each database.
//!
//! - PostgreSQL: columns as arrays, through `UNNEST`.
//! - MariaDB: many rows in one `VALUES`, as text: nothing is prepared, since every batch has another number of rows.
//! - SQLite: one prepared statement for each table, row by row.

use std::fmt::Write as _;
use std::sync::Arc;

use database::{Database, SqlError, SqliteSession};
use journal::DeliveredEntry;
use sqlx::postgres::PgConnection;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres};

use super::rows::{Holds, Rows, TABLES, Table, Value, rows_of};

const CONSUMER: &str = "raw";
/// What the ledger stores per thousand entries: two bytes each.
const APPLIED_BYTES: usize = 2_000;

/// Tables, and the statements that write them.
pub(super) struct RawTables {
    database: Database,
    /// Per table.
    statements: Vec<Arc<str>>,
}

/// A batch, encoded for its database.
pub(super) enum Prepared {
    Sqlite([Rows; 3]),
    Postgres(Vec<Vec<Column>>),
    MariaDb(Vec<String>),
}

/// One column of many rows.
#[derive(Clone)]
pub(super) enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<String>),
}

impl RawTables {
    pub(super) async fn new(database: Database) -> anyhow::Result<Self> {
        let statement = |table| match &database {
            Database::Sqlite(_) => sqlite_row(table),
            Database::Postgres(_) => postgres_arrays(table),
            Database::MySql(_) => String::new(),
        };
        let statements = TABLES.iter().map(|table| Arc::from(statement(table))).collect();
        let add = "INSERT INTO ledger_consumers (name, lane, applied) VALUES ('raw', 'traffic', '')";
        database.execute(add, &[]).await?;
        Ok(RawTables { database, statements })
    }

    /// Encodes a batch. Not timed.
    pub(super) fn prepare(&self, batch: &[DeliveredEntry]) -> Prepared {
        let rows = rows_of(batch);
        let with_tables = TABLES.iter().zip(&rows);
        match &self.database {
            Database::Sqlite(_) => Prepared::Sqlite(rows),
            Database::Postgres(_) => {
                Prepared::Postgres(with_tables.map(|(table, rows)| columns_of(table, rows)).collect())
            }
            Database::MySql(_) => {
                Prepared::MariaDb(with_tables.map(|(table, rows)| mariadb_values(table, rows)).collect())
            }
        }
    }

    /// Writes a batch in one transaction.
    pub(super) async fn write(&self, batch: Prepared) -> Result<(), SqlError> {
        let note =
            "UPDATE ledger_consumers SET applied = ?, applied_max_ms = applied_max_ms + 1 WHERE name = ?";
        let applied = vec![1_u8; APPLIED_BYTES];
        match (&self.database, batch) {
            (Database::Sqlite(file), Prepared::Sqlite(tables)) => {
                let statements = self.statements.clone();
                let write = move |session: &SqliteSession| {
                    for (statement, rows) in statements.iter().zip(tables) {
                        write_rows(session, statement, &rows)?;
                    }
                    session.execute(note, &[applied.into(), CONSUMER.into()]).map(drop)
                };
                file.write(write).await
            }
            (Database::Postgres(pool), Prepared::Postgres(tables)) => {
                let mut page = pool.begin().await?;
                for (statement, columns) in self.statements.iter().zip(tables) {
                    write_columns(&mut page, statement, columns).await?;
                }
                let note = "UPDATE ledger_consumers SET applied = $1, applied_max_ms = applied_max_ms + 1 \
                            WHERE name = $2";
                sqlx::query(note).bind(applied).bind(CONSUMER).execute(&mut *page).await?;
                Ok(page.commit().await?)
            }
            (Database::MySql(pool), Prepared::MariaDb(texts)) => {
                let mut page = pool.begin().await?;
                for text in texts {
                    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *page).await?;
                }
                sqlx::query(note).bind(applied).bind(CONSUMER).execute(&mut *page).await?;
                Ok(page.commit().await?)
            }
            _ => Err(SqlError::ColumnType),
        }
    }
}

fn write_rows(session: &SqliteSession, text: &str, rows: &Rows) -> Result<(), SqlError> {
    let value = |value: &Value| match value {
        Value::Number(number) => (*number).into(),
        Value::Null => None::<i64>.into(),
        Value::Text(text) => text.into(),
    };
    session.execute_each(text, rows.iter().map(|row| row.iter().map(value).collect()))
}

async fn write_columns(
    page: &mut PgConnection,
    text: &Arc<str>,
    columns: Vec<Column>,
) -> Result<(), sqlx::Error> {
    let mut query: Query<'_, Postgres, _> = sqlx::query(AssertSqlSafe(Arc::clone(text)));
    for column in columns {
        query = match column {
            Column::Numbers(numbers) => query.bind(numbers),
            Column::Texts(texts) => query.bind(texts),
        };
    }
    query.execute(page).await?;
    Ok(())
}

fn names(table: &Table) -> String {
    table.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn on_conflict(table: &Table) -> String {
    let keys = table.columns[..table.keys].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let others = table.columns[table.keys..].iter().map(|(name, _)| format!("{name} = excluded.{name}"));
    format!("ON CONFLICT ({keys}) DO UPDATE SET {}", others.collect::<Vec<_>>().join(", "))
}

fn sqlite_row(table: &Table) -> String {
    let places = vec!["?"; table.columns.len()].join(", ");
    format!("INSERT INTO {} ({}) VALUES ({places}) {}", table.name, names(table), on_conflict(table))
}

fn postgres_arrays(table: &Table) -> String {
    let (mut arrays, mut values) = (Vec::new(), Vec::new());
    for (n, (_, holds)) in table.columns.iter().enumerate() {
        let (array, cast) = match holds {
            Holds::Number => ("bigint[]", ""),
            Holds::Amount => ("text[]", "::numeric"),
            Holds::Text => ("text[]", ""),
            Holds::Bytes => ("text[]", "::bytea"),
        };
        arrays.push(format!("${}::{array}", n + 1));
        values.push(format!("k.c{n}{cast}"));
    }
    let columns = (0..table.columns.len()).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO {} ({}) SELECT {} FROM UNNEST({}) AS k({columns}) {}",
        table.name,
        names(table),
        values.join(", "),
        arrays.join(", "),
        on_conflict(table)
    )
}

fn mariadb_values(table: &Table, rows: &Rows) -> String {
    let mut text = format!("INSERT INTO {} ({}) VALUES ", table.name, names(table));
    for (number, row) in rows.iter().enumerate() {
        text.push_str(if number == 0 { "(" } else { ",(" });
        push_values(&mut text, row);
        text.push(')');
    }
    let others = table.columns[table.keys..].iter().map(|(name, _)| format!("{name} = VALUES({name})"));
    text.push_str(" ON DUPLICATE KEY UPDATE ");
    text.push_str(&others.collect::<Vec<_>>().join(", "));
    text
}

/// Texts are digits and plain names: no escaping needed.
fn push_values(out: &mut String, row: &[Value]) {
    for (position, value) in row.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        // Writing to memory cannot fail.
        let _ = match value {
            Value::Number(number) => write!(out, "{number}"),
            Value::Null => write!(out, "NULL"),
            Value::Text(text) => write!(out, "'{text}'"),
        };
    }
}

fn columns_of(table: &Table, rows: &Rows) -> Vec<Column> {
    let column_of = |(position, (_, holds)): (usize, &(&str, Holds))| match holds {
        Holds::Number => Column::Numbers(rows.iter().map(|row| number_of(&row[position])).collect()),
        Holds::Amount | Holds::Text | Holds::Bytes => {
            Column::Texts(rows.iter().map(|row| text_of(&row[position])).collect())
        }
    };
    table.columns.iter().enumerate().map(column_of).collect()
}

fn number_of(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Null | Value::Text(_) => None,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(_) | Value::Null => String::new(),
    }
}
