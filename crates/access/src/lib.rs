//! Who may announce: users, torrents and client prefixes.
//!
//! # Layout
//!
//! - [`store`]: the truth, in SQLite, PostgreSQL or MariaDB; commands and the site write it while the tracker runs
//! - [`gate`]: a copy in memory, which the announce path asks without taking a lock
//! - [`follow`]: keeps the copy equal to the truth, within a second of any change
//! - [`vouching`]: strangers, for whom the whitelist or the site's verify endpoint may vouch
//! - [`whitelist`]: passkeys that may announce although no user has them, in Redis or in SQL, and its change feed
//! - [`site_keys`]: the site's own keys in Redis, as a source for the gate or as a copy of the database
//! - [`clients`]: prefixes of peer ids and the rule that the longest one decides
//! - [`ports`]: ports that nobody may listen on
//! - [`slots`]: how many torrents a user may leech at once, and how many peers a torrent
//! - [`audit`]: who changed what, in a file whose lines are chained
//! - [`keys`]: who may ask what of the site's API
//! - [`sessions`]: operators who are signed in to the dashboard
//! - [`error`]: what can go wrong with the database, and what to do about it
//!
//! A [`Refusal`] is told to the client; an [`AccessError`] is for the operator and never reaches one.

pub mod audit;
pub mod clients;
pub mod error;
pub mod follow;
pub mod gate;
pub mod keys;
pub mod ports;
mod removed;
pub mod sessions;
pub mod site_keys;
pub mod slots;
pub mod store;
pub mod vouching;
pub mod whitelist;

pub use audit::{Audit, AuditError, AuditSettings, AuditSync};
pub use clients::{ClientPrefix, ClientRule, ClientRules};
pub use error::AccessError;
pub use follow::{Change, FollowCounters, Follower, load};
pub use gate::{Admission, Approval, Denied, Gate, Refusal, TorrentGrant, TorrentTerms, UserTerms};
pub use keys::{ApiKey, ApiKeys, Authenticated, KeyId, KeyRing, NewKey, Scope, Scopes};
pub use ports::{BannedPorts, PortRange};
pub use sessions::{Session, SessionFigures, SessionSecret, Sessions};
pub use site_keys::{SiteFollower, SiteKeys};
pub use slots::LeechSlots;
pub use store::{
    Adopted, Adoption, AdoptionTerms, CatalogueKey, CatalogueOrder, CataloguePage, MIGRATIONS, NewTorrent,
    NewUser, Store, TORRENT_NAME_CHARS_MAX, Torrent, TorrentChange, TorrentSearch, User, UserChange,
    random_passkey,
};
pub use vouching::{OnVerifyFailure, Strangers, Vouching, VouchingCounters, VouchingSettings};
pub use whitelist::{
    LineError, PasskeyChange, PasskeyFeed, PasskeyLines, Passkeys, RedisWhitelist, Refresh, Replaced,
    SqlWhitelist, Upload, Whitelist,
};
