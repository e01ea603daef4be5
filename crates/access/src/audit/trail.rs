//! Appends to the trail.
//!
//! A change is recorded in two steps: [`Audit::check`] before it, so that a trail that cannot be written stops the
//! change; [`Audit::record`] after it, before anybody is told that it is done. A record that fails after the change is an
//! error to whoever asked for the change, though the change is there: better asked twice than unseen.
//!
//! The lock on the file is held only while a line is read and written, never while a change runs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::clock::Clock;
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use super::anchor::{self, Anchor};
use super::error::AuditError;
use super::files::{self, Locked};
use super::line::{self, LineHash, Link};
use super::moment::rfc3339;
use super::record::{Record, Subject};
use super::tail::{self, Remains};
use super::{AuditPage, AuditQuery, AuditSync, read};

/// How often a trail that is synced once a second is synced.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// What a check makes sure there is room for.
const CHECK_BYTES: usize = 4096;
/// The file may be put aside by others between opening and locking it; so often in a row something else is wrong.
const OPEN_TRIES_MAX: u32 = 100;
/// Who tells of what was found in the file.
const SELF: &str = "rollcall";
/// Half a line stood before this one.
pub(super) const TORN: &str = "audit.torn";
/// Lines that are no records stood before this one.
pub(super) const DAMAGED: &str = "audit.damaged";

/// Records were missing before this one: the trail ended before the record that its anchor names.
pub(super) const TRUNCATED: &str = "audit.truncated";

/// How a trail is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The file that is written.
    pub file: PathBuf,
    /// When a line is brought to the disk.
    pub sync: AuditSync,
    /// A file that has grown to this is put aside.
    pub file_bytes_max: u64,
    /// Files put aside that are kept, at the most; 0 keeps them all.
    pub files_max: u32,
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub seq: u64,
    /// Its hash: remembered elsewhere, it proves that everything up to here is as it was.
    pub hash: LineHash,
}

/// What the trail of this process did since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditFigures {
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Records that could not be written, and checks and syncs that failed.
    pub failures: u64,
    /// Files put aside.
    pub rotations: u64,
    /// Times that something else than a record was found at the end of the file.
    pub repairs: u64,
}

#[derive(Debug, Default)]
struct Counters {
    records: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    rotations: AtomicU64,
    repairs: AtomicU64,
}

/// The trail. Clones share the file.
#[derive(Clone)]
pub struct Audit {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

struct Inner {
    settings: AuditSettings,
    clock: Arc<dyn Clock>,
    /// The file as it was opened last; threads of this process wait for each other here, processes at the file's lock.
    file: Mutex<Option<File>>,
    /// Something was written that is not known to be on the disk.
    is_dirty: AtomicBool,
    counters: Counters,
}

impl Audit {
    /// Opens the trail, and finds out whether it can be written. Makes the file and its folder where they are missing.
    /// Blocks for a moment.
    pub fn open(settings: AuditSettings, clock: Arc<dyn Clock>) -> Result<Audit, AuditError> {
        let inner = Inner {
            settings,
            clock,
            file: Mutex::new(None),
            is_dirty: AtomicBool::new(false),
            counters: Counters::default(),
        };
        inner.check()?;
        Ok(Audit { inner: Arc::new(inner) })
    }

    /// How it is kept.
    pub fn settings(&self) -> &AuditSettings {
        &self.inner.settings
    }

    /// What it did since the start of this process.
    pub fn figures(&self) -> AuditFigures {
        let counters = &self.inner.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AuditFigures {
            records: get(&counters.records),
            bytes: get(&counters.bytes),
            failures: get(&counters.failures),
            rotations: get(&counters.rotations),
            repairs: get(&counters.repairs),
        }
    }

    /// Whether a record could be written now, as far as that can be known before: to be asked before a change.
    pub async fn check(&self) -> Result<(), AuditError> {
        self.blocking(|inner| inner.check()).await
    }

