//! What can go wrong with the database, each with what to do about it.

use std::path::{Path, PathBuf};

use domain::{InfoHash, Passkey, TorrentId, UserId};
use sqlx::migrate::MigrateError;

use crate::clients::ClientPrefix;

/// Why the database did not do what was asked. For operators: clients are told a [`crate::Refusal`].
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Only SQLite is there yet.
    #[error(
        "the database address {url:?} is not understood: write sqlite: and a path, such as sqlite:data/rollcall.db"
    )]
    UnsupportedUrl {
        /// What was given, without a password.
        url: String,
    },
    /// A database in memory is one process's alone: commands would not reach the server.
    #[error("a database in memory cannot be shared with the server: write sqlite: and the path of a file")]
    InMemory,
    /// The folder of the database is missing and cannot be made.
    #[error("cannot create the folder {}: {source}; create it, or choose another place for the database", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file cannot be opened.
    #[error("cannot open {}: {reason}; check that the path is a file, and that this user may read and write it and its folder", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The file or its folder may not be written.
    #[error("cannot write {}: give this user write permission on the file and its folder", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a SQLite database: move it away, or choose another path", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file was a SQLite database and is broken.
    #[error("{} is damaged: restore a backup, or save what is left with: sqlite3 FILE .recover", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Another version of this program wrote the tables.
    #[error("{} was made by another version of rollcall ({source}): use that version or a newer one", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        source: MigrateError,
    },
    /// Another process has been writing for longer than we wait.
    #[error("the database is busy: another process is writing to it; try again")]
    Busy,
    /// A new user cannot have the id of another.
    #[error("user {0} exists already: choose another id, or leave it out to get the next free one")]
    UserIdTaken(UserId),
    /// A new torrent cannot have the id of another.
    #[error("torrent {0} exists already: choose another id, or leave it out to get the next free one")]
    TorrentIdTaken(TorrentId),
    /// Passkeys tell users apart.
    #[error("passkey {} belongs to user {holder}: choose another, or leave it out to get a random one", passkey.redacted())]
    PasskeyTaken {
        /// The passkey; only its first digits are ever shown.
        passkey: Passkey,
        /// Who has it.
        holder: UserId,
    },
    /// Infohashes tell torrents apart, v1 and v2 alike.
    #[error("infohash {info_hash} belongs to torrent {holder} ({name}): remove that one first, or use it")]
    InfoHashTaken {
        /// The infohash.
        info_hash: InfoHash,
        /// Which torrent has it.
        holder: TorrentId,
        /// What that torrent is called.
        name: String,
    },
    /// There is no such user.
    #[error("there is no user {0}")]
    UnknownUser(UserId),
    /// There is no such torrent.
    #[error("there is no torrent {0}")]
    UnknownTorrent(TorrentId),
    /// There is no such client prefix.
    #[error("no client has the prefix {0}")]
    UnknownClient(ClientPrefix),
    /// More bytes than a signed SQL integer holds.
    #[error("a torrent of {0} bytes cannot be: the most is 9223372036854775807")]
    TooManyBytes(u64),
    /// Somebody wrote what cannot be read.
    #[error("{subject} in the database cannot be read: {reason}; correct the row, or remove it")]
    Unreadable {
        /// Which row.
        subject: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system gives no random numbers, so no passkey can be made.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// Anything else the database says.
    #[error("the database failed: {0}")]
    Database(#[source] sqlx::Error),
}

/// SQLite's primary result codes, the low byte of what it reports.
mod code {
    pub const BUSY: i32 = 5;
    pub const LOCKED: i32 = 6;
    pub const READONLY: i32 = 8;
    pub const IO_ERROR: i32 = 10;
    pub const CORRUPT: i32 = 11;
    pub const CANNOT_OPEN: i32 = 14;
    pub const CONSTRAINT: i32 = 19;
    pub const NOT_A_DATABASE: i32 = 26;
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Whether a row broke a rule of its table.
pub(crate) fn is_constraint(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(code::CONSTRAINT)
}

impl AccessError {
    /// Puts what SQLite says about the file at `path` into our words.
    pub(crate) fn from_sqlx(path: &Path, error: sqlx::Error) -> Self {
        let path = path.to_owned();
        match primary_code(&error) {
            Some(code::BUSY | code::LOCKED) => AccessError::Busy,
            Some(code::READONLY) => AccessError::ReadOnly { path },
            Some(code::CORRUPT) => AccessError::Damaged { path },
            Some(code::NOT_A_DATABASE) => AccessError::NotADatabase { path },
            Some(code::CANNOT_OPEN) => {
                let reason = error.as_database_error().map_or_else(String::new, |e| e.message().to_owned());
                AccessError::CannotOpen { path, reason }
            }
            _ if matches!(error, sqlx::Error::PoolTimedOut) => AccessError::Busy,
            _ => AccessError::Database(error),
        }
    }

    /// Puts what the migrator says into our words.
    pub(crate) fn from_migration(path: &Path, error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                Self::from_sqlx(path, error)
            }
            source => AccessError::Schema { path: path.to_owned(), source },
        }
    }

    /// Whether the same call may well succeed a moment later, with nobody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        match self {
            AccessError::Busy => true,
            AccessError::Database(error) => {
                matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed)
                    || primary_code(error) == Some(code::IO_ERROR)
            }
            _ => false,
        }
    }
}
