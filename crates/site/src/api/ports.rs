//! Banned ports.

use std::sync::Arc;

use access::{BannedPorts, PortRange};
use admin::audit::Subject;
use admin::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Change, Page, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PathParams};
use crate::problem::Problem;
use crate::site::Site;

/// Maximum length of a reason.
const REASON_CHARS_MAX: usize = 200;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(ban, allow))
}

/// A range of banned ports.
#[derive(Serialize, ToSchema)]
#[schema(as = BannedPorts)]
struct BannedPortsJson {
    first: u16,
    /// Inclusive.
    last: u16,
    reason: String,
}

impl BannedPortsJson {
    fn of(ban: &BannedPorts) -> BannedPortsJson {
        BannedPortsJson { first: ban.range.first(), last: ban.range.last(), reason: ban.reason.clone() }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BanPorts {
    /// For staff; not sent to clients.
    #[serde(default)]
    #[schema(max_length = 200, pattern = "^[^\\x00]*$")]
    reason: String,
}

/// Accepts the two ends in any order.
fn range_of(one: u16, other: u16) -> Result<PortRange, Problem> {
    PortRange::new(one.min(other), one.max(other)).map_err(|error| Problem::bad_request(error.to_string()))
}

/// List banned ports
///
/// An announce with one of these ports is refused.
#[utoipa::path(
    get, path = "/api/v1/ports", tag = "clients",
    responses(
        (status = 200, description = "All ranges, sorted by port", body = Page<BannedPortsJson>),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Page<BannedPortsJson>>, Problem> {
    let banned = site.parts.store.list_banned_ports().await?;
    Ok(Json(Page::whole(banned.iter().map(BannedPortsJson::of).collect())))
}

/// Ban ports; peers on them are evicted
#[utoipa::path(
    put, path = "/api/v1/ports/{first}/{last}", tag = "clients", request_body = BanPorts,
    params(
        ("first" = u16, Path, description = "The first port", minimum = 1, maximum = 65535),
        ("last" = u16, Path, description = "The last port", minimum = 1, maximum = 65535),
    ),
    responses(
        (status = 200, description = "The banned range", body = BannedPortsJson),
    )
)]
async fn ban(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams((first, last)): PathParams<(u16, u16)>,
    JsonBody(body): JsonBody<BanPorts>,
) -> Result<Json<BannedPortsJson>, Problem> {
    let range = range_of(first, last)?;
    if body.reason.chars().count() > REASON_CHARS_MAX || body.reason.contains('\0') {
        return Err(Problem::bad_request(format!(
            "reason must be at most {REASON_CHARS_MAX} characters, without NUL"
        )));
    }
    let change = Change::new("port.ban", Subject::new("port", range)).with("reason", &*body.reason);
    recorded(&site, &caller, change, site.parts.store.ban_ports(range, &body.reason)).await?;
    Ok(Json(BannedPortsJson::of(&BannedPorts { range, reason: body.reason })))
}

/// Allow ports; a larger banned range is split
#[utoipa::path(
    delete, path = "/api/v1/ports/{first}/{last}", tag = "clients",
    params(
        ("first" = u16, Path, description = "The first port", minimum = 1, maximum = 65535),
        ("last" = u16, Path, description = "The last port", minimum = 1, maximum = 65535),
    ),
    responses(
        (status = 204, description = "Removed"),
    )
)]
async fn allow(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams((first, last)): PathParams<(u16, u16)>,
) -> Result<StatusCode, Problem> {
    let range = range_of(first, last)?;
    let change = Change::new("port.allow", Subject::new("port", range));
    recorded(&site, &caller, change, site.parts.store.allow_ports(range)).await?;
    Ok(StatusCode::NO_CONTENT)
}
