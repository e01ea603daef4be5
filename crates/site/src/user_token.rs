//! Authentication of members by their presence token, as for a connection.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use crate::problem::Problem;
use crate::site::Site;

/// Middleware: requires a valid token and passes the identity to the handler.
pub async fn require(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let refused = || {
        site.counters.unauthorized.increment();
        let detail = "a valid user token is needed, as for a connection: send it as Authorization: Bearer; the site issues it, \
                      rollcall token makes one for tests; check that it has not expired";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    };
    let token = token_in(request.headers()).ok_or_else(refused)?;
    let gateway = crate::api::gateway_of(&site)?;
    let identity = gateway.tokens.identify(token).map_err(|_| refused())?;
    site.callers.check_user(identity.user, site.parts.clock.now_ms())?;
    if gateway.hub.users.is_disabled(identity.user) {
        site.counters.forbidden.increment();
        return Err(Problem::user_disabled());
    }
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

/// The token, unless several were sent.
fn token_in(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = all.next()?.to_str().ok()?.split_once(' ')?;
    (all.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| token.trim())
}
