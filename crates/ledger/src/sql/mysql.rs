//! MariaDB and MySQL.

use sqlx::mysql::{MySqlArguments, MySqlConnection};
use sqlx::query::{Query, QueryAs};
use sqlx::{AssertSqlSafe, MySql, query, query_as, raw_sql};

use super::{AnyRow, Cell, ROWS_AS_TEXT, Rows};

pub(super) async fn read<T: AnyRow>(
    transaction: &mut MySqlConnection,
    text: &'static str,
    cells: &[Cell],
) -> Result<Vec<T>, sqlx::Error> {
    let mut query: QueryAs<'_, MySql, T, MySqlArguments> = query_as(text);
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
    transaction: &mut MySqlConnection,
    text: &'static str,
    keys: &Rows,
) -> Result<Vec<T>, sqlx::Error> {
    query_as(text).bind(keys.to_json()).fetch_all(transaction).await
}

pub(super) async fn write(
    transaction: &mut MySqlConnection,
    text: &'static str,
    cells: &[Cell],
) -> Result<u64, sqlx::Error> {
    let mut query: Query<'_, MySql, MySqlArguments> = query(text);
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
    transaction: &mut MySqlConnection,
    text: &'static str,
    rows: &Rows,
) -> Result<(), sqlx::Error> {
    if text.contains(ROWS_AS_TEXT) {
        // Not prepared: batches differ in their number of rows. Contains only numbers and safe characters.
        let whole = text.replace(ROWS_AS_TEXT, &rows.to_values());
        raw_sql(AssertSqlSafe(whole)).execute(transaction).await?;
        return Ok(());
    }
    query(text).bind(rows.to_json()).execute(transaction).await?;
    Ok(())
}
