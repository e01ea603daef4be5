//! Listening sockets, one per thread; `SO_REUSEPORT` spreads the load.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const BACKLOG: i32 = 4096;
/// Absorbs bursts of packets; the kernel may grant less.
const UDP_BUFFER_BYTES: usize = 8 << 20;
/// Read timeout, after which a UDP thread checks whether to stop.
const UDP_WAKE_UP: Duration = Duration::from_millis(100);

/// std has no name for it.
const NO_SUCH_FAMILY: i32 = libc::EAFNOSUPPORT;

/// Whether binding failed only because the machine has no IPv6.
pub fn is_missing_ipv6(address: SocketAddr, error: &io::Error) -> bool {
    let any_machine_has_it = address.ip().is_loopback() || address.ip().is_unspecified();
    let is_missing =
        error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(NO_SUCH_FAMILY);
    address.is_ipv6() && any_machine_has_it && is_missing
}

/// `count` TCP listeners on one address. Port 0 takes a free port. Unless `shared`, a port that another process has
/// is an error.
pub fn listen_tcp(address: SocketAddr, count: usize, shared: bool) -> io::Result<Vec<TcpListener>> {
    if !shared {
        refuse_taken_port(address, Type::STREAM, Protocol::TCP)?;
    }
    each_at_same_port(address, count, |address| {
        let socket = open(address, Type::STREAM, Protocol::TCP)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from(socket);
        Ok((listener.local_addr()?, listener))
    })
}

/// Like [`listen_tcp`]; reads time out after [`UDP_WAKE_UP`].
pub fn listen_udp(address: SocketAddr, count: usize, shared: bool) -> io::Result<Vec<UdpSocket>> {
    if !shared {
        refuse_taken_port(address, Type::DGRAM, Protocol::UDP)?;
    }
    each_at_same_port(address, count, |address| {
        let socket = open(address, Type::DGRAM, Protocol::UDP)?;
        socket.set_reuse_port(true)?;
        // With a smaller buffer a burst loses packets sooner; clients repeat them.
        let _ = socket.set_recv_buffer_size(UDP_BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(UDP_BUFFER_BYTES);
        socket.bind(&SockAddr::from(address))?;
        socket.set_read_timeout(Some(UDP_WAKE_UP))?;
        let socket = UdpSocket::from(socket);
        Ok((socket.local_addr()?, socket))
    })
}

fn open(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        // IPv4 has its own listener. Otherwise dual-stack behaviour would depend on the system.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// With `SO_REUSEPORT` a second server of the same user would silently receive half of the requests. Binding without
/// it reports the conflict.
fn refuse_taken_port(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<()> {
    let socket = open(address, kind, protocol)?;
    if kind == Type::STREAM {
        // Connections in TIME_WAIT do not count.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&SockAddr::from(address))
}

fn each_at_same_port<T>(
    mut address: SocketAddr,
    count: usize,
    bind: impl Fn(SocketAddr) -> io::Result<(SocketAddr, T)>,
) -> io::Result<Vec<T>> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count.max(1) {
        let (bound_to, socket) = bind(address)?;
        address = bound_to;
        all.push(socket);
    }
    Ok(all)
}
