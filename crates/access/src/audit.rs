//! The audit trail (W7): who changed what, as lines of JSON that are chained by their hashes.
//!
//! # Layout
//!
//! - [`record`]: what is recorded, and about whom
//! - [`line`](self::Entry): a record as it stands in the file, and the hash that chains it
//! - [`trail`]: [`Audit`], which appends
//! - [`read`]: newest first, for people and for the API
//! - [`verify`]: whether the chain holds
//! - `anchor`: the last record's number and hash, in a file of its own
//!
//! # The chain
//!
//! A line is `{"action":…,"actorId":…,"subjectType":…,"subjectId":…,"result":…,"details":{…},"at":…,"seq":…,"prev":…,
//! "hash":…}`, in this order, without blanks between. `seq` counts from 1, `prev` is the `hash` of the line before (64
//! zeros for the first), and `hash` is the SHA-256, in lowercase digits, over the bytes of the line with the field
//! `hash` and the comma before it taken out. Anybody can check a line:
//! `sed 's/,"hash":"[0-9a-f]*"}$/}/' | tr -d '\n' | sha256sum`.
//!
//! # Guarantees
//!
//! - **Any number of processes and threads append to one file**, and the chain stays one: each takes a lock on the file
//!   for the moment it writes.
//! - **A record that was reported as written is on the disk**, with [`AuditSync::Always`].
//! - **What a crash or a full disk leaves half written is kept and told of.** The next line is a record `audit.torn` with
//!   the length and the SHA-256 of what was found there.
//! - **The chain goes across files.** A full file becomes `audit.log.1`, `audit.log.2` and so on; the first line of the
//!   next goes on where it ended.
//! - **An end that was cut off shows**: [`verify`] compares it with the anchor beside the file, and the next record stands
//!   behind the one that the anchor names, after a record `audit.truncated`.
//! - Nobody but the owner of the data folder can read the files.
//!
//! # Deliberately absent
//!
//! Protection from a writer of the file who also counts hashes and changes the anchor: they can write another chain, or
//! cut off the end. Both show only against a hash that was remembered elsewhere ([`verify::Expectations::hash`]).

mod anchor;
mod error;
mod files;
mod line;
mod moment;
pub mod read;
pub mod record;
mod tail;
pub mod trail;
pub mod verify;

pub use error::AuditError;
pub use line::{Entry, LineHash};
pub use moment::rfc3339;
pub use read::{AuditPage, AuditQuery};
pub use record::{Outcome, Record, Subject, actor_of_command, actor_of_key, passkey_subject_id};
pub use trail::{Audit, AuditFigures, AuditSettings, Recorded};
pub use verify::{Expectations, Verdict};

/// A line, with all that is in it, is never longer than this. Longer details are left out, and the line says so.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// When a line is brought to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditSync {
    /// Before the change is acknowledged.
    #[default]
    Always,
    /// Once a second.
    EverySecond,
    /// When the system likes.
    Never,
}
