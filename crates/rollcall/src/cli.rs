//! The command line and its help.

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
mod site;
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
pub use site::{ProfileCommand, SiteCommand};
pub use user::{ActiveArgs, UserCommand, UserSetArgs, WhyArgs};

const EXAMPLES: &str = "\
Examples:
  rollcall demo                            a server with simulated torrents, peers and users
  rollcall serve                           start on loopback, port 6969, with data in ./data
  rollcall user add --id 7                 add user 7 with a new passkey
  rollcall torrent add file.torrent        register a torrent
  rollcall torrent announce-url --user 7   the URLs that user 7 puts into a client
  rollcall user show 7                     totals and ratio of user 7
  rollcall journal status                  whether the accounts are up to date
  rollcall config print > rollcall.toml    every setting with its description
  rollcall serve --config rollcall.toml    start with it

All other commands can be used while the server runs: changes take effect within a second.";

const SLOTS_HELP_TORRENT: &str = "\
\"default\" is limits.leeches_per_torrent_max of the configuration. Current leechers continue.

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
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Read settings from this TOML file
    #[arg(long, global = true, value_name = "FILE", env = "ROLLCALL_CONFIG")]
    pub config: Option<PathBuf>,
    /// The data folder: database, journal and lists [default: ./data]
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
    pub fn data_folder(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from("./data"))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server
    #[command(after_help = "\
Examples:
  rollcall serve
  rollcall serve --config rollcall.toml --data /var/lib/rollcall
  rollcall serve --set tracker.udp_addr=0.0.0.0:6969 --set log.level=debug
  rollcall serve --roles ledger,activity --set redis.url=redis://10.0.0.5
  rollcall serve --data /var/lib/rollcall --take-over     upgrade to a new version

SIGTERM and Ctrl-C stop it after answering requests in flight; SIGHUP reloads the configuration.")]
    Serve {
        /// Roles of this process: any of tracker, ledger, activity, mirror, sites, gateway, site; all if omitted
        #[arg(long, value_name = "ROLES")]
        roles: Option<Roles>,
        /// Replace the server that runs on the same data folder without interrupting clients; that one then exits. If
        /// none runs, just start. Schema migrations run before the take-over: if it fails, the running server
        /// continues, but an older version cannot start on the newer schema
        #[arg(long)]
        take_over: bool,
    },
    /// Add, list and change users
    #[command(subcommand, arg_required_else_help = true)]
    User(UserCommand),
    /// Change and check passkeys; manage the passkey whitelist
    #[command(subcommand, arg_required_else_help = true)]
    Passkey(PasskeyCommand),
    /// Add, list and change torrents; print announce URLs
    #[command(subcommand, arg_required_else_help = true)]
    Torrent(TorrentCommand),
    /// Allow and forbid BitTorrent clients by peer id prefix
    #[command(subcommand, arg_required_else_help = true)]
    Client(ClientCommand),
    /// Ban listening ports of BitTorrent clients
    #[command(subcommand, arg_required_else_help = true)]
    Port(PortCommand),
    /// Add, list and remove friendships: friends see each other's status
    #[command(subcommand, arg_required_else_help = true)]
    Friend(FriendCommand),
    /// Create, list and revoke API keys
    #[command(subcommand, arg_required_else_help = true)]
    Key(key::KeyCommand),
    /// Create a gateway token for a user, for testing
    #[command(after_help = token::HELP)]
    Token(token::TokenArgs),
    /// Multiply what is credited, for a period
    #[command(subcommand, arg_required_else_help = true)]
    Multiplier(MultiplierCommand),
    /// Profiles for the tables of an existing site
    #[command(subcommand, arg_required_else_help = true)]
    Site(SiteCommand),
    /// Show the journal; pause and resume views
    #[command(subcommand, arg_required_else_help = true)]
    Journal(JournalCommand),
    /// List, replay and drop dead letters: entries that a view rejected and that are retried
    #[command(subcommand, arg_required_else_help = true)]
    Dlq(DeadLetterCommand),
    /// List, replay and drop failed entries: dead letters after their last retry
    #[command(subcommand, arg_required_else_help = true)]
    Failed(DeadLetterCommand),
    /// Show the audit trail, and verify its hash chain
    #[command(subcommand, arg_required_else_help = true)]
    Audit(audit::AuditCommand),
    /// Print and check settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Check configuration, stores, ports, certificates and clock, with a remedy for each problem
    #[command(after_help = health::DOCTOR_HELP)]
    Doctor,
    /// Print the OpenAPI 3.1 document, as the server's /openapi.json
    #[command(after_help = "\
