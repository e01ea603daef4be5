//! A parameter of rows with named columns, for statements that an operator wrote: they join it like a table.
//!
//! PostgreSQL gets one array for each column, MariaDB, MySQL and SQLite one JSON text. So nothing of the values is ever part of the
//! statement, and a statement for any number of rows is one prepared statement.

use std::fmt::Write as _;

use super::value::{Rows, Type, Value, json_text, push_digits};
use crate::Kind;

/// Digits of [`Type::Decimal`]: a sum of 64-bit numbers over any number of entries.
const DECIMAL_DIGITS: u32 = 40;
/// Characters of [`Type::Text`], and half of the bytes of [`Type::Bytes`].
const TEXT_CHARS_MAX: u32 = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Type,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    columns: &'static [Column],
    rows: Rows,
}

impl Relation {
    /// Each row has the values of the columns, in their order.
    pub fn new(columns: &'static [Column], rows: impl IntoIterator<Item = Vec<Value>>) -> Relation {
        let values: Vec<Value> = rows.into_iter().flatten().collect();
        debug_assert_eq!(values.len() % columns.len(), 0);
        Relation { columns, rows: Rows::with_width(columns.len(), values) }
    }

    pub fn columns(&self) -> &'static [Column] {
        self.columns
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The derived table, with placeholders after the first `placeholders`.
    pub(super) fn table(&self, kind: Kind, placeholders: usize) -> String {
        match kind {
            Kind::Sqlite => format!("(SELECT {} FROM json_each(?))", self.listed(sqlite_column)),
            Kind::Postgres => {
                let array = |(n, column): (usize, &Column)| {
                    format!("${}::{}[]", placeholders + n + 1, postgres_type(column.kind))
                };
                let arrays = self.columns.iter().enumerate().map(array).collect::<Vec<_>>().join(", ");
                let names = self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
                format!("(SELECT {} FROM unnest({arrays}) AS k ({names}))", self.listed(postgres_column))
            }
            Kind::MySql => {
                let read = self.listed(mysql_column);
                let typed = self.listed(mysql_path);
                format!("(SELECT {read} FROM JSON_TABLE(?, '$[*]' COLUMNS ({typed})) k)")
            }
        }
    }

    fn listed(&self, column: fn(usize, &Column) -> String) -> String {
        self.columns.iter().enumerate().map(|(n, each)| column(n, each)).collect::<Vec<_>>().join(", ")
    }

    /// `[[1,"a"],[2,null]]`; bytes as hexadecimal digits.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::from("[");
        for (number, row) in self.rows.iter().enumerate() {
            json.push_str(if number > 0 { ",[" } else { "[" });
            for (position, value) in row.iter().enumerate() {
                json.push_str(if position > 0 { "," } else { "" });
                push_json(&mut json, value);
            }
            json.push(']');
        }
        json.push(']');
        json
    }
}

fn push_json(json: &mut String, value: &Value) {
    match value {
        Value::Boolean(flag) => json.push(if *flag { '1' } else { '0' }),
        Value::Integer(number) => write!(json, "{number}").expect("writing to memory cannot fail"),
        // As text: JSON numbers are read as floating point by some.
        Value::Decimal(text) | Value::Text(text) => json_text(json, text),
        Value::Bytes(bytes) => {
            json.push('"');
            push_digits(json, bytes);
            json.push('"');
        }
        Value::Null(_) | Value::Integers(_) | Value::Texts(_) | Value::Rows(_) | Value::Relation(_) => {
            json.push_str("null");
        }
    }
}

fn sqlite_column(n: usize, column: &Column) -> String {
    match column.kind {
        Type::Bytes => format!("unhex(value ->> {n}) AS {}", column.name),
        Type::Decimal => format!("CAST(value ->> {n} AS INTEGER) AS {}", column.name),
        Type::Boolean | Type::Integer | Type::Text => format!("value ->> {n} AS {}", column.name),
    }
}

const fn postgres_type(kind: Type) -> &'static str {
    match kind {
        Type::Boolean => "BOOLEAN",
        Type::Integer => "BIGINT",
        Type::Decimal | Type::Text => "TEXT",
        Type::Bytes => "BYTEA",
    }
}

fn postgres_column(_: usize, column: &Column) -> String {
    let name = column.name;
    match column.kind {
        Type::Decimal => format!("k.{name}::NUMERIC AS {name}"),
        _ => format!("k.{name}"),
    }
}

fn mysql_path(n: usize, column: &Column) -> String {
    let kind = match column.kind {
        Type::Boolean => "TINYINT".to_owned(),
        Type::Integer => "BIGINT".to_owned(),
        Type::Decimal => format!("DECIMAL({DECIMAL_DIGITS})"),
        Type::Text | Type::Bytes => format!("VARCHAR({TEXT_CHARS_MAX}) CHARACTER SET utf8mb4"),
    };
    format!("{} {kind} PATH '$[{n}]'", column.name)
}

fn mysql_column(_: usize, column: &Column) -> String {
    match column.kind {
        Type::Bytes => format!("UNHEX({0}) AS {0}", column.name),
        _ => column.name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column { name: "user_id", kind: Type::Integer },
        Column { name: "bytes", kind: Type::Decimal },
        Column { name: "peer_id", kind: Type::Bytes },
    ];

    #[test]
    fn values_are_never_part_of_the_statement() {
        let row = vec![Value::Integer(1), Value::Decimal("-5".to_owned()), Value::Bytes(b"'?".to_vec())];
        let relation = Relation::new(COLUMNS, [row]);
        assert_eq!(relation.to_json(), r#"[[1,"-5","273f"]]"#);
        assert_eq!(
            relation.table(Kind::Postgres, 2),
            "(SELECT k.user_id, k.bytes::NUMERIC AS bytes, k.peer_id \
             FROM unnest($3::BIGINT[], $4::TEXT[], $5::BYTEA[]) AS k (user_id, bytes, peer_id))"
        );
        assert_eq!(
            relation.table(Kind::MySql, 0),
            "(SELECT user_id, bytes, UNHEX(peer_id) AS peer_id FROM JSON_TABLE(?, '$[*]' COLUMNS \
             (user_id BIGINT PATH '$[0]', bytes DECIMAL(40) PATH '$[1]', \
             peer_id VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[2]')) k)"
        );
    }
}
