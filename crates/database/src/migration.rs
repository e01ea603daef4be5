//! Migrates a crate's tables.
//!
//! # Guarantees
//!
//! - Each crate records its migrations in a table of its own, so that several crates share a database.
//! - If processes start at once, the first one migrates while the others wait. Without pending migrations no lock is
//!   taken.
//! - An interrupted migration is repaired by the next start. On SQLite and PostgreSQL a migration is one transaction.
//!   MariaDB and MySQL commit at each DDL statement, so there **a migration must be repeatable** (`CREATE TABLE IF NOT
//!   EXISTS` with its indexes inside, `DROP TRIGGER IF EXISTS` before `CREATE TRIGGER`), and an interrupted one is run
//!   again.
//! - A released migration that was changed since is refused, by the checksum of its text.
//!
//! The tables and checksums are those of sqlx' migrator, which earlier versions used.

use std::time::Duration;

use sha2::{Digest, Sha384};

use crate::error::DatabaseError;
use crate::sql::{Session, SqlError, Value};
use crate::sqlite::{OPEN_TIMEOUT, RetryDeadline};
use crate::{Database, Kind, SqliteDatabase};

/// How long to wait for a process that migrates the same tables.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// One version of a crate's tables.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The file name: the version, an underscore, and a description.
    pub name: &'static str,
    /// None where there is nothing to migrate.
    pub sqlite: Option<&'static str>,
    pub postgres: Option<&'static str>,
    /// For MariaDB and MySQL; must be repeatable.
    pub mysql: Option<&'static str>,
}

impl Migration {
    fn text(&self, kind: Kind) -> Option<&'static str> {
        match kind {
            Kind::Sqlite => self.sqlite,
            Kind::Postgres => self.postgres,
            Kind::MySql => self.mysql,
        }
    }

    fn version(&self) -> i64 {
        self.name.split('_').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    fn description(&self) -> String {
        self.name.split_once('_').map_or_else(String::new, |(_, words)| words.replace('_', " "))
    }
}

/// The migrations of one crate, by version.
#[derive(Clone, Copy, Debug)]
pub struct Migrations {
    /// Table that records the migrations.
    pub table: &'static str,
    pub list: &'static [Migration],
}

/// The migrations of the calling crate: the table that records them, and the files below the folder, without `.sql`.
///
/// - `each "0001_notes"`: one file for each kind of database, in the folders `sqlite`, `postgres` and `mysql`
/// - `all "0002_notes"`: one file for all kinds
/// - `sqlite "0003_notes"`, `postgres`, `mysql`: one file, in the folder, for this kind only
#[macro_export]
macro_rules! migrations {
    ($table:literal in $folder:literal: $($kinds:ident $name:literal),+ $(,)?) => {
        $crate::Migrations {
            table: $table,
            list: &[$($crate::migrations!(@ $kinds $folder $name)),+],
        }
    };
    (@ each $folder:literal $name:literal) => {
        $crate::Migration {
            name: $name,
            sqlite: Some($crate::migrations!(@ file $folder "/sqlite/" $name)),
            postgres: Some($crate::migrations!(@ file $folder "/postgres/" $name)),
            mysql: Some($crate::migrations!(@ file $folder "/mysql/" $name)),
        }
    };
    (@ all $folder:literal $name:literal) => {{
        const TEXT: &str = $crate::migrations!(@ file $folder "/" $name);
        $crate::Migration { name: $name, sqlite: Some(TEXT), postgres: Some(TEXT), mysql: Some(TEXT) }
    }};
    (@ file $folder:literal $kind:literal $name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, $kind, $name, ".sql"))
    };
    (@ $kind:ident $folder:literal $name:literal) => {
        $crate::Migration {
            $kind: Some($crate::migrations!(@ file $folder "/" $name)),
            ..$crate::Migration { name: $name, sqlite: None, postgres: None, mysql: None }
        }
    };
}

impl Migrations {
    fn of(&self, kind: Kind) -> impl Iterator<Item = (&'static Migration, &'static str)> {
        self.list.iter().filter_map(move |migration| Some((migration, migration.text(kind)?)))
    }

    /// The version that this program requires.
    pub(crate) fn newest(&self, kind: Kind) -> Option<i64> {
        self.of(kind).map(|(migration, _)| migration.version()).max()
    }
}

