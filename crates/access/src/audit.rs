//! The audit trail (W7): every change as a line of JSON in one file, chained by hashes.
//!
//! # Layout
//!
//! - this file: [`Audit`], which appends
//! - [`record`]: what is recorded
//! - `line`: a record as a line of the file
//! - `file`: opening, locking, the end of the file, the anchor
//! - [`read`]: newest first, page by page
//! - [`verify`]: the check of the chain
//!
//! # Format
//!
//! A line is `{"action":…,"actorId":…,"subjectType":…,"subjectId":…,"result":…,"details":{…},"at":…,"seq":…,"prev":…,
//! "hash":…}`, in this order, without blanks. `seq` counts from 1, `prev` is the `hash` of the line before (64 zeros for
//! the first), and `hash` is the SHA-256 over the bytes of the line without `,"hash":"…"`:
//! `sed 's/,"hash":"[0-9a-f]*"}$/}/' | tr -d '\n' | sha256sum`.
//!
//! # Guarantees
//!
//! - Several processes and threads append to one chain: each record is written under a lock on the file.
//! - An acknowledged record is on the disk.
//! - A half-written line, left by a crash or a full disk, stays; the next record, `audit.torn`, has its length and hash.
//! - An emptied or truncated trail is detected: `audit.log.anchor` has number, hash and position of the last record,
//!   and is written
//!   after the record, so a crash leaves it behind, never ahead. The next record is `audit.truncated` and follows the one
//!   that the anchor names, so that the chain shows the missing ones.
//! - Only the owner can read the files.
//!
//! # Deliberately absent
//!
//! Rotation: the file grows by about 400 bytes per change. Protection from a writer who also replaces hashes and anchor:
//! that shows only against a hash that was kept elsewhere.

mod file;
mod line;
pub mod read;
pub mod record;
pub mod verify;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Counter;
use domain::clock::Clock;

use self::file::{Anchor, End};
use self::line::Link;
pub use self::line::{Entry, LineHash, rfc3339};
pub use self::read::{AuditPage, AuditQuery};
pub use self::record::{Outcome, Record, Subject, actor_of_command, actor_of_key, passkey_subject_id};
pub use self::verify::Verdict;

/// The longest line, without its newline. Longer details are omitted, and the line says so.
pub const LINE_BYTES_MAX: usize = 16 * 1024;
/// Free space that a check requires.
const CHECK_BYTES: usize = 4096;
/// The actor of records that the trail writes about itself.
const ACTOR: &str = "rollcall";
/// A half-written line precedes this record.
const TORN: &str = "audit.torn";
/// Lines that are not records precede this record.
const DAMAGED: &str = "audit.damaged";
/// The trail ended before the record that its anchor names.
const TRUNCATED: &str = "audit.truncated";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    pub file: PathBuf,
    /// Whether a record is on the disk before it is acknowledged. Off only in tests that write thousands.
    pub is_synced: bool,
}

/// A change that cannot be recorded must not be acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("cannot {doing} the audit trail {path}: {source}; check its owner, its mode and the disk")]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot write the audit trail {path}: {source}; free the disk, or change access.audit_file")]
    Write { path: PathBuf, source: io::Error },
    #[error("the audit trail {0} is not a regular file: change access.audit_file")]
    NotAFile(PathBuf),
    #[error("another process has locked the audit trail {0} for ten seconds: find it with lsof, and end it")]
    Busy(PathBuf),
}

/// Number and hash of a written record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub seq: u64,
    pub hash: LineHash,
}

/// Counts of this process.
#[derive(Debug, Default)]
pub struct AuditCounters {
    pub records: Counter,
    pub written_bytes: Counter,
    /// Failed records and checks.
    pub failures: Counter,
    /// Torn, damaged or truncated ends that were found and recorded.
    pub repairs: Counter,
}

/// Appends records. [`Audit::check`] precedes a change, [`Audit::record`] follows it, before it is acknowledged. The file
/// is locked only while a line is read and written.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    settings: AuditSettings,
    clock: Arc<dyn Clock>,
    counters: AuditCounters,
}

impl Audit {
    /// Creates file and folder if they are missing, and checks that they are writable. Blocks.
    pub fn open(settings: AuditSettings, clock: Arc<dyn Clock>) -> Result<Audit, AuditError> {
        let inner = Inner { settings, clock, counters: AuditCounters::default() };
        inner.check()?;
        Ok(Audit(Arc::new(inner)))
    }

    pub fn settings(&self) -> &AuditSettings {
        &self.0.settings
    }

    pub fn counters(&self) -> &AuditCounters {
        &self.0.counters
    }

    /// Whether a record can be written, as far as that can be known.
    pub async fn check(&self) -> Result<(), AuditError> {
        self.blocking(|inner| inner.check()).await
    }

    /// For readiness, which asks often: does not write to the trail, which other programs may follow.
    pub async fn check_writable(&self) -> Result<(), AuditError> {
        self.blocking(|inner| {
            let path = &inner.settings.file;
            file::open_to_append(path)?;
            let scratch = path.with_extension("check");
            let written = fs::write(&scratch, [b' '; CHECK_BYTES]);
            let _ = fs::remove_file(&scratch);
            written.map_err(|source| AuditError::Write { path: path.clone(), source })
        })
        .await
    }

