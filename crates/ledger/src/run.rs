//! One run of one client, as far as it has been heard of.
//!
//! Within a run counters only grow, so all that has to be kept of them is where they were lowest and highest, and when
//! the client was first and last heard. That makes a run the sum of a *set* of entries: their order does not matter,
//! nor how often one comes. Beside the counters stand sums of what else the entries reported ([`Reported`]): their order does
//! not matter either, but each has to come once.

use domain::{ClientId, NodeId, RunId, Seconds, TorrentId, UnixTime, UserId};
use journal::EntryId;

use crate::reported::Reported;

/// A client on one torrent for one user.
///
/// User and torrent are part of it, so that a forged or colliding client number can only touch its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRef {
    /// Whose client.
    pub user: UserId,
    /// On which torrent.
    pub torrent: TorrentId,
    /// Which client.
    pub client: ClientId,
}

/// What a client's counters show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes uploaded.
    pub uploaded: u64,
    /// Bytes downloaded.
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

    /// Both together.
    pub fn plus(self, other: Counters) -> Counters {
        Counters {
            uploaded: self.uploaded.saturating_add(other.uploaded),
            downloaded: self.downloaded.saturating_add(other.downloaded),
        }
    }

    /// What is left of each.
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

    /// What was moved since they showed `earlier`; none if either went back.
    pub fn since(self, earlier: Counters) -> Option<Counters> {
        Some(Counters {
            uploaded: self.uploaded.checked_sub(earlier.uploaded)?,
            downloaded: self.downloaded.checked_sub(earlier.downloaded)?,
        })
    }
}

/// Tells the runs of a client apart.
///
/// The node belongs to it: two nodes that started in the same second may well give the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// The run's number.
    pub run: RunId,
    /// The node that gave it.
    pub node: u64,
}

impl RunKey {
    /// The key of a run that a node wrote of; entries that name no node share one.
    pub fn new(run: RunId, node: Option<NodeId>) -> RunKey {
        RunKey { run, node: node.map_or(0, |node| node.0) }
    }
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub key: RunKey,
    /// What its counters showed first.
    pub low: Counters,
    /// The highest its counters were seen.
    pub high: Counters,
    /// When the client was first heard.
    pub first: UnixTime,
    /// When the client was last heard.
    pub last: UnixTime,
    /// The place of the first report in the journal. Of one node's reports, places tell the order; times do not within a
    /// second, nor where its clock was set back.
    pub first_id: EntryId,
    /// The place of the last report.
    pub last_id: EntryId,
    /// Whether it stands for everything before it: see [`crate::settle`].
    pub is_settled: bool,
    /// The place of the last `stopped` that the client itself sent.
    pub stopped: Option<EntryId>,
    /// What its entries reported besides.
    pub reported: Reported,
}

/// What one entry says of a run.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub counters: Counters,
    /// When the client showed these counters.
    pub at: UnixTime,
    /// The entry's place in the journal.
    pub id: EntryId,
    /// Whether the client said `stopped`. A timeout or a removal is no such thing: the client may go on.
    pub is_stop: bool,
    pub reported: Reported,
}

impl Run {
    /// A run with one report.
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

    /// Adds a report.
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
            // Later reports with lower counters were overtaken by others: they show nothing new.
            (self.low, self.first, self.first_id) = (counters, at, id);
        }
        self.reported = self.reported.with(reported);
    }

    /// Whether it surely began after another had ended: of one tracker, also over its lives, by the places in the journal;
    /// of two nodes, which may write late, if a second lies between, if the client had stopped, or begins at zero.
    pub fn comes_after(&self, other: &Run) -> bool {
        let (node, other_node) = (NodeId(self.key.node), NodeId(other.key.node));
        let is_one_tracker = node == other_node || node.is_restart_of(other_node);
        let is_apart = self.first > other.last + Seconds(1)
            || other.stopped == Some(other.last_id)
            || self.low == Counters::default();
        self.first_id > other.last_id && (is_one_tracker || is_apart)
    }

    /// Whether nothing but a `stopped` is known of it: the tracker did not know the client.
    pub fn is_only_stop(&self) -> bool {
        !self.is_settled && self.first_id == self.last_id && self.stopped == Some(self.first_id)
    }
}
