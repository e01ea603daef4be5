//! People: who is here, on which devices, since when not; and heartbeats of those who hold no connection.
//!
//! What others may see of a person is told to whoever has a key for `read`; what a person hides is told only to keys for
//! `admin`. Whom a person lets see what is for the site to keep to.
//!
//! # Layout
//!
//! - this file: what keys may ask and do
//! - `shown`: people as they are written
//! - `onlookers`: who is here, page by page, and what happened lately
//! - `heartbeat`: what people's own devices may do, with a token of theirs

mod heartbeat;
mod onlookers;
pub(super) mod schema;

use std::sync::Arc;

use ::friends::PresenceEventId;
use access::audit::Subject;
use access::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{Passkey, UserId};
use gateway::Gateway;
use http::StatusCode;
use presence::DeviceId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use self::schema::{PresenceEventJson, PresenceJson, RemoteDeviceJson, SessionJson, UserIdOrString};
use super::users::user_id;
use super::{Change, Page, recorded_with};
use crate::app::Routes;
use crate::extract::{JsonBody, PageCursor, PageParams, PathParams, QueryParams, plain_number};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(crate) use self::schema::PresenceCount;
pub(crate) use heartbeat::{PATH as HEARTBEAT_PATH, routes as heartbeat_routes};

/// People in one question.
const QUERY_MAX: usize = 10_000;

pub(super) fn read_routes() -> Routes {
    Routes::new()
        .routes(routes!(count))
        .routes(routes!(query))
        .routes(routes!(show))
        .merge(onlookers::readable())
}

/// Also to be read with `admin` only: devices and history tell of those who hide.
pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(devices)).routes(routes!(history)).routes(routes!(disconnect))
}

/// The gateway of this process.
pub(crate) fn gateway_of(site: &Site) -> Result<&Arc<Gateway>, Problem> {
    site.parts.gateway.as_ref().ok_or_else(|| {
        let detail = "the role \"gateway\" is not in this process, so nobody's presence is known here: ask the process that \
                      has it (rollcall serve --roles)";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_here", detail)
    })
}

/// Which people are meant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QueryPresence {
    /// Up to 10,000 of them.
    #[schema(max_items = 10000)]
    users: Vec<UserIdOrString>,
}

/// Somebody's sessions.
#[derive(Serialize, ToSchema)]
struct UserSessions {
    /// One for each connection, and for each device that sends heartbeats over HTTP.
    sessions: Vec<SessionJson>,
    /// Devices at other gateways, which know more about them.
    elsewhere: Vec<RemoteDeviceJson>,
}

/// Whom to disconnect.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DisconnectUser {
    /// Only this device; all of them if left out.
    #[schema(min_length = 1, max_length = 64, pattern = "^[!-~]+$")]
    device: Option<String>,
    /// Whether their clients may come back by themselves.
    #[serde(default)]
    #[schema(default = false)]
    reconnect: bool,
}

/// What was disconnected.
#[derive(Serialize, ToSchema)]
struct DisconnectReply {
    /// Sessions that were ended here, and devices at other gateways that are told to end theirs.
    sessions: usize,
}

/// A place in somebody's history.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryCursor(PresenceEventId);

impl PageCursor for HistoryCursor {
    const PATTERN: &'static str = <UserId as PageCursor>::PATTERN;

    fn parse(text: &str) -> Option<HistoryCursor> {
        let number = plain_number(text)?.min(i64::MAX as u64);
        Some(HistoryCursor(PresenceEventId(number)))
    }
}

/// What others see of a person
#[utoipa::path(
    get, path = "/api/v1/presence/{id}", tag = "presence",
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The person; offline if nobody ever heard of them", body = PresenceJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn show(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
) -> Result<Json<PresenceJson>, Problem> {
    let user = user_id(id)?;
    let mut people = presence_of(&site, &[user]).await?;
    people.pop().map(Json).ok_or_else(|| Problem::internal("presence", &"it gave no answer"))
}

/// What others see of many people
#[utoipa::path(
    post, path = "/api/v1/presence/query", tag = "presence", request_body = QueryPresence,
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "In the order asked", body = Page<PresenceJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn query(
    State(site): State<Arc<Site>>,
    JsonBody(body): JsonBody<QueryPresence>,
) -> Result<Json<Page<PresenceJson>>, Problem> {
    if body.users.len() > QUERY_MAX {
        return Err(Problem::bad_request(format!("users: at most {QUERY_MAX} at a time")));
    }
    let users: Vec<UserId> = body.users.iter().map(|number| number.0).collect();
    Ok(Json(Page::whole(presence_of(&site, &users).await?)))
}

