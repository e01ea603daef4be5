//! One run of one client, as far as reported.
//!
//! Within a run counters only grow, so only the lowest and highest counters, and the times of the first and last
//! report, need to be stored. That makes a run a function of a *set* of entries: neither order nor repetition matters.
//! Beside the counters are sums of what else the entries reported ([`Reported`]): order does not matter, but each entry
//! must be added once.

use domain::{ClientId, NodeId, RunId, Seconds, TorrentId, UnixTime, UserId};
use journal::EntryId;

use crate::reported::Reported;

/// A client on one torrent for one user.
///
/// Contains user and torrent, so that a forged or colliding client id can only affect its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRef {
    pub user: UserId,
    pub torrent: TorrentId,
    pub client: ClientId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub uploaded: u64,
    pub downloaded: u64,
}

impl Counters {
    /// The lower of each.
    pub fn min(self, other: Counters) -> Counters {
        Counters {
            uploaded: self.uploaded.min(other.uploaded),
            downloaded: self.downloaded.min(other.downloaded),
        }
    }

    pub fn plus(self, other: Counters) -> Counters {
        Counters {
            uploaded: self.uploaded.saturating_add(other.uploaded),
            downloaded: self.downloaded.saturating_add(other.downloaded),
        }
    }

    /// Saturating.
    pub fn minus(self, other: Counters) -> Counters {
        Counters {
            uploaded: self.uploaded.saturating_sub(other.uploaded),
            downloaded: self.downloaded.saturating_sub(other.downloaded),
        }
    }

    /// The higher of each.
    pub fn max(self, other: Counters) -> Counters {
        Counters {
            uploaded: self.uploaded.max(other.uploaded),
            downloaded: self.downloaded.max(other.downloaded),
        }
    }

    /// What was moved since `earlier`; none if either went back.
    pub fn since(self, earlier: Counters) -> Option<Counters> {
        Some(Counters {
            uploaded: self.uploaded.checked_sub(earlier.uploaded)?,
            downloaded: self.downloaded.checked_sub(earlier.downloaded)?,
        })
    }
}

/// Identifies a run of a client.
///
/// Contains the node: two nodes that started in the same second may assign the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    pub run: RunId,
    /// The node that assigned the number.
    pub node: u64,
}

impl RunKey {
    /// Entries without a node share one key.
    pub fn new(run: RunId, node: Option<NodeId>) -> RunKey {
        RunKey { run, node: node.map_or(0, |node| node.0) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub key: RunKey,
    /// The first reported counters.
    pub low: Counters,
    /// The highest reported counters.
    pub high: Counters,
    /// Time of the first report.
    pub first: UnixTime,
    /// Time of the last report.
    pub last: UnixTime,
    /// Id of the first report. Ids order the reports of one node; times do not, within a second or if its clock was set
    /// back.
    pub first_id: EntryId,
    /// Id of the last report.
    pub last_id: EntryId,
    /// Whether it stands for all runs before it: see [`crate::settle`].
    pub is_settled: bool,
    /// Id of the last `stopped` that the client itself sent.
    pub stopped: Option<EntryId>,
    pub reported: Reported,
}

/// What one entry reports of a run.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub counters: Counters,
    /// When the client sent these counters.
    pub at: UnixTime,
    /// The entry's id.
    pub id: EntryId,
    /// Whether the client sent `stopped`. Timeouts and removals do not count: the client may continue.
    pub is_stop: bool,
    pub reported: Reported,
}

impl Run {
    pub fn starting(key: RunKey, report: &Report) -> Run {
        let Report { counters, at, id, is_stop, reported } = *report;
        Run {
            key,
            low: counters,
            high: counters,
            first: at,
            last: at,
            first_id: id,
            last_id: id,
            is_settled: false,
            stopped: is_stop.then_some(id),
            reported,
        }
    }

    pub fn add(&mut self, report: &Report) {
        let Report { counters, at, id, is_stop, reported } = *report;
        self.high = self.high.max(counters);
        self.last = self.last.max(at);
        self.last_id = self.last_id.max(id);
        self.stopped = self.stopped.max(is_stop.then_some(id));
        if self.is_settled {
            return;
        }
        if id < self.first_id {
            // Later reports with lower counters were reordered and contain nothing new.
            (self.low, self.first, self.first_id) = (counters, at, id);
        }
        self.reported = self.reported.with(reported);
    }

    /// Whether it certainly began after another had ended: on one tracker, restarts included, by the ids; on two nodes,
    /// which may write late, if more than a second lies between, if the client had stopped, or if it begins at zero.
    pub fn comes_after(&self, other: &Run) -> bool {
        let (node, other_node) = (NodeId(self.key.node), NodeId(other.key.node));
        let is_one_tracker = node == other_node || node.is_restart_of(other_node);
        let is_apart = self.first > other.last + Seconds(1)
            || other.stopped == Some(other.last_id)
            || self.low == Counters::default();
        self.first_id > other.last_id && (is_one_tracker || is_apart)
    }

    /// Whether it consists of a single `stopped`: the tracker did not know the client.
    pub fn is_only_stop(&self) -> bool {
        !self.is_settled && self.first_id == self.last_id && self.stopped == Some(self.first_id)
    }
}
