//! `rollcall multiplier …`

use clap::{Args, Subcommand};
use domain::{TorrentId, UserId};
use ledger::Percent;

/// `rollcall multiplier …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Raw figures stay what they are; multipliers change only what is credited. Of several in force, the most generous
counts in each direction.

Examples:
  rollcall multiplier add --download 0 --note \"free weekend\" --until 1794900000
  rollcall multiplier add --torrent 12 --download 50
  rollcall multiplier add --user 7 --upload 200")]
pub enum MultiplierCommand {
    /// Add one: for the whole site, or for one torrent or user
    Add(MultiplierAddArgs),
    /// List all
    List,
    /// Remove one
    Remove {
        /// Its number
        #[arg(value_name = "N")]
        id: u64,
    },
}

/// `rollcall multiplier add …`
#[derive(Debug, Args)]
pub struct MultiplierAddArgs {
    /// Only for this torrent
    #[arg(long, value_name = "ID", conflicts_with = "user")]
    pub torrent: Option<TorrentId>,
    /// Only for this user
    #[arg(long, value_name = "ID")]
    pub user: Option<UserId>,
    /// How much of what is uploaded counts, in percent
    #[arg(long, value_name = "PERCENT", default_value = "100")]
    pub upload: Percent,
    /// How much of what is downloaded counts, in percent
    #[arg(long, value_name = "PERCENT", default_value = "100")]
    pub download: Percent,
    /// From when on, in seconds since 1970; from now on if left out
    #[arg(long, value_name = "SECONDS")]
    pub from: Option<u32>,
    /// Until when, in seconds since 1970; until it is removed if left out
    #[arg(long, value_name = "SECONDS")]
    pub until: Option<u32>,
    /// Why, for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}
