//! The columns of a table, and the SELECT expressions for them on each kind of database.

use sqlx::Row;
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;

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
    match column.column_type {
        ColumnType::Integer => format!("{name}::BIGINT"),
        ColumnType::Flag => format!("{name}::INT::BIGINT"),
        ColumnType::Number | ColumnType::Text => format!("{name}::TEXT"),
        ColumnType::Blob => name.clone(),
    }
}

pub(super) fn mysql_expression(column: &Column) -> String {
    let name = &column.name;
    match column.column_type {
        ColumnType::Integer | ColumnType::Flag => format!("CAST({name} AS SIGNED)"),
        ColumnType::Number => format!("CAST(CAST({name} AS CHAR) AS BINARY)"),
        ColumnType::Text => format!("CAST({name} AS BINARY)"),
        ColumnType::Blob => name.clone(),
    }
}
