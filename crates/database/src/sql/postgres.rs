//! Statements on PostgreSQL.

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Column as _, Postgres, Row as _, TypeInfo as _};

use super::error::SqlError;
use super::statement::Statement;
use super::value::{Row, Rows, Type, Value};
use crate::Kind;

type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

fn query<'q>(statement: Statement<'_>, values: &[Value]) -> PgQuery<'q> {
    let sql = AssertSqlSafe(statement.render(Kind::Postgres, values));
    values.iter().fold(sqlx::query(sql), bind)
}

fn bind<'q>(query: PgQuery<'q>, value: &Value) -> PgQuery<'q> {
    match value {
        Value::Null(Type::Boolean) => query.bind(None::<bool>),
        Value::Null(Type::Integer) => query.bind(None::<i64>),
        Value::Null(Type::Decimal | Type::Text) => query.bind(None::<String>),
        Value::Null(Type::Bytes) => query.bind(None::<Vec<u8>>),
        Value::Boolean(flag) => query.bind(*flag),
        Value::Integer(number) => query.bind(*number),
        Value::Decimal(text) | Value::Text(text) => query.bind(without_nul(text)),
        Value::Bytes(bytes) => query.bind(bytes.clone()),
        Value::Integers(numbers) => query.bind(numbers.clone()),
        Value::Texts(texts) => query.bind(texts.clone()),
        Value::Rows(rows) => (0..rows.width()).fold(query, |query, column| bind_column(query, rows, column)),
        Value::Relation(relation) => relation
            .columns()
            .iter()
            .enumerate()
            .fold(query, |query, (n, column)| bind_typed(query, relation.rows(), n, column.kind)),
    }
}

fn bind_column<'q>(query: PgQuery<'q>, rows: &Rows, column: usize) -> PgQuery<'q> {
    let kind = rows.column(column).next().map_or(Type::Integer, Value::value_type);
    bind_typed(query, rows, column, kind)
}

fn bind_typed<'q>(query: PgQuery<'q>, rows: &Rows, column: usize, kind: Type) -> PgQuery<'q> {
    let values = || rows.column(column);
    match kind {
        Type::Boolean => query.bind(values().map(flag).collect::<Vec<_>>()),
        Type::Decimal | Type::Text => query.bind(values().map(text).collect::<Vec<_>>()),
        Type::Bytes => query.bind(values().map(bytes).collect::<Vec<_>>()),
        Type::Integer => query.bind(values().map(integer).collect::<Vec<_>>()),
    }
}

fn flag(value: &Value) -> Option<bool> {
    if let Value::Boolean(flag) = value { Some(*flag) } else { None }
}

fn integer(value: &Value) -> Option<i64> {
    if let Value::Integer(number) = value { Some(*number) } else { None }
}

fn text(value: &Value) -> Option<String> {
    if let Value::Text(text) | Value::Decimal(text) = value { Some(without_nul(text)) } else { None }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    if let Value::Bytes(bytes) = value { Some(bytes.clone()) } else { None }
}

/// PostgreSQL has no NUL in text.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

pub(super) async fn read(
    connection: &mut PgConnection,
    statement: Statement<'_>,
    values: &[Value],
) -> Result<Vec<Row>, SqlError> {
    let rows = query(statement, values).fetch_all(connection).await?;
    rows.iter().map(row).collect()
}

pub(super) async fn execute(
    connection: &mut PgConnection,
    statement: Statement<'_>,
    values: &[Value],
) -> Result<u64, SqlError> {
    Ok(query(statement, values).execute(connection).await?.rows_affected())
}

pub(super) async fn write_rows(
    connection: &mut PgConnection,
    statement: Statement<'_>,
    rows: &Rows,
) -> Result<u64, SqlError> {
    let sql = AssertSqlSafe(statement.render_bulk(Kind::Postgres, rows, ""));
    let query = (0..rows.width()).fold(sqlx::query(sql), |query, column| bind_column(query, rows, column));
    Ok(query.execute(connection).await?.rows_affected())
}

pub(super) fn row(row: &PgRow) -> Result<Row, SqlError> {
    let value = |(n, column): (usize, &sqlx::postgres::PgColumn)| -> Result<Value, SqlError> {
        Ok(match column.type_info().name() {
            "BOOL" => row.try_get::<Option<bool>, _>(n)?.into(),
            "INT8" => row.try_get::<Option<i64>, _>(n)?.into(),
            "INT4" => row.try_get::<Option<i32>, _>(n)?.map(i64::from).into(),
            "INT2" => row.try_get::<Option<i16>, _>(n)?.map(i64::from).into(),
            "BYTEA" => row.try_get::<Option<Vec<u8>>, _>(n)?.into(),
            "VOID" => Value::Null(Type::Text),
            _ => row.try_get::<Option<String>, _>(n)?.into(),
        })
    };
    row.columns().iter().enumerate().map(value).collect::<Result<_, _>>().map(Row::new)
}
