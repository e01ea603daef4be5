//! PostgreSQL.

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::{Query, QueryAs};
use sqlx::{Postgres, query, query_as};

use super::{AnyRow, Cell, Rows};

pub(super) async fn read<T: AnyRow>(
    transaction: &mut PgConnection,
    text: &'static str,
    cells: &[Cell],
) -> Result<Vec<T>, sqlx::Error> {
    let mut query: QueryAs<'_, Postgres, T, PgArguments> = query_as(text);
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
    transaction: &mut PgConnection,
    text: &'static str,
    keys: &Rows,
) -> Result<Vec<T>, sqlx::Error> {
    let mut query: QueryAs<'_, Postgres, T, PgArguments> = query_as(text);
    for position in 0..keys.width {
        query = match Column::of(keys, position) {
            Column::Numbers(numbers) => query.bind(numbers),
            Column::Texts(texts) => query.bind(texts),
            Column::Bytes(bytes) => query.bind(bytes),
        };
    }
    query.fetch_all(transaction).await
}

pub(super) async fn write(
    transaction: &mut PgConnection,
    text: &'static str,
    cells: &[Cell],
) -> Result<u64, sqlx::Error> {
    let mut query: Query<'_, Postgres, PgArguments> = query(text);
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
    transaction: &mut PgConnection,
    text: &'static str,
    rows: &Rows,
) -> Result<(), sqlx::Error> {
    let mut query: Query<'_, Postgres, PgArguments> = query(text);
    for position in 0..rows.width {
        query = match Column::of(rows, position) {
            Column::Numbers(numbers) => query.bind(numbers),
            Column::Texts(texts) => query.bind(texts),
            Column::Bytes(bytes) => query.bind(bytes),
        };
    }
    query.execute(transaction).await?;
    Ok(())
}

/// One column of many rows, for `UNNEST`.
enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<String>),
    Bytes(Vec<Vec<u8>>),
}

impl Column {
    fn of(rows: &Rows, position: usize) -> Column {
        let mut numbers = Vec::new();
        let mut texts = Vec::new();
        let mut bytes = Vec::new();
        for cell in rows.column(position) {
            match cell {
                Cell::Number(number) => numbers.push(Some(*number)),
                Cell::Null => numbers.push(None),
                Cell::Text(text) => texts.push(text.clone()),
                Cell::Bytes(some) => bytes.push(some.clone()),
            }
        }
        match (texts.is_empty(), bytes.is_empty()) {
            (false, _) => Column::Texts(texts),
            (true, false) => Column::Bytes(bytes),
            (true, true) => Column::Numbers(numbers),
        }
    }
}
