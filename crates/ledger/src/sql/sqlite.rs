//! SQLite.

use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Sqlite, query, query_as};

use super::{AnyRow, Cell, ROWS_AS_JSON, Rows};

pub(super) async fn read<T: AnyRow>(
    transaction: &mut SqliteConnection,
    text: &'static str,
    cells: &[Cell],
) -> Result<Vec<T>, sqlx::Error> {
    let mut query: QueryAs<'_, Sqlite, T, SqliteArguments> = query_as(text);
    for cell in cells {
        query = match cell {
            Cell::Number(number) => query.bind(*number),
            Cell::Null => query.bind(None::<i64>),
            Cell::Text(text) => query.bind(text.clone()),
            Cell::Bytes(bytes) => query.bind(bytes.clone()),
        };
    }
    query.fetch_all(transaction).await
}

pub(super) async fn read_many<T: AnyRow>(
    transaction: &mut SqliteConnection,
    text: &'static str,
    keys: &Rows,
) -> Result<Vec<T>, sqlx::Error> {
    query_as(text).bind(keys.to_json()).fetch_all(transaction).await
}

pub(super) async fn write(
    transaction: &mut SqliteConnection,
    text: &'static str,
    cells: &[Cell],
) -> Result<u64, sqlx::Error> {
    let mut query: Query<'_, Sqlite, SqliteArguments> = query(text);
    for cell in cells {
        query = match cell {
            Cell::Number(number) => query.bind(*number),
            Cell::Null => query.bind(None::<i64>),
            Cell::Text(text) => query.bind(text.clone()),
            Cell::Bytes(bytes) => query.bind(bytes.clone()),
        };
    }
    Ok(query.execute(transaction).await?.rows_affected())
}

pub(super) async fn write_many(
    transaction: &mut SqliteConnection,
    text: &'static str,
    rows: &Rows,
) -> Result<(), sqlx::Error> {
    if text.contains(ROWS_AS_JSON) {
        query(text).bind(rows.to_json()).execute(transaction).await?;
        return Ok(());
    }
    for row in rows.iter() {
        write(transaction, text, row).await?;
    }
    Ok(())
}
