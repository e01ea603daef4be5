//! The columns of a table, and how each kind of database is asked for their values.

use sqlx::Row;
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A whole number of up to 64 bits.
    Integer,
    /// Yes or no; 1 or 0 where there is no such type.
    Flag,
    /// A whole number beyond 64 bits, as digits.
    Number,
    /// A text.
    Text,
    /// Bytes.
    Blob,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub class: Class,
}

impl Column {
    fn new(name: String, kind: &str) -> Column {
        let kind = kind.to_ascii_lowercase();
        let class = match kind.as_str() {
            "boolean" => Class::Flag,
            "numeric" | "decimal" => Class::Number,
            "bytea" => Class::Blob,
            kind if kind.contains("int") => Class::Integer,
            kind if kind.contains("blob") || kind.contains("binary") => Class::Blob,
            _ => Class::Text,
        };
        Column { name, class }
    }
}

pub(super) async fn sqlite(
    connection: &mut SqliteConnection,
    table: &str,
) -> Result<Vec<Column>, sqlx::Error> {
    let rows = sqlx::query("SELECT name, type FROM pragma_table_info(?) ORDER BY name")
        .bind(table)
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok(Column::new(row.try_get(0)?, row.try_get(1)?))).collect()
}

pub(super) async fn postgres(connection: &mut PgConnection, table: &str) -> Result<Vec<Column>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT column_name::TEXT, data_type::TEXT FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER'
         ORDER BY column_name COLLATE \"C\"",
    )
    .bind(table)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| Ok(Column::new(row.try_get(0)?, row.try_get(1)?))).collect()
}

pub(super) async fn mysql(connection: &mut MySqlConnection, table: &str) -> Result<Vec<Column>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT CAST(column_name AS CHAR), CAST(data_type AS CHAR) FROM information_schema.columns
         WHERE table_schema = database() AND table_name = ? AND coalesce(generation_expression, '') = ''
         ORDER BY CAST(column_name AS BINARY)",
    )
    .bind(table)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| Ok(Column::new(row.try_get(0)?, row.try_get(1)?))).collect()
}

pub(super) fn sqlite_expression(column: &Column) -> String {
    column.name.clone()
}

pub(super) fn postgres_expression(column: &Column) -> String {
    let name = &column.name;
    match column.class {
        Class::Integer => format!("{name}::BIGINT"),
        Class::Flag => format!("{name}::INT::BIGINT"),
        Class::Number | Class::Text => format!("{name}::TEXT"),
        Class::Blob => name.clone(),
    }
}

pub(super) fn mysql_expression(column: &Column) -> String {
    let name = &column.name;
    match column.class {
        Class::Integer | Class::Flag => format!("CAST({name} AS SIGNED)"),
        Class::Number => format!("CAST(CAST({name} AS CHAR) AS BINARY)"),
        Class::Text => format!("CAST({name} AS BINARY)"),
        Class::Blob => name.clone(),
    }
}
