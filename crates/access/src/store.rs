//! Users, torrents and client prefixes in SQLite.
//!
//! # Guarantees
//!
//! - Any number of processes may have the file open: the server, our commands, the site. A writer waits for another
//!   for up to five seconds; readers never wait.
//! - Every change leaves an entry in `access_changes`, written by triggers, so that [`crate::follow`] learns of
//!   changes by whomever they were made.
//! - What the site wrote in upper case is read in lower case. A row that cannot be read is left out of lists, with a
//!   warning that names it.
//!
//! # Deliberately absent
//!
//! The clock: whoever adds something says when. Amounts of traffic: they are the ledger's.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Passkey;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
};
use sqlx::{ConnectOptions, Connection, Sqlite, Transaction};

use crate::error::AccessError;

pub(crate) mod clients;
pub(crate) mod rows;
pub(crate) mod torrents;
pub(crate) mod users;

pub use torrents::{NewTorrent, Torrent};
pub use users::{NewUser, User};

/// How long a writer waits for another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// One writes at a time anyway; the rest are for readers.
const CONNECTIONS_MAX: u32 = 4;
/// Rows in one statement of a bulk insert: large enough that the statement's own cost vanishes.
const BULK_ROWS: usize = 500;
/// Rows fetched at a time where all are read.
pub(crate) const PAGE_ROWS: u32 = 4096;
/// Which migrations ran. A name of our own, since other crates keep theirs in the same file.
const MIGRATIONS_TABLE: &str = "access_migrations";
/// Opening a new file switches it to write-ahead logging, for which SQLite does not wait by itself.
const OPEN_PAUSE: Duration = Duration::from_millis(20);
/// How long an opener waits for others that open or write.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: SqlitePool,
    options: SqliteConnectOptions,
    path: Arc<Path>,
    is_new: bool,
}

/// Makes the file where it is missing, readable by its owner only: it holds everybody's passkeys. SQLite gives its
/// side files the same mode. What goes wrong here is told when the file is opened.
fn create_private(path: &Path) -> bool {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).is_ok()
}

impl Store {
    /// Opens `sqlite:<path>`; makes the file, its folder and its tables where they are missing.
    pub async fn open(url: &str) -> Result<Store, AccessError> {
        let path = path_of(url)?;
        create_folder_of(&path)?;
        let is_new = create_private(&path);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        tokio::time::timeout(OPEN_TIMEOUT, prepare_patiently(&options, &path))
            .await
            .unwrap_or(Err(AccessError::Busy))?;
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_lazy_with(options.clone());
        Ok(Store { pool, options, path: path.into(), is_new })
    }

    /// Whether there was no database yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finishes what is under way and closes the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A connection of one's own, outside the shared ones.
    pub(crate) async fn connect(&self) -> Result<SqliteConnection, AccessError> {
        self.options.connect().await.map_err(|error| self.explain(error))
    }

    /// Begins to write at once, so that nobody else can write between our reading and our writing.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, AccessError> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|error| self.explain(error))
    }

    async fn commit(&self, transaction: Transaction<'_, Sqlite>) -> Result<(), AccessError> {
        transaction.commit().await.map_err(|error| self.explain(error))
    }

    pub(crate) fn explain(&self, error: sqlx::Error) -> AccessError {
        AccessError::from_sqlx(&self.path, error)
    }
}

/// A passkey nobody can guess.
pub fn random_passkey() -> Result<Passkey, AccessError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AccessError::Random)?;
    Ok(Passkey::from_random_bytes(bytes))
}

fn path_of(url: &str) -> Result<PathBuf, AccessError> {
    let rest = url.strip_prefix("sqlite:").ok_or_else(|| unsupported(url))?;
    let path = rest.strip_prefix("//").unwrap_or(rest);
    match path {
        "" => Err(unsupported(url)),
        ":memory:" => Err(AccessError::InMemory),
        _ => Ok(PathBuf::from(path)),
    }
}

/// Shows no more of a foreign address than its scheme: the rest may hold a password.
fn unsupported(url: &str) -> AccessError {
    let shown = match url.split_once("://") {
        Some((scheme, rest)) if !rest.is_empty() => format!("{scheme}://…"),
        _ => url.to_owned(),
    };
    AccessError::UnsupportedUrl { url: shown }
}

fn create_folder_of(path: &Path) -> Result<(), AccessError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder)
            .map_err(|source| AccessError::Folder { path: folder.to_owned(), source }),
        _ => Ok(()),
    }
}

async fn prepare_patiently(options: &SqliteConnectOptions, path: &Path) -> Result<(), AccessError> {
    loop {
        match prepare(options, path).await {
            Err(error) if error.is_retryable() => tokio::time::sleep(OPEN_PAUSE).await,
            outcome => return outcome,
        }
    }
}

/// Brings the tables up to date.
///
/// One process does so at a time: the others wait for its transaction. None waits if there is nothing to do.
async fn prepare(options: &SqliteConnectOptions, path: &Path) -> Result<(), AccessError> {
    let explain = |error| AccessError::from_sqlx(path, error);
    let mut migrator = sqlx::migrate!();
    migrator.dangerous_set_table_name(MIGRATIONS_TABLE);
    let mut connection = options.connect().await.map_err(explain)?;
    if applied_version(&mut connection).await.map_err(explain)? != newest_version(&migrator) {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(explain)?;
        migrator
            .run_direct(None, &mut *transaction, false)
            .await
            .map_err(|error| AccessError::from_migration(path, error))?;
        transaction.commit().await.map_err(explain)?;
    }
    connection.close().await.map_err(explain)
}

fn newest_version(migrator: &Migrator) -> Option<i64> {
    migrator.iter().map(|migration| migration.version).max()
}

async fn applied_version(connection: &mut SqliteConnection) -> Result<Option<i64>, sqlx::Error> {
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = ?")
        .bind(MIGRATIONS_TABLE)
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT max(version) FROM access_migrations").fetch_one(connection).await
}
