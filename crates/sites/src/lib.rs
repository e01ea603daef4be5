//! The tables of an existing site: who may announce is read from them, and what was moved is written to them.
//!
//! # Layout
//!
//! - [`profile`]: site profiles, TOML files of SQL; the built-in ones are in `profiles/`
//! - [`mod@check`]: whether the site's tables are as a profile needs them
//! - [`reader`]: copies the site's users, torrents and clients into `access`
//! - [`stage`]: what changed since it was last written, in memory; [`view`]: the view of the journal that fills it
//! - [`writer`]: writes it: `marks` (what the site was given), `rows` (from figures to rows), `flush` (one transaction)
//! - [`agent`]: the name of a client program by its peer id
//! - [`counters`], [`error`]
//!
//! # Reading
//!
//! The site's rows become rows of `users` and `torrents` with the same ids, from which the gate, the API and the dashboard work as
//! ever. So announces continue while the site's database is away, also after a restart, and other nodes need no access to it. New
//! rows are read every second, everything once a minute, and one row when it is requested. Many rows that vanish at once are
//! removed only after three rounds.
//!
//! # Writing
//!
//! What is written are differences between the ledger's figures and the *marks*: what the site was given already, in a schema of
//! our own on the site's server. Both change in one transaction, so that a killed process or a lost reply neither
//! loses nor doubles a byte, and what the site itself adds or subtracts stays. The journal tells only which rows to compare.
//! After an interruption of any length each row costs one difference: the journal is not read again beyond the time in which
//! every live peer announces, and all figures are compared once.
//!
//! Marks belong to a ledger, which has a random number: a new data folder begins with new marks, and two installations on
//! one site add up.

pub mod agent;
pub mod check;
pub mod counters;
pub mod error;
pub mod profile;
pub mod reader;
pub mod stage;
pub mod view;
pub mod writer;

use database::{Database, Migrations};

pub use check::check;
pub use counters::{ReaderCounters, WriterCounters};
pub use error::SitesError;
pub use profile::Profile;
pub use reader::{Reader, ReaderParts, Ring, Rings};
pub use stage::Stage;
pub use view::SitesView;
pub use writer::{Writer, WriterParts};

pub static MIGRATIONS: Migrations =
    database::migrations!("sites_migrations" in "migrations": all "0001_sites");

/// The number of this ledger on the site's server: random, chosen once.
pub async fn ledger_number(database: &Database) -> Result<i64, SitesError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(SitesError::Random)?;
    // Positive, and above zero.
    let number = (i64::from_le_bytes(bytes) & i64::MAX) | 1;
    let add = "{insert or ignore} sites_ledger (only_row, ledger) VALUES (1, ?) {or ignore}";
    database.execute(add, &[number.into()]).await.map_err(|error| database.explain(error))?;
    let read = database.query_one("SELECT ledger FROM sites_ledger WHERE only_row = 1", &[]).await;
    read.map_err(|error| database.explain(error))?.ok_or(SitesError::NoLedgerNumber)
}
