//! Backup files: a SQLite database with all tables of the database, whatever its kind, and those of the embedded
//! journal under a prefix.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use database::copy::{ColumnType, CopyTransaction};
use database::{Database, Integrity, Kind, SqliteDatabase, SqliteOptions, check_sqlite};
use domain::clock::{Clock, SystemClock};
use journal::SqliteJournal;

use super::{
    CopyTotals, JOURNAL_PREFIX, copy_counters, copy_table, copy_tables, measure, migrate_schema,
    require_empty,
};
use crate::wiring::stores::system_clock;

/// Metadata of the archive.
pub(super) const INFO_TABLE: &str = "backup_info";
const JOURNAL_MIGRATIONS: &str = "journal_migrations";
/// Time limit of the check before a file is read.
const CHECK_BUDGET: Duration = Duration::from_secs(60);

/// A SQLite file that is removed on drop, with its `-wal` and `-shm`, unless it is kept.
pub struct TempFile {
    path: PathBuf,
}

impl TempFile {
    /// In the folder, with the process id in its name; replaces an existing one.
    pub fn beside(folder: &Path, name: &str) -> TempFile {
        let temp_file = TempFile { path: folder.join(format!("{name}.{}.partial", std::process::id())) };
        temp_file.remove();
        temp_file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the finished file; fails if the name exists.
    fn keep_as(self, path: &Path) -> anyhow::Result<()> {
        let finish = || {
            fs::File::open(&self.path)?.sync_all()?;
            fs::rename(&self.path, path)
        };
        finish().with_context(|| format!("cannot write {}", path.display()))
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(format!("{}{suffix}", self.path.display()));
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.remove();
    }
}

async fn open_file(path: &Path) -> anyhow::Result<Database> {
    let options = SqliteOptions { connections_max: 1, ..SqliteOptions::default() };
    Ok(Database::Sqlite(SqliteDatabase::open(path, options).await?))
}

/// `journal`: the embedded journal, if there is one.
pub async fn write(database: &Database, journal: Option<&Path>, path: &Path) -> anyhow::Result<CopyTotals> {
    ensure!(!path.exists(), "{} exists: choose another name, or remove it", path.display());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    ensure!(folder.is_dir(), "there is no folder {}: create it first", folder.display());
    let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    let temp_file = TempFile::beside(folder, &name.to_string_lossy());
    let totals = fill(database, journal, &temp_file).await?;
    temp_file.keep_as(path)?;
    Ok(totals)
}

pub async fn fill(
    database: &Database,
    journal: Option<&Path>,
    temp_file: &TempFile,
) -> anyhow::Result<CopyTotals> {
    migrate_schema(database).await?;
    let archive = open_file(temp_file.path()).await?;
    migrate_schema(&archive).await?;
    let journal = match journal.filter(|path| path.exists()) {
        Some(path) => Some(open_file(path).await?),
        None => None,
    };
    let (mut source, mut entries) = read_both(database, journal.as_ref()).await?;
    let mut target = CopyTransaction::write(&archive).await?;
    let tables = target.sqlite_tables().await?;
    let mut rows = copy_tables(&mut source, &mut target, &tables).await?;
    copy_counters((&mut source, database.kind()), (&mut target, Kind::Sqlite)).await?;
    source.roll_back().await?;
    if let Some(entries) = &mut entries {
        rows += add_journal(entries, &mut target).await?;
    }
    let (now, version) = (SystemClock.now().0, env!("CARGO_PKG_VERSION"));
    let info = format!(
        "CREATE TABLE {INFO_TABLE} (made_at INTEGER NOT NULL, version TEXT NOT NULL) STRICT;
         INSERT INTO {INFO_TABLE} VALUES ({now}, '{version}')"
    );
    target.execute(&info).await?;
    let totals = measure(&mut target, rows).await?;
    target.commit().await?;
    if let Some(entries) = entries {
        entries.roll_back().await?;
    }
    archive.close().await;
    Ok(totals)
}

/// Read transactions on database and journal, opened between two commits of the ledger.
async fn read_both(
    database: &Database,
    journal: Option<&Database>,
) -> anyhow::Result<(CopyTransaction, Option<CopyTransaction>)> {
    let Some(journal) = journal else { return Ok((CopyTransaction::read(database).await?, None)) };
    let mut held = CopyTransaction::write(database).await?;
    match database.kind() {
        // A write transaction excludes all others.
        Kind::Sqlite => {}
        Kind::Postgres => held.execute("LOCK TABLE ledger_consumers IN EXCLUSIVE MODE").await?,
        Kind::MySql => held.execute("SELECT name FROM ledger_consumers FOR UPDATE").await?,
    }
    let source = CopyTransaction::read(database).await?;
    let entries = CopyTransaction::read(journal).await?;
    held.roll_back().await?;
    Ok((source, Some(entries)))
}

async fn add_journal(journal: &mut CopyTransaction, archive: &mut CopyTransaction) -> anyhow::Result<u64> {
    let mut rows = 0;
    for table in journal.sqlite_tables().await?.iter().filter(|table| *table != JOURNAL_MIGRATIONS) {
        let into = format!("{JOURNAL_PREFIX}{table}");
        let column = |column: &database::copy::Column| {
            let kind = match column.column_type {
                ColumnType::Integer | ColumnType::Flag => "INTEGER",
                ColumnType::Number | ColumnType::Text => "TEXT",
                ColumnType::Blob => "BLOB",
            };
            format!("{} {kind}", column.name)
        };
        let columns: Vec<String> = journal.columns(table).await?.iter().map(column).collect();
        archive.execute(&format!("CREATE TABLE {into} ({})", columns.join(", "))).await?;
        rows += copy_table(journal, archive, (table.as_str(), into.as_str())).await?;
    }
    Ok(rows)
}

/// A checked copy of an archive, with its schema migrated.
pub struct OpenArchive {
    archive: Database,
    tables: Vec<String>,
    /// Removes the copy on drop.
    _scratch: TempFile,
}

impl OpenArchive {
    /// Opens a copy in `folder`. A copy of one of our SQLite databases is also an archive.
    pub async fn open(path: &Path, folder: &Path) -> anyhow::Result<OpenArchive> {
        if check_sqlite(path, CHECK_BUDGET).await? == Integrity::Empty {
            bail!("{} is missing or empty: it is not a backup", path.display());
        }
        let temp_file = TempFile::beside(folder, "restore");
        let mut copy = fs::File::options();
        let mut copy = copy.write(true).create_new(true).mode(0o600).open(temp_file.path())?;
        std::io::copy(&mut fs::File::open(path)?, &mut copy)
            .with_context(|| format!("cannot copy {}", path.display()))?;
        Self::from_temp_file(temp_file)
            .await
            .with_context(|| format!("{} cannot be restored", path.display()))
    }

