//! One layer for SQLite (a thread per connection), PostgreSQL and MariaDB.
//!
//! # Layout
//!
//! - [`address`]: `sqlite:`, `postgres:` and `mysql:` addresses, and their form without a password
//! - [`sqlite`]: one file, many processes, one writer at a time
//! - [`server`]: pools of connections to PostgreSQL and to MariaDB or MySQL, with the same session settings
//! - [`sql`]: one layer for the three kinds: portable statements, typed rows, transactions
//! - [`change_log`]: the change feed: what has changed since a position
//! - [`copy`]: copies rows between databases of any two kinds
//! - [`migration`]: migrates a crate's tables, also when several processes start at once
//! - [`inspect`]: read-only inspection of a database
//! - [`integrity`]: whether a SQLite file is intact and the one that was used before
//! - [`error`]: errors with their remedy, and which are retryable
//!
//! # Full disks
//!
//! SQLite rolls back a transaction by itself when the disk is full. So when a connection returns to the
//! pool, SQLite is asked whether a transaction is still open.
//!
//! # Migrations
//!
//! A migration has one file per kind of database, or one for all. Released ones are never changed. MariaDB commits at
//! each DDL statement, so migrations for it must be repeatable.

pub mod address;
pub mod change_log;
pub mod copy;
pub mod error;
pub mod inspect;
pub mod integrity;
pub mod migration;
pub mod server;
pub mod sql;
pub mod sqlite;

use sqlx::{MySqlPool, PgPool};

pub use address::{Kind, redacted};
pub use change_log::{ChangeLog, ChangeLogReader, ChangeWait, LogRead, Position};
pub use error::{DatabaseError, is_retryable};
pub use inspect::{Inspection, Schema, inspect, inspect_sqlite};
pub use integrity::{Integrity, check_sqlite};
pub use migration::{Migration, Migrations, migrate, migrate_sqlite};
pub use sql::{
    Column, Executor, FromRow, FromValue, Relation, Row, Rows, Session, SqlError, Statement, Transaction,
    Type, Value, at_once,
};
pub use sqlite::{Durability, SqliteDatabase, SqliteOptions, SqliteSession};

use address::Address;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    pub open: u32,
    /// Of the open ones.
    pub idle: u32,
    pub max: u32,
}

fn usage_of<D: sqlx::Database>(pool: &sqlx::Pool<D>) -> PoolUsage {
    let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
    PoolUsage { open: pool.size(), idle, max: pool.options().get_max_connections() }
}

/// Clones share connections.
#[derive(Clone, Debug)]
pub enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PgPool),
    /// MariaDB or MySQL.
    MySql(MySqlPool),
}

impl Database {
    /// Opens `sqlite:PATH`, `postgres://…` or `mysql://…`. Creates a missing SQLite file and its folder; a database on
    /// a server must exist. Creates no tables.
    pub async fn open(url: &str) -> Result<Database, DatabaseError> {
        match Address::parse(url)? {
            Address::Sqlite(path) => {
                SqliteDatabase::open(&path, SqliteOptions::default()).await.map(Database::Sqlite)
            }
            Address::Postgres(options) => server::open_postgres(*options).await.map(Database::Postgres),
            Address::MySql(options) => server::open_mysql(*options).await.map(Database::MySql),
        }
    }

    /// Waits for connections in use, then closes all.
    pub async fn close(&self) {
        match self {
            Database::Sqlite(database) => database.close().await,
            Database::Postgres(pool) => pool.close().await,
            Database::MySql(pool) => pool.close().await,
        }
    }

    pub fn usage(&self) -> PoolUsage {
        match self {
            Database::Sqlite(database) => database.usage(),
            Database::Postgres(pool) => usage_of(pool),
            Database::MySql(pool) => usage_of(pool),
        }
    }

    /// SQLite's count of commits, see [`SqliteDatabase::data_version`]. None for servers, which have no such count.
    pub async fn data_version(&self) -> Result<Option<i64>, SqlError> {
        match self {
            Database::Sqlite(database) => database.data_version().await.map(Some),
            Database::Postgres(_) | Database::MySql(_) => Ok(None),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Database::Sqlite(_) => Kind::Sqlite,
            Database::Postgres(_) => Kind::Postgres,
            Database::MySql(_) => Kind::MySql,
        }
    }

    /// Address without password: for logs and errors.
    pub fn shown(&self) -> String {
        match self {
            Database::Sqlite(database) => database.shown(),
            Database::Postgres(pool) => address::show_postgres(&pool.connect_options()),
            Database::MySql(pool) => address::show_mysql(&pool.connect_options()),
        }
    }

    /// Whether the SQLite file was created by this call to `open`. False for servers.
    pub fn is_new(&self) -> bool {
        matches!(self, Database::Sqlite(database) if database.is_new())
    }

    /// Converts an error of this database.
    pub fn explain(&self, error: impl Into<SqlError>) -> DatabaseError {
        match self {
            Database::Sqlite(database) => database.explain(error),
            Database::Postgres(_) | Database::MySql(_) => {
                DatabaseError::from_server(self.shown(), error.into())
            }
        }
    }
}
