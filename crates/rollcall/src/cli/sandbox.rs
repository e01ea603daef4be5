//! `rollcall sandbox …`

use clap::{Args, Subcommand};

use crate::announce_url::BaseUrl;

pub const HELP: &str = "\
Users and torrents get ids from 900000001 on, which are reserved for this; their files are in the folder sandbox/ of the
data folder. Creating it again changes nothing. The server may run, and must for most of the printed commands.

Examples:
  rollcall sandbox
  rollcall sandbox --users 5 --torrents 3 --json
  rollcall sandbox clear";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SandboxArgs {
    #[command(subcommand)]
    pub command: Option<SandboxCommand>,
    /// Number of users
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub users: u32,
    /// Number of torrents
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub torrents: u32,
    /// Base URL of the tracker for clients, if not the addresses it listens on
    #[arg(long, value_name = "URL")]
    pub base: Option<BaseUrl>,
}

/// `rollcall sandbox clear`
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Remove the sandbox: its users, torrents, passkeys and files
    #[command(after_help = "\
Removes the users that \"rollcall sandbox\" created, with their passkeys, the sample torrents, the consumer
group \"sandbox\" in Redis, and the folder sandbox/ in the data folder with all downloads.
The accounts of the test users stay, as for
every removed user: pending entries would recreate them.")]
    Clear,
}
