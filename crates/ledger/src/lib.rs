//! Accounts in SQL: what every user and every torrent moved, exactly.
//!
//! # Layout
//!
//! The middle knows neither database nor clock:
//!
//! - [`run`], [`mod@credit`], [`mod@settle`]: what a client is credited, from the set of its runs
//! - [`figures`], [`books`]: what is kept of users, torrents, accounts and clients
//! - [`admit`], `post`: whose entry it is, and what a batch of entries does to the books
//! - [`multiplier`]: times in which bytes count more or less
//! - [`mod@standing`]: hit and run
//! - [`risk`]: what was claimed and not credited
//! - [`applied`]: which entries were applied, in few bytes

pub mod admit;
pub mod applied;
pub mod books;
pub mod credit;
pub mod figures;
pub mod multiplier;
mod post;
pub mod risk;
pub mod run;
pub mod settle;
pub mod standing;

pub use admit::Directory;
pub use credit::{Credit, credit};
pub use figures::{Account, AccountKey, Figures};
pub use multiplier::{Multiplier, NewMultiplier, Percent, Scope};
pub use risk::{LogRisks, RiskRecord, RiskSink};
pub use standing::{HitAndRunPolicy, Standing, standing};
