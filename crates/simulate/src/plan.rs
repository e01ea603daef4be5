//! Size, pace and seed of a simulation, and the server's addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;

/// Average clients per user.
const PEERS_PER_USER: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Numbered from 1.
    pub torrents: u32,
    /// BitTorrent clients, each of one user on one torrent at a time.
    pub peers: u32,
    /// Users with devices, numbered from 1.
    pub members: u32,
    /// Speed of the simulation: 2.0 is twice as fast. The server decides the announce interval.
    pub pace: f64,
    /// All random choices follow from it.
    pub seed: u64,
    /// Whether some clients cheat, are forbidden, or have an unknown passkey.
    pub misbehaviour: bool,
}

impl Plan {
    /// All users, numbered from 1: members, and users that only run clients.
    pub fn users(&self) -> u32 {
        self.members.max(self.peers / PEERS_PER_USER).max(2)
    }

    /// A duration, scaled by the pace.
    pub fn paced(&self, length: Duration) -> Duration {
        length.div_f64(self.pace.clamp(0.01, 1000.0))
    }
}

/// The server's addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAddresses {
    /// Announces over HTTP, of each address family that the server has.
    pub http: Vec<SocketAddr>,
    /// Announces over UDP.
    pub udp: Vec<SocketAddr>,
    /// The site, which members connect to. Without it no member connects.
    pub site: Option<SocketAddr>,
}

/// Issues a member's token, as a site would; none if it cannot.
pub type TokenIssuer = Arc<dyn Fn(UserId) -> Option<String> + Send + Sync>;

/// The server that a simulation runs against.
#[derive(Clone)]
pub struct Target {
    pub addresses: ServerAddresses,
    pub tokens: TokenIssuer,
}
