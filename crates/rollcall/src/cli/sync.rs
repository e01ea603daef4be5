//! `rollcall torrent sync`, `rollcall user sync`, `rollcall client sync`.

use clap::Args;

pub const HELP: &str = "\
Only keys that differ are written, including keys that the site wrote. A running server with the role mirror keeps the
copies current and does not change the site's own keys. Disabled rows have no key. docs/redis.md describes the keys.

Examples (rollcall user sync and rollcall client sync take the same options):
  rollcall torrent sync --dry-run    how many keys would change
  rollcall torrent sync              write missing and different keys
  rollcall torrent sync --flush      and remove keys without a row in the database, including the site's own";

#[derive(Clone, Copy, Debug, Args)]
pub struct SyncArgs {
    /// Remove keys that have no row in the database
    #[arg(long)]
    pub flush: bool,
    /// Change nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// With --flush, remove all keys if the database is empty
    #[arg(long, requires = "flush")]
    pub allow_empty: bool,
}
