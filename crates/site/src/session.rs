//! Operator sessions: a key is exchanged for a cookie.
//!
//! # Layout
//!
//! - [`cookie`]: the session cookie
//! - [`request_origin`]: scheme, host and origin of a request
//!
//! # Guarantees
//!
//! - The cookie is `HttpOnly` and `SameSite=Strict`. After a sign-in over HTTPS it is `Secure` with the prefix `__Host-`,
//!   so that no other host of the domain can set it.
//! - Only a page of this server can sign in. Five wrong keys a minute block an address, not a key.
//! - A sign-in is in the audit trail before it is acknowledged. A sign-out takes effect even if it cannot be recorded.
//! - A session has the current scopes of its key and ends when the key is revoked.

use std::sync::Arc;

use admin::audit::{Record, Subject, actor_of_key};
use admin::keys::{Authenticated, Scope};
use admin::{Session, SessionSecret};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use net::proxy::network_of;
use serde::{Deserialize, Serialize};
use tracing::warn;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::api::{Change, recorded};
use crate::app::Routes;
use crate::auth::{Caller, ClientAddress, SignedIn};
use crate::extract::JsonBody;
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub mod cookie;
pub mod request_origin;

use request_origin::RequestOrigin;

/// Routes without a required scope.
pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(begin, show, end))
}

/// Sign-in with a key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    #[schema(example = "rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567", max_length = 1024)]
    key: String,
}

/// The session of an operator.
#[derive(Serialize, ToSchema)]
struct OperatorSession {
    /// Key of the sign-in.
    #[schema(example = "1a2b3c4d")]
    key_id: String,
    /// Name of the key.
    name: String,
    /// `verify`, `read`, `admin`.
    #[schema(example = json!(["admin"]))]
    scopes: Vec<String>,
    /// End of the session.
    expires_at: u32,
    /// Send as `X-CSRF-Token` with every change.
    csrf: String,
}

impl OperatorSession {
    fn of(site: &Site, key: &Authenticated, secret: &SessionSecret, session: &Session) -> OperatorSession {
        let name = site.parts.keys.name_of(key.key_id);
        OperatorSession {
            key_id: key.key_id.to_string(),
            name: name.map(|name| name.to_string()).unwrap_or_default(),
            scopes: key.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            expires_at: session.expires_at.0,
            csrf: secret.csrf(),
        }
    }
}

/// Sign in
///
/// For the dashboard: exchanges a key with `read` or `admin` for a cookie. Programs send the key with each request.
#[utoipa::path(
    post, path = "/session", tag = "session", request_body = SignIn,
    responses(
        (status = 200, description = "Signed in; the cookie is set", body = OperatorSession),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong keys from this address", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn begin(
    State(site): State<Arc<Site>>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<SignIn>,
) -> Result<Response, Problem> {
    let refused = |reason| site.counters.sign_ins_refused.count(reason);
    if !origin.is_same_origin(&headers) {
        refused("cross_site");
        return Err(cross_site());
    }
    let (address, now_ms) = (network_of(from), site.parts.clock.now_ms());
    site.callers.wrong_keys.check(address, now_ms).map_err(|wait_s| {
        refused("too_many");
        too_many(wait_s)
    })?;
    let Some(who) = site.parts.keys.authenticate(&body.key) else {
        refused("wrong_key");
        warn!(%from, "sign-in with an invalid key");
        return Err(wrong_key());
    };
    // Only wrong keys count, so that operators behind one address do not block each other.
    site.callers.wrong_keys.refund(address);
    // Each sign-in writes to the database and the audit trail.
    site.callers.check_key(&who.key_id, now_ms).inspect_err(|_| refused("too_often"))?;
    if !who.scopes.allow(Scope::Read) {
        refused("scope");
        return Err(Problem::forbidden(Scope::Read.as_str()));
    }
    let change =
        Change::new("session.begin", Subject::new("session", who.key_id)).with("from", from.to_string());
    let length = site.settings.session_length;
    let beginning = site.parts.sessions.begin(who.key_id, site.parts.clock.now(), length);
    let (secret, session) = recorded(&site, &who, change, beginning).await?;
    site.counters.sign_ins.increment();
    end_previous_session(&site, &headers).await;
    let shown = OperatorSession::of(&site, &who, &secret, &session);
    let cookie = cookie::set(&secret, length, origin.secure);
    Ok(([(SET_COOKIE, cookie)], Json(shown)).into_response())
}

/// Ends the previous session of the browser. If that fails, it expires.
async fn end_previous_session(site: &Site, headers: &HeaderMap) {
    if let Some(before) = cookie::read(headers)
        && let Err(error) = site.parts.sessions.end(&before).await
    {
        warn!(%error, "previous session not ended; it expires");
    }
}

fn cross_site() -> Problem {
    let detail = "only a page of this server can sign in: open the server's own address; a proxy must forward the Host \
                  header of the browser";
    Problem::new(StatusCode::FORBIDDEN, "cross_site", detail)
}

fn too_many(wait_s: u64) -> Problem {
    let detail = format!("too many wrong keys from this address: wait {wait_s} s");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail).after(wait_s)
}

fn wrong_key() -> Problem {
    let detail = "invalid key: rollcall key list shows the keys, rollcall key create makes one";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Get the session
#[utoipa::path(
    get, path = "/session", tag = "session", security(("session" = [])),
    responses(
        (status = 200, description = "The session", body = OperatorSession),
        (status = 401, description = "Not signed in", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn show(State(site): State<Arc<Site>>, caller: Caller) -> Result<Json<OperatorSession>, Problem> {
    let SignedIn { secret, session } = caller.signed_in.ok_or_else(Problem::unauthorized)?;
    Ok(Json(OperatorSession::of(&site, &caller.key, &secret, &session)))
}

/// Sign out
#[utoipa::path(
    delete, path = "/session", tag = "session", security(("session" = [])),
    responses(
        (status = 204, description = "Signed out; the cookie is removed"),
        (status = 401, description = "Not signed in", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn end(
    State(site): State<Arc<Site>>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    Extension(origin): Extension<RequestOrigin>,
    caller: Caller,
) -> Result<Response, Problem> {
    let SignedIn { secret, .. } = caller.signed_in.ok_or_else(Problem::unauthorized)?;
    site.parts.sessions.end(&secret).await?;
    site.counters.sign_outs.increment();
    let key_id = caller.key.key_id;
    let record = Record::ok("session.end", actor_of_key(key_id.as_str()), Subject::new("session", key_id))
        .with("from", from.to_string());
    let mut response = match site.parts.audit.record(record).await {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => Problem::change_not_recorded(&error).into_response(),
    };
    for removed in cookie::removed(origin.secure) {
        response.headers_mut().append(SET_COOKIE, removed);
    }
    Ok(response)
}
