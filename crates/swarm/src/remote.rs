//! An announce that another node received, and its result here.

use std::net::IpAddr;

use domain::{AnnounceEvent, Cause, ClientKey, InfoHash, PeerId, RunId, Seconds, UnixTime, UserId};

/// A client's counters and their run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTotals {
    /// As assigned by the node that received the run first.
    pub run: RunId,
    /// Running total of bytes uploaded.
    pub uploaded: u64,
    /// Running total of bytes downloaded.
    pub downloaded: u64,
}

impl RemoteTotals {
    /// Unknown counters.
    pub(crate) const NONE: RemoteTotals = RemoteTotals { run: RunId::NONE, uploaded: 0, downloaded: 0 };
}

/// An announce, or the end of a peer, that another node received, or an earlier process of this node, or another
/// producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAnnounce {
    pub info_hash: InfoHash,
    pub user: UserId,
    pub peer_id: PeerId,
    pub key: ClientKey,
    pub ip: IpAddr,
    pub port: u16,
    /// None if the client did not send it.
    pub left: Option<u64>,
    pub event: AnnounceEvent,
    pub cause: Cause,
    pub at: UnixTime,
    /// None if unknown.
    pub since_last: Option<Seconds>,
    /// Allowed silence, by the interval sent to the client. No less than the default.
    pub silence_max: Seconds,
    /// None in entries of other producers, which have only differences.
    pub totals: Option<RemoteTotals>,
}

impl RemoteAnnounce {
    /// Whether the client has everything (L3).
    pub(crate) fn is_seeder(&self) -> bool {
        self.left == Some(0) || self.event == AnnounceEvent::Completed
    }
}

/// Result of a [`RemoteAnnounce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteOutcome {
    /// It is the latest announce of its peer.
    Applied,
    /// A later one was known already, or the peer had left; at most a detail was added.
    Late,
    /// The peer would have expired by now.
    Overdue,
    /// Too far ahead of this node's clock.
    Ahead,
    /// No capacity for another peer or torrent.
    NoRoom,
}
