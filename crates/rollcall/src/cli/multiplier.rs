//! `rollcall multiplier …`

use clap::{Args, Subcommand};
use domain::{TorrentId, UserId};
use ledger::Percent;

use crate::time_argument::TimeArgument;

/// `rollcall multiplier …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Multipliers change only credited bytes, not raw ones. If several apply, the most generous one counts for each
direction.

Examples:
  rollcall multiplier add --download 0 --note \"free weekend\" --until 48h
  rollcall multiplier add --torrent 12 --download 50
  rollcall multiplier add --user 7 --upload 200")]
pub enum MultiplierCommand {
    /// Add a multiplier: for the whole site, or for one torrent or user
    Add(MultiplierAddArgs),
    /// List all multipliers
    List,
    /// End a multiplier; it stays in the list with its end
    #[command(alias = "end")]
    Remove {
        /// Its id
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
    /// Percentage of uploaded bytes that is credited
    #[arg(long, value_name = "PERCENT", default_value = "100")]
    pub upload: Percent,
    /// Percentage of downloaded bytes that is credited
    #[arg(long, value_name = "PERCENT", default_value = "100")]
    pub download: Percent,
    /// Start: a duration from now such as 2h, a date (2026-12-24, 2026-12-24T18:00, both UTC), or seconds since 1970;
    /// now if omitted
    #[arg(long, value_name = "WHEN")]
    pub from: Option<TimeArgument>,
    /// End, likewise: 48h, 7d, 2026-12-31; open-ended if omitted
    #[arg(long, value_name = "WHEN")]
    pub until: Option<TimeArgument>,
    /// A note
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}
