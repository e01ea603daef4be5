//! The sockets that a tracker serves: opened by itself, or taken over from the process that served them before.
//!
//! # Guarantees
//!
//! - A socket that is taken over is the very same one, so what waits in its queue waits for the new process. A process
//!   that merely opened its own beside it (`SO_REUSEPORT`) would get new connections, too; but those in the queue of the
//!   old listener would be reset when that one closes.
//! - Every socket taken over for an address is served, however many workers are configured: what the system gives to
//!   one that nobody serves would wait for ever.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use tracing::{info, warn};

use crate::server::{Addresses, StartError};
use crate::settings::Settings;
use crate::sockets;

/// Every socket, by address and then by worker.
#[derive(Debug)]
pub struct Ports {
    pub(crate) http: Vec<Vec<TcpListener>>,
    pub(crate) https: Vec<Vec<TcpListener>>,
    pub(crate) udp: Vec<Vec<UdpSocket>>,
}

/// Sockets on their way from one process to another, in any order.
#[derive(Debug, Default)]
pub struct Handed {
    /// Plain HTTP.
    pub http: Vec<TcpListener>,
    /// HTTPS.
    pub https: Vec<TcpListener>,
    /// UDP.
    pub udp: Vec<UdpSocket>,
}

impl Ports {
    /// Opens all sockets, or none.
    pub fn open(settings: &Settings) -> Result<Ports, StartError> {
        Ports::adopt(settings, Handed::default())
    }

    /// Takes over the sockets of the configured addresses, and opens those of addresses that are new. Those of
    /// addresses that are configured no longer are closed.
    pub fn adopt(settings: &Settings, mut handed: Handed) -> Result<Ports, StartError> {
        let (workers, shared) = (settings.workers.max(1), settings.share_ports);
        let tcp = |at| sockets::listen_tcp(at, workers, shared);
        let ports = Ports {
            http: each(&settings.http_addresses, "HTTP", &mut handed.http, tcp)?,
            https: each(&settings.https_addresses, "HTTPS", &mut handed.https, tcp)?,
            udp: each(&settings.udp_addresses, "UDP", &mut handed.udp, |at| {
                sockets::listen_udp(at, workers, shared)
            })?,
        };
        handed.tell_closed();
        Ok(ports)
    }

    /// The same sockets once more, to be handed over later. As long as a copy lives, the socket does: to be dropped
    /// before the tracker drains.
    pub fn copies(&self) -> io::Result<Handed> {
        Ok(Handed {
            http: self.http.iter().flatten().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            https: self.https.iter().flatten().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            udp: self.udp.iter().flatten().map(UdpSocket::try_clone).collect::<io::Result<_>>()?,
        })
    }

    /// How many sockets there are.
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

impl Handed {
    fn tell_closed(&self) {
        let tcp = self.http.iter().chain(&self.https).map(TcpListener::local_addr);
        for address in tcp.chain(self.udp.iter().map(UdpSocket::local_addr)).flatten() {
            info!(%address, "this socket was handed over, and is not in the configuration: it is closed");
        }
    }
}

/// A socket that says where it is.
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

/// Takes those sockets out of `handed` that are at `address`; port 0 stands for any port.
fn take_at<T: Bound>(address: SocketAddr, handed: &mut Vec<T>) -> Vec<T> {
    let is_there = |socket: &mut T| {
        socket.bound_to().is_ok_and(|bound| {
            bound.ip() == address.ip() && (address.port() == 0 || bound.port() == address.port())
        })
    };
    handed.extract_if(.., is_there).collect()
}

fn each<T: Bound>(
    addresses: &[SocketAddr],
    protocol: &'static str,
    handed: &mut Vec<T>,
    open: impl Fn(SocketAddr) -> io::Result<Vec<T>>,
) -> Result<Vec<Vec<T>>, StartError> {
    let mut groups = Vec::new();
    for address in addresses {
        let taken = take_at(*address, handed);
        if !taken.is_empty() {
            groups.push(taken);
            continue;
        }
        match open(*address) {
            Ok(group) => groups.push(group),
            Err(error) if addresses.len() > 1 && sockets::is_missing_ipv6(*address, &error) => {
                warn!(%address, protocol, "this machine has no IPv6; listening on the other addresses only");
            }
            Err(reason) => return Err(StartError::Bind { address: *address, protocol, reason }),
        }
    }
    Ok(groups)
}
