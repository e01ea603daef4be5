//! The router: every route with its scope, and the middleware around it.
//!
//! # Guarantees
//!
//! - A route is public, needs a scope, or takes a user's token. `/openapi.json` declares the same; a test compares them.
//! - Every error is a [`Problem`]; every request is counted by route and status.
//! - Every request has a timeout, every body a size limit.
//! - A change that has started is finished and recorded, even if its caller disconnects.

use std::sync::Arc;

use admin::keys::Scope;
use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use domain::clock::Stopwatch;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use http_body_util::LengthLimitError;
use net::proxy;
use utoipa_axum::router::OpenApiRouter;

use crate::auth::{ClientAddress, Guard};
use crate::openapi::Description;
use crate::problem::Problem;
use crate::server::RemoteAddress;
use crate::session::request_origin::RequestOrigin;
use crate::site::{PendingChange, Site};
use crate::web::Framable;
use crate::{api, auth, cors, etag, monitoring, openapi, session, user_token, verify, web, websocket};

pub(crate) type Routes = OpenApiRouter<Arc<Site>>;

/// Route label of requests without a route. Keeps the number of labels bounded.
const NO_ROUTE: &str = "(none)";

/// One year, without subdomains, which may not support HTTPS.
const HTTPS_ONLY: &str = "max-age=31536000";

pub fn router(site: &Arc<Site>) -> Router {
    let guarded = |routes: Routes, needs: Scope| {
        let guard = Guard { site: Arc::clone(site), scope: needs };
        routes.route_layer(middleware::from_fn_with_state(guard, auth::require))
    };
    // Layers run in reverse order: key, then body, then timeout.
    let with_body = |routes: Routes, needs: Scope| {
        guarded(routes.route_layer(middleware::from_fn_with_state(Arc::clone(site), read_body)), needs)
    };
    let timed = |routes: Routes, needs: Scope| {
        with_body(
            routes.route_layer(middleware::from_fn_with_state(Arc::clone(site), request_timeout)),
            needs,
        )
    };
    let read = timed(api::read_routes(), Scope::Read).layer(middleware::from_fn(etag::tag));
    let admin_read_routes = timed(api::admin_read_routes(), Scope::Admin);
    let verify = timed(verify::routes(), Scope::Verify);
    let changes = api::write_routes()
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), run_detached))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), change_timeout));
    let changes = with_body(changes, Scope::Admin);
    // Uploads have no total timeout, only one between chunks.
    let upload_routes =
        api::upload_routes().route_layer(middleware::from_fn_with_state(Arc::clone(site), run_detached));
    let upload_routes = guarded(upload_routes, Scope::Admin).layer(DefaultBodyLimit::disable());
    let user_routes = api::user_routes()
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), request_timeout))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), read_body))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), user_token::require));
    // Sign-in has no session yet; sign-out needs no scope.
    let sessions = session::routes()
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), run_detached))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), change_timeout))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), read_body));
    let routes = Routes::new()
        .merge(verify)
        .merge(read)
        .merge(admin_read_routes)
        .merge(changes)
        .merge(upload_routes)
        .merge(user_routes)
        .merge(sessions)
        .merge(monitoring::routes())
        .merge(websocket::routes());
    let (routes, _) = routes.split_for_parts();
    let pages = openapi::routes(&description());
    routes
        .merge(pages)
        .merge(web::routes(&site.settings))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(site.settings.limits.body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(site), cors::allow))
        .layer(middleware::from_fn_with_state(Arc::clone(site), outer_layer))
        .with_state(Arc::clone(site))
}

/// The OpenAPI description. Needs no running site.
pub fn description() -> Description {
    let routes = openapi::document()
        .merge(openapi::scoped(verify::routes(), Scope::Verify))
        .merge(openapi::scoped(api::read_routes(), Scope::Read))
        .merge(openapi::scoped(api::admin_read_routes(), Scope::Admin))
        .merge(openapi::scoped(api::write_routes(), Scope::Admin))
        .merge(openapi::scoped(api::upload_routes(), Scope::Admin))
        .merge(api::user_routes())
        .merge(session::routes())
        .merge(monitoring::routes());
    Description::of(routes.into_openapi())
}

async fn no_such_path() -> Problem {
    Problem::not_found("unknown_path", "no such path: GET /docs lists the routes")
}

