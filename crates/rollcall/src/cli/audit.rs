//! `rollcall audit …`

use std::path::PathBuf;

use admin::audit::LineHash;
use clap::{Args, Subcommand};

/// `rollcall audit …`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List changes and who made them, newest first
    #[command(after_help = "\
Examples:
  rollcall audit list
  rollcall audit list --action user.remove --limit 10
  rollcall audit list --action passkey. --json")]
    List(AuditListArgs),
    /// Verify the hash chain: no line was changed, removed or added
    #[command(after_help = "\
Exit code 0 if the chain is intact, 1 if not.

An end that was cut off, and records rewritten together with their hashes, can only be detected with a hash stored
elsewhere: store the last hash that this command prints, and pass it with --expect-last the next time.

Examples:
  rollcall audit verify
  rollcall audit verify --expect-last 1f0c…
  rollcall audit verify /backup/audit.log")]
    Verify {
        /// An archived trail; the trail of the data folder if omitted
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// A former last hash, which must still be in the chain
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
    /// Only this action, such as user.add; or a prefix that ends with a dot, such as "user." for all actions on users
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Only records with lower sequence numbers
    #[arg(long, value_name = "SEQ")]
    pub before: Option<u64>,
}
