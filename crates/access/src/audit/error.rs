//! Why something was not recorded, or cannot be read, each with what to do about it.

use std::io;
use std::path::PathBuf;

/// Why the audit trail did not do what was asked. A change that could not be recorded must not be acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The folder cannot be made.
    #[error("cannot make the folder {path} of the audit trail: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be opened, read, locked or put aside.
    #[error("cannot {doing} the audit trail {path}: {source}; check its owner, its mode and the disk")]
    File {
        /// What was tried: "open", "read" and the like.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The line did not get into the file, or not onto the disk.
    #[error("cannot write the audit trail {path}: {source}; make room, or change access.audit_file")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A pipe or a device keeps no chain.
    #[error("the audit trail {0} is not a plain file: change access.audit_file")]
    NotAFile(PathBuf),
    /// Another process holds the lock and does not give it back.
    #[error(
        "another process has held the audit trail {0} for ten seconds: look who does with lsof, and end it"
    )]
    Busy(PathBuf),
    /// There are files, but no record in them to go on from.
    #[error(
        "the audit trail {0} holds no record to go on from: see rollcall audit verify, then move the file away"
    )]
    NoRecord(PathBuf),
}
