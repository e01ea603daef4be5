//! `rollcall multiplier …`

use clap::{Args, Subcommand};
use domain::{TorrentId, UserId};
use ledger::Percent;

use crate::moment::Moment;

/// `rollcall multiplier …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Raw figures stay what they are; multipliers change only what is credited. Of several in force, the most generous
counts in each direction.

Examples:
  rollcall multiplier add --download 0 --note \"free weekend\" --until 48h
  rollcall multiplier add --torrent 12 --download 50
  rollcall multiplier add --user 7 --upload 200")]
pub enum MultiplierCommand {
    /// Add one: for the whole site, or for one torrent or user
    Add(MultiplierAddArgs),
    /// List all
    List,
    /// End one; it stays in the list with its end, so that what it did can be explained
    #[command(alias = "end")]
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
    /// From when on: a time from now such as 2h, a date (2026-12-24, 2026-12-24T18:00, both UTC), or seconds since 1970;
    /// from now on if left out
    #[arg(long, value_name = "WHEN")]
    pub from: Option<Moment>,
    /// Until when, likewise: 48h, 7d, 2026-12-31; until it is ended if left out
    #[arg(long, value_name = "WHEN")]
    pub until: Option<Moment>,
    /// Why, for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}
