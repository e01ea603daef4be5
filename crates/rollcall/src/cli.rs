//! The command line: what can be written, and the help operators read.

pub mod audit;
mod backup;
pub mod demo;
mod friend;
mod health;
mod journal;
pub mod key;
mod multiplier;
mod port;
mod sandbox;
pub mod sync;
pub mod token;
mod user;

use std::path::PathBuf;

use access::{ClientPrefix, LeechSlots};
use clap::{Args, Parser, Subcommand};
use domain::{InfoHash, Passkey, TorrentId, UserId};

use crate::announce_url::BaseUrl;
use crate::command::torrent::TorrentRef;
use crate::roles::Roles;

pub use self::journal::{DeadLetterCommand, DeadLetterSelection, JournalCommand, ViewName};
pub use friend::FriendCommand;
pub use multiplier::{MultiplierAddArgs, MultiplierCommand};
pub use port::PortCommand;
pub use sandbox::{SandboxArgs, SandboxCommand};
pub use user::{ActiveArgs, UserCommand, UserSetArgs, WhyArgs};

const EXAMPLES: &str = "\
Examples:
  rollcall demo                            look at it alive: a server with a world in it
  rollcall serve                           start on loopback, port 6969, with data in ./data
  rollcall user add --id 7                 let user 7 announce, with a new passkey
  rollcall torrent add file.torrent        let a torrent be announced
  rollcall torrent announce-url --user 7   what user 7 puts into a client
  rollcall user show 7                     what user 7 moved
  rollcall journal status                  whether the accounts are up to date
  rollcall config print > rollcall.toml    every setting, explained
  rollcall serve --config rollcall.toml    start with it

All other commands can be used while the server runs: it takes up changes within a second.";

const SLOTS_HELP_TORRENT: &str = "\
\"default\" is limits.leeches_per_torrent_max of the configuration. Who leeches it already goes on.

Examples:
  rollcall torrent set 12 --leech-slots 20
  rollcall torrent set 12 --leech-slots unlimited";

const TORRENT_ADD_USAGE: &str = "\
rollcall torrent add [OPTIONS] <FILE.torrent>
       rollcall torrent add [OPTIONS] --infohash <HEX> --name <NAME>";

/// A private BitTorrent tracker with exact accounts.
#[derive(Debug, Parser)]
#[command(name = "rollcall", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct GlobalArgs {
    /// Read settings from this TOML file
    #[arg(long, global = true, value_name = "FILE", env = "ROLLCALL_CONFIG")]
    pub config: Option<PathBuf>,
    /// Keep the database, the journal and the lists here [default: ./data]
    #[arg(long, global = true, value_name = "DIR", env = "ROLLCALL_DATA")]
    pub data: Option<PathBuf>,
    /// Override one setting, such as tracker.announce_interval_s=900 (repeatable)
    #[arg(long, global = true, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Print JSON, one object, for scripts
    #[arg(long, global = true)]
    pub json: bool,
}