    /// Completes even if the caller is cancelled.
    pub async fn record(&self, record: Record) -> Result<Recorded, AuditError> {
        self.blocking(move |inner| inner.record(&record)).await
    }

    /// Blocks for the disk, and up to ten seconds for the lock.
    pub fn record_blocking(&self, record: &Record) -> Result<Recorded, AuditError> {
        self.0.record(record)
    }

    pub async fn read_newest(&self, query: AuditQuery) -> Result<AuditPage, AuditError> {
        self.blocking(move |inner| read::newest(&inner.settings.file, &query)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, AuditError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let inner = Arc::clone(&self.0);
        let outcome = tokio::task::spawn_blocking(move || work(&inner)).await;
        let path = self.0.settings.file.clone();
        outcome.unwrap_or_else(|error| Err(AuditError::Write { path, source: io::Error::other(error) }))
    }
}

impl Inner {
    /// Proves that there is space by taking it and giving it back. If the process dies in between, the next record
    /// reports the blanks.
    fn check(&self) -> Result<(), AuditError> {
        self.at_end(|file, end| {
            self.write(file, end.length, &[b' '; CHECK_BYTES])?;
            file.set_len(end.length).map_err(|source| self.write_error(source))?;
            // Also of an empty trail: a missing anchor was deleted.
            if end.has_anchor { Ok(()) } else { self.write_anchor(&end.last, end.length) }
        })
    }

    fn record(&self, record: &Record) -> Result<Recorded, AuditError> {
        self.at_end(|file, end| {
            let at = rfc3339(self.clock.now_ms());
            let findings = self.findings(end);
            let mut text = if end.needs_newline { vec![b'\n'] } else { Vec::new() };
            let mut last = end.last.clone();
            for record in findings.iter().chain([record]) {
                let (line, link) = line::encode(record, &at, &last);
                text.extend_from_slice(&line);
                last = link;
            }
            self.write(file, end.length, &text)?;
            if self.settings.is_synced {
                file.sync_data().map_err(|source| self.write_error(source))?;
            }
            // The record is written: an anchor that stays behind does not make it fail.
            if let Err(error) = self.write_anchor(&last, end.length + text.len() as u64) {
                self.counters.failures.increment();
                tracing::warn!(%error, "the anchor of the audit trail was not written");
            }
            self.counters.records.increment();
            self.counters.written_bytes.add(text.len() as u64);
            self.counters.repairs.add(u64::from(!findings.is_empty()));
            Ok(Recorded { seq: last.seq, hash: last.hash })
        })
    }

    /// Records about a torn, damaged or truncated end.
    fn findings(&self, end: &End) -> Vec<Record> {
        let name = self.settings.file.file_name().unwrap_or_default().to_string_lossy();
        let finding = |action| Record::ok(action, ACTOR, Subject::new("audit", &name));
        let mut findings = Vec::new();
        if let Some(foreign) = &end.foreign {
            let action = if foreign.is_one_line() && !foreign.ends_line { TORN } else { DAMAGED };
            findings
                .push(finding(action).with("bytes", foreign.bytes).with("sha256", foreign.hash().as_str()));
        }
        if end.is_truncated {
            let path = self.settings.file.display();
            tracing::error!(%path, anchored = end.last.seq, "the audit trail was truncated or replaced");
            findings.push(finding(TRUNCATED).with("anchored", end.last.seq));
        }
        findings
    }

    /// Runs with the locked file and its end.
    fn at_end<T>(&self, work: impl FnOnce(&File, &End) -> Result<T, AuditError>) -> Result<T, AuditError> {
        let path = &self.settings.file;
        let locked = || -> Result<T, AuditError> {
            // Closing it gives the lock back.
            let file = file::open_to_append(path)?;
            file::with_patience(path, || file.try_lock())?;
            work(&file, &End::read(&file, path).map_err(|error| cannot_read(path, error))?)
        };
        let outcome = locked();
        self.counters.failures.add(u64::from(outcome.is_err()));
        outcome
    }

    /// All or nothing: what does not fit on the disk is taken back.
    fn write(&self, mut file: &File, length: u64, text: &[u8]) -> Result<(), AuditError> {
        file.write_all(text).map_err(|source| {
            let _ = file.set_len(length);
            self.write_error(source)
        })
    }

    fn write_anchor(&self, last: &Link, length: u64) -> Result<(), AuditError> {
        let path = &self.settings.file;
        Anchor::write(path, last, length, self.settings.is_synced)
            .map_err(|source| AuditError::Write { path: file::anchor_path(path), source })
    }

    fn write_error(&self, source: io::Error) -> AuditError {
        AuditError::Write { path: self.settings.file.clone(), source }
    }
}

fn cannot_read(path: &Path, source: io::Error) -> AuditError {
    AuditError::File { doing: "read", path: path.to_owned(), source }
}
