//! Users, torrents, client prefixes and banned ports in SQLite, PostgreSQL or MariaDB.
//!
//! # Guarantees
//!
//! - Any number of processes may have the database open: the server, our commands, the site.
//! - Every change leaves an entry in `access_changes`, written by triggers, so that [`crate::follow`] learns of
//!   changes by whomever they were made.
//! - What the site wrote in upper case is read in lower case. A row that cannot be read is left out of lists, with a
//!   warning that names it.
//! - The three kinds of databases behave alike; `tables` is the port, `sqlite`, `postgres` and `mysql` its adapters.
//!
//! # Deliberately absent
//!
//! The clock: whoever adds something says when. Amounts of traffic: they are the ledger's. Tables of a site: a server's
//! database must have none of our names in it, or it is left alone.

use database::copy::CopyTransaction;
use database::{Database, Migrations};
use domain::Passkey;
use sqlx::migrate::Migrator;

use crate::error::AccessError;

pub(crate) mod adopted;
pub(crate) mod catalogue;
pub(crate) mod clients;
pub(crate) mod mysql;
mod numbering;
mod occupied;
mod ports;
pub(crate) mod postgres;
pub(crate) mod rows;
mod search;
pub(crate) mod sqlite;
pub(crate) mod tables;
pub(crate) mod torrents;
pub(crate) mod users;

pub use adopted::{Adopted, Adoption, AdoptionTerms};
pub use catalogue::{CatalogueKey, CatalogueOrder, CataloguePage};
pub use numbering::SANDBOX_IDS;
pub use search::NameSearch;
pub use torrents::{NewTorrent, TORRENT_NAME_CHARS_MAX, Torrent, TorrentChange};
pub use users::{NewUser, User, UserChange};

use mysql::MySqlTables;
use postgres::PgTables;
use sqlite::SqliteTables;
use tables::{Tables, Transaction};

/// Rows in one statement of a bulk insert: large enough that the statement's own cost vanishes.
const BULK_ROWS: usize = 500;
/// Rows fetched at a time where all are read.
pub(crate) const PAGE_ROWS: u32 = 4096;
/// Which migrations ran. A name of our own, since other crates keep theirs in the same database.
const MIGRATIONS_TABLE: &str = "access_migrations";
static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");
static MYSQL: Migrator = sqlx::migrate!("migrations/mysql");
/// What makes the tables.
pub static MIGRATIONS: Migrations<'static> =
    Migrations { table: MIGRATIONS_TABLE, sqlite: &SQLITE, postgres: &POSTGRES, mysql: &MYSQL };

/// The database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens `sqlite:PATH`, `postgres://…` or `mysql://…`; makes the tables where they are missing, and the file and
    /// folder of SQLite.
    pub async fn open(url: &str) -> Result<Store, AccessError> {
        let database = Database::open(url).await?;
        Self::on(database).await
    }

    /// Uses a database that is open already; makes the tables where they are missing.
    pub async fn on(database: Database) -> Result<Store, AccessError> {
        occupied::check(&database).await?;
        database::migrate(&database, MIGRATIONS).await?;
        Ok(Store { database })
    }

    /// The database itself, which others may use as well.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Whether there was no SQLite file yet.
    pub fn is_new(&self) -> bool {
        self.database.is_new()
    }

    /// When the database was made, in milliseconds since 1970 (J11); zero if it is older than that is noted.
    pub async fn created_ms(&self) -> Result<u64, AccessError> {
        let mut link = CopyTransaction::read(&self.database).await?;
        let created_ms = link.number("SELECT created_ms FROM installation").await?;
        link.roll_back().await?;
        Ok(created_ms.unwrap_or(0).unsigned_abs())
    }

    /// Where the database is, without a password.
    pub fn shown(&self) -> String {
        self.database.shown()
    }

    /// Finishes what is under way and closes the connections.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// The tables outside of any transaction.
    async fn tables(&self) -> Result<Box<dyn Tables>, AccessError> {
        let tables: Result<Box<dyn Tables>, sqlx::Error> = match &self.database {
            Database::Sqlite(file) => file.pool.acquire().await.map(|held| Box::new(SqliteTables(held)) as _),
            Database::Postgres(pool) => pool.acquire().await.map(|held| Box::new(PgTables(held)) as _),
            Database::MySql(pool) => pool.acquire().await.map(|held| Box::new(MySqlTables(held)) as _),
        };
        tables.map_err(|error| self.explain(error))
    }

    /// Begins to write. On SQLite nobody else can write from here on, elsewhere nobody else can write the same rows.
    async fn begin(&self) -> Result<Box<dyn Transaction>, AccessError> {
        let begun: Result<Box<dyn Transaction>, sqlx::Error> = match &self.database {
            Database::Sqlite(file) => {
                file.begin_write().await.map(|begun| Box::new(SqliteTables(begun)) as _)
            }
            Database::Postgres(pool) => pool.begin().await.map(|begun| Box::new(PgTables(begun)) as _),
            Database::MySql(pool) => pool.begin().await.map(|begun| Box::new(MySqlTables(begun)) as _),
        };
        begun.map_err(|error| self.explain(error))
    }

    async fn commit(&self, transaction: Box<dyn Transaction>) -> Result<(), AccessError> {
        transaction.commit().await.map_err(|error| self.explain(error))
    }

    pub(crate) fn explain(&self, error: sqlx::Error) -> AccessError {
        self.database.explain(error).into()
    }
}

/// A passkey nobody can guess.
pub fn random_passkey() -> Result<Passkey, AccessError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AccessError::Random)?;
    Ok(Passkey::from_random_bytes(bytes))
}
