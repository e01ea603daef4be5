//! Peers as an operator sees them.

use std::net::SocketAddr;

use domain::{PeerId, UnixTime, UserId};

/// One peer of a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// Whose it is.
    pub user: UserId,
    /// The client.
    pub peer_id: PeerId,
    /// Whether it has everything.
    pub is_seeding: bool,
    /// Its IPv4 address, if it can be reached there.
    pub v4: Option<SocketAddr>,
    /// Its IPv6 address, if it can be reached there.
    pub v6: Option<SocketAddr>,
    /// Its running total.
    pub uploaded: u64,
    /// Its running total.
    pub downloaded: u64,
    /// When it last announced.
    pub last_announce: UnixTime,
}