Examples:
  rollcall openapi > openapi.json
  rollcall openapi --json | jq '.paths | keys'")]
    Openapi,
    /// Check that the running server responds
    #[command(after_help = health::PING_HELP)]
    Ping,
    /// Back up the database and the journal; the server may run
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty database
    #[command(after_help = backup::RESTORE_HELP)]
    Restore(backup::BackupArgs),
    /// Copy everything to another database, of any kind
    #[command(after_help = backup::MIGRATE_HELP)]
    Migrate(backup::MigrateArgs),
    /// Create test users, passkeys and sample torrents, and print commands to try them
    #[command(after_help = sandbox::HELP)]
    Sandbox(SandboxArgs),
    /// Start a server with simulated torrents, peers and users
    #[command(after_help = demo::HELP)]
    Demo(demo::DemoArgs),
}

/// `rollcall passkey …`
#[derive(Debug, Subcommand)]
pub enum PasskeyCommand {
    /// Give a user a new passkey; the old one becomes invalid
    #[command(after_help = "Example:\n  rollcall passkey rotate --user 7")]
    Rotate {
        /// The user's id
        #[arg(long, value_name = "ID")]
        user: UserId,
        /// The new passkey; 32 random digits if omitted
        #[arg(long, value_name = "HEX")]
        passkey: Option<Passkey>,
    },
    /// Check a passkey: its user, and whether it is on the whitelist
    #[command(after_help = "\
Exit code 0 if it is valid, 1 if not. Valid: it belongs to an enabled user, or to no user and is on the whitelist.
The verify endpoint of your site is not called.")]
    Check {
        /// The passkey
        #[arg(value_name = "HEX")]
        passkey: Passkey,
    },
    /// Add passkeys to the whitelist
    #[command(after_help = "Example:\n  rollcall passkey add 0123456789abcdef0123456789abcdef")]
    Add {
        /// The passkeys
        #[arg(value_name = "HEX", required = true)]
        passkeys: Vec<Passkey>,
    },
    /// Remove passkeys from the whitelist
    #[command(after_help = "Example:\n  rollcall passkey remove 0123456789abcdef0123456789abcdef")]
    Remove {
        /// The passkeys
        #[arg(value_name = "HEX", required = true)]
        passkeys: Vec<Passkey>,
    },
    /// Count the passkeys on the whitelist
    Count,
    /// Replace the whole whitelist atomically
    #[command(after_help = "\
One passkey per line, 8 to 64 hexadecimal digits; empty lines and lines starting with # are skipped. Any other line is
an error, and nothing changes. The old list is used until the new one replaces it atomically. The old list is kept:
\"rollcall passkey undo\" restores it.

Examples:
  rollcall passkey refresh passkeys.txt
  mysql site -Ne \"SELECT passkey FROM users\" | rollcall passkey refresh")]
    Refresh(RefreshArgs),
    /// Restore the whitelist before the last refresh; again to undo that
    Undo,
}

/// `rollcall passkey refresh …`
#[derive(Debug, Args)]
pub struct RefreshArgs {
    /// The list; standard input if omitted or -
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Accept an empty list, which empties the whitelist
    #[arg(long)]
    pub allow_empty: bool,
}

