//! Who may announce: users, torrents and client prefixes.
//!
//! # Layout
//!
//! - [`store`]: the truth, in SQLite, PostgreSQL or MariaDB; commands and the site write it while the tracker runs
//! - [`gate`]: a copy in memory, which the announce path asks without taking a lock
//! - [`follow`]: keeps the copy equal to the truth, within a second of any change
//! - [`vouching`]: strangers, for whom the whitelist or the site's verify endpoint may vouch
//! - [`whitelist`]: passkeys that may announce although no user has them, in Redis or in SQL, and its change feed
//! - [`site_keys`]: the site's own keys in Redis, as a source for the gate beside the database, and copies of the database
//! - [`clients`]: prefixes of peer ids and the rule that the longest one decides
//! - [`ports`]: ports that clients may not listen on
//! - [`slots`]: how many torrents a user may leech at once, and how many peers a torrent
//! - [`user_name`]: the display name of a user
//! - [`audit`]: who changed what, in a file whose lines are chained
//! - [`keys`]: who may ask what of the site's API
//! - [`sessions`]: operators who are signed in to the dashboard
//! - [`error`]: what can go wrong with the database, and what to do about it
//!
//! A [`Refusal`] is told to the client; an [`AccessError`] is for the operator and never reaches one.
//!
//! # Changes reach the gate
//!
//! Triggers on the tables number every change in `access_changes`, whether a command or the site's SQL made it. The
//! follower looks five times a second. It reads the present rows of what changed, not the change itself, so a repeated
//! entry is harmless; if the log was trimmed past what it knows, it reads everything again, and the gate is never
//! empty meanwhile. The gate adds what is new, then removes what is gone.
//!
//! The databases number differently. SQLite has one writer, so numbers follow commits; MariaDB numbers under a row
//! lock that lasts until the commit, so they do too. PostgreSQL takes numbers before the commit: there the follower
//! keeps the snapshot of its last look, and new is what that snapshot did not contain.
//!
//! Removed and disabled users and torrents, forbidden clients and banned ports become eviction orders for the tracker.
//! A rotated passkey evicts no peer: the next announce with the old one is refused. The last passkey of a removed user
//! and the number of a removed torrent are remembered for a while, because the `stopped` of their peers is recorded
//! under these.
//!
//! # Unknown passkeys
//!
//! A passkey that neither a user nor a fresh verification covers is looked up on the whitelist, then at the site's
//! verification endpoint, by one task, off the announce path; requests about the same passkey share one lookup.
//! Answers are cached, good and bad, each for its time. The endpoint has a rate limit, a share per client address, a
//! limit of concurrent calls and a circuit breaker.
//!
//! - An external user's row alone admits no announce: it counts together with a fresh positive answer.
//! - "No" is cached only if every source was asked. A failure is never cached as a no. A whitelist that is missing in
//!   Redis, and existed within the last hour, counts as not asked.
//! - An answer that was in flight while the whitelist changed is discarded. A removal through us drops the cached
//!   answer and evicts the peers in every process, one poll later.
//! - With `known-only`, a positive answer outlives its time only while its source cannot be asked.
//! - A user who gets another passkey from the site under the same `user_id` keeps account and ban.
//!
//! The whitelist is a set in Redis or two tables. A refresh builds another set and switches in one script or
//! transaction; members are counted first, so that a set that lost a part is never switched to. Changes through us are
//! published through the database, which every process has.
//!
//! # The site's keys in Redis
//!
//! `t:info_hash:*`, `t:user:*` and `t:whitelist:*` that the site writes count beside the database. A second gate is
//! filled from them: by repeated scans that take at most a tenth of the time, and key by key when the site publishes a
//! change or a view meets an unknown infohash or passkey. New keys are added before old ones are removed. A deletion
//! is believed only if Redis confirms it for that key: a scan may miss one. A Redis without these keys and without the
//! mark `t:m:source` has lost them, and no user is refused for it.
//!
//! The gate reads the database's maps first, then those of the second gate, so the database decides where both have
//! something. A torrent of the keys whose number is another's in the database has that number plus 10^12. A user of
//! the keys gets a row at the first announce, like any external user.
//!
//! In the other direction, rows are copied to the same keys. A key is the site's own unless it is recorded as a copy
//! (`t:m:copies:<kind>`): recorded before it is written, removed from the record after it is deleted. So a copy admits
//! nothing after its row is gone, and a key of the site is never overwritten.
//!
//! # Keys, sessions, audit trail
//!
//! API keys are 160 random bits; SHA-256 of them is stored, compared in constant time, and re-read five times a
//! second. A session is 256 random bits in a cookie and a row with their hash; its rights are those of its key at that
//! moment.
//!
//! The audit trail is a file that several processes append to, each record under a file lock: the last line is read,
//! the new one carries its hash. A torn last line stays, and the next record reports it. Number, hash and position of
//! the last record are also in `audit.log.anchor`, so that a truncated end is detected. A change whose record cannot be written
//! is not acknowledged.

pub mod audit;
pub mod clients;
pub mod error;
pub mod follow;
pub mod gate;
pub mod keys;
pub mod ports;
pub mod redis_source;
mod removed;
pub mod sessions;
pub mod slots;
pub mod store;
pub mod user_name;
pub mod verification;
pub mod whitelist;

pub use audit::{Audit, AuditError, AuditSettings, AuditSync};
pub use clients::{ClientPrefix, ClientRule, ClientRules};
pub use error::AccessError;
pub use follow::{Change, FollowCounters, Follower, load};
pub use gate::{Admission, Approval, Denied, Gate, Refusal, TorrentAccess, TorrentGrant, UserAccess};
pub use keys::{ApiKey, ApiKeys, Authenticated, KeyId, KeyRing, NewKey, Scope, Scopes};
pub use ports::{BannedPorts, PortRange};
pub use redis_source::{RedisSource, RedisSourceFollower};
pub use sessions::{Session, SessionFigures, SessionSecret, Sessions};
pub use slots::LeechSlots;
pub use store::{
    CatalogueKey, CatalogueOrder, CataloguePage, ExternalUser, ExternalUserOptions, MIGRATIONS, NameSearch,
    NewExternalUser, NewTorrent, NewUser, SANDBOX_IDS, Store, TORRENT_NAME_CHARS_MAX, Torrent, TorrentChange,
    User, UserChange, random_passkey,
};
pub use user_name::UserName;
pub use verification::{
    OnVerifyFailure, UnknownPasskeys, VerificationCounters, VerificationSettings, Verifier,
};
pub use whitelist::{
    LineError, PasskeyChange, PasskeyFeed, PasskeyLines, Passkeys, RedisWhitelist, Refresh, Replaced,
    SqlWhitelist, Upload, Whitelist,
};
