//! The overview and its history.

use std::sync::Arc;

use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::CONTENT_TYPE;
use utoipa_axum::routes;

use crate::app::Routes;
use crate::overview::history::OverviewHistory;
use crate::overview::schema::Overview;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(overview)).routes(routes!(history))
}

/// Get the overview
///
/// Computed once a second by this process; rates are averages over five seconds. Online users are counted over all
/// gateways, everything else is of this process. The number of invisible users needs `admin`.
#[utoipa::path(
    get, path = "/api/v1/overview", tag = "health",
    responses(
        (status = 200, description = "State of the last second", body = Overview),
    )
)]
async fn overview(State(site): State<Arc<Site>>, Extension(caller): Extension<Authenticated>) -> Response {
    let json = site.parts.overview.latest(caller.scopes.allow(Scope::Admin)).await;
    ([(CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}

/// Get the history of the last hour
///
/// One point per ten seconds, since the start of this process.
#[utoipa::path(
    get, path = "/api/v1/overview/history", tag = "health",
    responses(
        (status = 200, description = "Oldest point first", body = OverviewHistory),
    )
)]
async fn history(State(site): State<Arc<Site>>) -> Json<OverviewHistory> {
    Json(site.parts.overview.history())
}
