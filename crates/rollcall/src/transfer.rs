//! Copies the whole database: to an archive file, from one, or to a database of another kind.
//!
//! # Layout
//!
//! - this file: copies the tables in one transaction
//! - [`archive`]: backup files: a SQLite database with all tables and those of the embedded journal
//!
//! # Guarantees
//!
//! - The server may run during a backup: database and journal are read at one moment, between two commits of the
//!   ledger, so that a restore gives what a power failure at that moment would have left.
//! - What was written is read back and compared before the commit.
//! - A database with users, torrents or accounts is never written to.
//! - Ids are not reused, also after a restore.
//!
//! # Deliberately absent
//!
//! The change feeds (`access_changes`, `people_changes`): a process reads everything at its start. Redis: it has its
//! own backups. Other files of the data folder, such as the audit trail.

pub mod archive;

use anyhow::{Context, bail, ensure};
use database::copy::CopyTransaction;
use database::{Database, Kind};

/// Derived tables, not copied.
const DERIVED: [&str; 6] = [
    "access_changes",
    "access_trimmed",
    "access_counter",
    "people_changes",
    "people_trimmed",
    archive::INFO_TABLE,
];
/// Prefix of the journal's tables in an archive.
const JOURNAL_PREFIX: &str = "journal__";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyTotals {
    /// In all tables.
    pub rows: u64,
    pub users: u64,
    pub torrents: u64,
    /// In bytes, over all users.
    pub uploaded: u128,
    pub downloaded: u128,
}

/// Runs the migrations of users, accounts, existing sites and friends.
pub async fn migrate_schema(database: &Database) -> anyhow::Result<()> {
    access::Store::on(database.clone()).await?;
    database::migrate(database, ledger::MIGRATIONS).await?;
    database::migrate(database, sites::MIGRATIONS).await?;
    Ok(database::migrate(database, friends::MIGRATIONS).await?)
}

pub async fn is_empty(database: &Database) -> anyhow::Result<bool> {
    let mut link = CopyTransaction::read(database).await?;
    let mut rows = 0;
    for table in ["users", "torrents", "ledger_users"] {
        if !link.columns(table).await?.is_empty() {
            rows += link.number(&format!("SELECT count(*) FROM {table}")).await?.unwrap_or(0);
        }
    }
    link.roll_back().await?;
    Ok(rows == 0)
}

async fn require_empty(database: &Database) -> anyhow::Result<()> {
    if is_empty(database).await? {
        return Ok(());
    }
    let way = match database {
        Database::Sqlite(_) => "move the file away",
        Database::Postgres(_) | Database::MySql(_) => "use an empty database",
    };
    bail!(
        "{} contains users, torrents or accounts; nothing was changed: {way}, and try again",
        database.shown()
    )
}

async fn copy_tables(
    source: &mut CopyTransaction,
    target: &mut CopyTransaction,
    tables: &[String],
) -> anyhow::Result<u64> {
    let mut rows = 0;
    for table in tables.iter().filter(|table| is_data(table)) {
        rows += copy_table(source, target, (table.as_str(), table.as_str())).await?;
    }
    Ok(rows)
}

fn is_data(table: &str) -> bool {
    !DERIVED.contains(&table) && !table.ends_with("_migrations") && !table.starts_with(JOURNAL_PREFIX)
}

async fn copy_table(
    source: &mut CopyTransaction,
    target: &mut CopyTransaction,
    (from, into): (&str, &str),
) -> anyhow::Result<u64> {
    let (columns, classes) = (source.columns(from).await?, target.columns(into).await?);
    let names = |columns: &[database::copy::Column]| -> Vec<String> {
        columns.iter().map(|column| column.name.clone()).collect()
    };
    ensure!(
        !columns.is_empty() && names(&columns) == names(&classes),
        "the table {from} differs between the databases: both must have this version's schema"
    );
    target.execute(&format!("DELETE FROM {into}")).await?;
    let copied = source.copy_into(from, &columns, target, (into, &classes)).await?;
    let written =
        target.checksum(into, &classes).await.with_context(|| format!("cannot read back {into}"))?;
    ensure!(
        copied == written,
        "the copy of table {from} differs ({} of {} rows); nothing was changed",
        written.rows,
        copied.rows
    );
    Ok(copied.rows)
}

/// Tables with automatic ids that must not be reused.
const AUTO_ID_TABLES: [(&str, &str); 2] = [("users", "newest_user_id"), ("torrents", "newest_torrent_id")];

/// Ids of deleted rows must not be reused.
async fn copy_counters(
    (source, kind): (&mut CopyTransaction, Kind),
    (target, into): (&mut CopyTransaction, Kind),
) -> anyhow::Result<()> {
    for (table, counter) in AUTO_ID_TABLES {
        let highest = match kind {
            Kind::Sqlite => format!("SELECT seq FROM sqlite_sequence WHERE name = '{table}'"),
            Kind::Postgres => format!("SELECT last_value - (NOT is_called)::INT FROM {table}_id_seq"),
            Kind::MySql => format!("SELECT {counter} FROM access_counter"),
        };
        let highest = source.number(&highest).await?.unwrap_or(0);
        let set = match into {
            Kind::Sqlite => format!(
                "DELETE FROM sqlite_sequence WHERE name = '{table}';
                 INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {highest})"
            ),
            Kind::Postgres => {
                format!("SELECT setval('{table}_id_seq', greatest({highest}, 1), {highest} > 0)")
            }
            Kind::MySql => {
                format!("UPDATE access_counter SET {counter} = greatest({counter}, {highest})")
            }
        };
        target.execute(&set).await?;
    }
    if into == Kind::Postgres {
        for table in ["ledger_multipliers", "ledger_discounts", "whitelist_generations"] {
            let set = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', 'id'), greatest((SELECT max(id) FROM {table}), 1))"
            );
            target.execute(&set).await?;
        }
    }
    Ok(())
}

async fn measure(archive: &mut CopyTransaction, rows: u64) -> anyhow::Result<CopyTotals> {
    let mut count = async |sql: &str| -> anyhow::Result<u64> {
        Ok(archive.number(sql).await?.unwrap_or(0).unsigned_abs())
    };
    let users = count("SELECT count(*) FROM users").await?;
    let torrents = count("SELECT count(*) FROM torrents").await?;
    let mut sums = [0_u128; 2];
    for (sum, column) in sums.iter_mut().zip(["uploaded", "downloaded"]) {
        // Amounts may exceed 64 bits: the last nine digits and the rest are summed separately.
        let high = format!(
            "SELECT sum(CAST(substr({column}, 1, length({column}) - 9) AS INTEGER)) FROM ledger_users"
        );
        let low = format!("SELECT sum(CAST(substr({column}, -9) AS INTEGER)) FROM ledger_users");
        *sum = u128::from(count(&high).await?) * 1_000_000_000 + u128::from(count(&low).await?);
    }
    Ok(CopyTotals { rows, users, torrents, uploaded: sums[0], downloaded: sums[1] })
}
