//! Who asks: the address behind proxies, the key, what it may do, and how much.

use std::net::IpAddr;
use std::sync::Arc;

use access::keys::{Authenticated, KeyId, Scope};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use domain::UserId;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tracker::limits::network_of;

use crate::problem::Problem;
use crate::rate::RateLimit;
use crate::settings::SiteLimits;
use crate::site::Site;

/// Where keys are sent, besides `Authorization: Bearer`.
const API_KEY: &str = "x-api-key";

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
    pub by_person: RateLimit<UserId>,
}

/// What one person may ask for themselves each second, with all their devices: a heartbeat comes every 30 s.
const PERSON_PER_S: u32 = 2;

impl Callers {
    /// Nobody has asked yet.
    pub fn new(limits: &SiteLimits) -> Callers {
        Callers {
            by_key: RateLimit::new(limits.requests_per_key_per_s),
            by_address: RateLimit::new(limits.requests_per_address_per_s),
            by_person: RateLimit::new(PERSON_PER_S),
        }
    }

    /// Counts a request of an address.
    pub fn check_address(&self, ip: IpAddr, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_address.check(&network_of(ip), now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "from this address"))
    }

    /// Counts a request of a person.
    pub fn check_person(&self, user: UserId, now_ms: u64) -> Result<(), Problem> {
        let counted = self.by_person.check(&user, now_ms);
        counted.map_err(|wait_s| Problem::too_many_requests(wait_s, "of this person"))
    }

    fn check_key(&self, key: &KeyId, now_ms: u64) -> Result<(), Problem> {
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

/// Lets a request through if its key may do what the route needs. Whose it is, is told to the handler.
pub async fn require(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let site = &guard.site;
    let caller = site.identify(request.headers()).ok_or_else(|| {
        site.counters.unauthorized.increment();
        Problem::unauthorized()
    })?;
    if !caller.scopes.allow(guard.needs) {
        site.counters.forbidden.increment();
        return Err(Problem::forbidden(guard.needs.as_str()));
    }
    site.callers.check_key(&caller.key_id, site.parts.clock.now_ms())?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

impl Site {
    /// Whose key was sent, if a good one was.
    pub fn identify(&self, headers: &HeaderMap) -> Option<Authenticated> {
        self.parts.keys.authenticate(presented(headers)?)
    }
}

/// The key that was sent. Two different ones are none.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
        let Ok(value) = value.to_str() else { return Some(None) };
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| Some(key.trim()))
    });
    let mut keys = headers.get_all(API_KEY).iter().map(|value| value.to_str().ok()).chain(bearers);
    let first = keys.next()??;
    keys.all(|key| key == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presented_in(lines: &[(&'static str, &'static str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        presented(&headers).map(str::to_owned)
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
    }
}
