//! Errors of this crate. Each message names the remedy.

use database::DatabaseError;
use domain::{InfoHash, Passkey, TorrentId, UserId};
use keyspace::RedisError;

use crate::clients::ClientPrefix;
use crate::ports::PortRange;
use crate::whitelist::LineError;

/// For operators; a client gets a [`crate::Refusal`].
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The set does not exist in Redis, but did within the last hour.
    #[error("the whitelist is missing in redis: it is being replaced, or was lost; load it again")]
    WhitelistMissing,
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The database belongs to another program.
    #[error("the database {shown} has a table {table} of another program: give rollcall its own database")]
    Occupied {
        /// The database, without a password.
        shown: String,
        table: String,
    },
    #[error("the highest possible id is or was in use, so there is no next free one: choose an id")]
    NoNextId,
    #[error("user {0} exists already: choose another id, or leave it out to get the next free one")]
    UserIdTaken(UserId),
    /// The id of a new user belongs to an external user with another passkey.
    #[error(
        "user {0} is an external user with another passkey: use that passkey, which makes it a user of the database, or \
         remove the user first (\"rollcall user remove {0}\"; the account stays)"
    )]
    UserIdExternal(UserId),
    /// The passkey of a new user belongs to an external user with another id.
    #[error(
        "passkey {} belongs to the external user {holder}: add the user with --id {holder}, which keeps the account, or \
         remove user {holder} first to start a new account as {wanted}",
        passkey.redacted()
    )]
    PasskeyExternal {
        /// Only its first digits are shown.
        passkey: Passkey,
        holder: UserId,
        wanted: UserId,
    },
    /// The site decides about the passkey of an external user.
    #[error(
        "user {0} is an external user: change the passkey at the site, or make it a user of the database first \
         (\"rollcall user add --id {0} --passkey HEX\" with the current passkey)"
    )]
    NotRotatable(UserId),
    #[error("torrent {0} exists already: choose another id, or leave it out to get the next free one")]
    TorrentIdTaken(TorrentId),
    #[error("passkey {} belongs to user {holder}: choose another, or leave it out to get a random one", passkey.redacted())]
    PasskeyTaken {
        /// Only its first digits are shown.
        passkey: Passkey,
        holder: UserId,
    },
    /// v1 and v2 infohashes share one namespace.
    #[error("infohash {info_hash} belongs to torrent {holder} ({name}): remove that one first, or use it")]
    InfoHashTaken { info_hash: InfoHash, holder: TorrentId, name: String },
    #[error("there is no user {0}")]
    UnknownUser(UserId),
    #[error("there is no torrent {0}")]
    UnknownTorrent(TorrentId),
    #[error("no client has the prefix {0}")]
    UnknownClient(ClientPrefix),
    #[error("no port of {0} is banned: see rollcall port list")]
    PortsNotBanned(PortRange),
    /// Does not fit into a signed SQL integer.
    #[error("a torrent cannot have {0} bytes: the maximum is 9223372036854775807")]
    TooManyBytes(u64),
    #[error("a search has 1 to {0} characters, without NUL: search for a part of the name")]
    BadSearch(usize),
    /// A row with a value that cannot be parsed.
    #[error("{subject} in the database cannot be read: {reason}; correct the row, or remove it")]
    Unreadable { subject: String, reason: String },
    #[error(
        "accounts of external users were not created: too many conflicts with other processes; try again"
    )]
    ExternalUsersContended,
    #[error("the verify endpoint is misconfigured: {0}")]
    VerifyEndpoint(String),
    /// Guards against a flush of the keys from the wrong database.
    #[error(
        "the database has no {0}, so all their keys would be removed: check --data and database.url, or confirm with \
         --allow-empty"
    )]
    EmptyDatabase(&'static str),
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// A malformed list of passkeys.
    #[error("{0}; nothing was changed")]
    List(#[from] LineError),
    #[error(
        "the list has no passkeys and would empty the whitelist: nothing was changed; confirm with --allow-empty, or allow_empty=true in the API"
    )]
    EmptyRefresh,
    #[error(
        "the new whitelist is incomplete (a batch failed, or none arrived for more than ten minutes): nothing was changed; begin the refresh again"
    )]
    RefreshLost,
    /// The whitelist was changed, but the change feed was not.
    #[error(
        "the whitelist was changed, but the change was not published to the trackers, which use cached answers until they expire ({0}): repeat the command"
    )]
    Unpublished(Box<AccessError>),
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

impl AccessError {
    /// Whether the same call may succeed later without intervention.
    pub fn is_retryable(&self) -> bool {
        match self {
            AccessError::Database(error) => error.is_retryable(),
            AccessError::ExternalUsersContended | AccessError::WhitelistMissing => true,
            AccessError::Redis(error) => error.is_retryable(),
            AccessError::Unpublished(error) => error.is_retryable(),
            _ => false,
        }
    }
}
