//! `rollcall token …`

use clap::Args;
use domain::UserId;

/// Behind the help of `rollcall token`.
pub const HELP: &str = "\
Prints the token alone, or more about it with --json. A token lets whoever has it connect as this user until it runs
out: your site makes one for each of its members when they open a page, with the secret gateway.token_hmac_secret and
sub = the user's number as a text. Without that setting, the secret is the one that \"rollcall serve\" made in the data
folder (gateway.secret). Each token made here is recorded in the audit trail, without the token.

Examples:
  rollcall token 7
  rollcall token 7 --ttl 600 --json
  rollcall token 7 --room lobby";

/// `rollcall token …`
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The user's number
    #[arg(value_name = "USER")]
    pub user: UserId,
    /// How many seconds it is good for
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub ttl: u32,
    /// Make one that lets the user enter this room, where gateway.room_access is "token"; not one to connect with
    #[arg(long, value_name = "NAME")]
    pub room: Option<String>,
}
