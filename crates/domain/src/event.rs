//! The traffic event: what a tracker records of an announce.

use crate::named;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::ids::{ClientKey, InfoHash, NodeId, Passkey, PeerId, SessionId, TorrentId, UserId};
use crate::time::{Seconds, UnixTime};

named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum AnnounceEvent {
        #[default]
        None = "none",
        Started = "started",
        /// The client has received the last piece.
        Completed = "completed",
        Stopped = "stopped",
    }
}

impl AnnounceEvent {
    /// The event of a query; `paused`, empty and unknown ones are plain announces, as real clients expect.
    pub fn from_query(text: &[u8]) -> Self {
        match text {
            b"started" => AnnounceEvent::Started,
            b"completed" => AnnounceEvent::Completed,
            b"stopped" => AnnounceEvent::Stopped,
            _ => AnnounceEvent::None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event is none, started, completed or stopped")]
pub struct NotAnEvent;

impl FromStr for AnnounceEvent {
    type Err = NotAnEvent;
    fn from_str(text: &str) -> Result<Self, NotAnEvent> {
        AnnounceEvent::from_name(text).ok_or(NotAnEvent)
    }
}

impl fmt::Display for AnnounceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

named! {
    /// What caused an event.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Cause {
        /// Announced by the client.
        #[default]
        Announce = "announce",
        /// No announce within interval + grace.
        Timeout = "timeout",
        /// The site removed the torrent or the user.
        Removal = "removal",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cause is announce, timeout or removal")]
pub struct NotACause;

impl FromStr for Cause {
    type Err = NotACause;
    fn from_str(text: &str) -> Result<Self, NotACause> {
        Cause::from_name(text).ok_or(NotACause)
    }
}

/// One accepted announce, or one peer that expired or was removed: the fourteen fields of J2, then ours.
///
/// Plain data without heap allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficEvent {
    /// None for an expired peer whose user is no longer known.
    pub passkey: Option<Passkey>,
    pub user: UserId,
    /// None for an expired peer whose torrent is no longer known.
    pub torrent: Option<TorrentId>,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    pub port: u16,
    /// Its family is the field `af`.
    pub ip: IpAddr,
    /// Bytes uploaded since the last announce of this session (`du`).
    pub uploaded_delta: u64,
    /// Bytes downloaded since the last announce of this session (`dd`).
    pub downloaded_delta: u64,
    /// None if the client did not send it.
    pub left: Option<u64>,
    pub event: AnnounceEvent,
    /// Wall time (`ts`).
    pub at: UnixTime,
    /// Steady time of the node ([`crate::clock`]).
    pub steady: UnixTime,
    /// Time since the last announce, zero for the first (`dt`).
    pub since_last: Seconds,
    /// The interval sent to the client.
    pub interval: Seconds,
    /// The min interval sent to the client.
    pub min_interval: Seconds,
    pub node: NodeId,
    pub session: SessionId,
    /// The client's running total of bytes uploaded (`up`).
    pub uploaded_total: u64,
    /// The client's running total of bytes downloaded (`down`).
    pub downloaded_total: u64,
    pub cause: Cause,
    /// Identifies the client to other nodes under a changed peer id.
    pub key: ClientKey,
    /// Bytes claimed as uploaded that must not be credited, although the totals contain them (`nu`).
    pub uncredited_upload: u64,
}

impl TrafficEvent {
    /// The address family as the journal writes it (`af`).
    pub const fn address_family(&self) -> &'static str {
        match self.ip {
            IpAddr::V4(_) => "IPv4",
            IpAddr::V6(_) => "IPv6",
        }
    }
}
