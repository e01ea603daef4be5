//! Peers as shown to operators.

use std::net::SocketAddr;

use domain::{PeerId, UnixTime, UserId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    pub user: UserId,
    pub peer_id: PeerId,
    pub is_seeding: bool,
    /// None if unreachable over IPv4.
    pub v4: Option<SocketAddr>,
    /// None if unreachable over IPv6.
    pub v6: Option<SocketAddr>,
    /// Running total.
    pub uploaded: u64,
    /// Running total.
    pub downloaded: u64,
    pub last_announce: UnixTime,
}
