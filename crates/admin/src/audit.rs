//! The audit trail (W7): every change as a line of JSON in one file, chained by hashes.
//!
//! # Layout
//!
//! - this file: [`Audit`], which appends
//! - [`record`]: what is recorded
//! - `line`: a record as a line of the file
//! - `file`: opening, locking, the end of the file
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
//! - Only the owner can read the file.
//!
//! # Deliberately absent
//!
//! Rotation: the file grows by about 400 bytes per change. Detection of a truncated end, or of a chain that was computed
//! anew: both show only against a hash that was kept elsewhere (`rollcall audit verify --expect-last`).

mod file;
mod line;
pub mod read;
pub mod record;
pub mod verify;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Counter;
use domain::clock::Clock;
use domain::time::rfc3339;

use self::file::End;
pub use self::line::{Entry, LineHash};
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

/// Counts of this process.
#[derive(Debug, Default)]
pub struct AuditCounters {
    pub records: Counter,
    pub written_bytes: Counter,
    /// Failed records and checks.
    pub failures: Counter,
    /// Half-written lines that were found and recorded.
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
        inner.counted(inner.check())?;
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
        self.blocking(|inner| inner.counted(inner.check())).await
    }

    /// Completes even if the caller is cancelled. Returns the record's number.
    pub async fn record(&self, record: Record) -> Result<u64, AuditError> {
        self.blocking(move |inner| inner.counted(inner.record(&record))).await
    }

    /// Blocks for the disk, and up to ten seconds for the lock.
    pub fn record_blocking(&self, record: &Record) -> Result<u64, AuditError> {
        self.0.counted(self.0.record(record))
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
        outcome.unwrap_or_else(|error| Err(self.0.write_error(io::Error::other(error))))
    }
}

impl Inner {
    fn counted<T>(&self, outcome: Result<T, AuditError>) -> Result<T, AuditError> {
        self.counters.failures.add(u64::from(outcome.is_err()));
        outcome
    }

    /// The space is taken in a file beside the trail, which other programs may follow; at the position where the next
    /// record begins, because files may be limited in size.
    fn check(&self) -> Result<(), AuditError> {
        let path = &self.settings.file;
        let end = file::open_to_append(path)?.metadata().map_err(|error| cannot_read(path, error))?.len();
        let scratch = path.with_extension("check");
        let written = File::create(&scratch).and_then(|file| file.write_all_at(&[b' '; CHECK_BYTES], end));
        let _ = fs::remove_file(&scratch);
        written.map_err(|source| self.write_error(source))
    }

    fn record(&self, record: &Record) -> Result<u64, AuditError> {
        let path = &self.settings.file;
        // Closing the file releases the lock.
        let file = file::open_to_append(path)?;
        file::with_patience(path, || file.try_lock())?;
        let end = End::read(&file).map_err(|error| cannot_read(path, error))?;
        let at = rfc3339(self.clock.now_ms());
        let (torn, mut last) = (end.torn.as_deref().map(torn_record), end.last);
        let mut text = if end.needs_newline { vec![b'\n'] } else { Vec::new() };
        for record in torn.iter().chain([record]) {
            let entry = Entry::after(last.as_ref(), record, &at);
            text.extend(entry.to_json());
            text.push(b'\n');
            last = Some(entry);
        }
        self.write(&file, end.length, &text).map_err(|source| self.write_error(source))?;
        self.counters.records.increment();
        self.counters.written_bytes.add(text.len() as u64);
        self.counters.repairs.add(u64::from(torn.is_some()));
        Ok(last.map_or(0, |last| last.seq))
    }

    /// All or nothing: what does not fit on the disk is taken back.
    fn write(&self, mut file: &File, length: u64, text: &[u8]) -> io::Result<()> {
        file.write_all(text).inspect_err(|_| {
            let _ = file.set_len(length);
        })?;
        if self.settings.is_synced { file.sync_data() } else { Ok(()) }
    }

    fn write_error(&self, source: io::Error) -> AuditError {
        AuditError::Write { path: self.settings.file.clone(), source }
    }
}

fn torn_record(torn: &[u8]) -> Record {
    Record::ok(TORN, ACTOR, Subject::new("audit", "trail"))
        .with("bytes", torn.len())
        .with("sha256", LineHash::of(torn).as_str())
}

fn cannot_read(path: &Path, source: io::Error) -> AuditError {
    AuditError::File { doing: "read", path: path.to_owned(), source }
}