async fn no_such_method() -> Problem {
    let detail = "method not allowed here: GET /docs lists the routes";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

/// Outermost middleware: client address, rate limit, security headers, counters.
async fn outer_layer(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let route = match request.extensions().get::<MatchedPath>() {
        Some(path) => path.as_str().to_owned(),
        None => NO_ROUTE.to_owned(),
    };
    let over_https = is_over_https(&site, &request);
    let mut response = match admit(&site, request) {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    add_headers(&mut response);
    if over_https {
        // Browsers ignore it over plain HTTP, where any hop could have added it.
        let value = HeaderValue::from_static(HTTPS_ONLY);
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, value);
    }
    site.counters.requests.count(&route, response.status().as_u16(), watch.elapsed());
    response
}

fn is_over_https(site: &Site, request: &Request) -> bool {
    let from = request.extensions().get::<RemoteAddress>();
    from.is_some_and(|from| RequestOrigin::of(request.headers(), from.0.ip(), &site.settings).over_https)
}

fn admit(site: &Site, mut request: Request) -> Result<Request, Problem> {
    let Some(RemoteAddress(from)) = request.extensions().get().copied() else {
        return Err(Problem::internal("the listener", &"no remote address"));
    };
    let headers: Vec<(&str, &[u8])> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let client = proxy::client_address(from.ip(), headers.iter().copied(), &site.settings.proxies)
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    site.callers.check_address(client.ip, site.parts.clock.now_ms())?;
    let origin = RequestOrigin::of(request.headers(), from.ip(), &site.settings);
    request.extensions_mut().insert(ClientAddress(client.ip));
    request.extensions_mut().insert(origin);
    Ok(request)
}

/// Restrictive defaults; a response that sets a header itself keeps it.
fn add_headers(response: &mut Response) {
    const HEADERS: [(HeaderName, &str); 5] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (CACHE_CONTROL, "no-store"),
    ];
    let framable = response.extensions().get::<Framable>().is_some();
    for (name, value) in HEADERS {
        // X-Frame-Options has no list of origins; the page's policy does.
        if framable && name == X_FRAME_OPTIONS {
            continue;
        }
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Reads the whole body, within size limit and timeout, before the handler runs.
async fn read_body(State(site): State<Arc<Site>>, request: Request, next: Next) -> Result<Response, Problem> {
    let limits = &site.settings.limits;
    let (parts, body) = request.into_parts();
    let too_large = || {
        let detail = format!("the body is longer than {} bytes", limits.body_bytes_max);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    };
    // Refuses by the declared length before reading.
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(too_large());
    }
    let reading = to_bytes(body, limits.body_bytes_max);
    let read = tokio::time::timeout(limits.request_timeout, reading).await.map_err(|_| {
        site.counters.timeouts.increment();
        let detail =
            format!("the body did not arrive within {} s: send it again", limits.request_timeout.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
    })?;
    let body = read.map_err(|error| match std::error::Error::source(&error) {
        Some(source) if source.is::<LengthLimitError>() => too_large(),
        _ => Problem::bad_request("the body is incomplete or malformed: send it again"),
    })?;
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

/// Runs a change in its own task, so that a disconnect or timeout cannot leave it made but not recorded.
async fn run_detached(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let pending = PendingChange::begin(&site);
    let changing = async move {
        let response = next.run(request).await;
        drop(pending);
        response
    };
    match tokio::spawn(changing).await {
        Ok(response) => response,
        Err(error) => Problem::internal("the change", &error).into_response(),
    }
}

/// Timeout of a change. The change continues in its task.
async fn change_timeout(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let limit = site.settings.limits.request_timeout;
    tokio::time::timeout(limit, next.run(request)).await.map_err(|_| {
        site.counters.timeouts.increment();
        let detail = format!(
            "no result within {} s; the change continues: check whether it was made before you repeat it",
            limit.as_secs()
        );
        Problem::new(StatusCode::GATEWAY_TIMEOUT, "change_in_progress", detail)
    })
}

async fn request_timeout(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let limit = site.settings.limits.request_timeout;
    tokio::time::timeout(limit, next.run(request)).await.map_err(|_| {
        site.counters.timeouts.increment();
        Problem::unavailable("a dependency", &format!("no answer within {} s", limit.as_secs()))
    })
}
