//! The client's address behind proxies: the right-most hop that is not a trusted proxy. The first hop can be forged.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// Proxies whose forwarded client address is used.
#[derive(Clone, Debug, Default)]
pub struct ProxySettings {
    pub trusted: Vec<IpNet>,
    /// In lower case, most trusted first.
    pub forwarded_headers: Vec<String>,
    /// Whether each of their connections starts with a PROXY header.
    pub proxy_protocol: bool,
}

/// A trusted proxy forwarded something that is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy in front of this tracker forwards an address that cannot be read")]
pub struct ForwardedError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub ip: IpAddr,
    /// Whether the address itself is a trusted proxy's, so that `ip=` in the query is used. A client behind a proxy
    /// is not trusted: proxies pass its query on unchanged.
    pub is_trusted: bool,
}

/// Maps IPv4-mapped IPv6 addresses to IPv4.
pub fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An IPv6 /64 counts as one address: a single customer has all of it.
pub fn network_of(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

impl ProxySettings {
    pub fn is_trusted(&self, ip: IpAddr) -> bool {
        self.trusted.iter().any(|range| range.contains(&ip))
    }
}

pub fn client_address<'h>(
    from: IpAddr,
    headers: impl Iterator<Item = (&'h str, &'h [u8])> + Clone,
    proxies: &ProxySettings,
) -> Result<Client, ForwardedError> {
    if !proxies.is_trusted(from) {
        return Ok(Client { ip: from, is_trusted: false });
    }
    for name in &proxies.forwarded_headers {
        let values = headers.clone().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        if let Some(ip) = rightmost_untrusted(values.map(|(_, value)| value), name, proxies)? {
            return Ok(Client { ip, is_trusted: proxies.is_trusted(ip) });
        }
    }
    Ok(Client { ip: from, is_trusted: true })
}

/// The right-most hop that is not a trusted proxy; the left-most one if all are; none without any hop.
fn rightmost_untrusted<'h>(
    values: impl Iterator<Item = &'h [u8]>,
    name: &str,
    proxies: &ProxySettings,
) -> Result<Option<IpAddr>, ForwardedError> {
    let mut found = None;
    // Hops are ordered across all headers of the name, so the last match is the right-most.
    let mut leftmost = None;
    for hop in values.flat_map(|value| value.split(|byte| *byte == b',')) {
        let ip = read_hop(hop, name);
        leftmost = leftmost.or(Some(ip));
        match ip {
            Some(ip) if proxies.is_trusted(ip) => {}
            ip => found = Some(ip),
        }
    }
    match found.or(leftmost) {
        None => Ok(None),
        Some(ip) => ip.map(Some).ok_or(ForwardedError),
    }
}

/// Reads `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]:80`, and of a `Forwarded` header (RFC 7239) the `for=` of each hop.
fn read_hop(hop: &[u8], name: &str) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim();
    let address = if name.eq_ignore_ascii_case("forwarded") {
        let (_, value) = text
            .split(';')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| key.trim().eq_ignore_ascii_case("for"))?;
        value.trim().trim_matches('"')
    } else {
        text
    };
    let without_port = || address.parse::<SocketAddr>().map(|address| address.ip()).ok();
    let in_brackets = || address.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.parse().ok().or_else(without_port).or_else(in_brackets).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(headers: &[&str]) -> ProxySettings {
        ProxySettings {
            trusted: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            forwarded_headers: headers.iter().map(|name| (*name).to_owned()).collect(),
            proxy_protocol: false,
        }
    }

    fn client(from: &str, headers: &[(&'static str, &'static str)]) -> Result<String, ForwardedError> {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        client_address(from.parse().unwrap(), headers, &proxies(&["x-forwarded-for", "forwarded"]))
            .map(|client| client.ip.to_string())
    }

    #[test]
    fn headers_of_untrusted_senders_are_ignored() {
        assert_eq!(client("1.2.3.4", &[("X-Forwarded-For", "9.9.9.9")]).unwrap(), "1.2.3.4");
    }

    #[test]
    fn the_rightmost_untrusted_hop_counts_never_the_first() {
        let forged = [("X-Forwarded-For", "6.6.6.6, 1.2.3.4, 10.0.0.7")];
        assert_eq!(client("10.0.0.1", &forged).unwrap(), "1.2.3.4");
        let in_two_lines = [("X-Forwarded-For", "6.6.6.6"), ("x-forwarded-for", "1.2.3.4,10.0.0.7")];
        assert_eq!(client("10.0.0.1", &in_two_lines).unwrap(), "1.2.3.4");
    }

    #[test]
    fn ports_brackets_and_mapped_addresses_are_read() {
        for (hop, ip) in [
            ("1.2.3.4:5678", "1.2.3.4"),
            ("[2001:db8::1]:5678", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", hop)]).unwrap(), ip);
        }
        let standard = [("Forwarded", "for=6.6.6.6, for=\"[2001:db8::7]:99\";proto=https, for=10.0.0.3")];
        assert_eq!(client("fd00::1", &standard).unwrap(), "2001:db8::7");
    }

    #[test]
    fn unreadable_hops_are_refused() {
        assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", "1.2.3.4, unknown")]), Err(ForwardedError));
        assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", "unknown, 1.2.3.4")]).unwrap(), "1.2.3.4");
    }

    #[test]
    fn a_proxy_without_a_header_is_the_client() {
        assert_eq!(client("10.0.0.1", &[]).unwrap(), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", "10.0.0.9, 10.0.0.8")]).unwrap(), "10.0.0.9");
    }
}
