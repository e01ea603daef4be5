//! Users, torrents, client prefixes and banned ports in SQLite, PostgreSQL or MariaDB.
//!
//! # Guarantees
//!
//! - Several processes may have the database open: servers, commands, the site.
//! - Triggers record every change in `access_changes`, so that [`crate::follow`] reads changes by any process.
//! - Passkeys and infohashes in upper case are read in lower case. A row that cannot be parsed is left out of lists, with a
//!   warning that names it.
//! - The databases behave alike; one conformance suite runs on all of them.
//!
//! Callers pass the time. Traffic is in the ledger. A server database that has tables of these names from another program is
//! refused.

use database::{Database, Migrations, SqlError};
use domain::Passkey;

use crate::error::AccessError;

pub(crate) mod catalogue;
pub(crate) mod clients;
mod external_users;
mod numbering;
mod occupied;
mod ports;
pub(crate) mod rows;
mod search;
mod site_rows;
pub(crate) mod tables;
pub(crate) mod torrents;
pub(crate) mod users;

pub use catalogue::{CatalogueKey, CatalogueOrder, CataloguePage};
pub use external_users::{ExternalUser, ExternalUserOptions, NewExternalUser};
pub use numbering::SANDBOX_IDS;
pub use search::NameSearch;
pub use site_rows::{SiteTorrent, SiteUser};
pub use torrents::{NewTorrent, TORRENT_NAME_CHARS_MAX, Torrent, TorrentChange};
pub use users::{NewUser, User, UserChange};

use rows::NumberedRow;
use tables::Tables;

/// Rows per statement of a bulk insert.
const BULK_ROWS: usize = 500;
/// Rows per page when all rows are read.
pub(crate) const PAGE_ROWS: u32 = 4096;
pub static MIGRATIONS: Migrations = database::migrations!("access_migrations" in "migrations":
    each "0001_users_torrents_clients",
    each "0002_passkeys",
    each "0003_api_keys",
    each "0004_vouched_users",
    each "0005_slots_and_moderation",
    each "0006_api_sessions",
    each "0007_names_and_sandbox",
    each "0008_pending_torrents",
    each "0009_installation",
    postgres "0010_notifications",
);

/// Clones share the connection pool.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens `sqlite:PATH`, `postgres://…` or `mysql://…`; creates missing tables, and the file and folder of SQLite.
    pub async fn open(url: &str) -> Result<Store, AccessError> {
        let database = Database::open(url).await?;
        Self::on(database).await
    }

    /// Creates missing tables.
    pub async fn on(database: Database) -> Result<Store, AccessError> {
        occupied::check(&database).await?;
        database::migrate(&database, MIGRATIONS).await?;
        Ok(Store { database })
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Whether the SQLite file was created by this process.
    pub fn is_new(&self) -> bool {
        self.database.is_new()
    }

    /// When the database was created, in milliseconds since 1970 (J11); zero if it is older than this column.
    pub async fn created_ms(&self) -> Result<u64, AccessError> {
        let created_ms: Result<Option<i64>, SqlError> =
            self.database.query_one("SELECT created_ms FROM installation", &[]).await;
        Ok(created_ms.map_err(|error| self.explain(error))?.unwrap_or(0).unsigned_abs())
    }

    /// The URL without the password.
    pub fn shown(&self) -> String {
        self.database.shown()
    }

    /// Waits for running queries and closes the connections.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// The tables outside of a transaction.
    fn tables(&self) -> Tables<'_> {
        Tables::Database(&self.database)
    }

    /// Begins a write transaction. In SQLite it excludes other writers; elsewhere it locks rows.
    async fn begin(&self) -> Result<Tables<'static>, AccessError> {
        self.database.begin().await.map(Tables::Transaction).map_err(|error| self.explain(error))
    }

    async fn commit(&self, transaction: Tables<'_>) -> Result<(), AccessError> {
        transaction.commit().await.map_err(|error| self.explain(error))
    }

    /// The first `limit` rows after `after`, by id. Fewer than `limit` are the last ones.
    async fn list<T: NumberedRow>(&self, after: i64, limit: u32) -> Result<Vec<T>, AccessError> {
        let (mut tables, mut rows, mut last) = (self.tables(), Vec::new(), after);
        loop {
            let wanted = limit - rows.len() as u32;
            let page = tables.page(last, wanted).await.map_err(|error| self.explain(error))?;
            rows.extend(page.rows);
            match page.last {
                // Rows that cannot be read are skipped.
                Some(id) if (rows.len() as u32) < limit => last = id,
                _ => return Ok(rows),
            }
        }
    }

    pub(crate) fn explain(&self, error: SqlError) -> AccessError {
        self.database.explain(error).into()
    }
}

/// 128 random bits.
pub fn random_passkey() -> Result<Passkey, AccessError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AccessError::Random)?;
    Ok(Passkey::from_random_bytes(bytes))
}
