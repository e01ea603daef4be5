//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use admin::keys::Scope;
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
    Routes::new().routes(routes!(liveness)).routes(routes!(readiness)).routes(routes!(show_metrics))
}

/// Liveness of the server.
#[derive(Serialize, ToSchema)]
struct Liveness {
    /// Always `alive`.
    #[schema(example = "alive")]
    state: String,
    version: String,
}

/// Check liveness
///
/// Checks no dependency: restart a server that does not answer.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses(
        (status = 200, description = "The server is running", body = Liveness),
        (status = "default", description = "Too many requests", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn liveness() -> Json<Liveness> {
    Json(Liveness { state: "alive".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// State of all dependencies.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// Whether all dependencies work.
    ready: bool,
    dependencies: Vec<DependencyHealth>,
}

/// Check readiness
///
/// State of each dependency; with a key for `read`, also the errors. Announces are answered from memory even if a
/// dependency fails.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    security((), ("api_key" = ["read"])),
    responses(
        (status = 200, description = "All dependencies work", body = Readiness),
        (status = 503, description = "A dependency fails", body = Readiness),
        (status = "default", description = "Too many requests", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn readiness(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let health = &site.parts.health;
    let is_ready = health.is_ready();
    let dependencies = health.report(may_read(&site, &headers).await);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready: is_ready, dependencies })).into_response()
}

/// Get metrics
///
/// Needs a key with `read`, unless `site.metrics_open` is set.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    security(("api_key" = ["read"])),
    responses(
        (status = 200, description = "Prometheus text format", body = String, content_type = "text/plain"),
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

/// A failed session lookup counts as not authenticated: this page must work while the database fails.
async fn may_read(site: &Site, headers: &HeaderMap) -> bool {
    let caller = site.identify(headers).await.ok().flatten();
    caller.is_some_and(|caller| caller.key.scopes.allow(Scope::Read))
}
