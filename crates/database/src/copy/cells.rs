//! Values between databases.

use super::{Column, ColumnType};
use crate::sql::{FromValue, Row, SqlError, Type, Value};

/// Text is stored as bytes, because another database may have it in a binary column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Text that is not an integer becomes NULL, which the table refuses.
    fn integer(&self) -> Option<i64> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(*number),
            Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(number.to_string()),
            Cell::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// As a parameter for a column.
    pub(super) fn value(&self, column: &Column) -> Value {
        match column.column_type {
            ColumnType::Integer => self.integer().into(),
            ColumnType::Flag => self.integer().map(|number| number != 0).into(),
            ColumnType::Number => self.text().map_or(Value::Null(Type::Decimal), Value::Decimal),
            ColumnType::Text => self.text().into(),
            ColumnType::Blob => match self {
                Cell::Bytes(bytes) => bytes.clone().into(),
                _ => self.text().map(String::into_bytes).into(),
            },
        }
    }
}

pub(super) fn read_all(rows: Vec<Row>, columns: &[Column]) -> Result<Vec<Vec<Cell>>, SqlError> {
    rows.into_iter().map(|row| read(row, columns)).collect()
}

fn read(mut row: Row, columns: &[Column]) -> Result<Vec<Cell>, SqlError> {
    let cell = |column: &Column| {
        Ok(match column.column_type {
            ColumnType::Integer | ColumnType::Flag => {
                row.get::<Option<i64>>()?.map_or(Cell::Null, Cell::Integer)
            }
            ColumnType::Blob => row.get::<Option<Vec<u8>>>()?.map_or(Cell::Null, Cell::Bytes),
            ColumnType::Number | ColumnType::Text => {
                let text = row.get::<Option<AnyText>>()?;
                text.map_or(Cell::Null, |AnyText(bytes)| Cell::Bytes(portable(bytes)))
            }
        })
    };
    columns.iter().map(cell).collect()
}

/// Text, or a number as text.
struct AnyText(Vec<u8>);

impl FromValue for AnyText {
    fn from_value(value: Value) -> Option<AnyText> {
        match value {
            Value::Integer(number) => Some(AnyText(number.to_string().into_bytes())),
            Value::Decimal(text) => Some(AnyText(text.into_bytes())),
            value => Vec::from_value(value).map(AnyText),
        }
    }
}

/// Text that every database can store: UTF-8 without NUL.
fn portable(bytes: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.contains('\0') => bytes,
        _ => String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}").into_bytes(),
    }
}
