//! Types of values: endpoint URLs, origins, choices.

use access::OnVerifyFailure;
use gateway::RoomAccess;
use presence::Audience;
use serde_json::{Value as Json, json};

use super::value::{Raw, Value};

/// Empty for none. Plain HTTP only on loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpUrl(String);

impl HttpUrl {
    pub fn as_str(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

/// Without port and brackets.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

impl Value for HttpUrl {
    const EXPECTED: &'static str = "https://HOST/PATH, or http:// on loopback (requests contain a secret), without user, \
         query or fragment; or \"\" for none";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?.trim();
        let is_plain =
            text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['@', '?', '#', '"', '\\']);
        let is_allowed = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => !host_of(rest).is_empty(),
            (_, Some(rest)) => is_loopback(host_of(rest)),
            _ => text.is_empty(),
        };
        (is_plain && is_allowed).then(|| HttpUrl(text.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

/// As browsers send it: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// None if the text is not an origin.
    pub fn new(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let is_origin = !host_of(rest).is_empty() && rest.bytes().all(is_host);
        is_origin.then(|| WebOrigin(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Vec<WebOrigin> {
    const EXPECTED: &'static str = "a list of origins such as [\"https://pt.example.com\"], without a path";

    fn read(raw: &Raw) -> Option<Self> {
        raw.as_entries()?.into_iter().map(WebOrigin::new).collect()
    }

    fn to_json(&self) -> Json {
        json!(self.iter().map(WebOrigin::as_str).collect::<Vec<_>>())
    }
}

/// A choice between names.
macro_rules! choice {
    ($kind:ty, $expected:literal, [$(($name:literal, $value:expr)),+ $(,)?]) => {
        impl Value for $kind {
            const EXPECTED: &'static str = $expected;

            fn read(raw: &Raw) -> Option<Self> {
                let text = raw.as_text()?.trim();
                [$(($name, $value)),+].into_iter().find(|(name, _)| *name == text).map(|(_, value)| value)
            }

            fn to_json(&self) -> Json {
                json!([$(($name, $value)),+].into_iter().find(|(_, value)| value == self).map(|(name, _)| name))
            }
        }
    };
}

choice!(
    OnVerifyFailure,
    "\"known-only\" or \"refuse\"",
    [("known-only", OnVerifyFailure::KnownOnly), ("refuse", OnVerifyFailure::Refuse)]
);

choice!(
    Audience,
    "\"everyone\", \"friends\" or \"nobody\"",
    [("everyone", Audience::Everyone), ("friends", Audience::Friends), ("nobody", Audience::Nobody),]
);
choice!(
    RoomAccess,
    "\"everyone\" or \"token\"",
    [("everyone", RoomAccess::Everyone), ("token", RoomAccess::Token)]
);

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Option<HttpUrl> {
        HttpUrl::read(&Raw::Text(text.to_owned()))
    }

    #[test]
    fn secrets_leave_the_machine_only_over_https() {
        for good in ["", "https://pt.example.com/passkey/verify", "http://127.0.0.1:80/x", "http://[::1]:9/x"]
        {
            assert!(url(good).is_some(), "{good}");
        }
        for bad in
            ["http://pt.example.com/x", "https://", "ftp://x/y", "https://me:pw@host/x", "https://h/x?y=1"]
        {
            assert!(url(bad).is_none(), "{bad}");
        }
        assert!(url("http://127.0.0.1.example.com/").is_none());
    }

    #[test]
    fn an_origin_has_no_path() {
        assert!(WebOrigin::new("https://pt.example.com:8443").is_some());
        for bad in ["*", "pt.example.com", "https://pt.example.com/", "https://", "null"] {
            assert!(WebOrigin::new(bad).is_none(), "{bad}");
        }
    }
}
