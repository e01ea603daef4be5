//! Authentication and rate limits of callers.
//!
//! A request with a key is authenticated by the key only. Without one, the session cookie counts. Browsers send cookies
//! automatically, so changes with a session also need `X-CSRF-Token`.

use std::net::IpAddr;
use std::sync::Arc;

use admin::keys::{Authenticated, KeyId, Scope};
use admin::{Session, SessionSecret};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use domain::UserId;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::problem::Problem;
use crate::rate_limit::CallerRateLimit;
use crate::session::cookie;
use crate::settings::SiteLimits;
use crate::site::Site;

/// Alternative to `Authorization: Bearer`.
const API_KEY: &str = "x-api-key";
const CSRF: &str = "x-csrf-token";

/// Address of the client, behind trusted proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// Rate limits of the site.
#[derive(Debug)]
pub struct Callers {
    pub by_key: CallerRateLimit,
    /// An IPv6 network counts as one address.
    pub by_address: CallerRateLimit,
    /// Requests with a user's token.
    pub by_user: CallerRateLimit,
    /// Wrong keys at sign-in, by address.
    pub wrong_keys: CallerRateLimit,
}

/// Requests with a user's token, from all devices; a heartbeat is sent every 30 s.
const REQUESTS_PER_USER_PER_S: u32 = 2;

/// Wrong keys per address at sign-in.
const WRONG_KEYS_PER_MINUTE: u32 = 5;

impl Callers {
    pub fn new(limits: &SiteLimits) -> Callers {
        Callers {
            by_key: CallerRateLimit::per_s(limits.requests_per_key_per_s),
            by_address: CallerRateLimit::per_s(limits.requests_per_address_per_s),
            by_user: CallerRateLimit::per_s(REQUESTS_PER_USER_PER_S),
            wrong_keys: CallerRateLimit::per_minute(WRONG_KEYS_PER_MINUTE),
        }
    }

    pub fn check_address(&self, ip: IpAddr, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_address.check(net::proxy::network_of(ip), now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "from this address"))
    }

    pub fn check_user(&self, user: UserId, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_user.check(user, now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "of this user"))
    }

    pub fn check_key(&self, key: &KeyId, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_key.check(key, now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "with this key"))
    }
}

/// Required scope of a group of routes.
#[derive(Clone)]
pub struct Guard {
    pub site: Arc<Site>,
    pub scope: Scope,
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key with its scopes.
    pub key: Authenticated,
    /// The session, unless the request has a key.
    pub signed_in: Option<SignedIn>,
}

#[derive(Clone, Debug)]
pub struct SignedIn {
    pub secret: SessionSecret,
    pub session: Session,
}

/// Middleware: requires the guard's scope and passes the key to the handler.
pub async fn require(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let site = &guard.site;
    let caller = site.identify(request.headers()).await?.ok_or_else(|| site.unauthorized())?;
    let key = caller.key;
    if !key.scopes.allow(guard.scope) {
        site.counters.forbidden.increment();
        return Err(Problem::forbidden(guard.scope.as_str()));
    }
    if let Some(signed_in) = &caller.signed_in {
        site.check_csrf(signed_in, request.method(), request.headers())?;
    }
    site.callers.check_key(&key.key_id, site.parts.clock.now_ms())?;
    request.extensions_mut().insert(key);
    Ok(next.run(request).await)
}

impl Site {
    /// The caller, by key or session; none if neither is valid.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        match credentials(headers) {
            Credentials::Key(key) => {
                Ok(self.parts.keys.authenticate(key).map(|key| Caller { key, signed_in: None }))
            }
            Credentials::Conflicting => Ok(None),
            Credentials::Nothing => self.signed_in(headers).await,
        }
    }

    /// The caller by session cookie, if the session's key is still valid.
    async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        let Some(secret) = cookie::read(headers) else { return Ok(None) };
        let found = self.parts.sessions.find(&secret, self.parts.clock.now_ms()).await?;
        let Some(session) = found else { return Ok(None) };
        let key = self.parts.keys.working(session.key_id);
        Ok(key.map(|key| Caller { key, signed_in: Some(SignedIn { secret, session }) }))
    }

    /// Requires the CSRF token for changes.
    fn check_csrf(&self, signed_in: &SignedIn, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        if method.is_safe() {
            return Ok(());
        }
        let mut tokens = headers.get_all(CSRF).iter();
        let is_valid = match (tokens.next(), tokens.next()) {
            (Some(token), None) => token.to_str().is_ok_and(|token| signed_in.secret.allows(token)),
            _ => false,
        };
        if !is_valid {
            self.counters.csrf_refused.increment();
            return Err(Problem::csrf());
        }
        Ok(())
    }

    fn unauthorized(&self) -> Problem {
        self.counters.unauthorized.increment();
        Problem::unauthorized()
    }
}

/// For the session routes, which accept a session only.
impl FromRequestParts<Arc<Site>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Caller, Problem> {
        let caller = site.identify(&parts.headers).await?.ok_or_else(|| site.unauthorized())?;
        let signed_in = caller.signed_in.as_ref().ok_or_else(|| site.unauthorized())?;
        site.check_csrf(signed_in, &parts.method, &parts.headers)?;
        site.callers.check_key(&caller.key.key_id, site.parts.clock.now_ms())?;
        Ok(caller)
    }
}

/// Keys in the headers of a request.
#[derive(Debug, PartialEq, Eq)]
enum Credentials<'h> {
    Key(&'h str),
    /// Different keys, or not text. Not authenticated.
    Conflicting,
    Nothing,
}

/// Different keys in one request are refused.
fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
        let Ok(value) = value.to_str() else { return Some(None) };
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| Some(key.trim()))
    });
    let mut keys = headers.get_all(API_KEY).iter().map(|value| value.to_str().ok()).chain(bearers);
    match keys.next() {
        None => Credentials::Nothing,
        Some(Some(first)) if keys.all(|key| key == Some(first)) => Credentials::Key(first),
        Some(_) => Credentials::Conflicting,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn key_in(lines: &[(&'static str, &'static str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        match credentials(&headers) {
            Credentials::Key(key) => Some(key.to_owned()),
            Credentials::Conflicting | Credentials::Nothing => None,
        }
    }

    #[test]
    fn w3_a_key_is_read_from_either_header_and_different_keys_are_refused() {
        assert_eq!(key_in(&[("x-api-key", "k1")]).as_deref(), Some("k1"));
        assert_eq!(key_in(&[("authorization", "bearer k1")]).as_deref(), Some("k1"));
        assert_eq!(key_in(&[("authorization", "Bearer k1"), ("x-api-key", "k1")]).as_deref(), Some("k1"));
        assert_eq!(key_in(&[("authorization", "Bearer k1"), ("x-api-key", "k2")]), None);
        assert_eq!(key_in(&[("x-api-key", "k1"), ("x-api-key", "k2")]), None);
        assert_eq!(key_in(&[("authorization", "Bearer k1"), ("authorization", "Bearer k2")]), None);
        assert_eq!(key_in(&[("authorization", "Basic k1")]), None);
        assert_eq!(key_in(&[]), None);
        let unreadable = HeaderMap::from_iter([(
            HeaderName::from_static(API_KEY),
            HeaderValue::from_bytes(b"\xff").unwrap(),
        )]);
        assert_eq!(
            credentials(&unreadable),
            Credentials::Conflicting,
            "the cookie is not used when a malformed key is sent"
        );
        assert_eq!(credentials(&HeaderMap::new()), Credentials::Nothing);
    }
}
