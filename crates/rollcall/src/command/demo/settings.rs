//! Settings of a demo; `--set` overrides them.

use std::net::SocketAddr;

use super::ports::Ports;
use crate::cli::demo::DemoArgs;

/// Announce interval at normal pace, short so that changes are visible.
const ANNOUNCE_INTERVAL_S: f64 = 30.0;

pub(super) fn of(args: &DemoArgs, ports: &Ports) -> Vec<String> {
    let interval_s = (ANNOUNCE_INTERVAL_S / args.pace).clamp(5.0, 300.0) as u32;
    let list =
        |addresses: Vec<SocketAddr>| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let settings = [
        ("tracker.http_addr", list(ports.tracker_addresses())),
        ("tracker.udp_addr", list(ports.tracker_addresses())),
        ("tracker.announce_interval_s", interval_s.to_string()),
        ("tracker.min_announce_interval_s", (interval_s / 6).max(1).to_string()),
        // Silent peers expire after half a minute.
        ("tracker.peer_grace_s", interval_s.to_string()),
        ("tracker.drain_timeout_s", "5".to_owned()),
        ("site.addr", list(ports.site_addresses())),
        // All IPv6 clients have one address.
        ("limits.requests_per_address_per_s", "0".to_owned()),
        ("limits.announce_burst_per_user", "0".to_owned()),
        // Above the rate of simulated clients, below the claims of simulated cheats.
        ("limits.peer_rate_max_mbit_per_s", "400".to_owned()),
        ("ledger.hit_and_run_active_s", "1800".to_owned()),
        ("journal.retry_delay_s", "5".to_owned()),
        ("journal.keep_s", "3600".to_owned()),
        // Keeps the startup message visible.
        ("log.level", "error".to_owned()),
    ];
    settings.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}
