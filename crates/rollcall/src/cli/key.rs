//! `rollcall key …`

use admin::{KeyId, Scope};
use clap::{Args, Subcommand};

/// `rollcall key …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A key is sent with each API request, as X-API-Key. Scopes:
  verify   verify passkeys, as trackers do
  read     read everything but secrets; not verify
  admin    everything

Examples:
  rollcall key create --name tracker-2 --scope verify
  rollcall key create --name statistics --scope read --scope verify --json
  rollcall key revoke 1f0c3a5b")]
pub enum KeyCommand {
    /// Create a key and print it; it is shown only once
    Create(KeyCreateArgs),
    /// List all keys: names, scopes, last use
    List,
    /// Revoke a key; takes effect within a second
    Revoke {
        /// The key's id: the first digits after rck_, as shown by "key list"
        #[arg(value_name = "ID")]
        id: KeyId,
    },
}

/// `rollcall key create …`
#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// A name for its use
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Scope: verify, read or admin (repeatable)
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub scope: Vec<Scope>,
}
