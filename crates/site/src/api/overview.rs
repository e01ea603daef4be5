//! The overview: what the dashboard shows first.

use std::sync::Arc;

use access::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::CONTENT_TYPE;
use utoipa_axum::routes;

use crate::app::Routes;
use crate::overview::history::OverviewHistory;
use crate::overview::schema::Overview;
use crate::problem::ProblemBody;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(overview)).routes(routes!(history))
}

/// Everything at a glance
///
/// Put together once a second, by this process; rates are over the last five seconds. Who is online is counted over all
/// gateways, everything else is of this process. How many hide is told to keys for `admin` only.
#[utoipa::path(
    get, path = "/api/v1/overview", tag = "health",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "As of the last second", body = Overview),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn overview(State(site): State<Arc<Site>>, Extension(caller): Extension<Authenticated>) -> Response {
    let json = site.parts.overview.latest(caller.scopes.allow(Scope::Admin)).await;
    ([(CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}

/// The last hour
///
/// A point every ten seconds, since this process began.
#[utoipa::path(
    get, path = "/api/v1/overview/history", tag = "health",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The oldest first", body = OverviewHistory),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn history(State(site): State<Arc<Site>>) -> Json<OverviewHistory> {
    Json(site.parts.overview.history())
}