/// Migrates the tables of one crate.
pub async fn migrate(database: &Database, migrations: Migrations) -> Result<(), DatabaseError> {
    // Only other processes on a SQLite file make this busy.
    let deadline = RetryDeadline::new(OPEN_TIMEOUT);
    loop {
        let outcome = migrate_once(database, migrations).await;
        let outcome = outcome.map_err(|error| match error {
            MigrationError::Sql(error) => database.explain(error),
            MigrationError::Foreign(reason) => DatabaseError::Schema { shown: database.shown(), reason },
        });
        if database.kind() != Kind::Sqlite || !deadline.wait_after(&outcome).await {
            return outcome;
        }
    }
}

/// Migrates the tables of one crate in a SQLite file.
pub async fn migrate_sqlite(database: &SqliteDatabase, migrations: Migrations) -> Result<(), DatabaseError> {
    migrate(&Database::Sqlite(database.clone()), migrations).await
}

enum MigrationError {
    Sql(SqlError),
    /// The tables are those of another version.
    Foreign(String),
}

impl From<SqlError> for MigrationError {
    fn from(error: SqlError) -> MigrationError {
        MigrationError::Sql(error)
    }
}

async fn migrate_once(database: &Database, migrations: Migrations) -> Result<(), MigrationError> {
    let kind = database.kind();
    let mut session = database.session().await?;
    let is_pending = newest_applied(&mut session, kind, migrations.table).await? != migrations.newest(kind);
    let outcome = match is_pending {
        true => migrate_session(&mut session, kind, migrations).await,
        false => Ok(()),
    };
    // Closing the connection releases its locks, also after an error.
    session.close().await;
    outcome
}

async fn migrate_session(
    session: &mut Session,
    kind: Kind,
    migrations: Migrations,
) -> Result<(), MigrationError> {
    let table = migrations.table;
    lock(session, kind, table).await?;
    session.batch(&create_table(kind, table)).await?;
    if kind == Kind::MySql {
        delete_interrupted(session, table).await?;
    }
    let select = format!("SELECT version, checksum FROM {table} ORDER BY version");
    let applied: Vec<(i64, Vec<u8>)> = session.query(&select, &[]).await?;
    let known: Vec<(&Migration, &str)> = migrations.of(kind).collect();
    for (version, checksum) in &applied {
        match known.iter().find(|(migration, _)| migration.version() == *version) {
            None => return Err(foreign(format!("its migration {version} of {table} is unknown here"))),
            Some((_, text)) if checksum_of(text) != *checksum => {
                return Err(foreign(format!("its migration {version} of {table} has another text")));
            }
            Some(_) => {}
        }
    }
    for (migration, text) in known {
        if !applied.iter().any(|(version, _)| *version == migration.version()) {
            apply(session, kind, table, migration, text).await?;
        }
    }
    if kind == Kind::Sqlite {
        session.batch("COMMIT").await?;
    }
    Ok(())
}

fn foreign(reason: String) -> MigrationError {
    MigrationError::Foreign(reason)
}

async fn apply(
    session: &mut Session,
    kind: Kind,
    table: &str,
    migration: &Migration,
    text: &str,
) -> Result<(), SqlError> {
    let values = |is_done: bool| -> [Value; 4] {
        [migration.version().into(), migration.description().into(), is_done.into(), checksum_of(text).into()]
    };
    let insert = format!(
        "INSERT INTO {table} (version, description, success, checksum, execution_time) VALUES (?, ?, ?, ?, 0)"
    );
    match kind {
        // The lock is a transaction.
        Kind::Sqlite => {
            session.batch(text).await?;
            session.execute(&insert, &values(true)).await?;
        }
        Kind::Postgres => {
            session.batch("BEGIN").await?;
            session.batch(text).await?;
            session.execute(&insert, &values(true)).await?;
            session.batch("COMMIT").await?;
        }
        Kind::MySql => {
            session.execute(&insert, &values(false)).await?;
            session.batch(text).await?;
            let done = format!("UPDATE {table} SET success = TRUE WHERE version = ?");
            session.execute(&done, &[migration.version().into()]).await?;
        }
    }
    Ok(())
}

