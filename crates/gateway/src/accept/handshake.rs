//! The handshake of RFC 6455, and the check of the origin.

use http::header::{
    CONNECTION, HOST, HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request};
use wire::websocket::accept_key;

use crate::counters::UpgradeRefusal;

/// The subprotocol that is supported.
const JSON: &str = "centrifuge-json";
/// The subprotocol of SDKs in protobuf mode.
const PROTOBUF: &str = "centrifuge-protobuf";

/// The subprotocols that a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    Nothing,
    Json,
    /// Protobuf and not JSON. Its SDKs reconnect for ever after a refused upgrade, but not after a close with 3501:
    /// so the upgrade is accepted, and the connection closed.
    Protobuf,
}

impl Offered {
    /// The subprotocol to answer with.
    pub(super) fn answer(self) -> Option<&'static str> {
        match self {
            Offered::Nothing => None,
            Offered::Json => Some(JSON),
            Offered::Protobuf => Some(PROTOBUF),
        }
    }
}

/// The value of `Sec-WebSocket-Accept`.
pub(super) fn accept<B>(request: &Request<B>) -> Result<HeaderValue, UpgradeRefusal> {
    let headers = request.headers();
    let is_handshake = request.method() == Method::GET
        && has_token(headers, &CONNECTION, "upgrade")
        && has_token(headers, &UPGRADE, "websocket")
        && only(headers, &SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = only(headers, &SEC_WEBSOCKET_KEY).filter(|_| is_handshake);
    key.and_then(|key| accept_key(key.as_bytes()))
        .and_then(|accept| HeaderValue::try_from(accept).ok())
        .ok_or(UpgradeRefusal::NotAWebSocket)
}

/// Refused if only unknown subprotocols are offered.
pub(super) fn offered(headers: &HeaderMap) -> Result<Offered, UpgradeRefusal> {
    let offers = |name| has_token(headers, &SEC_WEBSOCKET_PROTOCOL, name);
    match headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        false => Ok(Offered::Nothing),
        true if offers(JSON) => Ok(Offered::Json),
        true if offers(PROTOBUF) => Ok(Offered::Protobuf),
        true => Err(UpgradeRefusal::Protocol),
    }
}

/// Refuses pages of other origins, except those in `allowed`. An origin equal to `Host` is the site itself.
pub(super) fn check_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), UpgradeRefusal> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let origin =
        only(headers, &ORIGIN).and_then(|origin| origin.to_str().ok()).ok_or(UpgradeRefusal::Origin)?;
    let host = only(headers, &HOST).and_then(|host| host.to_str().ok());
    let is_own = origin.split_once("://").is_some_and(|(scheme, place)| {
        matches!(scheme, "http" | "https") && host.is_some_and(|host| host.eq_ignore_ascii_case(place))
    });
    let is_named = allowed.iter().any(|named| named.eq_ignore_ascii_case(origin));
    if is_own || is_named { Ok(()) } else { Err(UpgradeRefusal::Origin) }
}

/// A header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() { None } else { first }
}

/// Whether a comma-separated list contains this token.
fn has_token(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|word| word.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::get("/connection/websocket");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    const GOOD: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn the_handshake_of_the_rfc_is_answered_as_it_says() {
        assert_eq!(accept(&request(&GOOD)).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_not_a_handshake_is_refused() {
        for (permit, wrong) in [(0, "close"), (1, "h2c"), (2, "8"), (3, "short"), (3, "")] {
            let mut headers = GOOD;
            headers[permit].1 = wrong;
            assert_eq!(accept(&request(&headers)).unwrap_err(), UpgradeRefusal::NotAWebSocket, "{wrong}");
        }
        for missing in 0..GOOD.len() {
            let headers: Vec<_> =
                GOOD.into_iter().enumerate().filter(|(permit, _)| *permit != missing).collect();
            let headers: Vec<_> = headers.into_iter().map(|(_, header)| header).collect();
            assert!(accept(&request(&headers)).is_err());
        }
        let twice = [&GOOD[..], &[GOOD[3]]].concat();
        assert!(accept(&request(&twice)).is_err());
        let mut posted = request(&GOOD);
        *posted.method_mut() = Method::POST;
        assert!(accept(&posted).is_err());
    }

    #[test]
    fn json_is_preferred_among_what_is_offered() {
        let offered = |value: &str| offered(request(&[("sec-websocket-protocol", value)]).headers());
        assert_eq!(offered("centrifuge-protobuf, centrifuge-json"), Ok(Offered::Json));
        assert_eq!(offered("centrifuge-protobuf"), Ok(Offered::Protobuf));
        assert_eq!(offered("mqtt"), Err(UpgradeRefusal::Protocol));
        assert_eq!(super::offered(&HeaderMap::new()), Ok(Offered::Nothing));
    }

    #[test]
    fn pages_of_other_sites_are_refused_and_programs_are_not_asked() {
        let allowed = ["https://pt.example.com".to_owned()];
        let check = |origins: &[&str]| {
            let mut headers = vec![("host", "tracker.example.com:8080")];
            headers.extend(origins.iter().map(|origin| ("origin", *origin)));
            check_origin(request(&headers).headers(), &allowed).is_ok()
        };
        assert!(check(&[]));
        assert!(check(&["https://pt.example.com"]) && check(&["HTTPS://PT.example.com"]));
        assert!(check(&["http://tracker.example.com:8080"]) && check(&["https://tracker.example.com:8080"]));
        for wrong in [
            "https://evil.example.com",
            "https://pt.example.com.evil.com",
            "http://pt.example.com",
            "null",
            "",
            "http://tracker.example.com",
            "file://tracker.example.com:8080",
        ] {
            assert!(!check(&[wrong]), "{wrong}");
        }
        assert!(!check(&["https://pt.example.com", "https://evil.example.com"]));
    }
}
