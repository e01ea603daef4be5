//! Whether a file may have new commits, without asking SQLite.
//!
//! Asking SQLite wakes the thread of a connection, which costs much more than to look at the write-ahead log: each commit
//! writes to that file, which changes its time of modification. The kernel sets that time with a resolution of some
//! milliseconds, so a commit may leave the time of the one before it. The probe therefore trusts an unchanged file only if
//! SQLite was asked well after it was first seen so: a later commit then has a later time. In any case SQLite is asked once
//! in [`TRUSTED_MAX`].

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

/// Longer than the resolution of file times.
const SETTLED_AFTER: Duration = Duration::from_millis(50);
/// The longest time without asking SQLite: changes take effect within a second, whatever the file system does.
const TRUSTED_MAX: Duration = Duration::from_millis(700);

/// What changes with each commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogState {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl LogState {
    fn of(metadata: &Metadata) -> LogState {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        LogState { inode: metadata.ino(), bytes: metadata.len(), modified }
    }
}

/// Remembers SQLite's count of commits while there are no more.
#[derive(Debug)]
pub(crate) struct CommitProbe {
    wal: PathBuf,
    /// The last state, and since when it is known.
    seen: Option<(LogState, Instant)>,
    /// SQLite's count, and when it was asked.
    known: Option<(i64, Instant)>,
}

/// To be given back with the answer of SQLite.
#[derive(Debug)]
pub(crate) struct Question(Instant);

impl CommitProbe {
    /// For the database with this path.
    pub(crate) fn of(database: &Path) -> CommitProbe {
        let mut wal = database.as_os_str().to_owned();
        wal.push("-wal");
        CommitProbe { wal: wal.into(), seen: None, known: None }
    }

    /// The count of commits, if it is certain that it is still the same.
    pub(crate) fn look(&mut self) -> Result<i64, Question> {
        self.look_at(Instant::now())
    }

    fn look_at(&mut self, now: Instant) -> Result<i64, Question> {
        let state = std::fs::metadata(&self.wal).ok().map(|metadata| LogState::of(&metadata));
        let since = match (self.seen, state) {
            (Some((seen, since)), Some(state)) if seen == state => since,
            _ => {
                self.seen = state.map(|state| (state, now));
                return Err(Question(now));
            }
        };
        match self.known {
            Some((count, asked)) if asked >= since + SETTLED_AFTER && now < asked + TRUSTED_MAX => Ok(count),
            _ => Err(Question(now)),
        }
    }

    /// What SQLite answered.
    pub(crate) fn learn(&mut self, question: Question, count: i64) {
        self.known = Some((count, question.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_log_is_trusted_once_it_has_settled_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let wal = folder.path().join("a.db-wal");
        std::fs::write(&wal, "one").unwrap();
        let mut probe = CommitProbe::of(&folder.path().join("a.db"));
        let mut now = Instant::now();
        let question = probe.look_at(now).unwrap_err();
        probe.learn(question, 5);
        assert!(probe.look_at(now).is_err(), "a commit at the same moment would not show");
        now += SETTLED_AFTER;
        let question = probe.look_at(now).unwrap_err();
        probe.learn(question, 5);
        assert_eq!(probe.look_at(now).unwrap(), 5);
        std::fs::write(&wal, "more").unwrap();
        assert!(probe.look_at(now).is_err());
        now += SETTLED_AFTER;
        let question = probe.look_at(now).unwrap_err();
        probe.learn(question, 6);
        assert_eq!(probe.look_at(now).unwrap(), 6);
        now += TRUSTED_MAX;
        assert!(probe.look_at(now).is_err(), "asked again in any case");
    }

    #[test]
    fn without_a_log_nothing_is_certain() {
        let folder = tempfile::tempdir().unwrap();
        let mut probe = CommitProbe::of(&folder.path().join("a.db"));
        for _ in 0..3 {
            let question = probe.look().unwrap_err();
            probe.learn(question, 1);
        }
    }
}
