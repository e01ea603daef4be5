//! Announce URLs of a user.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use domain::Passkey;

use crate::config::Tracker;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnounceUrls {
    pub https: Vec<String>,
    pub http: Vec<String>,
    /// BEP 15, with the passkey by BEP 41.
    pub udp: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server listens on every address or on a port chosen at start ({listening}), so it is unknown how \
     clients reach it: add --base, such as --base http://tracker.example.org:6969"
)]
pub struct NoReachableAddress {
    listening: String,
}

impl AnnounceUrls {
    pub fn of_listeners(tracker: &Tracker, passkey: Passkey) -> Result<Self, NoReachableAddress> {
        let urls_of = |scheme: Scheme, addresses: &[SocketAddr]| -> Vec<String> {
            let reachable = addresses.iter().filter(|a| a.port() != 0 && !a.ip().is_unspecified());
            reachable.map(|address| format!("{scheme}://{address}{}", path(passkey))).collect()
        };
        let urls = AnnounceUrls {
            https: urls_of(Scheme::Https, &tracker.https_addr),
            http: urls_of(Scheme::Http, &tracker.http_addr),
            udp: urls_of(Scheme::Udp, &tracker.udp_addr),
        };
        if urls.is_empty() {
            let all = tracker.https_addr.iter().chain(&tracker.http_addr).chain(&tracker.udp_addr);
            let listening = all.map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(NoReachableAddress { listening });
        }
        Ok(urls)
    }

    /// For an HTTP(S) base also the UDP ports of the same host, which an HTTP proxy does not hide.
    pub fn of_base(base: &BaseUrl, tracker: &Tracker, passkey: Passkey) -> Self {
        let mut urls = AnnounceUrls::default();
        let own = format!("{base}{}", path(passkey));
        match base.scheme {
            Scheme::Https => urls.https.push(own),
            Scheme::Http => urls.http.push(own),
            Scheme::Udp => {
                urls.udp.push(own);
                return urls;
            }
        }
        // A loopback listener is not reachable under the host of the base.
        let is_open = |address: &&SocketAddr| address.port() != 0 && !address.ip().is_loopback();
        let mut ports: Vec<u16> = tracker.udp_addr.iter().filter(is_open).map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        urls.udp = ports.iter().map(|port| format!("udp://{}:{port}{}", base.host, path(passkey))).collect();
        urls
    }

    /// HTTPS first, UDP last.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.https.iter().chain(&self.http).chain(&self.udp).map(String::as_str)
    }

    fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// `announce` comes last: clients derive the scrape URL by replacing it in the last segment of the path.
fn path(passkey: Passkey) -> String {
    format!("/{passkey}/announce")
}

/// The scrape URL as clients derive it (BEP 48): the last segment of the path must begin with `announce`.
pub fn scrape_url(announce_url: &str) -> Option<String> {
    let (before, last) = announce_url.rsplit_once('/')?;
    Some(format!("{before}/scrape{}", last.strip_prefix("announce")?))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Https,
    Http,
    Udp,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
            Scheme::Udp => "udp",
        })
    }
}

/// `https://tracker.example.org`, with an optional port and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    /// A name or an address; IPv6 in brackets.
    host: String,
    port: Option<u16>,
    /// Empty, or starting with a slash and not ending in one.
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a URL such as https://tracker.example.org, http://203.0.113.5:6969 or udp://[2001:db8::5]:6969"
)]
pub struct NotABaseUrl;

impl FromStr for BaseUrl {
    type Err = NotABaseUrl;

