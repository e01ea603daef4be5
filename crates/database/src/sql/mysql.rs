//! Statements on MariaDB and MySQL.

use std::fmt::Write as _;

use sqlx::mysql::{MySqlArguments, MySqlConnection, MySqlRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Column as _, MySql, Row as _, TypeInfo as _};

use super::error::SqlError;
use super::statement::Statement;
use super::value::{Row, Rows, Type, Value, push_digits};
use crate::Kind;

type MySqlQuery<'q> = Query<'q, MySql, MySqlArguments>;

/// Rows of a bulk insert in one statement: well below the packet size of any server.
const ROWS_MAX: usize = 1_000;

fn query<'q>(statement: Statement<'_>, values: &[Value]) -> MySqlQuery<'q> {
    let sql = AssertSqlSafe(statement.render(Kind::MySql, values));
    // A list makes a statement of its own for each length: not worth a place in the cache of prepared statements.
    let has_list = values.iter().any(|value| matches!(value, Value::Integers(_) | Value::Texts(_)));
    values.iter().fold(sqlx::query(sql), bind).persistent(!has_list)
}

fn bind<'q>(query: MySqlQuery<'q>, value: &Value) -> MySqlQuery<'q> {
    match value {
        Value::Null(Type::Boolean | Type::Integer) => query.bind(None::<i64>),
        Value::Null(Type::Decimal | Type::Text) => query.bind(None::<String>),
        Value::Null(Type::Bytes) => query.bind(None::<Vec<u8>>),
        Value::Boolean(flag) => query.bind(*flag),
        Value::Integer(number) => query.bind(*number),
        Value::Decimal(text) | Value::Text(text) => query.bind(text.clone()),
        Value::Bytes(bytes) => query.bind(bytes.clone()),
        Value::Integers(numbers) => numbers.iter().fold(query, |query, number| query.bind(*number)),
        Value::Texts(texts) => texts.iter().fold(query, |query, text| query.bind(text.clone())),
        Value::Rows(rows) => query.bind(rows.to_json()),
        Value::Relation(relation) => query.bind(relation.to_json()),
    }
}

pub(super) async fn read(
    connection: &mut MySqlConnection,
    statement: Statement<'_>,
    values: &[Value],
) -> Result<Vec<Row>, SqlError> {
    let rows = query(statement, values).fetch_all(connection).await?;
    rows.iter().map(row).collect()
}

pub(super) async fn execute(
    connection: &mut MySqlConnection,
    statement: Statement<'_>,
    values: &[Value],
) -> Result<u64, SqlError> {
    Ok(query(statement, values).execute(connection).await?.rows_affected())
}

pub(super) async fn write_rows(
    connection: &mut MySqlConnection,
    statement: Statement<'_>,
    rows: &Rows,
) -> Result<u64, SqlError> {
    let rows_listed: Vec<&[Value]> = rows.iter().collect();
    let mut written = 0;
    for chunk in rows_listed.chunks(ROWS_MAX) {
        // Not prepared, which would be a second round trip.
        let sql = statement.render_bulk(Kind::MySql, rows, &literals(chunk));
        written += sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await?.rows_affected();
    }
    Ok(written)
}

/// `(1,'a'),(2,NULL)`.
fn literals(rows: &[&[Value]]) -> String {
    let mut out = String::with_capacity(rows.len() * 64);
    for (number, row) in rows.iter().enumerate() {
        out.push_str(if number > 0 { ",(" } else { "(" });
        for (position, value) in row.iter().enumerate() {
            out.push_str(if position > 0 { "," } else { "" });
            push_literal(&mut out, value);
        }
        out.push(')');
    }
    out
}

/// Text with other than plain characters is written as bytes, so that no text can end the literal.
fn push_literal(out: &mut String, value: &Value) {
    match value {
        Value::Boolean(flag) => out.push_str(if *flag { "1" } else { "0" }),
        Value::Integer(number) => write!(out, "{number}").expect("writing to memory cannot fail"),
        Value::Decimal(text) | Value::Text(text) if text.bytes().all(is_plain) => {
            out.push('\'');
            out.push_str(text);
            out.push('\'');
        }
        Value::Decimal(text) | Value::Text(text) => {
            out.push_str("_utf8mb4 ");
            push_hex(out, text.as_bytes());
        }
        Value::Bytes(bytes) => push_hex(out, bytes),
        Value::Null(_) | Value::Integers(_) | Value::Texts(_) | Value::Rows(_) | Value::Relation(_) => {
            out.push_str("NULL")
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'_' | b'.' | b':' | b'+' | b'/' | b',')
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    out.push_str("x'");
    push_digits(out, bytes);
    out.push('\'');
}

pub(super) fn row(row: &MySqlRow) -> Result<Row, SqlError> {
    let value = |(n, column): (usize, &sqlx::mysql::MySqlColumn)| -> Result<Value, SqlError> {
        let name = column.type_info().name();
        Ok(if name == "BOOLEAN" || name.contains("INT") {
            row.try_get_unchecked::<Option<i64>, _>(n)?.into()
        } else if name == "NULL" {
            Value::Null(Type::Text)
        } else {
            row.try_get_unchecked::<Option<Vec<u8>>, _>(n)?.into()
        })
    };
    row.columns().iter().enumerate().map(value).collect::<Result<_, _>>().map(Row::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_text_cannot_inject_sql() {
        let row: [Value; 5] =
            [7.into(), "a b".into(), "'\\".into(), None::<i64>.into(), vec![0x0f_u8, 0xa0].into()];
        assert_eq!(literals(&[&row, &[1.into()]]), "(7,'a b',_utf8mb4 x'275c',NULL,x'0fa0'),(1)");
        let question = literals(&[&["?{x}".into()]]);
        assert_eq!(question, "(_utf8mb4 x'3f7b787d')");
    }
}
