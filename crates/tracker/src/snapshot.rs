//! The swarms in a file, so that the next start has them at once and reads less of the journal.
//!
//! The file starts with a header: magic (8 bytes), format version (4), time of writing in milliseconds of steady time
//! (8), and the id of the last journal entry that it covers (8 and 8). The shards follow, each behind its length (4
//! bytes), then the length `0xffffffff`, then SipHash-1-3 over everything before it (8 bytes). All numbers are
//! little-endian. The format of a shard is in [`swarm::copy`].
//!
//! # Guarantees
//!
//! - The file is complete or absent: it is written under another name, synced and renamed.
//! - Announces continue meanwhile; each shard is locked only while it is copied.
//! - Every entry up to the cursor is in the file; entries behind it may be in it too, and applying them again is
//!   harmless.
//! - A damaged, foreign or outdated file is renamed and never prevents a start.

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

/// Longest time that a snapshot may be ahead of this node's steady time.
const AHEAD_S_MAX: u64 = 600;

/// In the data folder.
pub const FILE_NAME: &str = "swarms.snapshot";
/// Extension of a renamed, unusable file.
const UNUSABLE_EXTENSION: &str = "unusable";
/// Age at which an unfinished file is removed: a younger one may belong to another process.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(600);

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{path}: {reason}", path = path.display())]
    Io { path: PathBuf, reason: io::Error },
    /// Checksum or structure is wrong.
    #[error("the file is damaged")]
    Damaged,
    /// Written by another program or another version.
    #[error("the file has another format")]
    Foreign,
    /// Later than this node's steady time, whose record was lost.
    #[error("the file is {} ahead of this node's time", counted(*seconds, "second"))]
    Ahead { seconds: u64 },
    /// Every peer in it has expired.
    #[error("the file is {} old, longer than a peer may be silent", counted(*seconds, "second"))]
    TooOld { seconds: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedSnapshot {
    pub restored: Restored,
    /// All entries up to this one are in the swarms.
    pub cursor: EntryId,
}

/// Blocking, and takes seconds: not for a thread that serves requests.
pub fn write(path: &Path, tracker: &Tracker) -> Result<Written, SnapshotError> {
    let unfinished = unfinished_name(path);
    let written = write_to(&unfinished, tracker).and_then(|written| {
        fs::rename(&unfinished, path)?;
        // Syncs the rename itself.
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
    // The cursor first: entries applied meanwhile are in the swarms, and are read again.
    let head = Head { saved_ms: tracker.now_ms(), cursor: tracker.counters().replication.cursor() };
    let mut writer = Writer::create(path, &head)?;
    tracker.swarms().copy(|shard| writer.write_shard(shard))?;
    Ok(Written { bytes: writer.finish()? })
}

/// None without a usable file; an unusable one is renamed.
pub fn read(path: &Path, tracker: &Tracker) -> Option<LoadedSnapshot> {
    clear_unfinished(path, tracker.wall_ms());
    let reason = match try_read(path, tracker) {
        Ok(found) => return Some(found),
        Err(SnapshotError::Io { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => return None,
        Err(reason) => reason,
    };
    let unusable = path.with_extension(UNUSABLE_EXTENSION);
    let is_renamed = fs::rename(path, &unusable).is_ok();
    warn!(
        %reason,
        file = %path.display(),
        renamed_to = is_renamed.then(|| unusable.display().to_string()),
        "swarm snapshot is unusable; peers are restored from the journal and by their announces"
    );
    None
}

fn try_read(path: &Path, tracker: &Tracker) -> Result<LoadedSnapshot, SnapshotError> {
    let explain = |reason: io::Error| SnapshotError::Io { path: path.to_owned(), reason };
    // The checksum is verified before anything is applied.
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
            .restore(shard, &rules, |info_hash, user| evict_if_not_admitted(tracker, info_hash, user))
            .map_err(|_| SnapshotError::Damaged)?;
        restored.swarms += one.swarms;
        restored.peers += one.peers;
        restored.left_out += one.left_out;
    }
    if restored.peers > 0 {
        tracker.order_eviction(Eviction::ForbiddenClients);
        tracker.order_eviction(Eviction::BannedPorts);
    }
    Ok(LoadedSnapshot { restored, cursor: head.cursor })
}

/// Peers whose user or torrent was removed while no server ran are evicted now, so that their end is recorded.
fn evict_if_not_admitted(tracker: &Tracker, info_hash: &domain::InfoHash, user: domain::UserId) {
    let gate = tracker.gate();
    if !gate.torrent(info_hash).is_some_and(|torrent| torrent.enabled) {
        tracker.order_eviction(Eviction::Torrent(*info_hash));
    }
    if gate.is_disabled(user) || gate.passkey_of(user).is_none() {
        tracker.order_eviction(Eviction::User(user));
    }
}

/// Contains the process id: two processes may write during a take-over.
fn unfinished_name(path: &Path) -> PathBuf {
    path.with_extension(format!("unfinished-{}", std::process::id()))
}

/// Removes what a crash left behind.
fn clear_unfinished(path: &Path, now_ms: u64) {
    let Some(entries) = path.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    for entry in entries.flatten() {
        let is_unfinished = entry.path().file_stem() == path.file_stem()
            && entry.path().extension().is_some_and(|end| end.to_string_lossy().starts_with("unfinished-"));
        if is_unfinished && age_of(&entry, now_ms).is_some_and(|age| age > UNFINISHED_AGE_MAX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn age_of(entry: &fs::DirEntry, now_ms: u64) -> Option<Duration> {
    let changed = entry.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Duration::from_millis(now_ms).checked_sub(changed)
}
