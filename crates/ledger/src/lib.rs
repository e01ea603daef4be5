//! Accounts in SQL: what every user and every torrent moved, exactly.
//!
//! # Layout
//!
//! The middle knows neither database nor clock:
//!
//! - [`run`], [`mod@credit`], [`mod@settle`]: what a client is credited, from the set of its runs
//! - [`bucket`]: token buckets, which bound the credit of a client and of a user
//! - [`spans`]: time spent, as a union of spans
//! - [`sums`]: what is known of a client only as a sum
//! - [`mod@explain`]: why an account is what it is, part by part
//! - [`told`], `excess`: what several nodes told of the same announce, and what of it is too much
//! - [`figures`], [`books`]: what is kept of users, torrents, accounts and clients
//! - [`admit`], `post`: whose entry it is, and what a batch of entries does to the books
//! - [`multiplier`]: times in which bytes count more or less
//! - [`mod@standing`]: hit and run
//! - [`risk`]: what was claimed and not credited
//!
//! Around it are the edges:
//!
//! - [`mod@ledger`]: the view of the journal: one transaction a batch
//! - `load`, `rows`, `packed`, `sql`: the books in SQLite, PostgreSQL and MariaDB
//! - `consumers`, [`applied`], `letters`: who applied what
//! - `terms`: multipliers in the database
//! - [`prune`]: forgets clients that are long gone
//! - [`mod@completions`]: how often each torrent was completed, for trackers
//! - [`reads`]: what commands and the site ask
//! - [`error`]: what can go wrong, and whether waiting helps

pub mod admit;
pub mod applied;
pub mod books;
pub mod bucket;
pub mod completions;
mod consumers;
pub mod credit;
pub mod error;
mod excess;
pub mod explain;
pub mod figures;
pub mod ledger;
mod letters;
mod load;
pub mod multiplier;
mod packed;
mod post;
pub mod prune;
pub mod reads;
pub mod risk;
mod rows;
pub mod run;
pub mod settle;
pub mod spans;
mod sql;
pub mod standing;
pub mod sums;
mod terms;
pub mod told;
mod varint;

pub use admit::{Directory, client_id_of};
pub use books::{Client, Presence};
pub use bucket::{Bucket, BucketLimit, UserBucket};
pub use completions::{COMPLETIONS_PAGE, completions};
pub use credit::{Bridge, Credit, credit};
pub use error::LedgerError;
pub use explain::{ExplainedClient, ExplainedStretch, Explanation, explain};
pub use figures::{Account, AccountKey, Figures, client_of};
pub use ledger::{Ledger, LedgerCounts, LedgerSettings, MIGRATIONS};
pub use multiplier::{InForce, Multiplier, NewMultiplier, Percent, Scope};
pub use prune::Pruned;
pub use reads::{AccountPage, EXPLAINED_CLIENTS_MAX, TorrentAccountPage};
pub use risk::{LogRisks, RiskSink};
pub use standing::{HitAndRunPolicy, Standing, standing};
pub use sums::{Moved, Sums};
pub use terms::PastTerms;
