//! The limit on open files against the configured connections.

use rustix::process::{Resource, getrlimit};

use super::Target;
use super::finding::Findings;

/// Files besides connections: databases, logs, listeners per core, Redis, SQL.
const FILES_BESIDES: u64 = 512;

pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("file limits");
    let config = &target.config;
    let gateway = u64::from(config.gateway.connections_max);
    let connections =
        u64::from(config.limits.connections_max) + u64::from(config.site.connections_max) + gateway;
    let needed = connections + FILES_BESIDES;
    let limit = getrlimit(Resource::Nofile);
    // The server raises its soft limit to the hard limit.
    match limit.maximum {
        Some(allowed) if allowed < needed => findings.warning(
            format!(
                "this shell may open {allowed} files; limits.connections_max, site.connections_max and \
                 gateway.connections_max allow {connections} connections, which takes {needed}"
            ),
            format!(
                "ulimit -n {needed} before the start, or LimitNOFILE={needed} in the systemd unit, or lower the \
                 three settings"
            ),
        ),
        Some(allowed) => findings.ok(format!("{allowed} open files allowed, up to {needed} needed")),
        None => findings.ok(format!("no limit on open files, up to {needed} needed")),
    }
    findings
}
