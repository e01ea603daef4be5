//! `rollcall friend …`

use std::path::PathBuf;

use clap::Subcommand;
use domain::UserId;

/// `rollcall friend …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Friends see each other's status, unless one of them has chosen otherwise. A friendship has no direction. Users are named
by their numbers on your site, and need not be known to the tracker. A running server takes up changes within a second.

Examples:
  rollcall friend add 7 9
  rollcall friend list 7 --json
  rollcall friend import friends.csv")]
pub enum FriendCommand {
    /// Make two users friends
    Add {
        /// The number of one
        #[arg(value_name = "USER")]
        one: UserId,
        /// The number of the other
        #[arg(value_name = "FRIEND")]
        other: UserId,
    },
    /// End a friendship
    Remove {
        /// The number of one
        #[arg(value_name = "USER")]
        one: UserId,
        /// The number of the other
        #[arg(value_name = "FRIEND")]
        other: UserId,
    },
    /// List the friends of a user, and since when
    List {
        /// The user's number
        #[arg(value_name = "USER")]
        user: UserId,
    },
    /// Add many friendships from a file
    #[command(after_help = "\
One pair a line, such as 7,9 or 7 9; empty lines and lines that begin with # are passed over. A thousand pairs are added
at a time. Where a line is wrong the import stops, and says which line it is and up to which line all is in. Importing
the same again does no harm: who is a friend already stays one.

Examples:
  rollcall friend import friends.csv
  mysql site -Ne \"SELECT user_id, friend_id FROM friends\" | rollcall friend import -")]
    Import {
        /// The pairs; standard input if it is -
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}
