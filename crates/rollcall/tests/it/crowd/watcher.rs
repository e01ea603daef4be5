//! A watching client, which checks the consistency of its feed.

use std::collections::{BTreeMap, HashSet};

use crate::publication::{Publication, User};

/// The last state received of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub status: String,
    pub version: u64,
    pub last_seen: Option<u64>,
}

/// Panics on a state that must not be sent.
#[derive(Debug, Default)]
pub struct Watcher {
    /// What is shown of each person now.
    pub shown: BTreeMap<u64, Shown>,
    /// The statuses each person was shown with since [`Watcher::forget_past`], in order.
    pub past: BTreeMap<u64, Vec<String>>,
    /// Publications since [`Watcher::forget_past`], but for those of a snapshot.
    pub publications: u64,
    /// The bytes of them.
    pub bytes: usize,
    snapshot: Snapshot,
}

/// How much of the present connection's snapshot has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Snapshot {
    #[default]
    Nothing,
    Some,
    All,
}

impl Watcher {
    /// A new connection begins with a snapshot.
    pub fn connected(&mut self) {
        self.snapshot = Snapshot::Nothing;
    }

    /// Whether the snapshot of the present connection has come, in all its parts.
    pub fn has_snapshot(&self) -> bool {
        self.snapshot == Snapshot::All
    }

    /// Forgets past changes; keeps the current state.
    pub fn forget_past(&mut self) {
        self.past.clear();
        self.publications = 0;
        self.bytes = 0;
    }

    /// A line of the feed.
    pub fn hear(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let Some(data) = Publication::of_line(line) else { return };
        let is_change = match (data.kind.as_str(), self.snapshot) {
            ("snapshot", Snapshot::Nothing) | ("changes", Snapshot::Some) => false,
            ("changes", Snapshot::All) => true,
            (kind, before) => panic!("{kind} after {before:?} of a snapshot"),
        };
        if is_change {
            self.publications += 1;
            self.bytes += text.len();
        } else {
            self.snapshot = if data.more { Snapshot::Some } else { Snapshot::All };
        }
        assert!(data.removed.is_empty(), "no friendship ended: {text}");
        let others = data.users.into_iter().filter(|user| !user.is_self);
        let mut named = HashSet::new();
        for user in others {
            assert!(named.insert(user.id.clone()), "user {} is there twice: {text}", user.id);
            self.take(user, is_change);
        }
    }

    fn take(&mut self, user: User, is_change: bool) {
        let id: u64 = user.id.parse().unwrap();
        let shown = Shown { status: user.status, version: user.version, last_seen: user.last_seen };
        let before = self.shown.insert(id, shown.clone());
        if let Some(before) = before.filter(|before| before.version > 0 && shown.version > 0) {
            assert!(before.version <= shown.version, "user {id} went back: {before:?}, then {shown:?}");
            assert!(!is_change || before.version < shown.version, "user {id} was told twice: {shown:?}");
        }
        self.past.entry(id).or_default().push(shown.status);
    }

    /// Users shown with this status.
    pub fn count(&self, status: &str) -> usize {
        self.shown.values().filter(|shown| shown.status == status).count()
    }
}
