//! Settings of the site, made from the configuration.

use domain::Seconds;
use net::{ProxySettings, TlsFiles};
use site::{SiteLimits, SiteSettings};

use super::tracker_settings::{HEADER_BYTES_MAX, header_name, seconds};
use crate::config::{Config, WebOrigin};

fn texts_of(origins: &[WebOrigin]) -> Vec<String> {
    origins.iter().map(|origin| origin.as_str().to_owned()).collect()
}

/// One of so many verify calls is recorded in the audit trail (W6).
const VERIFY_AUDIT_EVERY: u64 = 1000;
/// The longest body of a request, except a refresh of the whitelist.
const BODY_BYTES_MAX: usize = 1 << 20;

impl Config {
    pub fn site_settings(&self) -> SiteSettings {
        let site = &self.site;
        SiteSettings {
            addresses: site.addr.clone(),
            tls: TlsFiles::of(site.tls_cert_file.clone(), site.tls_key_file.clone()),
            proxies: ProxySettings {
                trusted: site.trusted_proxies.clone(),
                forwarded_headers: site.forwarded_headers.iter().map(header_name).collect(),
                proxy_protocol: false,
            },
            cors_origins: texts_of(&site.cors_origins),
            gateway_origins: texts_of(&self.gateway.allowed_origins),
            embed_origins: texts_of(&site.embed_origins),
            session_length: Seconds(site.session_minutes * 60),
            metrics_open: site.metrics_open,
            verify_audit_every: VERIFY_AUDIT_EVERY,
            limits: self.site_limits(),
            drain_timeout: seconds(self.tracker.drain_timeout_s),
        }
    }

    fn site_limits(&self) -> SiteLimits {
        let (site, limits) = (&self.site, &self.limits);
        SiteLimits {
            requests_per_key_per_s: site.requests_per_key_per_s,
            requests_per_address_per_s: site.requests_per_address_per_s,
            connections_max: site.connections_max as usize,
            connections_per_address_max: limits.connections_per_address_max,
            header_bytes_max: HEADER_BYTES_MAX,
            header_timeout: seconds(limits.header_timeout_s),
            request_timeout: seconds(site.request_timeout_s),
            body_bytes_max: BODY_BYTES_MAX,
            upload_bytes_max: u64::from(site.upload_mib_max) << 20,
        }
    }
}
