//! `rollcall port …`

use access::PortRange;
use clap::Subcommand;

/// `rollcall port …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A client that listens on a banned port is refused with a reason; its `stopped` is still accepted. Peers on
such ports are evicted within a second. Ports below 1024 need no ban: they are never returned to clients.

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
        /// A note
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Allow these ports again; a banned range that extends further is cut
    Allow {
        /// One port such as 6881, or a range such as 6881-6889
        #[arg(value_name = "PORT|FIRST-LAST")]
        ports: PortRange,
    },
    /// List all banned ports
    List,
}
