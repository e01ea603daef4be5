//! The sockets of a tracker: bound by itself, or inherited from the process that it replaces.
//!
//! # Guarantees
//!
//! - An inherited socket is the same kernel object, so connections queued in it wait for the new process. A second
//!   listener on the port (`SO_REUSEPORT`) would lose those: closing the old listener resets its queue.
//! - Every inherited socket of a configured address is served, however many workers are configured: the kernel also
//!   gives connections to a socket that no thread reads.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use tracing::{info, warn};

use crate::server::{Addresses, StartError};
use crate::settings::Settings;
use crate::sockets;

/// Sockets by address, then by worker.
#[derive(Debug)]
pub struct BoundSockets {
    pub(crate) http: Vec<Vec<TcpListener>>,
    pub(crate) https: Vec<Vec<TcpListener>>,
    pub(crate) udp: Vec<Vec<UdpSocket>>,
}

/// Sockets received from another process, in any order.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub http: Vec<TcpListener>,
    pub https: Vec<TcpListener>,
    pub udp: Vec<UdpSocket>,
}

impl BoundSockets {
    /// Binds all sockets, or none.
    pub fn open(settings: &Settings) -> Result<BoundSockets, StartError> {
        BoundSockets::inherit(settings, InheritedSockets::default())
    }

    /// Uses the inherited sockets of configured addresses, binds the missing ones, and closes those of addresses that
    /// are no longer configured.
    pub fn inherit(settings: &Settings, mut inherited: InheritedSockets) -> Result<BoundSockets, StartError> {
        let (workers, shared) = (settings.workers.max(1), settings.share_ports);
        let tcp = |at| sockets::listen_tcp(at, workers, shared);
        let ports = BoundSockets {
            http: each(&settings.http_addresses, "HTTP", &mut inherited.http, tcp)?,
            https: each(&settings.https_addresses, "HTTPS", &mut inherited.https, tcp)?,
            udp: each(&settings.udp_addresses, "UDP", &mut inherited.udp, |at| {
                sockets::listen_udp(at, workers, shared)
            })?,
        };
        inherited.log_unused();
        Ok(ports)
    }

    /// Duplicates for a later take-over. A socket lives as long as its duplicates: drop them before the tracker
    /// drains.
    pub fn duplicates(&self) -> io::Result<InheritedSockets> {
        Ok(InheritedSockets {
            http: self.http.iter().flatten().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            https: self.https.iter().flatten().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            udp: self.udp.iter().flatten().map(UdpSocket::try_clone).collect::<io::Result<_>>()?,
        })
    }

    pub(crate) fn count(&self) -> usize {
        let tcp = self.http.iter().chain(&self.https).map(Vec::len).sum::<usize>();
        tcp + self.udp.iter().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn addresses(&self) -> io::Result<Addresses> {
        let tcp = |groups: &[Vec<TcpListener>]| -> io::Result<Vec<SocketAddr>> {
            groups.iter().flat_map(|group| group.first()).map(TcpListener::local_addr).collect()
        };
        let udp = self.udp.iter().flat_map(|group| group.first()).map(UdpSocket::local_addr);
        Ok(Addresses {
            http: tcp(&self.http)?,
            https: tcp(&self.https)?,
            udp: udp.collect::<io::Result<_>>()?,
        })
    }
}

impl InheritedSockets {
    fn log_unused(&self) {
        let tcp = self.http.iter().chain(&self.https).map(TcpListener::local_addr);
        for address in tcp.chain(self.udp.iter().map(UdpSocket::local_addr)).flatten() {
            info!(%address, "inherited socket is not configured; closing it");
        }
    }
}

trait Bound {
    fn bound_to(&self) -> io::Result<SocketAddr>;
}

impl Bound for TcpListener {
    fn bound_to(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}

impl Bound for UdpSocket {
    fn bound_to(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}

/// Port 0 in `address` matches any port.
fn take_at<T: Bound>(address: SocketAddr, inherited: &mut Vec<T>) -> Vec<T> {
    let is_there = |socket: &mut T| {
        socket.bound_to().is_ok_and(|bound| {
            bound.ip() == address.ip() && (address.port() == 0 || bound.port() == address.port())
        })
    };
    inherited.extract_if(.., is_there).collect()
}

fn each<T: Bound>(
    addresses: &[SocketAddr],
    protocol: &'static str,
    inherited: &mut Vec<T>,
    open: impl Fn(SocketAddr) -> io::Result<Vec<T>>,
) -> Result<Vec<Vec<T>>, StartError> {
    let mut groups = Vec::new();
    for address in addresses {
        let matching = take_at(*address, inherited);
        if !matching.is_empty() {
            groups.push(matching);
            continue;
        }
        match open(*address) {
            Ok(group) => groups.push(group),
            Err(error) if addresses.len() > 1 && sockets::is_missing_ipv6(*address, &error) => {
                warn!(%address, protocol, "no IPv6 on this machine; listening on the other addresses only");
            }
            Err(reason) => return Err(StartError::Bind { address: *address, protocol, reason }),
        }
    }
    Ok(groups)
}
