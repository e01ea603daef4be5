//! One layer for three databases: portable statements, parameters, typed rows, transactions.
//!
//! - [`Statement`]: SQL that is written once ([`statement`] lists what differs between the databases and how it is
//!   written), or once for each database.
//! - [`Value`]: a parameter, or the value of a column. [`Rows`]: the rows of a bulk statement, which takes one round trip:
//!   arrays and `UNNEST` on PostgreSQL, one text of values on MariaDB, one prepared statement per row on SQLite.
//! - [`Relation`]: rows of named columns as one parameter, which a statement joins like a table.
//! - [`FromRow`]: reads the columns of a row in their order.
//! - [`Transaction`] and [`Session`]: where statements run. [`Database`] has the same methods for single statements.
//!
//! On SQLite all statements of a call run on the thread of their connection, one hop for a bulk statement. One hop for a
//! whole transaction: [`crate::SqliteDatabase::write`], and with an [`Executor`] for code that servers run as well.

pub mod error;
pub mod executor;
mod mysql;
mod postgres;
pub mod relation;
pub mod statement;
pub mod transaction;
pub mod value;

pub use error::SqlError;
pub use executor::{Executor, at_once};
pub use relation::{Column, Relation};
pub use statement::Statement;
pub use transaction::{Session, Transaction};
pub use value::{FromRow, FromValue, Row, Rows, Type, Value};
