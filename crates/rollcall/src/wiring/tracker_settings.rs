//! Settings of the tracker, made from the configuration.

use std::thread;
use std::time::Duration;

use domain::{RateCeiling, Seconds};
use net::{ProxySettings, TlsFiles};
use tracker::settings::{LimitSettings, LiveSettings, Settings};

use crate::config::{Config, HeaderName};

/// Of the tracker and of the site.
pub const HEADER_BYTES_MAX: usize = 8192;

/// How often clients announce a torrent that awaits approval, if announce_interval_s is longer.
const PENDING_INTERVAL: Seconds = Seconds(60);
/// Peers for a client that does not say how many it wants.
const NUMWANT_DEFAULT: usize = 50;
/// How long a connection may stay open without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests of this many seconds may come at once from one address.
const REQUEST_BURST_S: u32 = 10;

impl Config {
    pub fn tracker_settings(&self) -> Settings {
        let tracker = &self.tracker;
        Settings {
            http_addresses: tracker.http_addr.clone(),
            https_addresses: tracker.https_addr.clone(),
            udp_addresses: tracker.udp_addr.clone(),
            tls: TlsFiles::of(tracker.tls_cert_file.clone(), tracker.tls_key_file.clone()),
            workers: match tracker.workers {
                0 => thread::available_parallelism().map_or(1, usize::from),
                workers => workers as usize,
            },
            share_ports: tracker.share_ports,
            drain_timeout: seconds(tracker.drain_timeout_s),
            live: self.live_settings(),
        }
    }

    /// The settings that a reload applies.
    pub fn live_settings(&self) -> LiveSettings {
        let tracker = &self.tracker;
        LiveSettings {
            announce_interval: Seconds(tracker.announce_interval_s),
            min_announce_interval: Seconds(tracker.min_announce_interval_s),
            peer_grace: Seconds(tracker.peer_grace_s),
            pending_interval: PENDING_INTERVAL,
            numwant_default: NUMWANT_DEFAULT.min(tracker.numwant_max as usize),
            numwant_max: tracker.numwant_max as usize,
            clients_per_user_max: u8::try_from(tracker.peers_per_user_and_torrent_max).unwrap_or(u8::MAX),
            leeches_per_user_max: unless_zero(self.limits.leeches_per_user_max),
            leeches_per_torrent_max: unless_zero(self.limits.leeches_per_torrent_max),
            ceiling: self.ceiling(),
            peer_ids_per_hour_max: u8::try_from(self.limits.peer_ids_per_user_and_torrent_per_hour)
                .unwrap_or(u8::MAX),
            credit_upload_without_leechers: self.limits.credit_upload_without_leechers,
            acknowledge: self.journal.ack,
            acknowledge_timeout: Duration::from_millis(self.journal.ack_timeout_ms.into()),
            proxies: ProxySettings {
                trusted: tracker.trusted_proxies.clone(),
                forwarded_headers: tracker.forwarded_headers.iter().map(header_name).collect(),
                proxy_protocol: tracker.proxy_protocol,
            },
            limits: self.limit_settings(),
        }
    }

    /// Highest plausible rate of one peer.
    pub fn ceiling(&self) -> RateCeiling {
        RateCeiling { bytes_per_s: u64::from(self.limits.peer_rate_max_mbit_per_s) * 1_000_000 / 8 }
    }

    /// Highest plausible rate of all peers of a user together.
    pub fn user_ceiling(&self) -> RateCeiling {
        RateCeiling { bytes_per_s: u64::from(self.limits.user_rate_max_mbit_per_s) * 1_000_000 / 8 }
    }

    fn limit_settings(&self) -> LimitSettings {
        let limits = &self.limits;
        LimitSettings {
            connections_max: limits.connections_max as usize,
            connections_per_address_max: limits.connections_per_address_max,
            header_bytes_max: HEADER_BYTES_MAX,
            header_timeout: seconds(limits.header_timeout_s),
            idle_timeout: IDLE_TIMEOUT,
            requests_per_address_per_s: limits.requests_per_address_per_s,
            request_burst_per_address: limits.requests_per_address_per_s.saturating_mul(REQUEST_BURST_S),
            announces_per_user_per_s: limits.announces_per_user_per_s,
            announce_burst_per_user: limits.announce_burst_per_user,
        }
    }

    /// Keys that differ and need a restart.
    pub fn needs_restart(&self, new: &Config) -> Vec<&'static str> {
        let (old_tracker, new_tracker) = (&self.tracker, &new.tracker);
        [
            ("tracker.http_addr", old_tracker.http_addr != new_tracker.http_addr),
            ("tracker.https_addr", old_tracker.https_addr != new_tracker.https_addr),
            ("tracker.udp_addr", old_tracker.udp_addr != new_tracker.udp_addr),
            ("tracker.tls_cert_file", old_tracker.tls_cert_file != new_tracker.tls_cert_file),
            ("tracker.tls_key_file", old_tracker.tls_key_file != new_tracker.tls_key_file),
            ("tracker.workers", old_tracker.workers != new_tracker.workers),
            ("tracker.share_ports", old_tracker.share_ports != new_tracker.share_ports),
            ("tracker.drain_timeout_s", old_tracker.drain_timeout_s != new_tracker.drain_timeout_s),
            ("access", self.access != new.access),
            ("mirror", self.mirror != new.mirror),
            ("sites", self.sites != new.sites),
            ("site", self.site != new.site),
            ("presence", self.presence != new.presence),
            ("gateway", self.gateway != new.gateway),
            ("ledger.hit_and_run_active_s", self.hit_and_run_policy() != new.hit_and_run_policy()),
            ("database.url", self.database != new.database),
            ("journal.queue_max", self.journal.queue_max != new.journal.queue_max),
            ("journal.stream_key", self.journal.stream_key != new.journal.stream_key),
            ("journal.dlq_key", self.journal.dlq_key != new.journal.dlq_key),
            ("journal.failed_key", self.journal.failed_key != new.journal.failed_key),
            ("journal.wait_replicas", self.replicas() != new.replicas()),
            ("journal.node_name", self.journal.node_name != new.journal.node_name),
            ("redis", self.redis != new.redis),
            ("ledger.group", self.ledger.group != new.ledger.group),
            ("limits.peer_rate_max_mbit_per_s", self.ceiling() != new.ceiling()),
            ("limits.user_rate_max_mbit_per_s", self.user_ceiling() != new.user_ceiling()),
            ("log.format", self.log.format != new.log.format),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}

/// Zero means no limit.
fn unless_zero(limit: u32) -> Option<u32> {
    (limit > 0).then_some(limit)
}

pub(crate) fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

pub(crate) fn header_name(name: &HeaderName) -> String {
    name.as_str().to_owned()
}
