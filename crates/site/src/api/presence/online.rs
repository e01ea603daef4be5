//! Users who are online, by page, and recent presence events.

use std::sync::Arc;

use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::UserId;
use gateway::RecentEvent;
use gateway::hub::{OnlineFilter, OnlineUser};
use gateway::recent_events::KEPT_MAX;
use presence::{DeviceView, Platform, Status};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::gateway_of;
use super::heartbeat::one_of;
use crate::api::Page;
use crate::app::Routes;
use crate::extract::{LIMIT_DEFAULT, PageCursor, QueryParams, page_limit};
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn readable() -> Routes {
    Routes::new().routes(routes!(online)).routes(routes!(events))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OnlineQuery {
    /// Only users with this status: online, away, busy, invisible (with `admin` only) or pending (online before a restart).
    /// All if omitted.
    #[param(inline, value_type = Option<OnlineStatus>)]
    status: Option<String>,
    /// Only users with such a device on this gateway.
    #[param(value_type = Option<super::heartbeat::PlatformName>)]
    platform: Option<String>,
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page; omitted for the first page.
    #[param(pattern = "^[1-9][0-9]{0,18}$")]
    cursor: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the names, for the description")]
enum OnlineStatus {
    Online,
    Away,
    Busy,
    Invisible,
    Pending,
}

/// A user who is online
#[derive(Serialize, ToSchema)]
#[schema(as = OnlineUser)]
struct ListedOnlineUser {
    id: u64,
    /// online, away, busy, invisible or pending.
    #[schema(example = "online")]
    status: &'static str,
    /// Status text.
    text: Option<String>,
    /// Start of the presence, in seconds since 1970. Null while pending, and for keys without `admin`, because it includes
    /// the time in which the user was invisible.
    since: Option<u32>,
    /// Torrents that the user seeds now.
    seeding: u32,
    /// Torrents that the user leeches now.
    leeching: u32,
    devices: Vec<OnlineDevice>,
}

/// A device of an online user
#[derive(Serialize, ToSchema)]
struct OnlineDevice {
    /// phone, computer or web.
    #[schema(example = "web")]
    platform: &'static str,
    /// foreground, background or inactive.
    #[schema(example = "foreground")]
    state: &'static str,
    /// online or away.
    #[schema(example = "online")]
    status: &'static str,
}

impl ListedOnlineUser {
    fn of(user: &OnlineUser) -> ListedOnlineUser {
        let view = &user.view;
        let device = |device: &DeviceView| OnlineDevice {
            platform: device.platform.name(),
            state: device.app.name(),
            status: device.status.name(),
        };
        ListedOnlineUser {
            id: view.user.get(),
            status: view.status.name(),
            text: view.text.as_deref().map(str::to_owned),
            since: user.since.map(|at| at.0),
            seeding: view.seeding,
            leeching: view.leeching,
            devices: view.devices.iter().map(device).collect(),
        }
    }
}

/// List online users
///
/// In order of their ids. With several gateways, the users of this one; `/api/v1/presence/count` counts those of all.
/// Invisible users are listed for keys with `admin` only.
#[utoipa::path(
    get, path = "/api/v1/presence/online", tag = "presence",
    params(OnlineQuery),
    responses(
        (status = 200, description = "A page of users", body = Page<ListedOnlineUser>),
    )
)]
async fn online(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(asked): QueryParams<OnlineQuery>,
) -> Result<Json<Page<ListedOnlineUser>>, Problem> {
    let limit = page_limit(asked.limit.unwrap_or(LIMIT_DEFAULT))? as usize;
    let is_admin = caller.scopes.allow(Scope::Admin);
    let status =
        one_of("status", asked.status.as_deref(), listed, "online, away, busy, invisible or pending")?;
    if status == Some(Status::Invisible) && !is_admin {
        site.counters.forbidden.increment();
        return Err(Problem::forbidden(Scope::Admin.as_str()));
    }
    let platform =
        one_of("platform", asked.platform.as_deref(), Platform::from_name, "phone, computer or web")?;
    let after = asked.cursor.as_deref().map(place).transpose()?;
    let asked = OnlineFilter { status, platform, with_hidden: is_admin, after };
    let page = gateway_of(&site)?.hub.admin.online_page(&asked, limit);
    Ok(Json(Page {
        items: page.users.iter().map(ListedOnlineUser::of).collect(),
        next: page.next.map(|user| user.to_string()),
    }))
}

fn listed(name: &str) -> Option<Status> {
    Status::from_name(name).filter(|status| *status != Status::Offline)
}

fn place(cursor: &str) -> Result<UserId, Problem> {
    <UserId as PageCursor>::parse(cursor)
        .ok_or_else(|| Problem::bad_request("invalid cursor: send next of the previous page, or omit it"))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
}

/// A user joined, left or changed status.
#[derive(Serialize, ToSchema)]
#[schema(as = RecentPresenceEvent)]
struct RecentPresenceEvent {
    /// Milliseconds since 1970.
    at_ms: u64,
    user: u64,
    /// joined, left or status.
    #[schema(value_type = RecentEventKind)]
    event: &'static str,
    /// The status before.
    #[schema(example = "offline")]
    from: &'static str,
    /// The status after.
    #[schema(example = "online")]
    to: &'static str,
    /// phone, computer or web; null if unknown. For keys without `admin`, null in `joined` and `left`.
    #[schema(example = "web")]
    platform: Option<&'static str>,
    /// Cause. For keys without `admin`, `connect` in `joined` and `close` in `left`.
    #[schema(example = "connect")]
    cause: &'static str,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the names, for the description")]
enum RecentEventKind {
    Joined,
    Left,
    Status,
}

impl RecentPresenceEvent {
    fn of(recent: &RecentEvent) -> RecentPresenceEvent {
        RecentPresenceEvent {
            at_ms: recent.at_ms,
            user: recent.user.get(),
            event: recent.event.name(),
            from: recent.from.name(),
            to: recent.to.name(),
            platform: recent.platform.map(Platform::name),
            cause: recent.cause.name(),
        }
    }
}

/// List recent presence events
///
/// Up to 500 events of this gateway since its start, newest first; `next` is always null. For keys without `admin`, a user who
/// becomes invisible has left, and platform and cause of joins and leaves are withheld, because they would reveal invisible
/// users.
#[utoipa::path(
    get, path = "/api/v1/presence/events", tag = "presence",
    params(EventsQuery),
    responses(
        (status = 200, description = "The newest first", body = Page<RecentPresenceEvent>),
    )
)]
async fn events(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(asked): QueryParams<EventsQuery>,
) -> Result<Json<Page<RecentPresenceEvent>>, Problem> {
    let limit = asked.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=KEPT_MAX as u32).contains(&limit) {
        return Err(Problem::bad_request(format!("limit is {limit}: it must be from 1 to {KEPT_MAX}")));
    }
    let is_admin = caller.scopes.allow(Scope::Admin);
    let recent_events = gateway_of(&site)?.hub.admin.recent_events(limit as usize, is_admin);
    let items = recent_events.iter().map(RecentPresenceEvent::of).collect();
    Ok(Json(Page { items, next: None }))
}
