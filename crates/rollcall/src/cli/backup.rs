//! `rollcall backup`, `rollcall restore` and `rollcall migrate`.

use std::path::PathBuf;

use clap::Args;

pub const BACKUP_HELP: &str = "\
One file with the whole database (users, torrents, accounts, friendships, keys), whatever its kind, and the journal of
the data folder. The server may run: the file is a consistent snapshot. It contains every passkey and is readable by its
owner only. Not included: Redis, the audit trail, certificates.

Examples:
  rollcall backup --data /var/lib/rollcall rollcall-2026-01-31.backup
  rollcall backup --json /srv/backups/$(date +%F).backup";

pub const RESTORE_HELP: &str = "\
The database must have no users, torrents or accounts, and the data folder no journal: move old ones away first.
Backups of older versions, and plain copies of rollcall.db, are migrated. The database may be of another kind than that
of the backup. On any error, nothing is changed.

Examples:
  rollcall restore --data /var/lib/rollcall rollcall-2026-01-31.backup
  rollcall restore --set database.url=postgres://rollcall@localhost/rollcall rollcall-2026-01-31.backup";

pub const MIGRATE_HELP: &str = "\
Copies everything from the current database to an empty one, reads it back and compares. Stop the server first, on
every machine. The current database is not changed; set database.url to the new one afterwards.

Examples:
  rollcall migrate --to postgres://rollcall:PASSWORD@localhost/rollcall
  rollcall migrate --set database.url=mysql://rollcall@localhost/rollcall --to sqlite:data/rollcall.db";

/// `rollcall backup …`, `rollcall restore …`
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The backup file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `rollcall migrate …`
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The empty database: sqlite:PATH, postgres://… or mysql://…
    #[arg(long, value_name = "URL")]
    pub to: String,
}
