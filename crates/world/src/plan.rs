//! How large a world is, how fast it goes, from which seed, and against whom it runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;

/// Users have about so many clients each.
const PEERS_PER_USER: u32 = 12;

/// What a world is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// How many torrents, numbered from 1.
    pub torrents: u32,
    /// How many BitTorrent clients, each of one user on one torrent at a time.
    pub peers: u32,
    /// How many people have devices. They are the users from 1 on.
    pub people: u32,
    /// How fast lives pass: 2.0 means twice as fast. When clients announce is the server's decision.
    pub pace: f64,
    /// Everything follows from it.
    pub seed: u64,
    /// Whether some do what they should not: a cheat, a client that is forbidden, a passkey that is nobody's.
    pub mischief: bool,
}

impl Plan {
    /// How many users there are, numbered from 1: the people, and others who only run clients.
    pub fn users(&self) -> u32 {
        self.people.max(self.peers / PEERS_PER_USER).max(2)
    }

    /// How long something takes in this world.
    pub fn paced(&self, length: Duration) -> Duration {
        length.div_f64(self.pace.clamp(0.01, 1000.0))
    }
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Announces over HTTP, of both families if there are both.
    pub http: Vec<SocketAddr>,
    /// Announces over UDP, likewise.
    pub udp: Vec<SocketAddr>,
    /// The site, through which people connect. Without one there are no people.
    pub site: Option<SocketAddr>,
}

/// Gives a person the token to connect with, as a site would; none if it cannot.
pub type Tokens = Arc<dyn Fn(UserId) -> Option<String> + Send + Sync>;

/// What a world runs against.
#[derive(Clone)]
pub struct Surroundings {
    /// Where the server is.
    pub places: Places,
    /// What people connect with.
    pub tokens: Tokens,
}
