//! What can go wrong with the database, each with what to do about it.

use database::DatabaseError;
use domain::{InfoHash, Passkey, TorrentId, UserId};
use keyspace::RedisError;
use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::clients::ClientPrefix;
use crate::keys::KeyId;
use crate::ports::PortRange;
use crate::whitelist::LineError;

/// What SQLite reports for a row that breaks a rule of its table.
const SQLITE_CONSTRAINT: i32 = 19;

/// Why the database did not do what was asked. For operators: clients are told a [`crate::Refusal`].
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The set of the whitelist does not exist in Redis, and did a while ago.
    #[error("the whitelist is missing in redis: it is being replaced, or was lost; load it again")]
    WhitelistMissing,
    /// The database cannot be opened, reached or used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The database belongs to somebody else.
    #[error("the database {shown} has a table {table} that is not ours: give rollcall a database of its own")]
    Occupied {
        /// The database, without a password.
        shown: String,
        /// The table.
        table: String,
    },
    /// There is no next free id, because somebody has, or had, the highest.
    #[error("the highest id there can be was taken, so there is no next free one: choose an id")]
    NoNextId,
    /// A new user cannot have the id of another.
    #[error("user {0} exists already: choose another id, or leave it out to get the next free one")]
    UserIdTaken(UserId),
    /// A new user cannot have the id of somebody who was taken in.
    #[error(
        "user {0} was taken in because the site vouched for another passkey: use that passkey, which makes the user \
         ours, or remove the user first (\"rollcall user remove {0}\"; the account stays)"
    )]
    UserIdAdopted(UserId),
    /// Somebody was taken in with this passkey, under another id.
    #[error(
        "passkey {} belongs to user {holder}, who was taken in because the site vouched for it: add the user with \
         --id {holder}, which keeps the account, or remove user {holder} first to begin a new one as {wanted}",
        passkey.redacted()
    )]
    PasskeyAdopted {
        /// The passkey; only its first digits are ever shown.
        passkey: Passkey,
        /// Who has it.
        holder: UserId,
        /// Who should have had it.
        wanted: UserId,
    },
    /// Whoever vouches for a passkey decides which one it is.
    #[error(
        "user {0} was taken in because the site vouches for the passkey: change it at the site, or make the user ours \
         first (\"rollcall user add --id {0} --passkey HEX\" with the present passkey)"
    )]
    NotOurs(UserId),
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
    /// There is no such ban.
    #[error("no port of {0} is banned: see rollcall port list")]
    PortsNotBanned(PortRange),
    /// More bytes than a signed SQL integer holds.
    #[error("a torrent of {0} bytes cannot be: the most is 9223372036854775807")]
    TooManyBytes(u64),
    /// Nobody looks for that.
    #[error("a search is 1 to {0} characters, without NUL: look for a part of the name")]
    BadSearch(usize),
    /// Somebody wrote what cannot be read.
    #[error("{subject} in the database cannot be read: {reason}; correct the row, or remove it")]
    Unreadable {
        /// Which row.
        subject: String,
        /// What is wrong with it.
        reason: String,
    },
    /// So many processes take people in at once that nobody gets a turn.
    #[error("accounts for strangers could not be made: other processes make too many at once; try again")]
    AdoptionContended,
    /// How the verify endpoint is to be asked makes no sense.
    #[error("the verify endpoint cannot be asked: {0}")]
    VerifyEndpoint(String),
    /// Keys are not removed because a database is empty.
    #[error(
        "the database has no {0}, so that all their keys would be removed: check --data and database.url, or add \
         --allow-empty if that is meant"
    )]
    NothingToKeep(&'static str),
    /// Redis, where the whitelist is, does not do what was asked.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// A list of passkeys has something else in it. Nothing was changed.
    #[error("{0}; nothing was changed")]
    List(#[from] LineError),
    /// Nobody on the whitelist could announce any more.
    #[error(
        "the list has no passkey in it, which would empty the whitelist: nothing was changed; if that is meant, say so (--allow-empty, or allow_empty=true in the API)"
    )]
    EmptyRefresh,
    /// A set that was being built has lost a part, so it must not become the whitelist.
    #[error(
        "the new whitelist lost a part while it was being built (its builder was silent for more than ten minutes, or a batch failed): nothing was changed; begin the refresh again"
    )]
    RefreshLost,
    /// The whitelist is changed, but trackers could not be told.
    #[error(
        "the whitelist was changed, but trackers hear of it only when what they remember runs out ({0}): do the same once more"
    )]
    Untold(Box<AccessError>),
    /// There is no such API key.
    #[error("there is no key {0}: see rollcall key list")]
    UnknownKey(KeyId),
    /// A key must be good for something.
    #[error("a key needs a scope: verify, read or admin")]
    KeyWithoutScope,
    /// People must be able to tell keys apart.
    #[error("a key needs a name of 1 to 100 characters, such as the program that will use it")]
    KeyName,
    /// Every request is compared with the keys, and every process reads them all the time.
    #[error("there are {0} keys already: revoke those that nobody uses (rollcall key list)")]
    TooManyKeys(u32),
    /// The system gives no random numbers, so no passkey and no key can be made.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Whether a row broke a rule of its table.
pub(crate) fn is_constraint(error: &sqlx::Error) -> bool {
    let Some(said) = error.as_database_error() else { return false };
    if let Some(said) = said.try_downcast_ref::<MySqlDatabaseError>() {
        // A failed CHECK has a number of its own in MariaDB and in MySQL, and no class.
        return said.code().is_some_and(|state| state.starts_with("23"))
            || matches!(said.number(), 3819 | 4025);
    }
    if let Some(said) = said.try_downcast_ref::<PgDatabaseError>() {
        return said.code().starts_with("23");
    }
    // SQLite's primary result code is the low byte of what it reports.
    let code: Option<i32> = said.code().and_then(|code| code.parse().ok());
    code.is_some_and(|code| code & 0xff == SQLITE_CONSTRAINT)
}

impl AccessError {
    /// Whether the same call may well succeed a moment later, with nobody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        match self {
            AccessError::Database(error) => error.is_retryable(),
            AccessError::AdoptionContended | AccessError::WhitelistMissing => true,
            AccessError::Redis(trouble) => trouble.is_retryable(),
            AccessError::Untold(error) => error.is_retryable(),
            _ => false,
        }
    }
}
