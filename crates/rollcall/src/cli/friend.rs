//! `rollcall friend …`

use std::path::PathBuf;

use clap::Subcommand;
use domain::UserId;

/// `rollcall friend …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Friends see each other's status, unless their privacy settings forbid it. Friendship is mutual. Users are given by
their ids on your site and need not exist in the tracker. Changes take effect within a second.

Examples:
  rollcall friend add 7 9
  rollcall friend list 7 --json
  rollcall friend import friends.csv")]
pub enum FriendCommand {
    /// Add a friendship between two users
    Add {
        /// The id of one user
        #[arg(value_name = "USER")]
        one: UserId,
        /// The id of the other user
        #[arg(value_name = "FRIEND")]
        other: UserId,
    },
    /// Remove a friendship
    Remove {
        /// The id of one user
        #[arg(value_name = "USER")]
        one: UserId,
        /// The id of the other user
        #[arg(value_name = "FRIEND")]
        other: UserId,
    },
    /// List the friends of a user, and since when
    List {
        /// The user's id
        #[arg(value_name = "USER")]
        user: UserId,
    },
    /// Add many friendships from a file
    #[command(after_help = "\
One pair per line, such as 7,9 or 7 9; empty lines and lines starting with # are skipped. Pairs are added in batches of
a thousand. At an invalid line the import stops and prints its number and the last line imported. Importing the same
pairs again is harmless.

Examples:
  rollcall friend import friends.csv
  mysql site -Ne \"SELECT user_id, friend_id FROM friends\" | rollcall friend import -")]
    Import {
        /// The pairs; standard input if -
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}
