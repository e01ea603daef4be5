//! Access control: which users, torrents, clients and ports may announce.
//!
//! # Layout
//!
//! - [`store`]: users, torrents, clients and ports in SQLite, PostgreSQL or MariaDB; commands, the API and the site write it
//! - [`gate`]: the copy in memory, which the announce path reads without a lock
//! - [`follow`]: keeps the gate equal to the database
//! - [`redis_source`]: the keys in Redis that the site writes, as a second source of the gate; copies of the database in them
//! - [`verification`]: verifies passkeys without a user in the database, by whitelist and verify endpoint
//! - [`whitelist`]: passkeys that may announce without a user in the database, in Redis or SQL; its change feed
//! - [`clients`], [`ports`], [`leech_slots`], [`user_name`]: values and rules for client prefixes, ports, leech slots, names
//! - `removed`: recently removed users and torrents
//! - [`error`]: the error type of this crate
//!
//! A [`Refusal`] is sent to the client; an [`AccessError`] is for the operator only.
//!
//! # From the database to the gate
//!
//! Triggers number every change in `access_changes`, whether a command or the site's SQL made it. The follower waits
//! for changes (`database::change_log`): PostgreSQL notifies it, SQLite and MariaDB are polled. It reads the current rows of what changed, so a repeated entry is harmless. If the log was trimmed past
//! its position, it reads everything again; the gate is never empty meanwhile. The gate adds new entries before it removes
//! old ones.
//!
//! SQLite has one writer, and MariaDB numbers changes under a row lock that lasts until the commit, so in both the numbers
//! follow the order of commits. PostgreSQL assigns numbers before the commit: there the follower stores the snapshot of its
//! last poll, and reads what that snapshot did not contain.
//!
//! Removed and disabled users and torrents, forbidden clients and banned ports become eviction orders for the tracker. A
//! rotated passkey evicts no peer: the next announce with the old one is refused. The last passkey of a removed user and the
//! id of a removed torrent are kept for a while, because the `stopped` entries of their peers carry them.
//!
//! # Unknown passkeys
//!
//! A passkey without a user in the database and without a fresh cached answer is looked up on the whitelist, then at the
//! site's verify endpoint, by one task outside of the announce path; requests for the same passkey share one lookup. Positive
//! and negative answers are cached, each with its own lifetime. Calls of the endpoint have a rate limit, a budget per client
//! address, a limit of concurrency and a circuit breaker.
//!
//! - The row of an external user alone admits no announce: a fresh positive answer is required, too.
//! - A negative answer is cached only if every source answered. A failure is never cached as a negative answer. A whitelist
//!   that is missing in Redis, but existed within the last hour, counts as a failure.
//! - An answer that was in flight while the whitelist changed is discarded. A removal by command or API drops the cached
//!   answer and evicts the peers in every process, within a second.
//! - With `known-only`, a positive answer is used past its expiry only while its source is unavailable.
//! - An external user who gets another passkey from the site under the same `user_id` keeps account and ban.
//!
//! The whitelist is a set in Redis or two tables. A refresh builds another set and switches in one script or transaction;
//! members are counted first, so that an incomplete set is never switched to. Changes by command or API are published
//! through the database, which every process has.
//!
//! # Redis source
//!
//! The keys `t:info_hash:*`, `t:user:*` and `t:whitelist:*` that the site writes count in addition to the database. A second
//! gate is filled from them: by periodic scans that take at most a tenth of the time, and key by key when the site publishes
//! a change or a view meets an unknown infohash or passkey. New keys are added before old ones are removed. A deletion is
//! accepted only if Redis confirms it for that key, because a scan may miss one. If Redis has neither these keys nor the mark
//! `t:m:source`, it has lost its data, and nothing is removed.
//!
//! The gate reads the maps of the database first, then those of the second gate, so the database takes precedence. A torrent
//! of the Redis source whose id is another torrent's in the database gets that id plus 10^12. A user of the Redis source gets
//! a row at the first announce, like any external user.
//!
//! In the other direction, rows are copied to the same keys. A key is the site's own unless it is recorded as a copy
//! (`t:m:copies:<kind>`): recorded before it is written, and removed from the record after it is deleted. So a copy does not
//! admit anything after its row is removed, and a key of the site is never overwritten.

pub mod clients;
pub mod error;
pub mod follow;
pub mod gate;
pub mod leech_slots;
pub mod ports;
pub mod redis_source;
mod removed;
pub mod store;
pub mod user_name;
pub mod verification;
pub mod whitelist;

pub use clients::{ClientPrefix, ClientRule, ClientRules};
pub use error::AccessError;
pub use follow::{Change, FollowCounters, Follower, load};
pub use gate::{Admission, Approval, Gate, Refusal, TorrentAccess, TorrentGrant, UserAccess};
pub use leech_slots::LeechSlots;
pub use ports::{BannedPorts, PortRange};
pub use redis_source::{RedisSource, RedisSourceFollower};
pub use store::{
    CatalogueKey, CatalogueOrder, CataloguePage, ExternalUser, ExternalUserOptions, MIGRATIONS, NameSearch,
    NewExternalUser, NewTorrent, NewUser, SANDBOX_IDS, SiteTorrent, SiteUser, Store, TORRENT_NAME_CHARS_MAX,
    Torrent, TorrentChange, User, UserChange, random_passkey,
};
pub use user_name::UserName;
pub use verification::{
    OnVerifyFailure, UnknownPasskeys, VerificationCounters, VerificationSettings, Verifier,
};
pub use whitelist::{
    LineError, PasskeyChange, PasskeyFeed, PasskeyLines, Passkeys, RedisWhitelist, Refresh, Replaced,
    SqlWhitelist, Upload, Whitelist,
};
