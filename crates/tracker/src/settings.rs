//! Everything that can be set, as plain values; the binary makes them from its configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use domain::{AnnounceEvent, RateCeiling, Seconds};
use ipnet::IpNet;
use swarm::Rules;

/// A user who starts five clients once in ten minutes needs no more.
pub const PEER_IDS_PER_HOUR_MAX: u8 = 30;

/// What is settled at the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen for HTTP.
    pub http_addresses: Vec<SocketAddr>,
    /// Where to listen for HTTPS; needs `tls`.
    pub https_addresses: Vec<SocketAddr>,
    /// Where to listen for UDP.
    pub udp_addresses: Vec<SocketAddr>,
    /// The certificate, if HTTPS is served.
    pub tls: Option<TlsFiles>,
    /// Threads for each of HTTP and UDP.
    pub workers: usize,
    /// Whether other processes may listen on the same addresses (`SO_REUSEPORT`); the system spreads the load.
    pub share_ports: bool,
    /// How long draining may take.
    pub drain_timeout: Duration,
    /// What may change while the server runs.
    pub live: LiveSettings,
}

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM, the server's certificate first.
    pub certificates: PathBuf,
    /// PEM.
    pub private_key: PathBuf,
}

/// What may change while the server runs.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    /// What clients are told.
    pub announce_interval: Seconds,
    /// What clients are told, and held to.
    pub min_announce_interval: Seconds,
    /// How long a peer may be silent beyond the interval.
    pub peer_grace: Seconds,
    /// What clients on a torrent that awaits approval are told instead, if it is shorter.
    pub pending_interval: Seconds,
    /// How many peers are given to who does not say how many they want.
    pub numwant_default: usize,
    /// How many peers are given at most.
    pub numwant_max: usize,
    /// How many clients a user may run on one torrent.
    pub clients_per_user_max: u8,
    /// How many torrents a user may leech at once, where the site says nothing about this user; none means any number.
    pub leeches_per_user_max: Option<u32>,
    /// How many peers may leech a torrent at once, where the site says nothing about this torrent; none means any
    /// number.
    pub leeches_per_torrent_max: Option<u32>,
    /// The highest rate at which counters are believed to grow (J8).
    pub ceiling: RateCeiling,
    /// How many peer ids a user may use on one torrent within an hour; zero means any number.
    pub peer_ids_per_hour_max: u8,
    /// Whether upload is credited that was claimed while no other user leeched.
    pub credit_upload_without_leechers: bool,
    /// Which announces are answered only once they are stored.
    pub acknowledge: Acknowledge,
    /// How long such an announce may wait.
    pub acknowledge_timeout: Duration,
    /// Proxies that are believed about the address of a client.
    pub proxies: ProxySettings,
    /// Bounds.
    pub limits: LimitSettings,
}

/// Which announces are answered only once they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// Those with `started`, `completed` or `stopped`: what a later announce would not tell again.
    #[default]
    Events,
    /// All.
    All,
    /// None.
    None,
}

impl Acknowledge {
    /// Whether an announce with this event is.
    pub fn waits_for(self, event: AnnounceEvent) -> bool {
        match self {
            Acknowledge::Events => event != AnnounceEvent::None,
            Acknowledge::All => true,
            Acknowledge::None => false,
        }
    }
}

/// Proxies that are believed about the address of a client.
#[derive(Clone, Debug, Default)]
pub struct ProxySettings {
    /// Where they are.
    pub trusted: Vec<IpNet>,
    /// Names of the headers they write, in lower case, most trusted first.
    pub forwarded_headers: Vec<String>,
    /// Whether they start each connection with the PROXY protocol.
    pub proxy_protocol: bool,
}

/// Bounds on what strangers can take.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Open HTTP connections.
    pub connections_max: usize,
    /// Open HTTP connections from one address.
    pub connections_per_address_max: u32,
    /// The head of a request.
    pub header_bytes_max: usize,
    /// How long the head of a request may take to arrive.
    pub header_timeout: Duration,
    /// How long a connection may be silent between requests.
    pub idle_timeout: Duration,
    /// Requests a second from one address (of IPv6: one /64 network) once its burst is used up; zero means no limit.
    pub requests_per_address_per_s: u32,
    /// Requests at once from one address; zero means no limit.
    pub request_burst_per_address: u32,
    /// Announces a second of one user once their burst is used up; zero means no limit.
    pub announces_per_user_per_s: u32,
    /// Announces of one user at once; zero means no limit.
    pub announce_burst_per_user: u32,
}

impl LiveSettings {
    /// What the swarms go by.
    pub fn rules(&self) -> Rules {
        Rules {
            silence_max: self.announce_interval + self.peer_grace,
            min_interval: self.min_announce_interval,
            clients_per_user_max: self.clients_per_user_max,
            ceiling: self.ceiling,
            peer_ids_per_hour_max: self.peer_ids_per_hour_max,
            credit_upload_without_leechers: self.credit_upload_without_leechers,
        }
    }

    /// Whether a user has used too many peer ids on a torrent within an hour.
    pub(crate) fn is_over_peer_ids(&self, peer_ids: u8) -> bool {
        self.peer_ids_per_hour_max > 0 && peer_ids > self.peer_ids_per_hour_max
    }

    /// How many peers someone gets who asks for `numwant`.
    pub fn wanted(&self, numwant: Option<u32>) -> usize {
        let wanted = numwant.map_or(self.numwant_default, |n| usize::try_from(n).unwrap_or(usize::MAX));
        wanted.min(self.numwant_max)
    }
}

impl Default for LiveSettings {
    fn default() -> Self {
        LiveSettings {
            announce_interval: Seconds(1800),
            min_announce_interval: Seconds(900),
            peer_grace: Seconds(600),
            pending_interval: Seconds(60),
            numwant_default: 50,
            numwant_max: 100,
            clients_per_user_max: 5,
            leeches_per_user_max: None,
            leeches_per_torrent_max: None,
            ceiling: RateCeiling::DEFAULT,
            peer_ids_per_hour_max: PEER_IDS_PER_HOUR_MAX,
            credit_upload_without_leechers: true,
            acknowledge: Acknowledge::Events,
            acknowledge_timeout: Duration::from_secs(5),
            proxies: ProxySettings::default(),
            limits: LimitSettings::default(),
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        LimitSettings {
            connections_max: 20_000,
            connections_per_address_max: 200,
            header_bytes_max: 8192,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            requests_per_address_per_s: 200,
            request_burst_per_address: 2000,
            announces_per_user_per_s: 20,
            announce_burst_per_user: 10_000,
        }
    }
}
