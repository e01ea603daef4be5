//! `rollcall backup`, `rollcall restore` and `rollcall migrate`.

use std::path::PathBuf;

use clap::Args;

/// Behind the help of `rollcall backup`.
pub const BACKUP_HELP: &str = "\
One file with everything that the database holds (users, torrents, accounts, friendships, keys), whatever its kind, and
the journal of the data folder. The server may run meanwhile: the file shows one moment. It holds every passkey, and only
its owner may read it. Not in it: Redis, the audit trail, certificates.

Examples:
  rollcall backup --data /var/lib/rollcall rollcall-2026-01-31.backup
  rollcall backup --json /srv/backups/$(date +%F).backup";

/// Behind the help of `rollcall restore`.
pub const RESTORE_HELP: &str = "\
ReadinessInputs a database without users, torrents and accounts, and a data folder without a journal: move old ones away first. A
backup of an older version, and a plain copy of rollcall.db, are brought up to date. The kind of database may be another
than that of the backup. Where anything is wrong, nothing is changed.

Examples:
  rollcall restore --data /var/lib/rollcall rollcall-2026-01-31.backup
  rollcall restore --set database.url=postgres://rollcall@localhost/rollcall rollcall-2026-01-31.backup";

/// Behind the help of `rollcall migrate`.
pub const MIGRATE_HELP: &str = "\
Copies everything from the database in use into another one, which must be empty, reads it again and compares. Stop the
server first, on every machine. The database in use stays as it is; set database.url to the new one afterwards.

Examples:
  rollcall migrate --to postgres://rollcall:PASSWORD@localhost/rollcall
  rollcall migrate --set database.url=mysql://rollcall@localhost/rollcall --to sqlite:data/rollcall.db";

/// `rollcall backup …`, `rollcall restore …`
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The backup
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