impl GlobalArgs {
    /// The data folder.
    pub fn data_folder(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from("./data"))
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server
    #[command(after_help = "\
Examples:
  rollcall serve
  rollcall serve --config rollcall.toml --data /var/lib/rollcall
  rollcall serve --set tracker.udp_addr=0.0.0.0:6969 --set log.level=debug
  rollcall serve --roles ledger,activity --set redis.url=redis://10.0.0.5
  rollcall serve --data /var/lib/rollcall --take-over     an upgrade: start the new version beside the old one

SIGTERM and Ctrl-C stop it after answering what is in flight; SIGHUP reads the configuration again.")]
    Serve {
        /// What this process does: any of tracker, ledger, activity, mirror, gateway, site; everything if left out
        #[arg(long, value_name = "ROLES")]
        roles: Option<Roles>,
        /// Take the place of the server that runs on the same data folder, without a client noticing; that one ends.
        /// Where none runs, just start. A version that brings the tables up to date does so before it takes over: should it
        /// fail, the one that runs serves on, but an older version does not start on newer tables
        #[arg(long)]
        take_over: bool,
    },
    /// Add, list and change users
    #[command(subcommand, arg_required_else_help = true)]
    User(UserCommand),
    /// Change and check passkeys; keep the whitelist of a site with users of its own
    #[command(subcommand, arg_required_else_help = true)]
    Passkey(PasskeyCommand),
    /// Add, list and change torrents; print announce URLs
    #[command(subcommand, arg_required_else_help = true)]
    Torrent(TorrentCommand),
    /// Say which BitTorrent clients may announce
    #[command(subcommand, arg_required_else_help = true)]
    Client(ClientCommand),
    /// Say on which ports BitTorrent clients may not listen
    #[command(subcommand, arg_required_else_help = true)]
    Port(PortCommand),
    /// Say who knows whom: friends see each other's status
    #[command(subcommand, arg_required_else_help = true)]
    Friend(FriendCommand),
    /// Make, list and revoke keys of the API
    #[command(subcommand, arg_required_else_help = true)]
    Key(key::KeyCommand),
    /// Make a token with which a person connects, to try things out
    #[command(after_help = token::HELP)]
    Token(token::TokenArgs),
    /// Let bytes count more or less than they are, for a while
    #[command(subcommand, arg_required_else_help = true)]
    Multiplier(MultiplierCommand),
    /// Look at the journal; pause and resume views
    #[command(subcommand, arg_required_else_help = true)]
    Journal(JournalCommand),
    /// Look at dead letters: entries that could not be taken and are tried again
    #[command(subcommand, arg_required_else_help = true)]
    Dlq(DeadLetterCommand),
    /// Look at failed entries: those that were given up
    #[command(subcommand, arg_required_else_help = true)]
    Failed(DeadLetterCommand),
    /// See who changed what, and check that nobody touched the account of it
    #[command(subcommand, arg_required_else_help = true)]
    Audit(audit::AuditCommand),
    /// Print and check settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Check everything the server stands on, and say how to mend what is wrong
    #[command(after_help = health::DOCTOR_HELP)]
    Doctor,
    /// Print what the API can do, as OpenAPI 3.1: what /openapi.json of a server says
    #[command(after_help = "\
Examples:
  rollcall openapi > openapi.json
  rollcall openapi --json | jq '.paths | keys'")]
    Openapi,
    /// Ask the running server whether it is alive
    #[command(after_help = health::PING_HELP)]
    Ping,
    /// Make a backup of the database and the journal; the server may run
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(backup::BackupArgs),
    /// Bring a backup back, into an empty database
    #[command(after_help = backup::RESTORE_HELP)]
    Restore(backup::BackupArgs),
    /// Copy everything into a database of another kind
    #[command(after_help = backup::MIGRATE_HELP)]
    Migrate(backup::MigrateArgs),
    /// Make test users, passkeys and sample torrents, and print commands to try them with
    #[command(after_help = sandbox::HELP)]
    Sandbox(SandboxArgs),
    /// Start a server with a living world in it, to look at: torrents, peers, people
    #[command(after_help = demo::HELP)]
    Demo(demo::DemoArgs),
}

/// `rollcall passkey …`
#[derive(Debug, Subcommand)]
pub enum PasskeyCommand {
    /// Give a user a new passkey; the old one stops working
    #[command(after_help = "Example:\n  rollcall passkey rotate --user 7")]
    Rotate {
        /// The user's number
        #[arg(long, value_name = "ID")]
        user: UserId,
        /// The new passkey; a random one of 32 digits if left out
        #[arg(long, value_name = "HEX")]
        passkey: Option<Passkey>,
    },
    /// Say whether a passkey works: whose it is, and whether it is on the whitelist
    #[command(after_help = "\
Exit code 0 if it works, 1 if not: a user who is not disabled has it, or nobody has it and it is on the whitelist.
Whether your site's verify endpoint would vouch for it is not asked.")]
    Check {
        /// The passkey
        #[arg(value_name = "HEX")]
        passkey: Passkey,
    },
    /// Put passkeys on the whitelist
    #[command(after_help = "Example:\n  rollcall passkey add 0123456789abcdef0123456789abcdef")]
    Add {
        /// The passkeys
        #[arg(value_name = "HEX", required = true)]
        passkeys: Vec<Passkey>,
    },
    /// Take passkeys off the whitelist
    #[command(after_help = "Example:\n  rollcall passkey remove 0123456789abcdef0123456789abcdef")]
    Remove {
        /// The passkeys
        #[arg(value_name = "HEX", required = true)]
        passkeys: Vec<Passkey>,
    },
    /// Say how many passkeys are on the whitelist
    Count,
    /// Replace the whole whitelist, at once
    #[command(after_help = "\
One passkey a line, of 8 to 64 hexadecimal digits; empty lines and lines that begin with # are passed over. Any other
line is an error, and nothing changes. Announces go on meanwhile by the old list, and by the new one from one moment to
the next. The old list is kept: \"rollcall passkey undo\" goes back.

Examples:
  rollcall passkey refresh passkeys.txt
  mysql site -Ne \"SELECT passkey FROM users\" | rollcall passkey refresh")]
    Refresh(RefreshArgs),
    /// Go back to the whitelist before the last refresh; once more goes forth again
    Undo,
}

