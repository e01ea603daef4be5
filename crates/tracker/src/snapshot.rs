//! The swarms in a file, so that the next start has them at once and reads less of the journal.
//!
//! The file begins with a head: what it is (8 bytes), the version of its form (4), when it was written in milliseconds
//! of steady time (8), and the journal's entry up to which everything is in it (8 and 8). Then the shards, each with its length before
//! it (4 bytes), and a length of `0xffffffff` behind the last. At the end stands SipHash-1-3 over all before it (8
//! bytes). All numbers are little-endian. What a shard is: [`swarm::copy`].
//!
//! # Guarantees
//!
//! - The file is whole or not there: it is written under another name, brought to the disk, and renamed.
//! - Announces go on meanwhile; each shard waits only for its own copy.
//! - Everything up to the cursor is in the file, and reading again from there harms nothing.
//! - A file that is damaged, of another form or too old is put aside, never a reason not to start.

mod file;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use journal::EntryId;
use swarm::Restored;
use tracing::warn;

use crate::eviction::Eviction;
use crate::pipeline::Tracker;
use domain::counted;
use file::{Head, Reader, Writer};

/// How far ahead of this machine's clock a snapshot may be dated.
const AHEAD_S_MAX: u64 = 600;

/// The name of the file, in the data folder.
pub const FILE_NAME: &str = "swarms.snapshot";
/// What a file that cannot be used is renamed to, beside it.
const ASIDE_SUFFIX: &str = "unusable";
/// A file that was never finished is cleared away once it is this old: another process may be at work on a younger one.
const UNFINISHED_MAX: Duration = Duration::from_secs(600);

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be read or written.
    #[error("{path}: {reason}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// The file is not what was written.
    #[error("the file is damaged")]
    Damaged,
    /// Another program, or another version of this one, wrote the file.
    #[error("the file is of another form")]
    Foreign,
    /// The file was written later than now, by the steady time of this node: the record of that time was lost.
    #[error("the file is {} ahead of this node's time", counted(*seconds, "second"))]
    Ahead {
        /// How far.
        seconds: u64,
    },
    /// Whoever is in it has been silent for too long.
    #[error("the file is {} old, longer than a peer may be silent", counted(*seconds, "second"))]
    TooOld {
        /// How old it is.
        seconds: u64,
    },
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The length of the file.
    pub bytes: u64,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What was brought back.
    pub restored: Restored,
    /// Everything up to this entry is in the swarms.
    pub cursor: EntryId,
}

/// Writes the swarms to the file. Takes its time: not for a thread that serves others.
pub fn write(path: &Path, tracker: &Tracker) -> Result<Written, SnapshotError> {
    let unfinished = unfinished_name(path);
    let written = write_to(&unfinished, tracker).and_then(|written| {
        fs::rename(&unfinished, path)?;
        // The new name itself has to reach the disk, too.
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(written)
    });
    written.map_err(|reason| {
        let _ = fs::remove_file(&unfinished);
        SnapshotError::Io { path: path.to_owned(), reason }
    })
}

fn write_to(path: &Path, tracker: &Tracker) -> io::Result<Written> {
    // First the cursor, then the swarms: what is learnt meanwhile is in them, and is read again.
    let head = Head { saved_ms: tracker.now_ms(), cursor: tracker.counters().replication.cursor() };
    let mut writer = Writer::create(path, &head)?;
    tracker.swarms().copy(|shard| writer.write_shard(shard))?;
    Ok(Written { bytes: writer.finish()? })
}

/// Brings the swarms back that the file holds; none if there is no file, or none that can be used. That one is put aside.
pub fn read(path: &Path, tracker: &Tracker) -> Option<Found> {
    clear_unfinished(path, tracker.wall_ms());
    let reason = match try_read(path, tracker) {
        Ok(found) => return Some(found),
        Err(SnapshotError::Io { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => return None,
        Err(reason) => reason,
    };
    let aside = path.with_extension(ASIDE_SUFFIX);
    let put_aside = fs::rename(path, &aside).is_ok();
    warn!(
        %reason,
        file = %path.display(),
        aside = put_aside.then(|| aside.display().to_string()),
        "the snapshot of the swarms cannot be used; peers come back from the journal and by their announces"
    );
    None
}

fn try_read(path: &Path, tracker: &Tracker) -> Result<Found, SnapshotError> {
    let explain = |reason: io::Error| SnapshotError::Io { path: path.to_owned(), reason };
    // Nothing of a file is believed before all of it has been read once.
    let head = file::verify(path).map_err(explain)??;
    let rules = tracker.expiry_rules(tracker.now());
    let ahead_s = head.saved_ms.saturating_sub(tracker.now_ms()) / 1_000;
    if ahead_s > AHEAD_S_MAX {
        return Err(SnapshotError::Ahead { seconds: ahead_s });
    }
    let age_s = tracker.now_ms().saturating_sub(head.saved_ms) / 1_000;
    if age_s >= u64::from(rules.silence_max.0) {
        return Err(SnapshotError::TooOld { seconds: age_s });
    }
    let mut reader = Reader::open(path).map_err(explain)?;
    let mut restored = Restored::default();
    while let Some(shard) = reader.next_shard().map_err(explain)? {
        let one = tracker
            .swarms()
            .restore(shard, &rules, |info_hash, user| evict_if_out(tracker, info_hash, user))
            .map_err(|_| SnapshotError::Damaged)?;
        restored.swarms += one.swarms;
        restored.peers += one.peers;
        restored.left_out += one.left_out;
    }
    if restored.peers > 0 {
        tracker.order_eviction(Eviction::ForbiddenClients);
        tracker.order_eviction(Eviction::BannedPorts);
    }
    Ok(Found { restored, cursor: head.cursor })
}

/// Whoever was removed while nobody served leaves as if it had happened now, so that it is written down.
fn evict_if_out(tracker: &Tracker, info_hash: &domain::InfoHash, user: domain::UserId) {
    let gate = tracker.gate();
    if !gate.torrent(info_hash).is_some_and(|torrent| torrent.enabled) {
        tracker.order_eviction(Eviction::Torrent(*info_hash));
    }
    if gate.is_disabled(user) || gate.passkey_of(user).is_none() {
        tracker.order_eviction(Eviction::User(user));
    }
}

/// Of this process: two may write at once while one takes over from the other.
fn unfinished_name(path: &Path) -> PathBuf {
    path.with_extension(format!("unfinished-{}", std::process::id()))
}

/// Clears away what a crash left behind.
fn clear_unfinished(path: &Path, now_ms: u64) {
    let Some(entries) = path.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    for entry in entries.flatten() {
        let is_unfinished = entry.path().file_stem() == path.file_stem()
            && entry.path().extension().is_some_and(|end| end.to_string_lossy().starts_with("unfinished-"));
        if is_unfinished && age_of(&entry, now_ms).is_some_and(|age| age > UNFINISHED_MAX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn age_of(entry: &fs::DirEntry, now_ms: u64) -> Option<Duration> {
    let changed = entry.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Duration::from_millis(now_ms).checked_sub(changed)
}
