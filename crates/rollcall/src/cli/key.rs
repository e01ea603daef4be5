//! `rollcall key …`

use access::{KeyId, Scope};
use clap::{Args, Subcommand};

/// `rollcall key …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A key is sent with each request to the API, as X-API-Key. What it may do:
  verify   ask whether a passkey is good, as trackers do
  read     read everything but secrets; not verify
  admin    everything

Examples:
  rollcall key create --name tracker-2 --scope verify
  rollcall key create --name statistics --scope read --scope verify --json
  rollcall key revoke 1f0c3a5b")]
pub enum KeyCommand {
    /// Make a key; prints it, this once
    Create(KeyCreateArgs),
    /// List all keys: their names, what they may do, when they were used last
    List,
    /// Make a key stop working, within a second
    Revoke {
        /// The key's id: the first digits behind rck_, or what "key list" shows
        #[arg(value_name = "ID")]
        id: KeyId,
    },
}

/// `rollcall key create …`
#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// Who or what will use it
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What it may do: verify, read or admin (repeatable)
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub scope: Vec<Scope>,
}
