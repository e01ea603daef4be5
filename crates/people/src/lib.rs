//! Friendships, privacy, and what was last known of each person, in SQL.
//!
//! # Layout
//!
//! - [`store`]: the database of people, and how its calls are made and repeated
//! - [`friendship`]: who knows whom
//! - [`privacy`]: who may see what
//! - [`circle`]: what a connection needs to know of others, for many people at once
//! - [`remembered`]: what should be known of each person after a crash
//! - [`history`]: who came, who went, whose status changed; and how far that was told on
//! - [`follow`]: tells every process of changes, by whomever they were made
//! - [`lines`]: friendships as text
//! - [`error`]: what can go wrong, and what to do about it
//!
//! # Guarantees
//!
//! - The three kinds of databases behave alike; one suite of tests runs on all of them.
//! - A call happens as a whole or not at all. Where two writers wait for each other, the loser begins again by itself.
//!
//! # Deliberately absent
//!
//! The clock: whoever writes says when. Users: people are ids, and need not be in the tracker's table of users. A cache:
//! whoever keeps a copy keeps it right with [`follow`].

pub mod circle;
pub mod error;
pub mod follow;
pub mod friendship;
pub mod history;
pub mod lines;
pub mod privacy;
pub mod remembered;
mod sql;
pub mod store;

pub use circle::{Acquaintance, Circle};
pub use error::PeopleError;
pub use follow::{FollowCounters, Follower, PeopleChange};
pub use friendship::{Added, Friend};
pub use history::{Kinds, Occurrence, OccurrenceId, OccurrenceKind, Recorded};
pub use lines::{PairLine, PairLineError, PairLines};
pub use store::{Counters, MIGRATIONS, People, PeopleSettings};
