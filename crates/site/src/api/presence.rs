//! Presence of users: status, devices, history, heartbeats over HTTP.
//!
//! Keys with `read` see the public status, keys with `admin` also invisible users. Privacy between users is not applied:
//! the site must do that.
//!
//! # Layout
//!
//! - this file: routes for API keys
//! - `schema`: JSON of presence
//! - `online`: online users and recent events
//! - `heartbeat`: heartbeats of devices, with the user's token

mod heartbeat;
mod online;
pub(super) mod schema;

use std::sync::Arc;

use ::friends::PresenceEventId;
use admin::audit::Subject;
use admin::keys::{Authenticated, Scope};
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
use crate::problem::Problem;
use crate::site::Site;

pub(crate) use self::schema::PresenceCount;
pub(crate) use heartbeat::{PATH as HEARTBEAT_PATH, routes as heartbeat_routes};

/// Maximum number of users in a query.
const QUERY_MAX: usize = 10_000;

pub(super) fn read_routes() -> Routes {
    Routes::new()
        .routes(routes!(count))
        .routes(routes!(query))
        .routes(routes!(show))
        .merge(online::readable())
}

/// Devices and history need `admin`: they reveal invisible users.
pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(devices)).routes(routes!(history)).routes(routes!(disconnect))
}

/// The gateway of this process.
pub(crate) fn gateway_of(site: &Site) -> Result<&Arc<Gateway>, Problem> {
    site.parts.gateway.as_ref().ok_or_else(|| {
        let detail = "this process does not have the role \"gateway\" and knows no presence: ask the process that \
                      has it (rollcall serve --roles)";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_gateway", detail)
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QueryPresence {
    /// Up to 10,000.
    #[schema(max_items = 10000)]
    users: Vec<UserIdOrString>,
}

#[derive(Serialize, ToSchema)]
struct UserSessions {
    /// One per connection, and one per device that sends heartbeats over HTTP.
    sessions: Vec<SessionJson>,
    /// Devices at other gateways.
    remote: Vec<RemoteDeviceJson>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DisconnectUser {
    /// Default: all devices.
    #[schema(min_length = 1, max_length = 64, pattern = "^[!-~]+$")]
    device: Option<String>,
    /// Whether clients may reconnect automatically.
    #[serde(default)]
    #[schema(default = false)]
    reconnect: bool,
}

#[derive(Serialize, ToSchema)]
struct DisconnectReply {
    /// Sessions ended at this gateway, plus devices at other gateways that were asked to disconnect.
    sessions: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryCursor(PresenceEventId);

impl PageCursor for HistoryCursor {
    const PATTERN: &'static str = <UserId as PageCursor>::PATTERN;

    fn parse(text: &str) -> Option<HistoryCursor> {
        let number = plain_number(text)?.min(i64::MAX as u64);
        Some(HistoryCursor(PresenceEventId(number)))
    }
}

/// Get the public presence of a user
#[utoipa::path(
    get, path = "/api/v1/presence/{id}", tag = "presence",
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "The presence; offline if the user was never online", body = PresenceJson),
    )
)]
async fn show(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
) -> Result<Json<PresenceJson>, Problem> {
    let user = user_id(id)?;
    let mut found = presence_of(&site, &[user]).await?;
    found.pop().map(Json).ok_or_else(|| Problem::internal("presence", &"no result"))
}

/// Query the public presence of many users
#[utoipa::path(
    post, path = "/api/v1/presence/query", tag = "presence", request_body = QueryPresence,
    responses(
        (status = 200, description = "In the order of the request", body = Page<PresenceJson>),
    )
)]
async fn query(
    State(site): State<Arc<Site>>,
    JsonBody(body): JsonBody<QueryPresence>,
) -> Result<Json<Page<PresenceJson>>, Problem> {
    if body.users.len() > QUERY_MAX {
        return Err(Problem::bad_request(format!("users: at most {QUERY_MAX} per request")));
    }
    let users: Vec<UserId> = body.users.iter().map(|number| number.0).collect();
    Ok(Json(Page::whole(presence_of(&site, &users).await?)))
}

