//! Sends announces over real sockets, one per connection, as most clients do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout;
use wire::udp::CONNECT_MAGIC;

use crate::announce::Announce;
use crate::error::SimulationError;
use crate::peer::{AnnounceOutcome, Transport};
use crate::plan::ServerAddresses;

/// Longer than the server waits for its journal, so that the outcome of most announces is known.
const TIMEOUT: Duration = Duration::from_secs(8);
const REPLY_BYTES_MAX: u64 = 64 * 1024;
/// UDP replies have no `min interval`: this fraction of the interval is used.
const MIN_INTERVAL_DIVISOR: u32 = 6;

pub(crate) async fn send(
    transport: Transport,
    announce: &Announce,
    addresses: &ServerAddresses,
) -> AnnounceOutcome {
    let sending = async {
        match transport {
            Transport::Http4(from) => {
                over_http(announce, place(&addresses.http, from.into())?, from.into()).await
            }
            Transport::Http6 => over_http(announce, place(&addresses.http, V6)?, V6).await,
            Transport::Udp4(from) => {
                over_udp(announce, place(&addresses.udp, from.into())?, from.into()).await
            }
            Transport::Udp6 => over_udp(announce, place(&addresses.udp, V6)?, V6).await,
        }
    };
    match timeout(TIMEOUT, sending).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) | Err(_) => AnnounceOutcome::Lost,
    }
}

const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// The server's address of the same address family, or any.
fn place(list: &[SocketAddr], from: IpAddr) -> Result<SocketAddr, SimulationError> {
    let same = list.iter().find(|address| address.is_ipv4() == from.is_ipv4());
    same.or(list.first())
        .copied()
        .ok_or_else(|| SimulationError::Refused("there is no such server".to_owned()))
}

/// The source address. Not every system has all loopback addresses.
fn source(from: IpAddr, server: SocketAddr) -> SocketAddr {
    match from.is_ipv4() == server.is_ipv4() {
        true => SocketAddr::new(from, 0),
        false => any_source(server),
    }
}

fn any_source(server: SocketAddr) -> SocketAddr {
    match server.is_ipv4() {
        true => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        false => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}

/// Connects from this local address.
pub(crate) async fn connect(from: IpAddr, server: SocketAddr) -> Result<TcpStream, SimulationError> {
    let socket = if server.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // If the address cannot be bound, the system chooses one.
    let _ = socket.bind(source(from, server));
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn over_http(
    announce: &Announce,
    server: SocketAddr,
    from: IpAddr,
) -> Result<AnnounceOutcome, SimulationError> {
    let mut stream = connect(from, server).await?;
    stream.write_all(announce.request(&server.to_string()).as_bytes()).await?;
    let mut reply = Vec::with_capacity(1024);
    stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply).await?;
    let body_at =
        reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(|| not_a_reply(&reply))? + 4;
    read_body(&reply[body_at..])
}

fn read_body(body: &[u8]) -> Result<AnnounceOutcome, SimulationError> {
    let value = wire::bencode::parse(body).map_err(|_| not_a_reply(body))?;
    if let Some(reason) = value.get(b"failure reason") {
        return Ok(AnnounceOutcome::Refused(
            String::from_utf8_lossy(reason.as_bytes().unwrap_or_default()).into_owned(),
        ));
    }
    let seconds = |key: &[u8]| {
        let number = value.get(key)?.as_integer()?;
        Some(Duration::from_secs(u64::try_from(number).ok()?))
    };
    let interval = seconds(b"interval").ok_or_else(|| not_a_reply(body))?;
    let min_interval = seconds(b"min interval").unwrap_or(interval / MIN_INTERVAL_DIVISOR);
    Ok(AnnounceOutcome::Accepted { interval, min_interval })
}

async fn over_udp(
    announce: &Announce,
    server: SocketAddr,
    from: IpAddr,
) -> Result<AnnounceOutcome, SimulationError> {
    let socket = match UdpSocket::bind(source(from, server)).await {
        Ok(socket) => socket,
        Err(_) => UdpSocket::bind(any_source(server)).await?,
    };
    socket.connect(server).await?;
    let transaction = announce.key;
    let mut hello = CONNECT_MAGIC.to_be_bytes().to_vec();
    hello.extend([0; 4]);
    hello.extend(transaction.to_be_bytes());
    let mut reply = vec![0; 4096];
    socket.send(&hello).await?;
    let length = socket.recv(&mut reply).await?;
    let connection =
        reply[..length].get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    let connection = connection.ok_or_else(|| not_a_reply(&reply[..length]))?;
    socket.send(&announce.packet(connection, transaction)).await?;
    let length = socket.recv(&mut reply).await?;
    read_packet(&reply[..length])
}

fn read_packet(packet: &[u8]) -> Result<AnnounceOutcome, SimulationError> {
    let number_at = |at: usize| packet.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    match (number_at(0), number_at(8)) {
        (Some(1), Some(seconds)) => {
            let interval = Duration::from_secs(seconds.into());
            Ok(AnnounceOutcome::Accepted { interval, min_interval: interval / MIN_INTERVAL_DIVISOR })
        }
        (Some(3), _) => Ok(AnnounceOutcome::Refused(String::from_utf8_lossy(&packet[8..]).into_owned())),
        _ => Err(not_a_reply(packet)),
    }
}

fn not_a_reply(bytes: &[u8]) -> SimulationError {
    SimulationError::NotAReply(String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood() {
        let accepted =
            read_body(b"d8:completei1e10:incompletei0e8:intervali30e12:min intervali5e5:peers0:e").unwrap();
        let (interval, min_interval) = (Duration::from_secs(30), Duration::from_secs(5));
        assert_eq!(accepted, AnnounceOutcome::Accepted { interval, min_interval });
        assert_eq!(read_body(b"d14:failure reason2:noe").unwrap(), AnnounceOutcome::Refused("no".to_owned()));
        assert!(read_body(b"<html>").is_err());
        let packet = [0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(read_packet(&packet).unwrap(), AnnounceOutcome::Accepted { interval, min_interval });
        assert_eq!(
            read_packet(b"\0\0\0\x03\0\0\0\x09no").unwrap(),
            AnnounceOutcome::Refused("no".to_owned())
        );
        assert!(read_packet(b"\0\0").is_err());
    }
}
