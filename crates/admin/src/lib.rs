//! Operators' access: API keys, dashboard sessions, the audit trail.
//!
//! # Layout
//!
//! - [`keys`]: API keys in SQL, and a copy of the active ones in memory that authenticates requests
//! - [`sessions`]: dashboard sessions in SQL, for which an API key is exchanged
//! - [`audit`]: the audit trail, a file
//! - [`error`]: the error type of keys and sessions
//!
//! # Keys, sessions, audit trail
//!
//! API keys are 160 random bits; their SHA-256 is stored, compared in constant time, and read again five times a second. A
//! session is 256 random bits in a cookie and a row with their hash; its rights are the current ones of its key.
//!
//! The audit trail is a file that several processes append to, each record under a file lock: the last line is read,
//! the new one carries its hash. A torn last line stays, and the next record reports it. A change whose record cannot be
//! written is not acknowledged.
//!
//! # Tables
//!
//! `api_keys`, `api_keys_begun` and `api_sessions` are in the database of users and torrents. `access::Store` creates them
//! (its migrations 3 and 6, which existing databases have recorded), so it is opened first. A later change of these tables is
//! a migration of this crate, with a sequence of its own.

pub mod audit;
pub mod error;
pub mod keys;
pub mod sessions;

pub use audit::{Audit, AuditError, AuditSettings, Record, Subject};
pub use error::AdminError;
pub use keys::{ApiKey, ApiKeys, Authenticated, KeyId, KeyRing, NewKey, Scope, Scopes};
pub use sessions::{Session, SessionFigures, SessionSecret, Sessions};
