//! `rollcall audit …`

use std::path::PathBuf;

use access::audit::LineHash;
use clap::{Args, Subcommand};

/// `rollcall audit …`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List what was changed and by whom, newest first
    #[command(after_help = "\
Examples:
  rollcall audit list
  rollcall audit list --action user.remove --limit 10
  rollcall audit list --action passkey. --json")]
    List(AuditListArgs),
    /// Check that no line was changed, removed or added
    #[command(after_help = "\
Exit code 0 if the chain is intact, 1 if not.

Records that were rewritten together with their hashes and the anchor show only against a hash that was kept elsewhere: keep
the last hash that this command prints, and give it with --expect-last the next time.

Examples:
  rollcall audit verify
  rollcall audit verify --expect-last 1f0c…
  rollcall audit verify /backup/audit.log*")]
    Verify {
        /// The files to check, as one chain; default: the trail of the data folder
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The hash of a record that must exist
        #[arg(long, value_name = "HASH")]
        expect_last: Option<LineHash>,
    },
}

/// `rollcall audit list …`
#[derive(Debug, Args)]
pub struct AuditListArgs {
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Only this action, such as user.add, or all that begin with it if it ends in a dot: user.
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Only records with lower numbers
    #[arg(long, value_name = "SEQ")]
    pub before: Option<u64>,
}
