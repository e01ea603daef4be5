//! Settings of the site; the binary makes them from its configuration.

use std::net::SocketAddr;
use std::time::Duration;

use domain::Seconds;
use net::{ProxySettings, TlsFiles};

#[derive(Clone, Debug)]
pub struct SiteSettings {
    pub addresses: Vec<SocketAddr>,
    /// None means plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Proxies whose forwarding headers are trusted.
    pub proxies: ProxySettings,
    /// Origins whose pages may call the API.
    pub cors_origins: Vec<String>,
    /// Further origins whose pages may call the routes for members.
    pub gateway_origins: Vec<String>,
    /// Origins that may frame `/me`.
    pub embed_origins: Vec<String>,
    /// Lifetime of an operator session.
    pub session_length: Seconds,
    /// Whether `/metrics` needs no key.
    pub metrics_open: bool,
    /// One of this many verify calls is recorded; zero records none.
    pub verify_audit_every: u64,
    pub limits: SiteLimits,
    pub drain_timeout: Duration,
}

/// Limits per key, address, connection and request.
#[derive(Clone, Copy, Debug)]
pub struct SiteLimits {
    /// Zero means no limit.
    pub requests_per_key_per_s: u32,
    /// Zero means no limit.
    pub requests_per_address_per_s: u32,
    pub connections_max: usize,
    pub connections_per_address_max: u32,
    /// Size of a request head.
    pub header_bytes_max: usize,
    /// Timeout of a request head, and of an idle connection.
    pub header_timeout: Duration,
    pub request_timeout: Duration,
    pub body_bytes_max: usize,
    pub upload_bytes_max: u64,
}
