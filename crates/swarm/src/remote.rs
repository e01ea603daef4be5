//! What another node remote, and what became of it here.

use std::net::IpAddr;

use domain::{AnnounceEvent, Cause, ClientKey, InfoHash, PeerId, RunId, Seconds, UnixTime, UserId};

/// What a client's counters showed, and in which of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTotals {
    /// The run, as the node numbered it that remote it first.
    pub run: RunId,
    /// Its running total of bytes uploaded.
    pub uploaded: u64,
    /// Its running total of bytes downloaded.
    pub downloaded: u64,
}

impl RemoteTotals {
    /// Of a client whose counters were not told.
    pub(crate) const NONE: RemoteTotals = RemoteTotals { run: RunId::NONE, uploaded: 0, downloaded: 0 };
}

/// One announce, or the end of one peer, that another node remote; or this one in a former life; or another producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAnnounce {
    /// The torrent.
    pub info_hash: InfoHash,
    /// Whose client.
    pub user: UserId,
    /// Which client.
    pub peer_id: PeerId,
    /// Its key.
    pub key: ClientKey,
    /// Where it is.
    pub ip: IpAddr,
    /// Where it listens.
    pub port: u16,
    /// What it still wants; none if it did not say.
    pub left: Option<u64>,
    /// Why it announced.
    pub event: AnnounceEvent,
    /// What made it happen.
    pub cause: Cause,
    /// When.
    pub at: UnixTime,
    /// Time since its last announce; none if that was not told.
    pub since_last: Option<Seconds>,
    /// How long it may be silent, by the interval it was told. No less than usual.
    pub silence_max: Seconds,
    /// Its counters; none if another producer wrote of it, which knows only differences.
    pub totals: Option<RemoteTotals>,
}

impl RemoteAnnounce {
    /// Whether the client has everything (L3).
    pub(crate) fn is_seeder(&self) -> bool {
        self.left == Some(0) || self.event == AnnounceEvent::Completed
    }
}

/// What became of a [`RemoteAnnounce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteOutcome {
    /// It is the last word on its peer.
    Applied,
    /// A later word was known already, or the peer was gone; at most a detail was added.
    Late,
    /// Whoever said no more than this would have expired by now.
    Overdue,
    /// It lies too far ahead of this node's clock to be believed.
    Ahead,
    /// There is no place for another peer or torrent.
    NoRoom,
}
