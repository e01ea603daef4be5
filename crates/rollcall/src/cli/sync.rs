//! `rollcall torrent sync`, `rollcall user sync`, `rollcall client sync`.

use clap::Args;

/// What the help of all three ends with.
pub const HELP: &str = "\
Only keys that differ are written, also over those that the site wrote. A running server with the role mirror keeps the
copies by itself, and leaves the site's own keys alone. Disabled ones have no key. docs/redis.md describes the keys.

Examples:
  rollcall torrent sync --dry-run    how many keys would change
  rollcall torrent sync              write those that are missing or wrong
  rollcall torrent sync --flush      and remove those that the database knows nothing of, the site's own included";

/// How keys are loaded.
#[derive(Clone, Copy, Debug, Args)]
pub struct SyncArgs {
    /// Remove keys of which the database knows nothing
    #[arg(long)]
    pub flush: bool,
    /// Change nothing, and say what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// With --flush, remove all keys where the database has nothing at all
    #[arg(long, requires = "flush")]
    pub allow_empty: bool,
}
