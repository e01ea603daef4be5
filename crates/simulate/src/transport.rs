//! Announces over blocking sockets, one after the other.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use domain::clock::Stopwatch;
use socket2::{Domain, Protocol, Socket, Type};

use crate::announce::Announce;
use crate::error::SimulationError;
use crate::plan::ServerAddresses;
use crate::reply::{
    self, AnnounceOutcome, HttpReply, action_and_transaction, connect_request, connection_id,
};

/// Longer than the server waits for its journal, so that the outcome of most announces is known.
const TIMEOUT: Duration = Duration::from_secs(8);
/// A packet without a reply is sent again after this long.
const RESEND_AFTER: Duration = Duration::from_millis(500);
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// How a client reaches the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    Http4,
    Http6,
    Udp4,
    Udp6,
}

impl Transport {
    fn is_http(self) -> bool {
        matches!(self, Transport::Http4 | Transport::Http6)
    }

    fn is_ipv4(self) -> bool {
        matches!(self, Transport::Http4 | Transport::Udp4)
    }
}

/// The sockets of a client, or of clients that announce in turn. HTTP connections are kept open.
pub struct Connections {
    addresses: ServerAddresses,
    /// The source address over IPv4. Over IPv6, loopback has only one.
    from: Ipv4Addr,
    http: [Option<TcpStream>; 2],
    udp: [Option<UdpSocket>; 2],
    transaction: u32,
}

impl Connections {
    pub fn new(addresses: ServerAddresses, from: Ipv4Addr) -> Connections {
        Connections { addresses, from, http: [None, None], udp: [None, None], transaction: 0x0101_0000 }
    }

    pub fn announce(&mut self, announce: &Announce, transport: Transport) -> AnnounceOutcome {
        let outcome = match transport.is_http() {
            true => self.send(announce, transport).and_then(|()| self.read_reply(transport)),
            false => self.over_udp(announce, transport),
        };
        outcome.unwrap_or(AnnounceOutcome::Lost)
    }

    /// Sends the newer one over IPv6 and the older one over IPv4 before either is answered, as a client with two
    /// addresses does. Both connections are open before: nothing for a killed server is sent to the next. The outcome is
    /// that of the newer.
    pub fn announce_both(&mut self, newer: &Announce, older: &Announce) -> AnnounceOutcome {
        if [Transport::Http6, Transport::Http4].into_iter().any(|transport| self.connect(transport).is_err())
        {
            return AnnounceOutcome::Lost;
        }
        let sent_newer = self.send(newer, Transport::Http6);
        let sent_older = self.send(older, Transport::Http4);
        let outcome = sent_newer.and_then(|()| self.read_reply(Transport::Http6));
        // Wait for it all the same: the next announce must not meet this one in flight.
        if sent_older.is_ok() {
            let _ = self.read_reply(Transport::Http4);
        }
        outcome.unwrap_or(AnnounceOutcome::Lost)
    }

    /// Closes the HTTP connections.
    pub fn close(&mut self) {
        self.http = [None, None];
    }

    /// The server's address of the same address family, or any.
    fn server(&self, transport: Transport) -> Result<SocketAddr, SimulationError> {
        let list = if transport.is_http() { &self.addresses.http } else { &self.addresses.udp };
        let same = list.iter().find(|address| address.is_ipv4() == transport.is_ipv4());
        same.or(list.first())
            .copied()
            .ok_or_else(|| SimulationError::NotAReply("there is no such server".to_owned()))
    }

