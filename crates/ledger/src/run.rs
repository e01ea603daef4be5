//! One run of one client, as far as it has been heard of.
//!
//! Within a run counters only grow, so all that has to be kept of them is where they were lowest and highest, and when
//! the client was first and last heard. That makes a run the sum of a *set* of entries: their order does not matter,
//! nor how often one comes. Beside the counters stand sums of what else the entries told ([`Told`]): their order does
//! not matter either, but each has to come once.

use domain::{ClientId, NodeId, RunId, TorrentId, UnixTime, UserId};

use crate::told::Told;

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
    /// Which.
    pub key: RunKey,
    /// The lowest its counters were seen.
    pub low: Counters,
    /// The highest its counters were seen.
    pub high: Counters,
    /// When it was first heard.
    pub first: UnixTime,
    /// When it was last heard.
    pub last: UnixTime,
    /// Whether it stands for everything before it: see [`crate::settle`].
    pub is_settled: bool,
    /// What its entries told besides.
    pub told: Told,
}

impl Run {
    /// A run that was heard once.
    pub fn heard(key: RunKey, counters: Counters, at: UnixTime, told: Told) -> Run {
        Run { key, low: counters, high: counters, first: at, last: at, is_settled: false, told }
    }

    /// Takes in what was heard of it.
    pub fn hear(&mut self, counters: Counters, at: UnixTime, told: Told) {
        self.high = self.high.max(counters);
        self.last = self.last.max(at);
        if !self.is_settled {
            self.low = self.low.min(counters);
            self.first = self.first.min(at);
            self.told = self.told.with(told);
        }
    }
}
