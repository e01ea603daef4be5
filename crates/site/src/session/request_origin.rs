//! Scheme, host and origin of a request.
//!
//! Scheme and host come from a trusted proxy (`site.trusted_proxies`) if there is one. The origin is set by the browser and
//! cannot be forged by a page; an `https` origin shows that the browser used HTTPS, whatever proxies are in between.

use std::net::IpAddr;

use http::header::{FORWARDED, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::settings::SiteSettings;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOrigin {
    /// Whether the browser used HTTPS, by TLS, trusted proxy or origin.
    pub secure: bool,
    /// As `secure`, without the origin: this server's TLS, or a trusted proxy.
    pub over_https: bool,
    /// Host and port of the request.
    host: Option<String>,
}

impl RequestOrigin {
    /// `from` is the address of the connection.
    pub fn of(headers: &HeaderMap, from: IpAddr, settings: &SiteSettings) -> RequestOrigin {
        let is_proxy = settings.proxies.is_trusted(from);
        RequestOrigin::read(headers, is_proxy, settings.tls.is_some())
    }

    fn read(headers: &HeaderMap, is_proxy: bool, is_tls: bool) -> RequestOrigin {
        let forwarded_proto = if is_proxy { proto_of(headers) } else { None };
        let forwarded = last_of(headers, &FORWARDED_HOST).filter(|_| is_proxy);
        let host = forwarded.or_else(|| last_of(headers, &HOST));
        let over_https = is_tls || forwarded_proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
        RequestOrigin {
            secure: over_https || is_https_page(headers),
            over_https,
            host: host.map(str::to_ascii_lowercase),
        }
    }

    /// Whether no page of another origin sent the request. Programs other than browsers send no origin and pass.
    pub fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        let mut sites = headers.get_all(&FETCH_SITE).iter().peekable();
        if sites.peek().is_some() {
            return sites.all(|site| site == "same-origin" || site == "none");
        }
        headers
            .get_all(ORIGIN)
            .iter()
            .all(|origin| origin.to_str().is_ok_and(|origin| self.matches_host(origin)))
    }

    fn matches_host(&self, origin: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        let default_port = match scheme {
            "https" => ":443",
            "http" => ":80",
            _ => return false,
        };
        let plain = |authority: &str| {
            let lower = authority.to_ascii_lowercase();
            lower.strip_suffix(default_port).map(str::to_owned).unwrap_or(lower)
        };
        self.host.as_ref().is_some_and(|host| plain(host) == plain(authority))
    }
}

/// Whether the sending page was loaded over HTTPS.
fn is_https_page(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter().peekable();
    let is_https = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https://");
    origins.peek().is_some() && origins.all(is_https)
}

/// Scheme reported by the nearest proxy.
fn proto_of(headers: &HeaderMap) -> Option<&str> {
    let of_forwarded = || {
        let hop = last_of(headers, &FORWARDED)?;
        let mut pairs = hop.split(';').filter_map(|pair| pair.split_once('='));
        let (_, proto) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("proto"))?;
        Some(proto.trim().trim_matches('"'))
    };
    last_of(headers, &FORWARDED_PROTO).or_else(of_forwarded)
}

/// Last item of the last header of a name: earlier items may be forged by the client.
fn last_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    value.rsplit(',').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_a_trusted_proxy_can_report_https() {
        for lines in [
            &[("x-forwarded-proto", "https")][..],
            &[("x-forwarded-proto", "http, HTTPS")],
            &[("forwarded", "for=1.2.3.4;proto=http, for=10.0.0.1;proto=\"https\"")],
        ] {
            assert!(RequestOrigin::read(&headers(lines), true, false).secure, "{lines:?}");
            assert!(!RequestOrigin::read(&headers(lines), false, false).secure, "{lines:?}");
        }
        let stripped = headers(&[("x-forwarded-proto", "https, http")]);
        assert!(!RequestOrigin::read(&stripped, true, false).secure, "the nearest hop counts");
        assert!(RequestOrigin::read(&HeaderMap::new(), false, true).secure);
        let from =
            |origin: &'static str| RequestOrigin::read(&headers(&[("origin", origin)]), false, false).secure;
        assert!(from("https://pt.example.com"), "behind a proxy that is not configured");
        assert!(!from("http://pt.example.com") && !from("null"));
        let both = headers(&[("origin", "https://pt.example.com"), ("origin", "http://pt.example.com")]);
        assert!(!RequestOrigin::read(&both, false, false).secure);
    }

    #[test]
    fn only_the_own_origin_is_accepted() {
        let is_ours = |lines: &[(&'static str, &'static str)]| {
            let headers = headers(lines);
            RequestOrigin::read(&headers, false, false).is_same_origin(&headers)
        };
        let host = ("host", "pt.example.com:8080");
        for lines in [
            &[host][..],
            &[host, ("origin", "http://pt.example.com:8080")],
            &[host, ("origin", "https://PT.example.com:8080")],
            &[("host", "pt.example.com"), ("origin", "https://pt.example.com")],
            &[("host", "pt.example.com:443"), ("origin", "https://pt.example.com")],
            &[host, ("sec-fetch-site", "same-origin"), ("origin", "https://behind.a.proxy")],
            &[host, ("sec-fetch-site", "none")],
        ] {
            assert!(is_ours(lines), "{lines:?}");
        }
        for lines in [
            &[host, ("origin", "https://evil.example.com")][..],
            &[host, ("origin", "http://pt.example.com")],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://pt.example.com:8080"), ("origin", "https://evil.example.com")],
            &[host, ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site"), ("origin", "http://pt.example.com:8080")],
            &[host, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[host, ("x-forwarded-host", "evil.example.com"), ("origin", "http://evil.example.com")],
        ] {
            assert!(!is_ours(lines), "{lines:?}");
        }
        let forwarded = headers(&[
            host,
            ("x-forwarded-host", "dash.example.com"),
            ("origin", "https://dash.example.com"),
        ]);
        assert!(RequestOrigin::read(&forwarded, true, false).is_same_origin(&forwarded));
    }
}