fn checksum_of(text: &str) -> Vec<u8> {
    Sha384::digest(text.as_bytes()).to_vec()
}

fn create_table(kind: Kind, table: &str) -> String {
    let (moment, bytes) = match kind {
        Kind::Sqlite => ("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "BLOB"),
        Kind::Postgres => ("TIMESTAMPTZ NOT NULL DEFAULT now()", "BYTEA"),
        Kind::MySql => ("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "BLOB"),
    };
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
         installed_on {moment}, success BOOLEAN NOT NULL, checksum {bytes} NOT NULL, execution_time BIGINT NOT NULL)"
    )
}

/// The newest migration that was applied; none if there is none, or one was interrupted.
pub(crate) async fn newest_applied(
    session: &mut Session,
    kind: Kind,
    table: &str,
) -> Result<Option<i64>, SqlError> {
    if !table_exists(session, kind, table).await? {
        return Ok(None);
    }
    let select = format!(
        "SELECT max(version), coalesce(sum(CASE WHEN success THEN 0 ELSE 1 END), 0) > 0 FROM {table}"
    );
    let found: Option<(Option<i64>, bool)> = session.query_one(&select, &[]).await?;
    Ok(found.and_then(|(newest, is_interrupted)| newest.filter(|_| !is_interrupted)))
}

pub(crate) async fn table_exists(session: &mut Session, kind: Kind, table: &str) -> Result<bool, SqlError> {
    let select = match kind {
        Kind::Sqlite => "SELECT count(*) > 0 FROM sqlite_schema WHERE name = ?",
        Kind::Postgres => "SELECT to_regclass(?) IS NOT NULL",
        Kind::MySql => {
            "SELECT count(*) > 0 FROM information_schema.tables WHERE table_schema = database() AND table_name = ?"
        }
    };
    Ok(session.query_one(select, &[table.into()]).await?.unwrap_or(false))
}

/// Deletes the record of an interrupted migration, so that it is run again.
async fn delete_interrupted(session: &mut Session, table: &str) -> Result<(), SqlError> {
    let deleted = session.execute(&format!("DELETE FROM {table} WHERE NOT success"), &[]).await?;
    if deleted > 0 {
        tracing::warn!(table, "repeating an interrupted migration");
    }
    Ok(())
}

/// Excludes other processes that migrate the same tables.
async fn lock(session: &mut Session, kind: Kind, table: &str) -> Result<(), SqlError> {
    match kind {
        Kind::Sqlite => session.batch("BEGIN IMMEDIATE").await,
        Kind::Postgres => {
            let wait = async {
                loop {
                    let name = Value::from(format!("rollcall.{table}"));
                    let try_lock = "SELECT pg_try_advisory_lock(hashtextextended(?, 0))";
                    let locked: Option<bool> = session.query_one(try_lock, &[name]).await?;
                    if locked == Some(true) {
                        return Ok(());
                    }
                    tokio::time::sleep(LOCK_PAUSE).await;
                }
            };
            tokio::time::timeout(LOCK_TIMEOUT, wait).await.unwrap_or(Err(SqlError::TimedOut))
        }
        Kind::MySql => {
            // Lock names are global to the server and limited to 64 characters.
            let lock = "SELECT GET_LOCK(CONCAT('rollcall.', SHA1(CONCAT(DATABASE(), '.', ?))), ?)";
            let wait_s = i64::try_from(LOCK_TIMEOUT.as_secs()).unwrap_or(60);
            let locked: Option<Option<i64>> = session.query_one(lock, &[table.into(), wait_s.into()]).await?;
            if locked == Some(Some(1)) { Ok(()) } else { Err(SqlError::TimedOut) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Databases are opened in tasks of a multi-threaded runtime.
    #[test]
    fn futures_can_be_sent() {
        fn is_send<T: Send>(_: fn() -> T) {}
        is_send(|| Database::open(""));
        fn migrating(database: &Database, migrations: Migrations) -> impl Send {
            migrate(database, migrations)
        }
        let _ = migrating;
    }

    #[test]
    fn a_file_name_is_a_version_and_a_description() {
        let migration = Migration { name: "0012_two_words", sqlite: None, postgres: None, mysql: None };
        assert_eq!((migration.version(), migration.description()), (12, "two words".to_owned()));
    }
}
