//! `rollcall user …`

use access::{LeechSlots, UserName};
use clap::{Args, Subcommand};
use domain::{Passkey, TorrentId, UserId};

use super::sync;

const SLOTS_HELP_USER: &str = "\
A user occupies one slot for each torrent that any of their clients leeches, until it is complete, stopped or expired.
\"default\" is limits.leeches_per_user_max of the configuration. Current downloads continue; no new ones start above
the limit.

Examples:
  rollcall user set 7 --leech-slots 3
  rollcall user set 7 --leech-slots default
  rollcall user set 7 --name Ada
  rollcall user set 7 --name \"\"               remove the name";

/// `rollcall user …`
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user and print the passkey
    #[command(after_help = "\
Examples:
  rollcall user add --id 7
  rollcall user add --id 7 --passkey 0123456789abcdef0123456789abcdef --json")]
    Add {
        /// The user's id on your site; the next free one if omitted
        #[arg(long, value_name = "N")]
        id: Option<UserId>,
        /// The passkey; 32 random digits if omitted
        #[arg(long, value_name = "HEX")]
        passkey: Option<Passkey>,
        /// A display name, up to 100 characters
        #[arg(long, value_name = "NAME")]
        name: Option<UserName>,
    },
    /// List all users
    List {
        /// Show passkeys in full instead of their first digits
        #[arg(long)]
        show_passkeys: bool,
    },
    /// Show a user with the full passkey and totals
    Show {
        /// The user's id
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// List what a user seeds right now, newest announce first
    Seeding(ActiveArgs),
    /// List what a user leeches right now, newest announce first
    Leeching(ActiveArgs),
    /// List a user's account on each torrent
    Torrents {
        /// The user's id
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Explain a user's figures: totals of each client, and the announces that are still recorded
    #[command(after_help = WHY_HELP)]
    Why(WhyArgs),
    /// List a user's hit-and-runs: torrents downloaded and not seeded long enough
    HitAndRuns {
        /// The user's id
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Remove a user; the passkey becomes invalid
    Remove {
        /// The user's id
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Enable a disabled user
    Enable {
        /// The user's id
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Disable a user: announces are refused; the passkey is kept
    Disable {
        /// The user's id
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Set a user's name or leech slots
    #[command(after_help = SLOTS_HELP_USER)]
    Set(UserSetArgs),
    /// Write the keys of enabled users to Redis (t:user:*), for other programs
    #[command(after_help = sync::HELP)]
    Sync(sync::SyncArgs),
}

const WHY_HELP: &str = "\
The same as the page \"Why\" of the dashboard. The journal keeps announces for journal.keep_s after they were applied;
older ones are only in the totals.

Examples:
  rollcall user why 7
  rollcall user why 7 --torrent 12 --json";

/// `rollcall user why …`
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The user's id
    #[arg(value_name = "ID")]
    pub id: UserId,
    /// Only on this torrent
    #[arg(long, value_name = "ID")]
    pub torrent: Option<TorrentId>,
    /// At most this many announces, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// `rollcall user set …`
#[derive(Debug, Args)]
pub struct UserSetArgs {
    /// The user's id
    #[arg(value_name = "ID")]
    pub id: UserId,
    /// Torrents the user may leech at once; 0 allows seeding only
    #[arg(long, value_name = "N|default|unlimited", required_unless_present = "name")]
    pub leech_slots: Option<LeechSlots>,
    /// The display name, up to 100 characters; "" removes it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// `rollcall user seeding …` and `rollcall user leeching …`
#[derive(Debug, Args)]
pub struct ActiveArgs {
    /// The user's id
    #[arg(value_name = "ID")]
    pub id: UserId,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: u32,
}
