//! `rollcall sandbox …`

use clap::{Args, Subcommand};

use crate::announce_url::BaseUrl;

/// Behind the help of `rollcall sandbox`.
pub const HELP: &str = "\
Users and torrents get numbers from 900000001 on, which are kept free for this; their files are in the folder sandbox/
of the data folder. Made twice, it stays the same sandbox. The server may run meanwhile, and has to for most of what is
printed.

Examples:
  rollcall sandbox
  rollcall sandbox --users 5 --torrents 3 --json
  rollcall sandbox clear";

/// What `rollcall sandbox` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SandboxArgs {
    /// What to do instead of making a sandbox.
    #[command(subcommand)]
    pub command: Option<SandboxCommand>,
    /// How many users
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub users: u32,
    /// How many torrents
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub torrents: u32,
    /// How clients reach the tracker, if not by the addresses it listens on
    #[arg(long, value_name = "URL")]
    pub base: Option<BaseUrl>,
}

/// `rollcall sandbox clear`
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Remove the sandbox: its users, torrents, passkeys and files
    #[command(after_help = "\
Removes the users that \"rollcall sandbox\" made, with their passkeys, the sample torrents, the consumer group \"sandbox\" in Redis,
and the folder sandbox/ in the data folder with all that was downloaded there. What the test users moved stays in the
accounts, as it does for everybody who leaves: entries that are still on their way would bring it back anyway.")]
    Clear,
}
