//! Friendships, privacy, last known presence and presence history, in SQL.
//!
//! # Layout
//!
//! - [`store`]: the friend store: opening it, transactions and their retries
//! - [`friendship`]: pairs of friends
//! - [`privacy`]: each user's privacy settings
//! - [`friend_list`]: what connections read, for many users at once
//! - [`stored_presence`]: presence that survives a crash
//! - [`presence_events`]: history of arrivals, departures and status changes, with cursors for its readers
//! - [`change_feed`]: changes of friendships and privacy by any process
//! - [`pair_lines`]: friendships as text, for imports
//! - [`error`]: the error type
//!
//! # Guarantees
//!
//! - SQLite, PostgreSQL and MySQL/MariaDB behave alike; one conformance suite runs on all of them.
//! - Each call is one transaction. After a deadlock or a serialization failure it is repeated.
//!
//! # Deliberately absent
//!
//! The clock: callers pass the time. Users: ids need not be in the tracker's table of users. A cache: a caller that
//! caches keeps its copy current with [`change_feed`].

pub mod change_feed;
pub mod error;
pub mod friend_list;
pub mod friendship;
pub mod pair_lines;
pub mod presence_events;
pub mod privacy;
pub mod store;
pub mod stored_presence;

pub use change_feed::{ChangeFeed, ChangeFeedCounters, FriendsChange};
pub use error::FriendsError;
pub use friend_list::{FriendList, ViewedUser};
pub use friendship::{Friend, FriendsAdded};
pub use pair_lines::{PairLine, PairLineError, PairLines};
pub use presence_events::{EventFilter, PresenceEvent, PresenceEventId, PresenceEventKind, RecordedEvent};
pub use store::{Counters, FriendStore, FriendsSettings, MIGRATIONS};
