//! Operators who sign in: a key, exchanged for a cookie that lasts a working day.
//!
//! # Layout
//!
//! - [`cookie`]: what the browser keeps
//! - [`arrival`]: how a request came here: over HTTPS, under which name, from whose page
//!
//! # Guarantees
//!
//! - Scripts cannot read the cookie, other sites cannot make a browser send it (`SameSite=Strict`), and it goes over HTTPS
//!   alone where the sign-in did; there no neighbouring site can plant another in its place.
//! - Only a page of this server can sign somebody in; five wrong keys a minute lock an address out, not a key.
//! - A sign-in is in the audit trail before it is acknowledged. Who signs out is out, even if that cannot be recorded.
//! - A session is worth what its key is worth at the moment, and nothing once that is revoked.

use std::sync::Arc;

use access::audit::{Record, Subject, actor_of_key};
use access::keys::{Authenticated, Scope};
use access::{Session, SessionSecret};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use tracing::warn;
use tracker::limits::network_of;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::api::{Change, recorded};
use crate::app::Routes;
use crate::caller::{Caller, ClientAddress, SignedIn};
use crate::extract::Said;
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub mod arrival;
pub mod cookie;

use arrival::Arrival;

/// For those who have a cookie, or want one.
pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(begin, show, end))
}

/// A key, to sign in with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    /// The key.
    #[schema(example = "rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567", max_length = 1024)]
    key: String,
}

/// Who is signed in.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionShown)]
struct SessionShown {
    /// The key they signed in with.
    #[schema(example = "1a2b3c4d")]
    key_id: String,
    /// What people call it.
    name: String,
    /// What it may do: `verify`, `read`, `admin`.
    #[schema(example = json!(["admin"]))]
    scopes: Vec<String>,
    /// When the session ends.
    expires_at: u32,
    /// What to send as `X-CSRF-Token` with every change.
    csrf: String,
}

impl SessionShown {
    fn of(site: &Site, who: &Authenticated, secret: &SessionSecret, session: &Session) -> SessionShown {
        let name = site.parts.keys.name_of(who.key_id);
        SessionShown {
            key_id: who.key_id.to_string(),
            name: name.map(|name| name.to_string()).unwrap_or_default(),
            scopes: who.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            expires_at: session.expires_at.0,
            csrf: secret.csrf(),
        }
    }
}

/// Signs in
///
/// For the dashboard: exchanges a key with `read` or `admin` for a cookie. Programs send the key itself instead.
#[utoipa::path(
    post, path = "/session", tag = "session", request_body = SignIn,
    responses(
        (status = 200, description = "Signed in; the cookie is set", body = SessionShown),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong keys from this address", body = ProblemBody, content_type = "application/problem+json"),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn begin(
    State(site): State<Arc<Site>>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    Said(said): Said<SignIn>,
) -> Result<Response, Problem> {
    let refused = |reason| site.counters.sign_ins_refused.count(reason);
    if !arrival.is_from_our_page(&headers) {
        refused("cross_site");
        return Err(cross_site());
    }
    let (address, now_ms) = (network_of(from), site.parts.clock.now_ms());
    site.callers.wrong_keys.check(&address, now_ms).map_err(|wait_s| {
        refused("too_many");
        too_many(wait_s)
    })?;
    let Some(who) = site.parts.keys.authenticate(&said.key) else {
        refused("wrong_key");
        warn!(%from, "somebody tried to sign in with a key that is none");
        return Err(wrong_key());
    };
    // Only wrong keys are limited: colleagues behind one address do not lock each other out.
    site.callers.wrong_keys.give_back(&address);
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
    leave_behind(&site, &headers).await;
    let shown = SessionShown::of(&site, &who, &secret, &session);
    let cookie = cookie::set(&secret, length, arrival.secure);
    Ok(([(SET_COOKIE, cookie)], Json(shown)).into_response())
}

/// Ends the session that the browser had before. It would end by itself.
async fn leave_behind(site: &Site, headers: &HeaderMap) {
    if let Some(before) = cookie::read(headers)
        && let Err(error) = site.parts.sessions.end(&before).await
    {
        warn!(%error, "the session before a sign-in goes on until its time");
    }
}

fn cross_site() -> Problem {
    let detail = "only a page of this server can sign in: open its own address; a proxy in front must pass on the Host \
                  that the browser asked for";
    Problem::new(StatusCode::FORBIDDEN, "cross_site", detail)
}

fn too_many(wait_s: u64) -> Problem {
    let detail = format!("too many wrong keys from this address: wait {wait_s} s");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail).after(wait_s)
}

fn wrong_key() -> Problem {
    let detail =
        "this is no valid key: rollcall key list shows which there are, rollcall key create makes one";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Who is signed in
#[utoipa::path(
    get, path = "/session", tag = "session", security(("session" = [])),
    responses(
        (status = 200, description = "They are", body = SessionShown),
        (status = 401, description = "Nobody is", body = ProblemBody, content_type = "application/problem+json"),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn show(State(site): State<Arc<Site>>, caller: Caller) -> Result<Json<SessionShown>, Problem> {
    let SignedIn { secret, session } = caller.signed_in.ok_or_else(Problem::unauthorized)?;
    Ok(Json(SessionShown::of(&site, &caller.who, &secret, &session)))
}

/// Signs out
#[utoipa::path(
    delete, path = "/session", tag = "session", security(("session" = [])),
    responses(
        (status = 204, description = "Signed out; the cookie is gone"),
        (status = 401, description = "Nobody is signed in", body = ProblemBody, content_type = "application/problem+json"),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn end(
    State(site): State<Arc<Site>>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    Extension(arrival): Extension<Arrival>,
    caller: Caller,
) -> Result<Response, Problem> {
    let SignedIn { secret, .. } = caller.signed_in.ok_or_else(Problem::unauthorized)?;
    site.parts.sessions.end(&secret).await?;
    site.counters.sign_outs.increment();
    let key_id = caller.who.key_id;
    let record = Record::ok("session.end", actor_of_key(key_id.as_str()), Subject::new("session", key_id))
        .with("from", from.to_string());
    let mut response = match site.parts.audit.record(record).await {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => Problem::made_not_recorded(&error).into_response(),
    };
    for removed in cookie::removed(arrival.secure) {
        response.headers_mut().append(SET_COOKIE, removed);
    }
    Ok(response)
}
