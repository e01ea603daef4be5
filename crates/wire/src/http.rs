//! Announce and scrape over HTTP (BEPs 3, 7, 23, 24, 31 and 48): targets and queries in, bencoded replies out.
//!
//! [`parse_target`] returns the route and the segment of a passkey, [`parse_announce`] or [`ScrapeQuery::parse`]
//! parses the query. Announces are the hottest path: one pass, no allocation.

mod error;
mod query;
mod reply;
mod scan;
mod target;

pub use crate::{MAX_SCRAPE_HASHES, ScrapeEntry};
pub use error::QueryError;
pub use query::{Received, ScrapeQuery, parse_announce};
pub use reply::{AnnounceReply, Failure, RetryIn, write_scrape_reply};
pub use target::{Route, Target, parse_target};