    fn source(&self, server: SocketAddr) -> SocketAddr {
        match server {
            SocketAddr::V4(_) => SocketAddr::from((self.from, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        }
    }

    fn connect(&mut self, transport: Transport) -> Result<&mut TcpStream, SimulationError> {
        let server = self.server(transport)?;
        let from = self.source(server);
        match &mut self.http[usize::from(transport.is_ipv4())] {
            Some(stream) => Ok(stream),
            closed => Ok(closed.insert(connect(from, server).map_err(failed("connecting"))?)),
        }
    }

    fn send(&mut self, announce: &Announce, transport: Transport) -> Result<(), SimulationError> {
        let host = self.server(transport)?.to_string();
        let sent = self.connect(transport)?.write_all(&announce.request(&host));
        if sent.is_err() {
            self.http[usize::from(transport.is_ipv4())] = None;
        }
        sent.map_err(failed("sending an announce"))
    }

    fn read_reply(&mut self, transport: Transport) -> Result<AnnounceOutcome, SimulationError> {
        let place = &mut self.http[usize::from(transport.is_ipv4())];
        let Some(stream) = place else { return Err(SimulationError::Closed { replies: 0 }) };
        let outcome = read_http(stream);
        if outcome.is_err() {
            *place = None;
        }
        outcome
    }

    fn over_udp(
        &mut self,
        announce: &Announce,
        transport: Transport,
    ) -> Result<AnnounceOutcome, SimulationError> {
        let server = self.server(transport)?;
        let from = self.source(server);
        self.transaction = self.transaction.wrapping_add(2);
        let (connect, send) = (self.transaction, self.transaction.wrapping_add(1));
        let socket = match &mut self.udp[usize::from(transport.is_ipv4())] {
            Some(socket) => socket,
            unbound => unbound.insert(bind(from, server).map_err(failed("binding a UDP socket"))?),
        };
        let reply = exchange(socket, &connect_request(connect))?;
        let id = connection_id(&reply, connect).ok_or_else(|| SimulationError::not_a_reply(&reply))?;
        reply::read_packet(&exchange(socket, &announce.packet(id, send))?)
    }
}

fn failed(doing: &'static str) -> impl FnOnce(std::io::Error) -> SimulationError {
    SimulationError::io(doing)
}

fn connect(from: SocketAddr, server: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
    // Not every system has all loopback addresses: if it cannot be bound, the system chooses one.
    let _ = socket.bind(&from.into());
    socket.connect_timeout(&server.into(), TIMEOUT)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn bind(from: SocketAddr, server: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: IpAddr = match server.is_ipv4() {
        true => Ipv4Addr::UNSPECIFIED.into(),
        false => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(from).or_else(|_| UdpSocket::bind((any, 0)))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(RESEND_AFTER))?;
    Ok(socket)
}

fn read_http(stream: &mut TcpStream) -> Result<AnnounceOutcome, SimulationError> {
    let (mut reply, mut chunk) = (Vec::with_capacity(1024), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).map_err(failed("receiving a reply"))?;
        reply.extend_from_slice(&chunk[..count]);
        if let Some(found) = HttpReply::find(&reply)? {
            return match reply.starts_with(b"HTTP/1.1 200") {
                true => reply::read_body(&reply[found.body_start..found.length]),
                false => Err(SimulationError::not_a_reply(&reply)),
            };
        }
        if count == 0 || reply.len() > REPLY_BYTES_MAX {
            return Err(SimulationError::not_a_reply(&reply));
        }
    }
}

/// Sends a packet, again if need be, until one with the same transaction arrives.
fn exchange(socket: &UdpSocket, packet: &[u8]) -> Result<Vec<u8>, SimulationError> {
    let transaction = packet.get(12..16).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let mut reply = vec![0; 4096];
    let watch = Stopwatch::start();
    while watch.elapsed() < TIMEOUT {
        // The socket reports the error of an earlier packet here.
        let _ = socket.send(packet);
        match socket.recv(&mut reply) {
            Ok(length) => {
                let found = action_and_transaction(&reply[..length]).map(|(_, transaction)| transaction);
                if found.is_some() && found == transaction {
                    reply.truncate(length);
                    return Ok(reply);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // Nothing listens at present.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Err(SimulationError::Timeout { waited_s: TIMEOUT.as_secs(), in_flight: 1 })
}
