//! Pages that are not of the API: health and metrics.

use std::sync::Arc;

use access::keys::Scope;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::Routes;
use crate::health::DependencyHealth;
use crate::metrics;
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(alive)).routes(routes!(ready)).routes(routes!(show_metrics))
}

/// That the server lives.
#[derive(Serialize, ToSchema)]
struct Liveness {
    /// Always `alive`.
    #[schema(example = "alive")]
    state: String,
    /// Which version it is.
    version: String,
}

/// Whether the server lives
///
/// Asks nothing of anybody: a server that does not answer this should be restarted.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses(
        (status = 200, description = "It does", body = Liveness),
        (status = "default", description = "Too many requests", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn alive() -> Json<Liveness> {
    Json(Liveness { state: "alive".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// How everything is that the server depends on.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// Whether all of it is well.
    ready: bool,
    /// One by one.
    dependencies: Vec<DependencyHealth>,
}

/// Whether everything works that the server depends on
///
/// Each dependency with its state and since when; with a key for `read`, also what is wrong. Announces are answered
/// from memory whatever this says.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    security((), ("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "Everything is well", body = Readiness),
        (status = 503, description = "Something is not", body = Readiness),
        (status = "default", description = "Too many requests", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn ready(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let health = &site.parts.health;
    let is_ready = health.is_ready();
    let dependencies = health.report(may_read(&site, &headers).await);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready: is_ready, dependencies })).into_response()
}

/// Figures for Prometheus
///
/// Takes a key for `read`, unless `site.metrics_open` is set.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "In the format that Prometheus reads", body = String, content_type = "text/plain"),
        (status = "default", description = "No valid key", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn show_metrics(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, Problem> {
    if !site.settings.metrics_open {
        let caller = site.identify(&headers).await?.ok_or_else(|| {
            site.counters.unauthorized.increment();
            Problem::unauthorized()
        })?;
        if !caller.key.scopes.allow(Scope::Read) {
            site.counters.forbidden.increment();
            return Err(Problem::forbidden(Scope::Read.as_str()));
        }
    }
    let page = site.parts.metrics.render_with(&[
        &*site.counters,
        &site.callers,
        &site.rankings,
        &site.settings.limits,
    ]);
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response())
}

/// Whose session cannot be looked up is a stranger here: this page is asked while the database fails.
async fn may_read(site: &Site, headers: &HeaderMap) -> bool {
    let caller = site.identify(headers).await.ok().flatten();
    caller.is_some_and(|caller| caller.key.scopes.allow(Scope::Read))
}
