//! Values between databases.

use sqlx::Row;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use super::{Column, ColumnType};

/// Text is stored as bytes, because another database may have it in a binary column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Text that is not an integer becomes NULL, which the table refuses.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(*number),
            Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(number.to_string()),
            Cell::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(number.to_string().into_bytes()),
            Cell::Bytes(bytes) => Some(bytes.clone()),
        }
    }
}

pub(super) trait CellRow {
    fn cells(&self, columns: &[Column]) -> Result<Vec<Cell>, sqlx::Error>;
}

macro_rules! cell_row {
    ($row:ty, $text:ty) => {
        impl CellRow for $row {
            fn cells(&self, columns: &[Column]) -> Result<Vec<Cell>, sqlx::Error> {
                let cell = |(index, column): (usize, &Column)| {
                    Ok(match column.column_type {
                        ColumnType::Integer | ColumnType::Flag => {
                            self.try_get::<Option<i64>, _>(index)?.map_or(Cell::Null, Cell::Integer)
                        }
                        ColumnType::Blob => {
                            self.try_get::<Option<Vec<u8>>, _>(index)?.map_or(Cell::Null, Cell::Bytes)
                        }
                        ColumnType::Number | ColumnType::Text => {
                            let text = self.try_get::<Option<$text>, _>(index)?;
                            text.map_or(Cell::Null, |text| Cell::Bytes(portable(text.into())))
                        }
                    })
                };
                columns.iter().enumerate().map(cell).collect()
            }
        }
    };
}

cell_row!(SqliteRow, Vec<u8>);
cell_row!(PgRow, String);
cell_row!(MySqlRow, Vec<u8>);

/// Text that every database can store: UTF-8 without NUL.
fn portable(bytes: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.contains('\0') => bytes,
        _ => String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}").into_bytes(),
    }
}
