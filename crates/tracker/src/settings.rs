//! Settings of the tracker as plain values, made from the configuration by the binary.

use std::net::SocketAddr;
use std::time::Duration;

use domain::{AnnounceEvent, RateCeiling, Seconds};
use net::{ProxySettings, TlsFiles};
use swarm::Rules;

/// Enough for five clients restarted every ten minutes.
pub const PEER_IDS_PER_HOUR_MAX: u8 = 30;

/// Fixed at the start.
#[derive(Clone, Debug)]
pub struct Settings {
    pub http_addresses: Vec<SocketAddr>,
    /// Need `tls`.
    pub https_addresses: Vec<SocketAddr>,
    pub udp_addresses: Vec<SocketAddr>,
    pub tls: Option<TlsFiles>,
    /// Threads for HTTP, and as many per UDP address.
    pub workers: usize,
    /// Whether other processes may bind the same addresses (`SO_REUSEPORT`); the kernel spreads the load.
    pub share_ports: bool,
    pub drain_timeout: Duration,
    /// Replaced as a whole on reload.
    pub live: LiveSettings,
}

/// Replaced as a whole on reload.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    pub announce_interval: Seconds,
    /// Sent to clients and enforced.
    pub min_announce_interval: Seconds,
    /// Extra time before a silent peer expires.
    pub peer_grace: Seconds,
    /// Replaces both intervals on pending torrents, where it is shorter.
    pub pending_interval: Seconds,
    /// Peers returned without `numwant`.
    pub numwant_default: usize,
    pub numwant_max: usize,
    /// Peers of one user on one torrent.
    pub clients_per_user_max: u8,
    /// Torrents a user may leech at once, unless set for the user; none: no limit.
    pub leeches_per_user_max: Option<u32>,
    /// Leechers of a torrent, unless set for the torrent; none: no limit.
    pub leeches_per_torrent_max: Option<u32>,
    /// Highest plausible rate of one peer (J8).
    pub ceiling: RateCeiling,
    /// Peer ids of a user on one torrent within an hour; zero: no limit.
    pub peer_ids_per_hour_max: u8,
    /// Whether upload counts that was claimed while no other user leeched.
    pub credit_upload_without_leechers: bool,
    /// Which replies wait until the event is stored.
    pub acknowledge: Acknowledge,
    pub acknowledge_timeout: Duration,
    /// Proxies whose forwarded client address is used.
    pub proxies: ProxySettings,
    pub limits: LimitSettings,
}

/// Which replies wait until the event is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// Announces with an event: no later announce repeats it.
    #[default]
    Events,
    All,
    None,
}

impl Acknowledge {
    pub fn waits_for(self, event: AnnounceEvent) -> bool {
        match self {
            Acknowledge::Events => event != AnnounceEvent::None,
            Acknowledge::All => true,
            Acknowledge::None => false,
        }
    }
}

/// Limits on what one address or one user can consume.
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

    pub(crate) fn is_over_peer_ids(&self, peer_ids: u8) -> bool {
        self.peer_ids_per_hour_max > 0 && peer_ids > self.peer_ids_per_hour_max
    }

    /// Peers to return for a `numwant`.
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
