//! The PROXY header of load balancers, versions 1 (text) and 2 (binary).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Version 1 has up to 107 bytes; version 2 has 16 and its stated length.
pub const HEADER_MAX: usize = 536;

const SIGNATURE_V2: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// In bytes.
    pub length: usize,
    /// None for the proxy's own connections (health checks).
    pub client: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    Complete(Header),
    Partial,
    Invalid,
}

/// Reads exactly the header: TLS may follow. Returns the client's address, or `from` for the proxy's own connections.
pub async fn read(stream: &mut TcpStream, from: SocketAddr) -> Option<SocketAddr> {
    let mut buffer = [0; HEADER_MAX];
    let mut seen = 0;
    loop {
        let peeked = stream.peek(&mut buffer).await.ok()?;
        match parse(&buffer[..peeked]) {
            Parsed::Complete(header) => {
                stream.read_exact(&mut buffer[..header.length]).await.ok()?;
                return Some(header.client.unwrap_or(from));
            }
            Parsed::Invalid => return None,
            // A closed connection keeps returning the same bytes.
            Parsed::Partial if peeked == 0 => return None,
            Parsed::Partial if peeked == seen => tokio::time::sleep(Duration::from_millis(5)).await,
            Parsed::Partial => seen = peeked,
        }
    }
}

/// Reads the header at the start of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed {
    let starts_v2 = bytes.iter().zip(SIGNATURE_V2).all(|(a, b)| a == b);
    if starts_v2 && bytes.len() < SIGNATURE_V2.len() {
        Parsed::Partial
    } else if starts_v2 {
        parse_v2(bytes)
    } else {
        parse_v1(bytes)
    }
}

fn parse_v1(bytes: &[u8]) -> Parsed {
    const LONGEST: usize = 107;
    let prefix = b"PROXY ";
    if !bytes.iter().zip(prefix).all(|(a, b)| a == b) {
        return Parsed::Invalid;
    }
    let Some(end) = bytes.windows(2).take(LONGEST).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LONGEST { Parsed::Partial } else { Parsed::Invalid };
    };
    match std::str::from_utf8(&bytes[..end]).ok().and_then(read_line) {
        Some(client) => Parsed::Complete(Header { length: end + 2, client }),
        None => Parsed::Invalid,
    }
}

/// `PROXY TCP4 source destination port port`, or `PROXY UNKNOWN …`.
fn read_line(line: &str) -> Option<Option<SocketAddr>> {
    let mut words = line.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let source: IpAddr = words.next()?.parse().ok()?;
    let _destination: IpAddr = words.next()?.parse().ok()?;
    let port: u16 = words.next()?.parse().ok()?;
    let fits = matches!((family, source), ("TCP4", IpAddr::V4(_)) | ("TCP6", IpAddr::V6(_)));
    fits.then_some(Some(SocketAddr::new(source.to_canonical(), port)))
}

fn parse_v2(bytes: &[u8]) -> Parsed {
    let Some((fixed, rest)) = bytes.split_at_checked(16) else {
        return Parsed::Partial;
    };
    let (version, command, family) = (fixed[12] >> 4, fixed[12] & 0x0f, fixed[13]);
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if version != 2 || command > 1 || 16 + length > HEADER_MAX {
        return Parsed::Invalid;
    }
    let Some(addresses) = rest.get(..length) else {
        return Parsed::Partial;
    };
    let client = match (command, family) {
        (1, 0x11) => read_v4(addresses),
        (1, 0x21) => read_v6(addresses),
        _ => Some(None),
    };
    match client {
        Some(client) => Parsed::Complete(Header { length: 16 + length, client }),
        None => Parsed::Invalid,
    }
}

fn read_v4(addresses: &[u8]) -> Option<Option<SocketAddr>> {
    let (ip, rest) = addresses.split_first_chunk::<4>()?;
    let port = rest.get(4..6)?;
    let ip = Ipv4Addr::from(*ip);
    Some(Some(SocketAddr::new(ip.into(), u16::from_be_bytes([port[0], port[1]]))))
}

fn read_v6(addresses: &[u8]) -> Option<Option<SocketAddr>> {
    let (ip, rest) = addresses.split_first_chunk::<16>()?;
    let port = rest.get(16..18)?;
    let ip = IpAddr::V6(Ipv6Addr::from(*ip)).to_canonical();
    Some(Some(SocketAddr::new(ip, u16::from_be_bytes([port[0], port[1]]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(bytes: &[u8]) -> Header {
        match parse(bytes) {
            Parsed::Complete(header) => header,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn version_1_is_read() {
        let header = complete(b"PROXY TCP4 1.2.3.4 10.0.0.1 5678 80\r\nGET / HTTP/1.1\r\n");
        assert_eq!(header, Header { length: 37, client: Some("1.2.3.4:5678".parse().unwrap()) });
        let header = complete(b"PROXY TCP6 2001:db8::1 ::1 5678 80\r\n");
        assert_eq!(header.client, Some("[2001:db8::1]:5678".parse().unwrap()));
        assert_eq!(complete(b"PROXY UNKNOWN\r\n").client, None);
    }

    #[test]
    fn version_2_is_read() {
        let mut bytes = SIGNATURE_V2.to_vec();
        bytes.extend([0x21, 0x11, 0, 12, 1, 2, 3, 4, 10, 0, 0, 1, 0x16, 0x2e, 0, 80]);
        assert_eq!(complete(&bytes), Header { length: 28, client: Some("1.2.3.4:5678".parse().unwrap()) });
        bytes[12] = 0x20;
        assert_eq!(complete(&bytes).client, None, "a health check");
    }

    #[test]
    fn every_prefix_is_partial_and_everything_else_invalid() {
        let mut v2 = SIGNATURE_V2.to_vec();
        v2.extend([0x21, 0x11, 0, 12, 1, 2, 3, 4, 10, 0, 0, 1, 0x16, 0x2e, 0, 80]);
        for whole in [b"PROXY TCP4 1.2.3.4 10.0.0.1 5678 80\r\n".to_vec(), v2] {
            for end in 0..whole.len() {
                assert_eq!(parse(&whole[..end]), Parsed::Partial, "{end} bytes");
            }
        }
        for bad in [&b"GET / HTTP/1.1\r\n"[..], b"PROXY TCP4 nonsense\r\n", b"PROXY TCP4 ::1 ::1 1 1\r\n"] {
            assert_eq!(parse(bad), Parsed::Invalid);
        }
        assert_eq!(parse(&[b"PROXY ".as_slice(), &[b'x'; 200]].concat()), Parsed::Invalid);
    }
}
