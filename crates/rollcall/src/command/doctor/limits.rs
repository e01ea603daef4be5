//! How many files the process may have open, against how many connections it may get.

use rustix::process::{Resource, getrlimit};

use super::Target;
use super::finding::Findings;

/// Databases, logs, listeners on every core, connections to Redis and to the database.
const FILES_BESIDES: u64 = 512;

/// Compares the two.
pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("file limits");
    let config = &target.config;
    let people = u64::from(config.gateway.connections_max);
    let connections =
        u64::from(config.limits.connections_max) + u64::from(config.site.connections_max) + people;
    let needed = connections + FILES_BESIDES;
    let limit = getrlimit(Resource::Nofile);
    // The server raises its limit to the highest that it may have.
    match limit.maximum {
        Some(allowed) if allowed < needed => findings.warning(
            format!(
                "this shell may open {allowed} files; limits.connections_max, site.connections_max and \
                 gateway.connections_max allow {connections} connections, which takes {needed}"
            ),
            format!(
                "ulimit -n {needed} before the start, or LimitNOFILE={needed} in the unit of systemd, or lower the \
                 three settings"
            ),
        ),
        Some(allowed) => findings.ok(format!("{allowed} open files are allowed, {needed} may be needed")),
        None => findings.ok(format!("no limit on open files, {needed} may be needed")),
    }
    findings
}
