//! Who asks: the address behind proxies, the key or the session, what it may do, and how much.
//!
//! Who sends a key is judged by it alone. Who sends none may be signed in: then a cookie says who they are, and because a
//! browser sends that by itself, whatever changes something needs a word of the page besides it (`X-CSRF-Token`).

use std::net::IpAddr;
use std::sync::Arc;

use access::keys::{Authenticated, KeyId, Scope};
use access::{Session, SessionSecret};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use domain::UserId;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method};
use tracker::limits::network_of;

use crate::problem::Problem;
use crate::rate_limit::RateLimit;
use crate::session::cookie;
use crate::settings::SiteLimits;
use crate::site::Site;

/// Where keys are sent, besides `Authorization: Bearer`.
const API_KEY: &str = "x-api-key";
/// Where pages say their word.
const CSRF: &str = "x-csrf-token";

/// The address that asks, behind whatever proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// How much each key and each address has asked lately.
#[derive(Debug)]
pub struct Callers {
    /// By key.
    pub by_key: RateLimit<KeyId>,
    /// By address; an IPv6 network counts as one.
    pub by_address: RateLimit<IpAddr>,
    /// By person, of what they do for themselves.
    pub by_user: RateLimit<UserId>,
    /// Wrong keys at the sign-in, by address.
    pub wrong_keys: RateLimit<IpAddr>,
}

/// What one person may ask for themselves each second, with all their devices: a heartbeat comes every 30 s.
const REQUESTS_PER_USER_PER_S: u32 = 2;

/// Wrong keys that an address may try each minute to sign in.
const WRONG_KEYS_PER_MINUTE: u32 = 5;

impl Callers {
    /// Nobody has asked yet.
    pub fn new(limits: &SiteLimits) -> Callers {
        Callers {
            by_key: RateLimit::new(limits.requests_per_key_per_s),
            by_address: RateLimit::new(limits.requests_per_address_per_s),
            by_user: RateLimit::new(REQUESTS_PER_USER_PER_S),
            wrong_keys: RateLimit::per_minute(WRONG_KEYS_PER_MINUTE),
        }
    }

    /// Counts a request of an address.
    pub fn check_address(&self, ip: IpAddr, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_address.check(&network_of(ip), now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "from this address"))
    }

    /// Counts a request of a person.
    pub fn check_user(&self, user: UserId, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_user.check(&user, now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "of this person"))
    }

    /// Counts a request with a key.
    pub fn check_key(&self, key: &KeyId, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_key.check(key, now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "with this key"))
    }
}

/// What a group of routes asks of its callers.
#[derive(Clone)]
pub struct Guard {
    /// The site.
    pub site: Arc<Site>,
    /// What their key must be good for.
    pub needs: Scope,
}

/// Whoever asks, and how they showed who they are.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key, and what it may do.
    pub who: Authenticated,
    /// The session, unless the key itself was sent.
    pub signed_in: Option<SignedIn>,
}

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// What their browser keeps.
    pub secret: SessionSecret,
    /// What is known of it.
    pub session: Session,
}

/// Lets a request through if its key may do what the route needs. Whose it is, is told to the handler.
pub async fn require(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let site = &guard.site;
    let caller = site.identify(request.headers()).await?.ok_or_else(|| site.unauthorized())?;
    let who = caller.who;
    if !who.scopes.allow(guard.needs) {
        site.counters.forbidden.increment();
        return Err(Problem::forbidden(guard.needs.as_str()));
    }
    if let Some(signed_in) = &caller.signed_in {
        site.check_page(signed_in, request.method(), request.headers())?;
    }
    site.callers.check_key(&who.key_id, site.parts.clock.now_ms())?;
    request.extensions_mut().insert(who);
    Ok(next.run(request).await)
}

impl Site {
    /// Who asks, if they showed it.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        match credentials(headers) {
            Credentials::Key(key) => {
                Ok(self.parts.keys.authenticate(key).map(|who| Caller { who, signed_in: None }))
            }
            Credentials::Conflicting => Ok(None),
            Credentials::Nothing => self.signed_in(headers).await,
        }
    }

    /// Who is signed in and whose key still works.
    async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        let Some(secret) = cookie::read(headers) else { return Ok(None) };
        let found = self.parts.sessions.find(&secret, self.parts.clock.now_ms()).await?;
        let Some(session) = found else { return Ok(None) };
        let who = self.parts.keys.working(session.key_id);
        Ok(who.map(|who| Caller { who, signed_in: Some(SignedIn { secret, session }) }))
    }

    /// Refuses what a page of somebody else may have made a browser send.
    fn check_page(&self, signed_in: &SignedIn, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        if method.is_safe() {
            return Ok(());
        }
        let mut body = headers.get_all(CSRF).iter();
        let is_ours = match (body.next(), body.next()) {
            (Some(body), None) => body.to_str().is_ok_and(|body| signed_in.secret.allows(body)),
            _ => false,
        };
        if !is_ours {
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

/// For routes that are about the session itself: no key opens them.
impl FromRequestParts<Arc<Site>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Caller, Problem> {
        let caller = site.identify(&parts.headers).await?.ok_or_else(|| site.unauthorized())?;
        let signed_in = caller.signed_in.as_ref().ok_or_else(|| site.unauthorized())?;
        site.check_page(signed_in, &parts.method, &parts.headers)?;
        site.callers.check_key(&caller.who.key_id, site.parts.clock.now_ms())?;
        Ok(caller)
    }
}

/// What a request says about keys.
#[derive(Debug, PartialEq, Eq)]
enum Credentials<'h> {
    /// One key.
    Key(&'h str),
    /// Two that differ, or what is no text: none.
    Conflicting,
    /// Nothing.
    Nothing,
}

/// The key that was sent. Two different ones are none.
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

    fn presented_in(lines: &[(&'static str, &'static str)]) -> Option<String> {
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
    fn w3_a_key_comes_in_either_header_and_two_that_differ_are_none() {
        assert_eq!(presented_in(&[("x-api-key", "k1")]).as_deref(), Some("k1"));
        assert_eq!(presented_in(&[("authorization", "bearer k1")]).as_deref(), Some("k1"));
        assert_eq!(
            presented_in(&[("authorization", "Bearer k1"), ("x-api-key", "k1")]).as_deref(),
            Some("k1")
        );
        assert_eq!(presented_in(&[("authorization", "Bearer k1"), ("x-api-key", "k2")]), None);
        assert_eq!(presented_in(&[("x-api-key", "k1"), ("x-api-key", "k2")]), None);
        assert_eq!(presented_in(&[("authorization", "Bearer k1"), ("authorization", "Bearer k2")]), None);
        assert_eq!(presented_in(&[("authorization", "Basic k1")]), None);
        assert_eq!(presented_in(&[]), None);
        let unreadable = HeaderMap::from_iter([(
            HeaderName::from_static(API_KEY),
            HeaderValue::from_bytes(b"\xff").unwrap(),
        )]);
        assert_eq!(
            credentials(&unreadable),
            Credentials::Conflicting,
            "a cookie does not stand in for a key that is none"
        );
        assert_eq!(credentials(&HeaderMap::new()), Credentials::Nothing);
    }
}
