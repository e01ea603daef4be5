//! The columns of a table, and the SELECT expressions for them on each kind of database.

use crate::Kind;
use crate::sql::{Session, SqlError, Statement};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Up to 64 bits.
    Integer,
    /// Boolean; 1 or 0 in databases without that type.
    Flag,
    /// An integer beyond 64 bits, as digits.
    Number,
    Text,
    Blob,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub column_type: ColumnType,
}

impl Column {
    fn new(name: String, kind: &str) -> Column {
        let kind = kind.to_ascii_lowercase();
        let column_type = match kind.as_str() {
            "boolean" => ColumnType::Flag,
            "numeric" | "decimal" => ColumnType::Number,
            "bytea" => ColumnType::Blob,
            kind if kind.contains("int") => ColumnType::Integer,
            kind if kind.contains("blob") || kind.contains("binary") => ColumnType::Blob,
            _ => ColumnType::Text,
        };
        Column { name, column_type }
    }
}

const COLUMNS: Statement = Statement::each(
    "SELECT name, type FROM pragma_table_info(?) ORDER BY name",
    "SELECT column_name::TEXT, data_type::TEXT FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = ? AND is_generated = 'NEVER'
     ORDER BY column_name COLLATE \"C\"",
    "SELECT CAST(column_name AS CHAR), CAST(data_type AS CHAR) FROM information_schema.columns
     WHERE table_schema = database() AND table_name = ? AND coalesce(generation_expression, '') = ''
     ORDER BY CAST(column_name AS BINARY)",
);

pub(super) async fn columns(session: &mut Session, table: &str) -> Result<Vec<Column>, SqlError> {
    let columns: Vec<(String, String)> = session.query(COLUMNS, &[table.into()]).await?;
    Ok(columns.into_iter().map(|(name, kind)| Column::new(name, &kind)).collect())
}

/// A SELECT expression for the column.
pub(super) fn expression(kind: Kind, column: &Column) -> String {
    match kind {
        Kind::Sqlite => column.name.clone(),
        Kind::Postgres => postgres_expression(column),
        Kind::MySql => mysql_expression(column),
    }
}

fn postgres_expression(column: &Column) -> String {
    let name = &column.name;
    match column.column_type {
        ColumnType::Integer => format!("{name}::BIGINT"),
        ColumnType::Flag => format!("{name}::INT::BIGINT"),
        ColumnType::Number | ColumnType::Text => format!("{name}::TEXT"),
        ColumnType::Blob => name.clone(),
    }
}

fn mysql_expression(column: &Column) -> String {
    let name = &column.name;
    match column.column_type {
        ColumnType::Integer | ColumnType::Flag => format!("CAST({name} AS SIGNED)"),
        ColumnType::Number => format!("CAST(CAST({name} AS CHAR) AS BINARY)"),
        ColumnType::Text => format!("CAST({name} AS BINARY)"),
        ColumnType::Blob => name.clone(),
    }
}