/// `rollcall passkey refresh …`
#[derive(Debug, Args)]
pub struct RefreshArgs {
    /// The list; standard input if left out or -
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Take a list without a single passkey, which empties the whitelist
    #[arg(long)]
    pub allow_empty: bool,
}

/// `rollcall torrent …`
#[derive(Debug, Subcommand)]
pub enum TorrentCommand {
    /// Let a torrent be announced
    #[command(override_usage = TORRENT_ADD_USAGE, after_help = "\
Examples:
  rollcall torrent add file.torrent
  rollcall torrent add file.torrent --id 12 --name \"A better name\"
  rollcall torrent add --infohash 0123456789abcdef0123456789abcdef01234567 --name \"By hash\"")]
    Add(TorrentAddArgs),
    /// List all torrents
    List,
    /// Show a torrent, and what was moved of it
    Show {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Remove a torrent; its announces are refused
    Remove {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Let a disabled torrent be announced again
    Enable {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Refuse a torrent's announces, but keep the torrent
    Disable {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Open a torrent that awaits approval to all
    Approve {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Let a torrent await approval: it may be announced, but nobody is given peers
    Unapprove {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Limit how many peers may leech a torrent at once
    #[command(after_help = SLOTS_HELP_TORRENT)]
    Set {
        /// The torrent's number or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
        /// How many; 0 for none, so that it can only be seeded
        #[arg(long, value_name = "N|default|unlimited")]
        leech_slots: LeechSlots,
    },
    /// Print the announce URLs that a user puts into a client
    #[command(after_help = "\
Examples:
  rollcall torrent announce-url --user 7
  rollcall torrent announce-url --user 7 --base https://tracker.example.org

The URLs hold the user's passkey: anyone who has one announces as this user.")]
    AnnounceUrl {
        /// The user's number
        #[arg(long, value_name = "ID")]
        user: UserId,
        /// How clients reach this server, if not by the addresses it listens on
        #[arg(long, value_name = "URL")]
        base: Option<BaseUrl>,
    },
    /// Load the keys of torrents into Redis (t:info_hash:*), for programs that read them
    #[command(after_help = sync::HELP)]
    Sync(sync::SyncArgs),
}

/// `rollcall torrent add …`
#[derive(Debug, Args)]
pub struct TorrentAddArgs {
    /// The torrent's file
    #[arg(value_name = "FILE.torrent", required_unless_present = "infohash", conflicts_with = "infohash")]
    pub file: Option<PathBuf>,
    /// The torrent's infohash, where there is no file
    #[arg(long, value_name = "HEX", requires = "name")]
    pub infohash: Option<InfoHash>,
    /// The torrent's number on your site; the next free one if left out
    #[arg(long, value_name = "N")]
    pub id: Option<TorrentId>,
    /// The torrent's name, up to 10000 characters; the one in the file if left out
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Take a file without the private flag
    #[arg(long)]
    pub allow_public: bool,
    /// Let it await approval: nobody is given peers before "rollcall torrent approve"
    #[arg(long)]
    pub pending: bool,
}

/// `rollcall client …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A client is known by how its peer ids begin, such as -TR (Transmission) or -qB46 (qBittorrent 4.6).
The longest prefix that fits decides. Once any prefix is allowed, clients that fit none are refused.

Examples:
  rollcall client allow -TR --name Transmission
  rollcall client forbid -TR29 --name \"Transmission 2.9\"")]
pub enum ClientCommand {
    /// Let clients with this prefix announce
    Allow {
        /// How the peer id begins
        #[arg(value_name = "PREFIX", allow_hyphen_values = true)]
        prefix: ClientPrefix,
        /// What people call it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Refuse clients with this prefix
    Forbid {
        /// How the peer id begins
        #[arg(value_name = "PREFIX", allow_hyphen_values = true)]
        prefix: ClientPrefix,
        /// What people call it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Forget a prefix
    Remove {
        /// How the peer id begins
        #[arg(value_name = "PREFIX", allow_hyphen_values = true)]
        prefix: ClientPrefix,
    },
    /// List all prefixes
    List,
    /// Load the keys of allowed clients into Redis (t:whitelist:*), for programs that read them
    #[command(after_help = sync::HELP)]
    Sync(sync::SyncArgs),
}

/// `rollcall config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting at its default, explained, as a TOML file
    Print,
    /// Check the settings and print those that are not at their defaults
    #[command(after_help = "Example:\n  rollcall config check --config rollcall.toml")]
    Check,
}
