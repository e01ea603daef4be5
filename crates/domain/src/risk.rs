//! The risk event: what an announce claimed that nobody can believe (J8).

use std::net::IpAddr;

use crate::ids::{InfoHash, PeerId, TorrentId, UserId};
use crate::rate::RateCeiling;
use crate::time::{Seconds, UnixTime};

/// An announce that claims to have moved more than the ceiling allows: what was seen, and what was credited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskEvent {
    /// Whose announce it was.
    pub user: UserId,
    /// The torrent's number, where it is known.
    pub torrent: Option<TorrentId>,
    /// The torrent.
    pub info_hash: InfoHash,
    /// The client.
    pub peer_id: PeerId,
    /// Where the client is.
    pub ip: IpAddr,
    /// When.
    pub at: UnixTime,
    /// The time in which the bytes were claimed to be moved.
    pub elapsed: Seconds,
    /// Bytes claimed to be uploaded.
    pub uploaded_claimed: u64,
    /// Bytes claimed to be downloaded.
    pub downloaded_claimed: u64,
    /// Bytes credited as uploaded.
    pub uploaded_credited: u64,
    /// Bytes credited as downloaded.
    pub downloaded_credited: u64,
    /// The ceiling.
    pub ceiling: RateCeiling,
    /// How many more of this user's were not reported since the last one that was.
    pub unreported: u32,
}