/// People as others see them. What they seed and leech comes from the activity view: presence follows it only for those
/// who are online.
async fn presence_of(site: &Site, users: &[UserId]) -> Result<Vec<PresenceJson>, Problem> {
    let views = gateway_of(site)?.hub.status(users).await?;
    let mut people: Vec<PresenceJson> = views.iter().map(PresenceJson::of).collect();
    let passkeys: Vec<Option<Passkey>> = users.iter().map(|user| site.parts.gate.passkey_of(*user)).collect();
    let known: Vec<Passkey> = passkeys.iter().flatten().copied().collect();
    // Presence is worth having also while the lists of torrents are not.
    let Ok(counts) = site.parts.activity.counts_of(&known).await else { return Ok(people) };
    let mut counts = counts.into_iter();
    for (person, _) in people.iter_mut().zip(&passkeys).filter(|(_, passkey)| passkey.is_some()) {
        person.set_active(counts.next().unwrap_or_default());
    }
    Ok(people)
}

/// How many are here, over all gateways
///
/// How many hide, and figures that include them, are for keys with `admin` only.
#[utoipa::path(
    get, path = "/api/v1/presence/count", tag = "presence",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "By status and platform", body = PresenceCount),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn count(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
) -> Result<Json<PresenceCount>, Problem> {
    let count = PresenceCount::of(&gateway_of(&site)?.hub.online_count_everywhere().await);
    Ok(Json(if caller.scopes.allow(Scope::Admin) { count } else { count.without_hidden() }))
}

/// When a person came, went and changed
#[utoipa::path(
    get, path = "/api/v1/users/{id}/presence/history", tag = "presence",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageParams<HistoryCursor>),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "Newest first, for as long as presence.history_days", body = Page<PresenceEventJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn history(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<HistoryCursor>>,
) -> Result<Json<Page<PresenceEventJson>>, Problem> {
    let before = params.cursor()?.map(|place| place.0);
    let limit = params.limit()?;
    let found = gateway_of(&site)?.hub.history(user_id(id)?, before, limit + 1).await?;
    Ok(Json(Page::of(found, limit as usize, |told| told.id.0.to_string(), PresenceEventJson::of)))
}

/// A person's devices, with their last heartbeats
#[utoipa::path(
    get, path = "/api/v1/users/{id}/devices", tag = "presence",
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "Hidden or not; none if they are not here", body = UserSessions),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn devices(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
) -> Result<Json<UserSessions>, Problem> {
    let (hub, user) = (&gateway_of(&site)?.hub, user_id(id)?);
    let node = hub.node_name();
    let sessions = hub.devices(user).iter().map(|session| SessionJson::of(session, node.clone())).collect();
    let elsewhere = hub.remote_devices(user).await?;
    let elsewhere = elsewhere.into_iter().map(|(node, device)| RemoteDeviceJson::of(node, &device)).collect();
    Ok(Json(UserSessions { sessions, elsewhere }))
}

/// Ends a person's sessions
///
/// All of them, or those of one device, at every gateway. Unless `reconnect` is true, their clients do not come back by themselves; a
/// token that is still good lets them in again all the same.
#[utoipa::path(
    post, path = "/api/v1/users/{id}/disconnect", tag = "presence", request_body = DisconnectUser,
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "How many there were", body = DisconnectReply),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn disconnect(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
    JsonBody(body): JsonBody<DisconnectUser>,
) -> Result<(StatusCode, Json<DisconnectReply>), Problem> {
    let user = user_id(id)?;
    let device = body.device.as_deref().map(device_of).transpose()?;
    let hub = &gateway_of(&site)?.hub;
    let mut change =
        Change::new("user.disconnect", Subject::user(Some(user))).with("reconnect", body.reconnect);
    if let Some(device) = &device {
        change = change.with("device", device.as_str());
    }
    let ending = async { Ok::<_, Problem>(hub.disconnect(user, device.as_ref(), body.reconnect).await?) };
    let sessions =
        recorded_with(&site, &caller, change, ending, |record, ended| record.with("sessions", *ended as u64));
    Ok((StatusCode::OK, Json(DisconnectReply { sessions: sessions.await? })))
}

fn device_of(text: &str) -> Result<DeviceId, Problem> {
    DeviceId::new(text).ok_or_else(|| {
        Problem::bad_request("device: 1 to 64 visible ASCII characters, as its client names it")
    })
}
