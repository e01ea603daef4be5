//! Whether each configured address can be bound.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use net::listen::ListeningSocket;

use super::Target;
use super::finding::Findings;

/// Binds every address briefly, as the server does at its start, without listening.
pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("ports");
    let config = &target.config;
    let tcp: fn(SocketAddr) -> io::Result<()> = TcpListener::try_bind;
    let lists = [
        ("tracker.http_addr", &config.tracker.http_addr, tcp),
        ("tracker.https_addr", &config.tracker.https_addr, tcp),
        ("tracker.udp_addr", &config.tracker.udp_addr, UdpSocket::try_bind),
        ("site.addr", &config.site.addr, tcp),
    ];
    for (key, addresses, try_bind) in lists {
        for address in addresses.iter().filter(|address| address.port() != 0) {
            judge(&mut findings, target, (key, *address), try_bind(*address));
        }
    }
    findings
}

fn judge(
    findings: &mut Findings,
    target: &Target,
    (key, address): (&'static str, SocketAddr),
    outcome: io::Result<()>,
) {
    let place = format!("{key} {address}");
    let port = address.port();
    match outcome {
        Ok(()) if target.is_running => findings.warning(
            format!("{place} is free, though a server uses this data folder"),
            "it was started with other settings, or without this role: restart it if that is not intended",
        ),
        Ok(()) => findings.ok(format!("{place} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && target.is_running => {
            findings.ok(format!("{place} is in use, as expected while the server runs"));
        }
        Err(error) if error.kind() == ErrorKind::AddrInUse => findings.problem(
            format!("{place} is in use by another program"),
            format!("find it with: ss -lntup 'sport = :{port}'; stop it, or set {key} to another port"),
        ),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => findings.problem(
            format!("this user may not bind {place}"),
            format!(
                "use a port above 1023 for {key}, or AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit"
            ),
        ),
        Err(error) if address.ip().is_loopback() || address.ip().is_unspecified() => findings.warning(
            format!("cannot bind {place}: {error}"),
            format!("this machine seems to have no addresses of this family: remove it from {key}"),
        ),
        Err(error) => findings.problem(
            format!("cannot bind {place}: {error}"),
            format!("list this machine's addresses with: ip address; then correct {key}"),
        ),
    }
}