/// `rollcall torrent …`
#[derive(Debug, Subcommand)]
pub enum TorrentCommand {
    /// Register a torrent
    #[command(override_usage = TORRENT_ADD_USAGE, after_help = "\
Examples:
  rollcall torrent add file.torrent
  rollcall torrent add file.torrent --id 12 --name \"A better name\"
  rollcall torrent add --infohash 0123456789abcdef0123456789abcdef01234567 --name \"By hash\"")]
    Add(TorrentAddArgs),
    /// List all torrents
    List,
    /// Show a torrent and its traffic
    Show {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Remove a torrent; its announces are refused
    Remove {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Enable a disabled torrent
    Enable {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Disable a torrent: its announces are refused
    Disable {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Approve a pending torrent
    Approve {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Make a torrent pending: announces are accepted, but no peers are returned
    Unapprove {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
    },
    /// Limit how many peers may leech a torrent at once
    #[command(after_help = SLOTS_HELP_TORRENT)]
    Set {
        /// The torrent's id or infohash
        #[arg(value_name = "ID|INFOHASH")]
        torrent: TorrentRef,
        /// Leech slots; 0 allows seeding only
        #[arg(long, value_name = "N|default|unlimited")]
        leech_slots: LeechSlots,
    },
    /// Print the announce URLs that a user puts into a client
    #[command(after_help = "\
Examples:
  rollcall torrent announce-url --user 7
  rollcall torrent announce-url --user 7 --base https://tracker.example.org

The URLs contain the user's passkey: anyone with the URL can announce as this user.")]
    AnnounceUrl {
        /// The user's id
        #[arg(long, value_name = "ID")]
        user: UserId,
        /// Base URL of this server for clients, if not the addresses it listens on
        #[arg(long, value_name = "URL")]
        base: Option<BaseUrl>,
    },
    /// Write the keys of torrents to Redis (t:info_hash:*), for other programs
    #[command(after_help = sync::HELP)]
    Sync(sync::SyncArgs),
}

/// `rollcall torrent add …`
#[derive(Debug, Args)]
pub struct TorrentAddArgs {
    /// The torrent's file
    #[arg(value_name = "FILE.torrent", required_unless_present = "infohash", conflicts_with = "infohash")]
    pub file: Option<PathBuf>,
    /// The torrent's infohash, without a file
    #[arg(long, value_name = "HEX", requires = "name")]
    pub infohash: Option<InfoHash>,
    /// The torrent's id on your site; the next free one if omitted
    #[arg(long, value_name = "N")]
    pub id: Option<TorrentId>,
    /// The torrent's name, up to 10000 characters; the one in the file if omitted
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Accept a file without the private flag
    #[arg(long)]
    pub allow_public: bool,
    /// Make it pending: no peers are returned before "rollcall torrent approve"
    #[arg(long)]
    pub pending: bool,
}

/// `rollcall client …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A client is identified by the prefix of its peer ids, such as -TR (Transmission) or -qB46 (qBittorrent 4.6).
The longest matching prefix decides. Once any prefix is allowed, clients that match none are refused.

Examples:
  rollcall client allow -TR --name Transmission
  rollcall client forbid -TR29 --name \"Transmission 2.9\"")]
pub enum ClientCommand {
    /// Allow clients with this prefix
    Allow {
        /// The prefix of the peer id
        #[arg(value_name = "PREFIX", allow_hyphen_values = true)]
        prefix: ClientPrefix,
        /// Display name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Refuse clients with this prefix
    Forbid {
        /// The prefix of the peer id
        #[arg(value_name = "PREFIX", allow_hyphen_values = true)]
        prefix: ClientPrefix,
        /// Display name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Remove a prefix
    Remove {
        /// The prefix of the peer id
        #[arg(value_name = "PREFIX", allow_hyphen_values = true)]
        prefix: ClientPrefix,
    },
    /// List all prefixes
    List,
    /// Write the client whitelist (t:whitelist:*) to Redis, for other programs
    #[command(after_help = sync::HELP)]
    Sync(sync::SyncArgs),
}

/// `rollcall config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting with its default and description, as a TOML file
    Print,
    /// Check the settings and print those that differ from their defaults
    #[command(after_help = "Example:\n  rollcall config check --config rollcall.toml")]
    Check,
}