/// Public presence. Seeding and leeching come from the activity view: the gateway tracks them only for online users.
async fn presence_of(site: &Site, users: &[UserId]) -> Result<Vec<PresenceJson>, Problem> {
    let views = gateway_of(site)?.hub.admin.status(users).await?;
    let mut presence: Vec<PresenceJson> = views.iter().map(PresenceJson::of).collect();
    let passkeys: Vec<Option<Passkey>> = users.iter().map(|user| site.parts.gate.passkey_of(*user)).collect();
    let known: Vec<Passkey> = passkeys.iter().flatten().copied().collect();
    // The activity store may be unavailable.
    let Ok(counts) = site.parts.activity.counts_of(&known).await else { return Ok(presence) };
    let mut counts = counts.into_iter();
    for (user, _) in presence.iter_mut().zip(&passkeys).filter(|(_, passkey)| passkey.is_some()) {
        user.set_active(counts.next().unwrap_or_default());
    }
    Ok(presence)
}

/// Count online users over all gateways
///
/// Counts that include invisible users need `admin`.
#[utoipa::path(
    get, path = "/api/v1/presence/count", tag = "presence",
    responses(
        (status = 200, description = "Counts by status and platform", body = PresenceCount),
    )
)]
async fn count(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
) -> Result<Json<PresenceCount>, Problem> {
    let count = PresenceCount::of(&gateway_of(&site)?.hub.admin.online_count().await);
    Ok(Json(if caller.scopes.allow(Scope::Admin) { count } else { count.without_hidden() }))
}

/// List the presence events of a user
#[utoipa::path(
    get, path = "/api/v1/users/{id}/presence/history", tag = "presence",
    params(("id" = u64, Path, description = "User id", minimum = 1), PageParams<HistoryCursor>),
    responses(
        (status = 200, description = "A page, newest first, of the last presence.history_days", body = Page<PresenceEventJson>),
    )
)]
async fn history(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<HistoryCursor>>,
) -> Result<Json<Page<PresenceEventJson>>, Problem> {
    let before = params.cursor()?.map(|cursor| cursor.0);
    let limit = params.limit()?;
    let found = gateway_of(&site)?.hub.admin.history(user_id(id)?, before, limit + 1).await?;
    Ok(Json(Page::of(found, limit as usize, |event| event.id.0.to_string(), PresenceEventJson::of)))
}

/// List a user's sessions with their last heartbeats
#[utoipa::path(
    get, path = "/api/v1/users/{id}/devices", tag = "presence",
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "Also of invisible users; empty if offline", body = UserSessions),
    )
)]
async fn devices(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
) -> Result<Json<UserSessions>, Problem> {
    let (hub, user) = (&gateway_of(&site)?.hub, user_id(id)?);
    let node = hub.admin.node_name();
    let sessions =
        hub.users.devices(user).iter().map(|session| SessionJson::of(session, node.clone())).collect();
    let remote = hub.admin.remote_devices(user).await?;
    let remote = remote.into_iter().map(|(node, device)| RemoteDeviceJson::of(node, &device)).collect();
    Ok(Json(UserSessions { sessions, remote }))
}

/// Disconnect a user
///
/// All devices, or one, at every gateway. Unless `reconnect` is true, clients do not reconnect automatically; a token that
/// is still valid is accepted again.
#[utoipa::path(
    post, path = "/api/v1/users/{id}/disconnect", tag = "presence", request_body = DisconnectUser,
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "Number of sessions", body = DisconnectReply),
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
    let ending =
        async { Ok::<_, Problem>(hub.admin.disconnect(user, device.as_ref(), body.reconnect).await?) };
    let sessions =
        recorded_with(&site, &caller, change, ending, |record, ended| record.with("sessions", *ended as u64));
    Ok((StatusCode::OK, Json(DisconnectReply { sessions: sessions.await? })))
}

fn device_of(text: &str) -> Result<DeviceId, Problem> {
    DeviceId::new(text).ok_or_else(|| Problem::bad_request("device: 1 to 64 visible ASCII characters"))
}