    /// For a file written by [`fill`].
    pub async fn from_temp_file(temp_file: TempFile) -> anyhow::Result<OpenArchive> {
        let archive = open_file(temp_file.path()).await?;
        let mut link = CopyTransaction::read(&archive).await?;
        let tables = link.sqlite_tables().await?;
        link.roll_back().await?;
        for table in ["users", "access_migrations"] {
            ensure!(
                tables.iter().any(|known| known == table),
                "neither a backup nor a database of rollcall: it has no table {table}"
            );
        }
        migrate_schema(&archive).await?;
        let mut link = CopyTransaction::read(&archive).await?;
        let tables = link.sqlite_tables().await?;
        link.roll_back().await?;
        Ok(OpenArchive { archive, tables, _scratch: temp_file })
    }

    pub fn has_journal(&self) -> bool {
        self.tables.iter().any(|table| table.starts_with(JOURNAL_PREFIX))
    }

    /// The target database and journal must be empty.
    pub async fn restore(&self, database: &Database, journal: Option<&Path>) -> anyhow::Result<CopyTotals> {
        if let Some(path) = journal {
            ensure!(
                is_new(path),
                "{} exists; nothing was changed: move it away, and try again",
                path.display()
            );
        }
        require_empty(database).await?;
        migrate_schema(database).await?;
        let mut source = CopyTransaction::read(&self.archive).await?;
        let mut target = CopyTransaction::write(database).await?;
        let mut rows = copy_tables(&mut source, &mut target, &self.tables).await?;
        copy_counters((&mut source, Kind::Sqlite), (&mut target, database.kind())).await?;
        let totals = measure(&mut source, rows).await?;
        if let Some(path) = journal.filter(|_| self.has_journal()) {
            rows += self.restore_journal(&mut source, path).await?;
        }
        source.roll_back().await?;
        target.commit().await?;
        Ok(CopyTotals { rows, ..totals })
    }

    async fn restore_journal(&self, source: &mut CopyTransaction, path: &Path) -> anyhow::Result<u64> {
        // Creates the tables.
        drop(SqliteJournal::open(path, system_clock()).await?);
        let file = open_file(path).await?;
        let mut target = CopyTransaction::write(&file).await?;
        target.execute("PRAGMA defer_foreign_keys = ON").await?;
        let mut rows = 0;
        let journal = self.tables.iter().filter(|table| table.starts_with(JOURNAL_PREFIX));
        for table in journal {
            rows += copy_table(source, &mut target, (table.as_str(), &table[JOURNAL_PREFIX.len()..])).await?;
        }
        target.commit().await?;
        file.close().await;
        Ok(rows)
    }

    pub async fn close(self) {
        self.archive.close().await;
    }
}

fn is_new(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(file) => file.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}
