//! `rollcall token …`

use clap::Args;
use domain::UserId;

pub const HELP: &str = "\
Prints the token only; --json adds details. A token allows connecting as this user until it expires. In production your
site issues one when a member opens a page, signed with gateway.token_hmac_secret, with sub = the user's id as a string.
Without that setting, the secret is the one that \"rollcall serve\" generated in the data folder (gateway.secret). Each
token created here is recorded in the audit trail, without the token itself.

Examples:
  rollcall token 7
  rollcall token 7 --ttl 600 --json
  rollcall token 7 --room lobby";

/// `rollcall token …`
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The user's id
    #[arg(value_name = "USER")]
    pub user: UserId,
    /// Lifetime in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub ttl: u32,
    /// Create a token for entering this room, where gateway.room_access is "token"; it cannot be used to connect
    #[arg(long, value_name = "NAME")]
    pub room: Option<String>,
}
