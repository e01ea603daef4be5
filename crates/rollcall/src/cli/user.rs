//! `rollcall user …`

use access::{LeechSlots, UserName};
use clap::{Args, Subcommand};
use domain::{Passkey, TorrentId, UserId};

use super::sync;

const SLOTS_HELP_USER: &str = "\
A user takes a slot for each torrent that any of their clients leeches, and gives it back when it is complete, stopped
or silent for too long. \"default\" is limits.leeches_per_user_max of the configuration. Who leeches more already goes on;
nothing more is begun.

Examples:
  rollcall user set 7 --leech-slots 3
  rollcall user set 7 --leech-slots default
  rollcall user set 7 --name Ada
  rollcall user set 7 --name \"\"               no name any more";

/// `rollcall user …`
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Let a user announce; prints the passkey
    #[command(after_help = "\
Examples:
  rollcall user add --id 7
  rollcall user add --id 7 --passkey 0123456789abcdef0123456789abcdef --json")]
    Add {
        /// The user's number on your site; the next free one if left out
        #[arg(long, value_name = "N")]
        id: Option<UserId>,
        /// The passkey to give; a random one of 32 digits if left out
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
    /// Show a user, with the passkey in full, and what they moved
    Show {
        /// The user's number
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// List what a user seeds right now, newest announce first
    Seeding(ActiveArgs),
    /// List what a user leeches right now, newest announce first
    Leeching(ActiveArgs),
    /// List a user's account on each torrent
    Torrents {
        /// The user's number
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Say why a user's figures are what they are: what each client brought, and the announces that are still recorded
    #[command(after_help = WHY_HELP)]
    Why(WhyArgs),
    /// List the torrents that a user took and did not seed for long enough
    HitAndRuns {
        /// The user's number
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Remove a user; the passkey stops working
    Remove {
        /// The user's number
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Let a disabled user announce again
    Enable {
        /// The user's number
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Refuse a user's announces, but keep the user and the passkey
    Disable {
        /// The user's number
        #[arg(value_name = "ID")]
        id: UserId,
    },
    /// Name a user; limit how many torrents they may leech at once
    #[command(after_help = SLOTS_HELP_USER)]
    Set(UserSetArgs),
    /// Load the keys of users who may announce into Redis (t:user:*), for programs that read them
    #[command(after_help = sync::HELP)]
    Sync(sync::SyncArgs),
}

const WHY_HELP: &str = "\
What the page \"Why\" of the dashboard shows. The journal keeps announces for journal.keep_s after they were counted; what
is older is in the figures and clients alone.

Examples:
  rollcall user why 7
  rollcall user why 7 --torrent 12 --json";

/// `rollcall user why …`
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The user's number
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
    /// The user's number
    #[arg(value_name = "ID")]
    pub id: UserId,
    /// How many torrents they may leech at once; 0 for none, so that they can only seed
    #[arg(long, value_name = "N|default|unlimited", required_unless_present = "name")]
    pub leech_slots: Option<LeechSlots>,
    /// The display name, up to 100 characters; "" removes it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// `rollcall user seeding …` and `rollcall user leeching …`
#[derive(Debug, Args)]
pub struct ActiveArgs {
    /// The user's number
    #[arg(value_name = "ID")]
    pub id: UserId,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: u32,
}
