//! A person who asks for themselves: their token, as for a connection, and how much they may ask.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use crate::problem::Problem;
use crate::site::Site;

/// Lets a request through if it carries a good token. Whose it is, is told to the handler.
pub async fn require(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let refused = || {
        site.counters.unauthorized.increment();
        let detail = "a person's token is needed, as for a connection: send it as Authorization: Bearer; your site makes it, \
                      and rollcall token makes one to try; a token that has run out is none";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    };
    let token = token_in(request.headers()).ok_or_else(refused)?;
    let gateway = crate::api::gateway_of(&site)?;
    let person = gateway.tokens.identify(token).map_err(|_| refused())?;
    site.callers.check_user(person.user, site.parts.clock.now_ms())?;
    if gateway.hub.is_disabled(person.user) {
        site.counters.forbidden.increment();
        return Err(Problem::user_disabled());
    }
    request.extensions_mut().insert(person);
    Ok(next.run(request).await)
}

/// The one token that was sent.
fn token_in(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = all.next()?.to_str().ok()?.split_once(' ')?;
    (all.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| token.trim())
}