    fn from_str(text: &str) -> Result<Self, NotABaseUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(NotABaseUrl)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            "udp" => Scheme::Udp,
            _ => return Err(NotABaseUrl),
        };
        let is_plain = |c: char| c.is_ascii_graphic() && !"?#@\"<>\\^`{|}".contains(c);
        if !rest.chars().all(is_plain) {
            return Err(NotABaseUrl);
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (host, port) = split_authority(authority)?;
        if scheme == Scheme::Udp && port.is_none() {
            return Err(NotABaseUrl);
        }
        // A complete announce URL is accepted: its prefix is the base.
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/announce").unwrap_or(path);
        Ok(BaseUrl { scheme, host: host.to_owned(), port, path: path.to_owned() })
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_authority(authority: &str) -> Result<(&str, Option<u16>), NotABaseUrl> {
    let end_of_host = if authority.starts_with('[') {
        authority.find(']').ok_or(NotABaseUrl)? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, rest) = authority.split_at(end_of_host);
    let is_host = match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains(['[', ']']),
    };
    if !is_host {
        return Err(NotABaseUrl);
    }
    let port = match rest.strip_prefix(':') {
        Some(digits) => Some(digits.parse().ok().filter(|port| *port != 0).ok_or(NotABaseUrl)?),
        None if rest.is_empty() => None,
        None => return Err(NotABaseUrl),
    };
    Ok((host, port))
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passkey() -> Passkey {
        "0123abcd".parse().unwrap()
    }

    #[test]
    fn listeners_give_a_url_for_each_address() {
        let urls = AnnounceUrls::of_listeners(&Tracker::default(), passkey()).unwrap();
        let all: Vec<&str> = urls.iter().collect();
        assert_eq!(
            all,
            [
                "http://127.0.0.1:6969/0123abcd/announce",
                "http://[::1]:6969/0123abcd/announce",
                "udp://127.0.0.1:6969/0123abcd/announce",
                "udp://[::1]:6969/0123abcd/announce",
            ]
        );
    }

    /// Regression: clients could derive no scrape URL from `/announce/<passkey>`.
    #[test]
    fn t1_clients_can_derive_the_scrape_url() {
        let urls = AnnounceUrls::of_listeners(&Tracker::default(), passkey()).unwrap();
        assert_eq!(scrape_url(&urls.http[0]).as_deref(), Some("http://127.0.0.1:6969/0123abcd/scrape"));
        assert_eq!(scrape_url("http://h/announce?passkey=0").as_deref(), Some("http://h/scrape?passkey=0"));
        assert_eq!(scrape_url("http://h/announce/0123abcd"), None);
    }

    #[test]
    fn wildcard_addresses_require_a_base() {
        let everywhere = vec!["0.0.0.0:6969".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
        let tracker = Tracker { http_addr: everywhere, udp_addr: Vec::new(), ..Tracker::default() };
        let refusal = AnnounceUrls::of_listeners(&tracker, passkey()).unwrap_err().to_string();
        assert!(refusal.contains("0.0.0.0:6969, 127.0.0.1:0"), "{refusal}");
        assert!(refusal.contains("--base"), "{refusal}");
    }

    #[test]
    fn an_http_base_includes_the_udp_port() {
        let base = "HTTPS://tracker.example.org/site/announce".parse().unwrap();
        let tracker = Tracker { udp_addr: vec!["0.0.0.0:6969".parse().unwrap()], ..Tracker::default() };
        let urls = AnnounceUrls::of_base(&base, &tracker, passkey());
        let all: Vec<&str> = urls.iter().collect();
        assert_eq!(
            all,
            [
                "https://tracker.example.org/site/0123abcd/announce",
                "udp://tracker.example.org:6969/0123abcd/announce",
            ]
        );
    }

    #[test]
    fn a_udp_base_is_the_only_url() {
        let base = "udp://[2001:db8::5]:80".parse().unwrap();
        let urls = AnnounceUrls::of_base(&base, &Tracker::default(), passkey());
        assert_eq!(urls.iter().collect::<Vec<_>>(), ["udp://[2001:db8::5]:80/0123abcd/announce"]);
    }

    #[test]
    fn invalid_bases_are_refused() {
        let refused = [
            "tracker.example.org",
            "ftp://host",
            "http://",
            "http://:80",
            "http://host:0",
            "http://host:99999",
            "http://host:80x",
            "http://user@host",
            "http://host/?a=b",
            "http://ho st",
            "http://[::1",
            "http://[::1]x",
            "http://[host]",
            "udp://host",
        ];
        for text in refused {
            assert_eq!(text.parse::<BaseUrl>(), Err(NotABaseUrl), "{text}");
        }
    }
}