    /// Whether there is room for records: for readiness, which asks often. The trail itself is not touched, so that programs
    /// that follow it see no change.
    pub async fn check_room(&self) -> Result<(), AuditError> {
        self.blocking(|inner| inner.check_room()).await
    }

    /// Records a change: to be done before the change is acknowledged. Goes on to its end even if nobody waits for it.
    pub async fn record(&self, record: Record) -> Result<Recorded, AuditError> {
        self.blocking(move |inner| inner.record(&record)).await
    }

    /// The same for those who may block: for as long as the disk takes, and up to ten seconds where another process
    /// holds the file.
    pub fn record_blocking(&self, record: &Record) -> Result<Recorded, AuditError> {
        self.inner.record(record)
    }

    /// Records, newest first.
    pub async fn read_newest(&self, query: AuditQuery) -> Result<AuditPage, AuditError> {
        self.blocking(move |inner| read::newest(&inner.settings.file, &query)).await
    }

    /// Brings what was written to the disk.
    pub async fn sync(&self) -> Result<(), AuditError> {
        self.blocking(|inner| inner.sync_if_dirty()).await
    }

    /// Syncs once a second until `shutdown` is ready, and once more then. For processes that live long, with
    /// [`AuditSync::EverySecond`]; otherwise it only waits.
    pub async fn keep_synced(self, shutdown: impl Future) {
        let mut ticks = tokio::time::interval(SYNC_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sync = async {
            loop {
                ticks.tick().await;
                if let Err(error) = self.sync_every_second().await {
                    tracing::warn!(%error, "the audit trail was not brought to the disk");
                }
            }
        };
        tokio::select! {
            () = sync => {}
            _ = shutdown => {}
        }
        let _ = self.sync_every_second().await;
    }

    async fn sync_every_second(&self) -> Result<(), AuditError> {
        match self.inner.settings.sync {
            AuditSync::EverySecond => self.sync().await,
            AuditSync::Always | AuditSync::Never => Ok(()),
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, AuditError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let inner = Arc::clone(&self.inner);
        let path = self.inner.settings.file.clone();
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(outcome) => outcome,
            Err(error) => Err(AuditError::Write { path, source: std::io::Error::other(error) }),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.settings.sync == AuditSync::EverySecond {
            let _ = self.sync_if_dirty();
        }
    }
}

impl Inner {
    fn check(&self) -> Result<(), AuditError> {
        let outcome = self.with_file(|end| end.check());
        self.count_failure(&outcome);
        outcome
    }

    fn check_room(&self) -> Result<(), AuditError> {
        let scratch = self.settings.file.with_extension("check");
        let written = fs::write(&scratch, [b' '; CHECK_BYTES]);
        let _ = fs::remove_file(&scratch);
        written.map_err(|source| self.write_error(source))
    }

    fn record(&self, record: &Record) -> Result<Recorded, AuditError> {
        let outcome = self.with_file(|end| end.append(record));
        self.count_failure(&outcome);
        let (recorded, bytes) = outcome?;
        self.counters.records.fetch_add(1, Ordering::Relaxed);
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(recorded)
    }

    fn sync_if_dirty(&self) -> Result<(), AuditError> {
        if !self.is_dirty.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let outcome = self.with_file(|end| end.sync());
        self.count_failure(&outcome);
        outcome
    }

    fn count_failure<T>(&self, outcome: &Result<T, AuditError>) {
        if outcome.is_err() {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn write_error(&self, source: std::io::Error) -> AuditError {
        AuditError::Write { path: self.settings.file.clone(), source }
    }

    /// Does something with the end of the file under its lock. A file that is full is put aside first.
    fn with_file<T>(
        &self,
        work: impl FnOnce(&OpenEnd<'_>) -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        let path = &self.settings.file;
        let mut held = self.file.lock();
        for _ in 0..OPEN_TRIES_MAX {
            let file = match held.take() {
                Some(file) => file,
                None => files::open_to_append(path)?,
            };
            let locked = files::lock(&file, path)?;
            // Others may have put it aside since it was opened. While it is locked, nobody can.
            if !files::is_named(&file, path) {
                continue;
            }
            let end = OpenEnd::read(self, &file)?;
            if end.is_full() {
                self.put_aside(&file, &locked)?;
                continue;
            }
            let outcome = work(&end);
            drop(locked);
            *held = Some(file);
            return outcome;
        }
        Err(AuditError::Busy(path.clone()))
    }

    /// Gives the full file a number. The next one is made by whoever writes next.
    fn put_aside(&self, file: &File, _locked: &Locked<'_>) -> Result<(), AuditError> {
        let path = &self.settings.file;
        let explain = |source| AuditError::File { doing: "put aside", path: path.clone(), source };
        let aside = files::list_aside(path)?;
        let number = aside.last().map_or(0, |file| file.number) + 1;
        if self.settings.sync != AuditSync::Never {
            file.sync_data().map_err(|source| self.write_error(source))?;
        }
        fs::rename(path, files::aside_path(path, number)).map_err(explain)?;
        files::sync_folder_of(path);
        self.counters.rotations.fetch_add(1, Ordering::Relaxed);
        let keep = u64::from(self.settings.files_max);
        for old in aside.iter().filter(|file| keep > 0 && file.number + keep <= number) {
            if let Err(error) = fs::remove_file(&old.path) {
                tracing::warn!(path = %old.path.display(), %error, "an old file of the audit trail stays");
            }
        }
        Ok(())
    }
}

/// The end of the open file, under its lock.
struct OpenEnd<'a> {
    trail: &'a Inner,
    file: &'a File,
    length: u64,
    /// The record to go on from.
    last: Link,
    /// What stands behind it.
    remains: Option<Remains>,
    /// The last line has no end.
    is_open: bool,
    anchor: Anchor,
}

impl<'a> OpenEnd<'a> {
    fn read(trail: &'a Inner, file: &'a File) -> Result<Self, AuditError> {
        let path = &trail.settings.file;
        let explain = |source| AuditError::File { doing: "read", path: path.clone(), source };
        let length = file.metadata().map_err(explain)?.len();
        let tail = tail::read(file, length).map_err(explain)?;
        let last = match tail.last {
            Some(last) => last,
            None => end_of_file_before(path)?,
        };
        let anchor = anchor::read(&anchor::path_of(path))?;
        Ok(OpenEnd { trail, file, length, last, remains: tail.remains, is_open: tail.is_open, anchor })
    }

    /// A file that ends in something else than a record gets a record first, which tells of it.
    fn is_full(&self) -> bool {
        self.length >= self.trail.settings.file_bytes_max && self.remains.is_none() && !self.is_open
    }

    /// Proves that there is room by taking it and giving it back. Should we be killed between, the next record tells of
    /// the blanks.
    fn check(&self) -> Result<(), AuditError> {
        self.write(&[b' '; CHECK_BYTES])?;
        self.file.set_len(self.length).map_err(|source| self.trail.write_error(source))?;
        match self.anchor {
            Anchor::At(_) => Ok(()),
            // Also of an empty trail, so that one whose anchor is missing has lost it.
            Anchor::Missing | Anchor::Unreadable => self.write_anchor(self.last),
        }
    }

    /// The record that the anchor names, if the trail ends before it or in another one.
    fn missing(&self) -> Option<Link> {
        let Anchor::At(anchored) = self.anchor else { return None };
        let is_missing =
            anchored.seq > self.last.seq || (anchored.seq == self.last.seq && anchored != self.last);
        is_missing.then_some(anchored)
    }

    fn write_anchor(&self, last: Link) -> Result<(), AuditError> {
        let settings = &self.trail.settings;
        anchor::write(&settings.file, last, settings.sync != AuditSync::Never)
    }

    /// Brings what was written to the disk, and anchors it then.
    fn sync(&self) -> Result<(), AuditError> {
        self.file.sync_data().map_err(|source| self.trail.write_error(source))?;
        match self.missing() {
            None => self.write_anchor(self.last),
            Some(_) => Ok(()),
        }
    }

    fn append(&self, record: &Record) -> Result<(Recorded, u64), AuditError> {
        let at = rfc3339(self.trail.clock.now_ms());
        let mut text = Vec::new();
        // Behind the records that are missing, so that the chain shows them for ever.
        let mut last = self.missing().unwrap_or(self.last);
        if self.is_open {
            text.push(b'\n');
        }
        if let Some(remains) = self.remains {
            let (line, link) = line::encode(&self.account_of(remains), &at, last);
            text.extend_from_slice(&line);
            last = link;
        }
        if let Some(missing) = self.missing() {
            let (line, link) = line::encode(&self.account_of_missing(missing), &at, last);
            text.extend_from_slice(&line);
            last = link;
        }
        let (line, link) = line::encode(record, &at, last);
        text.extend_from_slice(&line);
        self.write(&text)?;
        self.bring_to_disk()?;
        self.anchor_now(link);
        if self.remains.is_some() || self.missing().is_some() {
            self.trail.counters.repairs.fetch_add(1, Ordering::Relaxed);
        }
        Ok((Recorded { seq: link.seq, hash: link.hash }, text.len() as u64))
    }

    /// What goes in front of the next record where something else was found.
    fn account_of(&self, remains: Remains) -> Record {
        let name = self.trail.settings.file.file_name().unwrap_or_default().to_string_lossy();
        let action = if remains.has_lines { DAMAGED } else { TORN };
        Record::ok(action, SELF, Subject::new("audit", name))
            .with("bytes", remains.bytes)
            .with("sha256", remains.hash.to_string())
    }

    fn account_of_missing(&self, missing: Link) -> Record {
        let path = self.trail.settings.file.display();
        tracing::error!(%path, last = self.last.seq, anchored = missing.seq, "the audit trail was truncated or replaced");
        let name = self.trail.settings.file.file_name().unwrap_or_default().to_string_lossy();
        Record::ok(TRUNCATED, SELF, Subject::new("audit", name))
            .with("last", self.last.seq)
            .with("anchored", missing.seq)
    }

    /// With `EverySecond` it is anchored when it is brought to the disk. The record is there: an anchor that cannot be
    /// written stays behind, which is no reason to call the change unrecorded.
    fn anchor_now(&self, last: Link) {
        if self.trail.settings.sync == AuditSync::EverySecond {
            return;
        }
        let outcome = self.write_anchor(last);
        self.trail.count_failure(&outcome);
        if let Err(error) = outcome {
            tracing::warn!(%error, "the anchor of the audit trail stays behind");
        }
    }

    /// All of it or nothing, as far as the system lets us.
    fn write(&self, text: &[u8]) -> Result<(), AuditError> {
        let mut file = self.file;
        file.write_all(text).map_err(|source| {
            // A disk that has no room for a line has room for none of it.
            let _ = self.file.set_len(self.length);
            self.trail.write_error(source)
        })
    }

    fn bring_to_disk(&self) -> Result<(), AuditError> {
        match self.trail.settings.sync {
            AuditSync::Always => self.file.sync_data().map_err(|source| self.trail.write_error(source)),
            AuditSync::EverySecond => {
                self.trail.is_dirty.store(true, Ordering::Relaxed);
                Ok(())
            }
            AuditSync::Never => Ok(()),
        }
    }
}

/// The last record of the newest file put aside; the beginning of a chain if there is no such file.
fn end_of_file_before(path: &Path) -> Result<Link, AuditError> {
    let Some(newest) = files::list_aside(path)?.pop() else { return Ok(Link::START) };
    let explain = |source| AuditError::File { doing: "read", path: newest.path.clone(), source };
    let file = File::open(&newest.path).map_err(explain)?;
    let length = file.metadata().map_err(explain)?.len();
    let tail = tail::read(&file, length).map_err(explain)?;
    tail.last.ok_or_else(|| AuditError::NoRecord(newest.path.clone()))
}
