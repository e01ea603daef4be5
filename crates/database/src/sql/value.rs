//! Parameters of statements, and the values of rows.

use super::error::SqlError;
use super::relation::Relation;

/// The type of a NULL parameter, which PostgreSQL needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Boolean,
    Integer,
    Decimal,
    Text,
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null(Type),
    Boolean(bool),
    Integer(i64),
    /// Digits of an integer beyond 64 bits.
    Decimal(String),
    Text(String),
    Bytes(Vec<u8>),
    /// For `{in}`.
    Integers(Vec<i64>),
    /// For `{in}`.
    Texts(Vec<String>),
    /// Rows of integers, for `{rows N}`.
    Rows(Rows),
    /// Rows of named columns of any type, for `{rows}`.
    Relation(Relation),
}

impl Value {
    pub fn integers(numbers: impl IntoIterator<Item = i64>) -> Value {
        Value::Integers(numbers.into_iter().collect())
    }

    pub fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Value {
        Value::Texts(texts.into_iter().map(Into::into).collect())
    }

    pub(super) fn value_type(&self) -> Type {
        match self {
            Value::Null(null) => *null,
            Value::Boolean(_) => Type::Boolean,
            Value::Integer(_) | Value::Integers(_) | Value::Rows(_) | Value::Relation(_) => Type::Integer,
            Value::Decimal(_) => Type::Decimal,
            Value::Text(_) | Value::Texts(_) => Type::Text,
            Value::Bytes(_) => Type::Bytes,
        }
    }
}

/// A type that is a parameter.
pub trait SqlType {
    const TYPE: Type;
}

macro_rules! parameter {
    ($($rust:ty: $kind:ident, $convert:expr;)+) => {
        $(
            impl From<$rust> for Value {
                fn from(value: $rust) -> Value {
                    let convert: fn($rust) -> _ = $convert;
                    Value::$kind(convert(value))
                }
            }
            impl SqlType for $rust {
                const TYPE: Type = Type::$kind;
            }
        )+
    };
}

parameter! {
    bool: Boolean, |flag| flag;
    i64: Integer, |number| number;
    i32: Integer, i64::from;
    u32: Integer, i64::from;
    String: Text, |text| text;
    &str: Text, str::to_owned;
    &String: Text, String::clone;
    Vec<u8>: Bytes, |bytes| bytes;
    &[u8]: Bytes, <[u8]>::to_vec;
}

impl<T: SqlType + Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null(T::TYPE), Into::into)
    }
}

/// The values of many rows, row by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    width: usize,
    values: Vec<Value>,
}

impl Rows {
    pub fn new<const WIDTH: usize>(rows: impl IntoIterator<Item = [Value; WIDTH]>) -> Rows {
        let rows = rows.into_iter();
        let mut values = Vec::with_capacity(rows.size_hint().0 * WIDTH);
        rows.for_each(|row| values.extend(row));
        Rows { width: WIDTH, values }
    }

    pub(crate) fn with_width(width: usize, values: Vec<Value>) -> Rows {
        Rows { width, values }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Value]> {
        self.values.chunks_exact(self.width.max(1))
    }

    pub(crate) fn column(&self, position: usize) -> impl Iterator<Item = &Value> {
        self.values.iter().skip(position).step_by(self.width.max(1))
    }

    /// The type of each column.
    pub(super) fn types(&self) -> Vec<Type> {
        self.values.iter().take(self.width).map(Value::value_type).collect()
    }

    /// `[[1,2],[3,null]]`: for rows of integers.
    pub(crate) fn to_json(&self) -> String {
        use std::fmt::Write as _;
        let mut json = String::from("[");
        for (number, row) in self.iter().enumerate() {
            json.push_str(if number > 0 { ",[" } else { "[" });
            for (position, value) in row.iter().enumerate() {
                let separator = if position > 0 { "," } else { "" };
                let written = match value {
                    Value::Integer(number) => write!(json, "{separator}{number}"),
                    _ => write!(json, "{separator}null"),
                };
                written.expect("writing to memory cannot fail");
            }
            json.push(']');
        }
        json.push(']');
        json
    }
}

/// `[1,2]`.
pub fn json_of_integers(numbers: impl IntoIterator<Item = i64>) -> String {
    let listed: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", listed.join(","))
}

/// `["a","b"]`.
pub(crate) fn json_of_texts(texts: &[String]) -> String {
    let mut json = String::from("[");
    for (position, text) in texts.iter().enumerate() {
        json.push_str(if position > 0 { "," } else { "" });
        json_text(&mut json, text);
    }
    json.push(']');
    json
}

/// `"a"`.
pub(super) fn json_text(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            _ if character < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => json.push(character),
        }
    }
    json.push('"');
}

