//! Listening sockets, one per thread: bound here, or inherited from another process.
//!
//! # Guarantees
//!
//! - An inherited socket is the same kernel object, so connections queued in it wait for the new process. A second
//!   listener on the port (`SO_REUSEPORT`) would lose those: closing the old listener resets its queue.
//! - Every inherited socket of a configured address is served, however many threads are configured: the kernel also
//!   gives connections to a socket that no thread reads.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tracing::{info, warn};

const BACKLOG: i32 = 4096;
/// Absorbs bursts of packets; the kernel may grant less.
const UDP_BUFFER_BYTES: usize = 8 << 20;
/// Read timeout, after which a UDP thread checks whether to stop.
const UDP_WAKE_UP: Duration = Duration::from_millis(100);

/// std has no name for it.
const NO_SUCH_FAMILY: i32 = libc::EAFNOSUPPORT;

/// An address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({listener}): {}", explain(.reason))]
pub struct BindError {
    pub address: SocketAddr,
    /// `HTTP`, `HTTPS`, `UDP` or `site`.
    pub listener: &'static str,
    pub reason: io::Error,
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is taken; stop the program that has it, or configure another one; to replace a running server, \
             start with --take-over on its data folder"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        io::ErrorKind::PermissionDenied => "not permitted; ports below 1024 need privileges".to_owned(),
        _ => error.to_string(),
    }
}

/// How an address is bound.
#[derive(Clone, Copy, Debug)]
pub struct BindOptions {
    /// Named in errors and log lines: `HTTP`, `HTTPS`, `UDP` or `site`.
    pub listener: &'static str,
    /// Sockets per address, at least one.
    pub count: usize,
    /// Whether other processes may bind the same addresses (`SO_REUSEPORT`).
    pub share_ports: bool,
}

/// A TCP listener or a UDP socket.
pub trait ListeningSocket: Sized {
    fn address(&self) -> io::Result<SocketAddr>;

    /// Binds without listening: fails if another process has the port.
    fn try_bind(address: SocketAddr) -> io::Result<()>;

    /// Binds with `SO_REUSEPORT`, so that further sockets of this user can share the port.
    fn bind_shared(address: SocketAddr) -> io::Result<Self>;

    /// Checks the type of a received socket.
    fn from_descriptor(socket: OwnedFd) -> io::Result<Self>;
}

/// Sockets by address: the inherited ones of an address, else new ones. All addresses are bound, or none; an IPv6
/// address is left out on a machine without IPv6, unless it is the only one.
pub fn open<S: ListeningSocket>(
    addresses: &[SocketAddr],
    inherited: &mut Vec<S>,
    options: BindOptions,
) -> Result<Vec<Vec<S>>, BindError> {
    let mut groups = Vec::new();
    for address in addresses.iter().copied() {
        let matching = take_at(address, inherited);
        if !matching.is_empty() {
            groups.push(matching);
            continue;
        }
        match bind(address, options) {
            Ok(group) => groups.push(group),
            Err(error) if addresses.len() > 1 && is_missing_ipv6(address, &error) => {
                let listener = options.listener;
                warn!(%address, listener, "no IPv6 on this machine; listening on the other addresses only");
            }
            Err(reason) => return Err(BindError { address, listener: options.listener, reason }),
        }
    }
    Ok(groups)
}

/// Closes inherited sockets of addresses that are no longer configured.
pub fn close_unused<S: ListeningSocket>(inherited: Vec<S>) {
    for address in inherited.iter().flat_map(S::address) {
        info!(%address, "inherited socket is not configured; closing it");
    }
}

/// Port 0 in `address` matches any port.
fn take_at<S: ListeningSocket>(address: SocketAddr, inherited: &mut Vec<S>) -> Vec<S> {
    let is_there = |socket: &mut S| {
        socket.address().is_ok_and(|bound| {
            bound.ip() == address.ip() && (address.port() == 0 || bound.port() == address.port())
        })
    };
    inherited.extract_if(.., is_there).collect()
}

/// All sockets have the same port, also for port 0.
fn bind<S: ListeningSocket>(mut address: SocketAddr, options: BindOptions) -> io::Result<Vec<S>> {
    if !options.share_ports {
        // With `SO_REUSEPORT` a second server of the same user would silently receive half of the requests.
        S::try_bind(address)?;
    }
    let mut sockets = Vec::with_capacity(options.count);
    for _ in 0..options.count.max(1) {
        let socket = S::bind_shared(address)?;
        address = socket.address()?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Whether binding failed only because the machine has no IPv6.
fn is_missing_ipv6(address: SocketAddr, error: &io::Error) -> bool {
    let any_machine_has_it = address.ip().is_loopback() || address.ip().is_unspecified();
    let is_missing =
        error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(NO_SUCH_FAMILY);
    address.is_ipv6() && any_machine_has_it && is_missing
}

impl ListeningSocket for TcpListener {
    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn try_bind(address: SocketAddr) -> io::Result<()> {
        let socket = unbound(address, Type::STREAM, Protocol::TCP)?;
        // Connections in TIME_WAIT do not count.
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(address))
    }

    fn bind_shared(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = unbound(address, Type::STREAM, Protocol::TCP)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }

    fn from_descriptor(socket: OwnedFd) -> io::Result<TcpListener> {
        let socket = Socket::from(socket);
        match socket.r#type()? == Type::STREAM && socket.is_listener()? {
            true => Ok(socket.into()),
            false => Err(io::Error::other("not a listening TCP socket")),
        }
    }
}

/// Reads time out after [`UDP_WAKE_UP`].
impl ListeningSocket for UdpSocket {
    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn try_bind(address: SocketAddr) -> io::Result<()> {
        unbound(address, Type::DGRAM, Protocol::UDP)?.bind(&SockAddr::from(address))
    }

    fn bind_shared(address: SocketAddr) -> io::Result<UdpSocket> {
        let socket = unbound(address, Type::DGRAM, Protocol::UDP)?;
        socket.set_reuse_port(true)?;
        // With a smaller buffer a burst loses packets sooner; clients repeat them.
        let _ = socket.set_recv_buffer_size(UDP_BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(UDP_BUFFER_BYTES);
        socket.bind(&SockAddr::from(address))?;
        socket.set_read_timeout(Some(UDP_WAKE_UP))?;
        Ok(socket.into())
    }

    fn from_descriptor(socket: OwnedFd) -> io::Result<UdpSocket> {
        let socket = Socket::from(socket);
        match socket.r#type()? == Type::STREAM {
            false => Ok(socket.into()),
            true => Err(io::Error::other("not a UDP socket")),
        }
    }
}

fn unbound(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        // IPv4 has its own listener. Otherwise dual-stack behaviour would depend on the system.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}
