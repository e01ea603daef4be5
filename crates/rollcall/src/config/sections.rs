//! The sections. The doc comments here are what operators read in `rollcall config print`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;

use super::kinds::{DatabaseUrl, HeaderName, LogFilter, LogFormat};
use super::section::config_section;

const DAY_S: u32 = 24 * 60 * 60;
const WEEK_S: u32 = 7 * DAY_S;

/// The default port of trackers, on loopback until an operator opens it.
fn loopback_6969() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, 6969).into(), (Ipv6Addr::LOCALHOST, 6969).into()]
}

fn default_forwarded_headers() -> Vec<HeaderName> {
    HeaderName::new("x-forwarded-for").into_iter().collect()
}

fn default_log_filter() -> LogFilter {
    LogFilter::new("info").expect("a level is a filter")
}

config_section! {
    /// Where announces are heard and how they are answered.
    Tracker as "tracker" {
        /// Addresses for announces over HTTP: one text with commas, or a list. "" turns HTTP off.
        /// Loopback until you open it: "0.0.0.0:6969,[::]:6969" listens everywhere.
        http_addr: Vec<SocketAddr> = loopback_6969(),
        /// Addresses for announces over UDP, written likewise. "" turns UDP off.
        udp_addr: Vec<SocketAddr> = loopback_6969(),
        /// Addresses for announces over HTTPS, written likewise. Needs the two files below.
        https_addr: Vec<SocketAddr> = Vec::new(),
        /// The certificate chain for HTTPS, as PEM. Read again when it changes.
        tls_cert_file: Option<PathBuf> = None,
        /// The private key for HTTPS, as PEM. Read again when it changes.
        tls_key_file: Option<PathBuf> = None,
        /// Threads that answer announces. 0 means one for each core.
        workers: u32 [0..=1024] = 0,
        /// How often clients are asked to announce.
        announce_interval_s: u32 [1..=WEEK_S] = 1800,
        /// Clients that announce more often are credited, but get no peers. At most announce_interval_s.
        min_announce_interval_s: u32 [0..=WEEK_S] = 900,
        /// A silent peer is forgotten this long after its announce was due. Clients built on libtorrent announce
        /// over UDP every 30 s at the most, whatever they are told.
        peer_grace_s: u32 [0..=WEEK_S] = 600,
        /// Peers handed to a client that does not say how many it wants. At most numwant_max.
        numwant_default: u32 [0..=swarm::WANTED_MAX as u32] = 50,
        /// Peers handed out at most.
        numwant_max: u32 [1..=swarm::WANTED_MAX as u32] = 100,
        /// How many clients one user may run on one torrent at the same time.
        peers_per_user_and_torrent_max: u32 [1..=swarm::CLIENTS_PER_USER_MAX as u32] = 5,
        /// Proxies whose word on a client's address is taken, as address ranges: ["10.0.0.0/8"]. None by default.
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// Headers in which trusted proxies pass on the client's address. The first one present counts.
        forwarded_headers: Vec<HeaderName> = default_forwarded_headers(),
        /// Expect the PROXY protocol (version 1 or 2) on connections from trusted proxies.
        proxy_protocol: bool = false,
        /// How long a stopping server may take to answer what is in flight.
        drain_timeout_s: u32 [0..=3600] = 10,
    }
}

config_section! {
    /// Who may announce.
    Access as "access" {
        /// How often changes to users, torrents and clients are looked for in the database.
        poll_interval_ms: u32 [10..=60_000] = 200,
    }
}

config_section! {
    /// Where users, torrents and clients are kept.
    Database as "database" {
        /// "sqlite:PATH", "postgres://USER:PASSWORD@HOST/NAME" or "mysql://USER:PASSWORD@HOST/NAME" (MariaDB as well).
        /// A server's database must exist, and hold nothing else. "" means the file rollcall.db in the data folder.
        url: DatabaseUrl = DatabaseUrl::default(),
    }
}

config_section! {
    /// What one server, and one address, may use up.
    Limits as "limits" {
        /// Open HTTP and HTTPS connections in total.
        connections_max: u32 [1..=10_000_000] = 20_000,
        /// Open HTTP and HTTPS connections from one address. At most connections_max.
        connections_per_address_max: u32 [1..=10_000_000] = 200,
        /// The longest head of an HTTP request.
        header_bytes_max: u32 [512..=1_048_576] = 8192,
        /// How long a client may take to send the head of a request.
        header_timeout_s: u32 [1..=3600] = 10,
        /// How long a connection may stay open without a request.
        idle_timeout_s: u32 [1..=DAY_S] = 60,
        /// Requests a second from one address, over HTTP and UDP, once its burst is used up. 0 means no limit.
        requests_per_address_per_s: u32 [0..=10_000_000] = 200,
        /// Requests one address may send at once. At least requests_per_address_per_s. 0 means no limit.
        request_burst_per_address: u32 [0..=10_000_000] = 2000,
    }
}

config_section! {
    /// What the server says about itself, on standard error.
    Log as "log" {
        /// off, error, warn, info, debug, trace, or a filter such as "info,traffic=debug", which also writes
        /// every announce with what it moved.
        level: LogFilter = default_log_filter(),
        /// "human", "json", or "auto": human on a terminal, JSON otherwise.
        format: LogFormat = LogFormat::Auto,
    }
}