/// Hexadecimal digits.
pub(super) fn push_digits(out: &mut String, bytes: &[u8]) {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("half a byte is one digit");
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
}

/// A type that a value of a row can be read as.
pub trait FromValue: Sized {
    /// None if the value has another type.
    fn from_value(value: Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Option<i64> {
        match value {
            Value::Integer(number) => Some(number),
            Value::Boolean(flag) => Some(flag.into()),
            _ => None,
        }
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Option<bool> {
        match value {
            Value::Boolean(flag) => Some(flag),
            Value::Integer(number) => Some(number != 0),
            _ => None,
        }
    }
}

/// Amounts beyond 64 bits are read as text, for which SQLite may return an integer.
impl FromValue for String {
    fn from_value(value: Value) -> Option<String> {
        match value {
            Value::Text(text) | Value::Decimal(text) => Some(text),
            Value::Bytes(bytes) => String::from_utf8(bytes).ok(),
            Value::Integer(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// Also text, which need not be UTF-8 in SQLite.
impl FromValue for Vec<u8> {
    fn from_value(value: Value) -> Option<Vec<u8>> {
        match value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Text(text) => Some(text.into_bytes()),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Option<Option<T>> {
        match value {
            Value::Null(_) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A row of a result. Its columns are read in their order.
#[derive(Clone, Debug)]
pub struct Row {
    values: std::vec::IntoIter<Value>,
}

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Row {
        Row { values: values.into_iter() }
    }

    /// Bytes of the texts and byte strings in it.
    pub(crate) fn value_bytes(&self) -> usize {
        let bytes_of = |value: &Value| match value {
            Value::Decimal(text) | Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.values.as_slice().iter().map(bytes_of).sum()
    }

    pub fn skip(&mut self, columns: usize) {
        self.values.by_ref().take(columns).for_each(drop);
    }

    /// The next column.
    pub fn get<T: FromValue>(&mut self) -> Result<T, SqlError> {
        let value = self.values.next().ok_or(SqlError::ColumnMissing)?;
        T::from_value(value).ok_or(SqlError::ColumnType)
    }
}

pub trait FromRow: Sized {
    fn from_row(row: &mut Row) -> Result<Self, SqlError>;
}

impl FromRow for Row {
    fn from_row(row: &mut Row) -> Result<Row, SqlError> {
        Ok(row.clone())
    }
}

/// A single column.
impl<T: FromValue> FromRow for T {
    fn from_row(row: &mut Row) -> Result<T, SqlError> {
        row.get()
    }
}

/// Declares structs whose fields are the columns of a row, in their order. A field may be such a struct itself.
#[macro_export]
macro_rules! rows {
    ($(
        $(#[$about:meta])*
        $vis:vis struct $name:ident { $($(#[$about_field:meta])* $vis_field:vis $field:ident: $column:ty,)+ }
    )+) => {
        $(
            $(#[$about])*
            $vis struct $name { $($(#[$about_field])* $vis_field $field: $column,)+ }

            impl $crate::FromRow for $name {
                fn from_row(row: &mut $crate::Row) -> Result<Self, $crate::SqlError> {
                    Ok($name { $($field: <$column as $crate::FromRow>::from_row(row)?,)+ })
                }
            }
        )+
    };
}

macro_rules! from_row {
    ($($column:ident)+) => {
        impl<$($column: FromValue),+> FromRow for ($($column,)+) {
            fn from_row(row: &mut Row) -> Result<Self, SqlError> {
                Ok(($(row.get::<$column>()?,)+))
            }
        }
    };
}

from_row!(A B);
from_row!(A B C);
from_row!(A B C D);
from_row!(A B C D E);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_json() {
        assert_eq!(json_of_integers([1, -2]), "[1,-2]");
        assert_eq!(json_of_integers([]), "[]");
        assert_eq!(json_of_texts(&["a\"\\".to_owned(), "\n".to_owned()]), r#"["a\"\\","\u000a"]"#);
        let rows = Rows::new([[Value::from(1), None::<i64>.into()], [2.into(), 3.into()]]);
        assert_eq!(rows.to_json(), "[[1,null],[2,3]]");
    }

    #[test]
    fn columns_are_read_in_their_order_as_what_they_are() {
        let mut row = Row::new(vec![1.into(), Value::Boolean(true), Value::Null(Type::Text), "x".into()]);
        let read: (bool, i64, Option<String>) = FromRow::from_row(&mut row).unwrap();
        assert_eq!(read, (true, 1, None));
        assert!(matches!(row.get::<i64>(), Err(SqlError::ColumnType)));
        assert!(matches!(row.get::<i64>(), Err(SqlError::ColumnMissing)));
    }
}
