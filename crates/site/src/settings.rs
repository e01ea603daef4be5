//! What can be set, as plain values; the binary makes them from its configuration.

use std::net::SocketAddr;
use std::time::Duration;

use domain::Seconds;
use tracker::settings::{ProxySettings, TlsFiles};

/// What is settled at the start.
#[derive(Clone, Debug)]
pub struct SiteSettings {
    /// Where to listen.
    pub addresses: Vec<SocketAddr>,
    /// The certificate; none means plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Proxies that are believed about the address of a client.
    pub proxies: ProxySettings,
    /// Origins whose pages may use the API in a browser.
    pub cors_origins: Vec<String>,
    /// Origins whose pages may send heartbeats of their readers, besides those.
    pub gateway_origins: Vec<String>,
    /// Origins that may show a member's page within theirs.
    pub embed_origins: Vec<String>,
    /// How long an operator stays signed in.
    pub session_length: Seconds,
    /// Whether everybody may read the metrics.
    pub metrics_open: bool,
    /// Of so many verify calls one is recorded; zero records none.
    pub verify_audit_every: u64,
    /// Bounds.
    pub limits: SiteLimits,
    /// How long draining may take.
    pub drain_timeout: Duration,
}

/// Bounds on what one key, one address and one request can take.
#[derive(Clone, Copy, Debug)]
pub struct SiteLimits {
    /// Requests a second with one key; zero means no limit.
    pub requests_per_key_per_s: u32,
    /// Requests a second from one address; zero means no limit.
    pub requests_per_address_per_s: u32,
    /// Open connections.
    pub connections_max: usize,
    /// Open connections from one address.
    pub connections_per_address_max: u32,
    /// The longest head of a request.
    pub header_bytes_max: usize,
    /// How long the head of a request may take, and how long a connection may be silent.
    pub header_timeout: Duration,
    /// How long an answer may take.
    pub request_timeout: Duration,
    /// The longest body.
    pub body_bytes_max: usize,
    /// The longest upload.
    pub upload_bytes_max: u64,
}
