//! `rollcall port …`

use access::PortRange;
use clap::Subcommand;

/// `rollcall port …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A client that listens on a banned port is refused, with the advice to choose another; it may still say goodbye. Peers
that listen there leave their swarms within a second. Ports below 1024 need no ban: they are never handed out.

Examples:
  rollcall port ban 6881-6889 --reason \"throttled by many networks\"
  rollcall port allow 6885
  rollcall port list --json")]
pub enum PortCommand {
    /// Refuse clients that listen on these ports
    Ban {
        /// One port such as 6881, or a range such as 6881-6889
        #[arg(value_name = "PORT|FIRST-LAST")]
        ports: PortRange,
        /// Why, for people
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Let clients listen on these ports again; a banned range that reaches further is cut
    Allow {
        /// One port such as 6881, or a range such as 6881-6889
        #[arg(value_name = "PORT|FIRST-LAST")]
        ports: PortRange,
    },
    /// List all banned ports
    List,
}
