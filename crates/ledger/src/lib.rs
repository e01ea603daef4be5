//! Accounts in SQL: what every user and every torrent moved, exactly.
//!
//! # Layout
//!
//! The core has no database and no clock:
//!
//! - [`run`], [`mod@credit`], [`mod@settle`]: the credit of a client, from the set of its runs
//! - [`bucket`]: token buckets that limit the credit of a client and of a user
//! - [`spans`]: time spent, as a union of spans
//! - [`sums`]: amounts of a client that no run accounts for
//! - [`mod@explain`]: the parts that add up to an account
//! - [`reported`], `excess`: what several nodes reported of the same announce, and the surplus that is taken back
//! - [`figures`], [`account_state`]: the data of users, torrents, accounts and clients
//! - [`admit`], `post`: user and torrent of an entry; what a batch changes
//! - [`multiplier`]: periods in which bytes count more or less
//! - [`mod@hit_and_run`]: hit-and-run status
//! - [`risk`]: claims that were not credited
//!
//! Around it is the I/O:
//!
//! - [`mod@ledger`]: the view of the journal; `attempt`: the transaction of a batch
//! - `load`: the rows of a batch; `cache`: those of the batches before
//! - `rows`, `client_encoding`, `run_encoding`, `varint`: rows to values and back; `table`: tables and their statements
//! - `consumers`, [`applied`], `dead_letters`: which consumer applied which entries and dead letters
//! - `multiplier_store`: multipliers in the database; [`discount`]: those of an existing site
//! - [`prune`]: deletes clients after their retention time
//! - [`mod@completions`]: how often each torrent was completed, for trackers
//! - [`reads`]: queries of commands and the site
//! - `export`: queries of programs that copy figures elsewhere
//! - [`error`]: errors, and which are retryable
//!
//! # Credit
//!
//! Clients report running totals. Within a run the counters only grow, so of a run no more is stored than the first and
//! greatest counters, when and where in the journal it was first and last reported, its last `stopped`, and sums of
//! what its entries reported beside the counters. A client's credit is a function of the set of its runs:
//!
//! 1. Runs are ordered by the journal. Runs of one number that several nodes reported are one; runs that began on
//!    different nodes within a second with close counters are one; runs that overlap and plausibly continue each other
//!    are the same counters. Together they are a stretch. They are not joined if the same node had already numbered
//!    those counters, if the client had stopped before, if one begins at zero where the others were above it, or if one
//!    ended later but lower.
//! 2. A stretch counts by how far its counters went beyond what is known. Counters restart only where a run shows it:
//!    lower counters in a later run of one tracker, or of another after a second, after a `stopped`, or at zero.
//! 3. Between two stretches no tracker received announces. If the counters continued, the difference counts (a bridge);
//!    if either went back, or after a `stopped`, nothing does.
//! 4. The result passes the client's token bucket: ten seconds of `limits.peer_rate_max_mbit_per_s`, refilled by time
//!    alone. The rest is withheld and reported.
//! 5. What a batch adds to all clients of a user passes the user's bucket, which is stored in `ledger_users`; the
//!    withheld part is stored with each client, so that the explanation stays exact.
//!
//! A batch loads the runs it touches, computes the credit before and after, and posts the difference, which may be
//! negative. An entry without totals is credited by `du` and `dd`, through the same buckets. Announces that several
//! nodes received at once are posted once: bonus and completions beyond those of any one node are taken back.
//!
//! # Bounds
//!
//! The clients of an account are packed in its row, with at most 512 runs: of more, those not seen for longest are deleted.
//! Of a client with more than 64 runs, those that continued each other become one, then the oldest are settled behind
//! one run that stands for their end; neither changes the credit. Clients that were not seen for
//! `LedgerSettings::session_retention` (30 days) are deleted; amounts stay. An entry older than that is rejected.
//!
//! # Transactions
//!
//! A batch is one transaction: lock the consumer's row, the rows of its users, then of its torrents, in numeric order;
//! read accounts with their clients; post in memory; write what changed, one row for each account, user and torrent.
//! Missing users and torrents are created first, in a transaction that holds nothing else. So consumers never deadlock. The consumer's row holds the ids of its last batch
//! and is written in the same transaction: a repeated batch is left out. Dead letters are recognised by their origin,
//! the id in the traffic lane. PostgreSQL takes many rows as arrays. MariaDB takes them as one text, and keys as JSON: a list
//! of keys in the statement takes as long, and then the order of locks is that of MariaDB's choice. On SQLite the transaction is
//! one job of the connection's thread; statements are prepared once, and rows that it wrote before are not read again
//! (`cache`).
//!
//! # Time
//!
//! `dt` is seeding time if the client had nothing left before the entry and this is not the `completed`. `started`,
//! departures, port 0 and a `dt` beyond interval and grace count none. Per user and torrent the union of spans is
//! stored, so that parallel clients and nodes count once.

pub mod account_state;
pub mod admit;
pub mod applied;
mod attempt;
pub mod bucket;
mod cache;
mod client_encoding;
pub mod completions;
mod consumers;
pub mod credit;
mod dead_letters;
pub mod discount;
pub mod error;
mod excess;
pub mod explain;
mod export;
pub mod figures;
pub mod hit_and_run;
pub mod ledger;
mod load;
pub mod multiplier;
mod multiplier_store;
mod post;
pub mod prune;
pub mod reads;
pub mod reported;
pub mod risk;
mod rows;
pub mod run;
mod run_encoding;
pub mod settle;
pub mod spans;
pub mod sums;
mod table;
mod varint;

pub use account_state::{Client, ClientState};
pub use admit::{Directory, client_id_of};
pub use bucket::{Bucket, BucketLimit, UserBucket};
pub use completions::{COMPLETIONS_PAGE, completions};
pub use credit::{Bridge, Credit, credit};
pub use discount::{Discount, DiscountScope};
pub use error::LedgerError;
pub use explain::{ExplainedClient, ExplainedStretch, Explanation, explain};
pub use export::Present;
pub use figures::{Account, AccountKey, Figures, client_of};
pub use hit_and_run::{HitAndRunPolicy, HitAndRunStatus, hit_and_run_status};
pub use ledger::{Ledger, LedgerCounts, LedgerSettings, MIGRATIONS};
pub use multiplier::{InForce, Multiplier, NewMultiplier, Percent, Scope};
pub use multiplier_store::PastMultipliers;
pub use prune::Pruned;
pub use reads::{AccountPage, EXPLAINED_CLIENTS_MAX, HitAndRunPage, PAGE_ROWS_MAX, TorrentAccountPage};
pub use risk::{LogRisks, RiskSink};
pub use sums::{Moved, Sums};
