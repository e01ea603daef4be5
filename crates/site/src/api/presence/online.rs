//! Users who are online, by page, and recent presence events.

use std::sync::Arc;

use access::keys::{Authenticated, Scope};
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
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn readable() -> Routes {
    Routes::new().routes(routes!(online)).routes(routes!(events))
}

/// Whom to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OnlineQuery {
    /// Only people of this status: online, away, busy, invisible (with `admin` only) or pending (here before a restart).
    /// Everybody who is here if left out.
    #[param(inline, value_type = Option<OnlineStatus>)]
    status: Option<String>,
    /// Only people who have such a device here.
    #[param(value_type = Option<super::heartbeat::PlatformName>)]
    platform: Option<String>,
    /// How many items, at the most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next_cursor` of the page before; left out for the first page.
    #[param(pattern = "^[1-9][0-9]{0,18}$")]
    cursor: Option<String>,
}

/// Statuses of people who are here.
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

/// Somebody who is here.
#[derive(Serialize, ToSchema)]
#[schema(as = OnlinePerson)]
struct OnlineShown {
    /// The user's number.
    id: u64,
    /// online, away, busy, invisible or pending.
    #[schema(example = "online")]
    status: &'static str,
    /// What they wrote beside it.
    text: Option<String>,
    /// Since when they are here, in seconds since 1970; null for who is pending, and to keys without `admin`, since it also
    /// counts the time in which they hid.
    since: Option<u32>,
    /// Torrents they seed right now.
    seeding: u32,
    /// Torrents they leech right now.
    leeching: u32,
    /// Their devices.
    devices: Vec<OnlineDevice>,
}

/// A device of somebody who is here.
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

impl OnlineShown {
    fn of(person: &OnlineUser) -> OnlineShown {
        let view = &person.view;
        let device = |device: &DeviceView| OnlineDevice {
            platform: device.platform.name(),
            state: device.app.name(),
            status: device.status.name(),
        };
        OnlineShown {
            id: view.user.get(),
            status: view.status.name(),
            text: view.text.as_deref().map(str::to_owned),
            since: person.since.map(|at| at.0),
            seeding: view.seeding,
            leeching: view.leeching,
            devices: view.devices.iter().map(device).collect(),
        }
    }
}

/// Who is here now
///
/// By their numbers. With several gateways these are the people of this one, while `/api/v1/presence/count` counts those
/// of all. Who hides is shown to keys for `admin` only.
#[utoipa::path(
    get, path = "/api/v1/presence/online", tag = "presence",
    params(OnlineQuery),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of them", body = Page<OnlineShown>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn online(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(asked): QueryParams<OnlineQuery>,
) -> Result<Json<Page<OnlineShown>>, Problem> {
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
    let page = gateway_of(&site)?.hub.online_page(&asked, limit);
    Ok(Json(Page {
        items: page.users.iter().map(OnlineShown::of).collect(),
        next: page.next.map(|user| user.to_string()),
    }))
}

fn listed(name: &str) -> Option<Status> {
    Status::from_name(name).filter(|status| *status != Status::Offline)
}

fn place(cursor: &str) -> Result<UserId, Problem> {
    <UserId as PageCursor>::parse(cursor).ok_or_else(|| {
        Problem::bad_request(
            "cursor is not one of ours: send next_cursor of the page before, or leave it out",
        )
    })
}

/// How many to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    /// How many items, at the most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
}

/// What happened lately.
#[derive(Serialize, ToSchema)]
struct PresenceOccurrences {
    /// The newest first.
    #[schema(max_items = 500)]
    items: Vec<PresenceOccurrence>,
}

/// A user joined, left or changed status.
#[derive(Serialize, ToSchema)]
struct PresenceOccurrence {
    /// When, in milliseconds since 1970.
    at_ms: u64,
    /// The user's number.
    user: u64,
    /// joined, left or status.
    #[schema(value_type = OccurrenceEvent)]
    event: &'static str,
    /// The status before.
    #[schema(example = "offline")]
    from: &'static str,
    /// The status after.
    #[schema(example = "online")]
    to: &'static str,
    /// phone, computer or web; null where that is not known, as of a device that has gone. To keys without `admin`, null
    /// for everybody who comes or goes.
    #[schema(example = "web")]
    platform: Option<&'static str>,
    /// Why. To keys without `admin`, `connect` for everybody who comes, and `close` for everybody who goes.
    #[schema(example = "connect")]
    cause: &'static str,
}

/// What happened to somebody.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the names, for the description")]
enum OccurrenceEvent {
    Joined,
    Left,
    Status,
}

impl PresenceOccurrence {
    fn of(recent: &RecentEvent) -> PresenceOccurrence {
        PresenceOccurrence {
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

/// Who came, went and changed lately
///
/// The last 500 of this gateway, since it began. To keys without `admin`, who hides has left, as it looks to everybody, and
/// how somebody came or went is not told, since it would tell who hides.
#[utoipa::path(
    get, path = "/api/v1/presence/events", tag = "presence",
    params(EventsQuery),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The newest first", body = PresenceOccurrences),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn events(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(asked): QueryParams<EventsQuery>,
) -> Result<Json<PresenceOccurrences>, Problem> {
    let limit = asked.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=KEPT_MAX as u32).contains(&limit) {
        return Err(Problem::bad_request(format!("limit is {limit}: it must be from 1 to {KEPT_MAX}")));
    }
    let is_admin = caller.scopes.allow(Scope::Admin);
    let recent_events = gateway_of(&site)?.hub.recent_events(limit as usize, is_admin);
    Ok(Json(PresenceOccurrences { items: recent_events.iter().map(PresenceOccurrence::of).collect() }))
}
