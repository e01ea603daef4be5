//! The application: every route with what its callers need, and what happens around each of them.
//!
//! # Guarantees
//!
//! - A route is public, or its group names the scope that it takes, or it takes a person's own token; the description at `/openapi.json` says the same,
//!   and a test compares the two.
//! - Every error is a [`Problem`]; every request is counted by route and status.
//! - Nothing outlasts its time, and no body its bound.
//! - A change that has begun is finished and recorded, whether or not its caller still listens.

use std::sync::Arc;

use access::keys::Scope;
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
use tracker::http::proxy;
use utoipa_axum::router::OpenApiRouter;

use crate::caller::{self, ClientAddress, Guard};
use crate::describe::Description;
use crate::problem::Problem;
use crate::server::RemoteAddress;
use crate::session::arrival::Arrival;
use crate::site::{Site, UnderWay};
use crate::web::Framable;
use crate::{api, cors, describe, etag, pages, person, session, upgrade, verify, web};

/// Routes of which the site is the state.
pub(crate) type Routes = OpenApiRouter<Arc<Site>>;

/// What is said of requests that no route took, so that strangers cannot make the table of counters grow.
const NO_ROUTE: &str = "(none)";

/// For a year, and this name alone: what else runs under names below it is not known here.
const HTTPS_ONLY: &str = "max-age=31536000";

/// Everything the site answers.
pub fn router(site: &Arc<Site>) -> Router {
    let guarded = |routes: Routes, needs: Scope| {
        let guard = Guard { site: Arc::clone(site), needs };
        routes.route_layer(middleware::from_fn_with_state(guard, caller::require))
    };
    // From the inside out: the key is looked at first, then the body is read, then the work has its time.
    let with_body = |routes: Routes, needs: Scope| {
        guarded(routes.route_layer(middleware::from_fn_with_state(Arc::clone(site), take_body)), needs)
    };
    let timed = |routes: Routes, needs: Scope| {
        with_body(routes.route_layer(middleware::from_fn_with_state(Arc::clone(site), in_time)), needs)
    };
    let read = timed(api::readable(), Scope::Read).layer(middleware::from_fn(etag::tag));
    let confidential = timed(api::confidential(), Scope::Admin);
    let verify = timed(verify::routes(), Scope::Verify);
    let changes = api::changeable()
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), to_the_end))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), answered_in_time));
    let changes = with_body(changes, Scope::Admin);
    // An upload takes as long as it takes, while it goes on.
    let uploads = api::uploads().route_layer(middleware::from_fn_with_state(Arc::clone(site), to_the_end));
    let uploads = guarded(uploads, Scope::Admin).layer(DefaultBodyLimit::disable());
    let personal = api::personal()
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), in_time))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), take_body))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), person::require));
    // Who signs in has no session yet, and who signs out is let out whatever their key may do.
    let sessions = session::routes()
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), to_the_end))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), answered_in_time))
        .route_layer(middleware::from_fn_with_state(Arc::clone(site), take_body));
    let routes = Routes::new()
        .merge(verify)
        .merge(read)
        .merge(confidential)
        .merge(changes)
        .merge(uploads)
        .merge(personal)
        .merge(sessions)
        .merge(pages::routes())
        .merge(upgrade::routes());
    let (routes, _) = routes.split_for_parts();
    let pages = describe::routes(&description());
    routes
        .merge(pages)
        .merge(web::routes(&site.settings))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(site.settings.limits.body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(site), cors::allow))
        .layer(middleware::from_fn_with_state(Arc::clone(site), front))
        .with_state(Arc::clone(site))
}

/// What the site can do, as `/openapi.json` says it. Needs no site.
pub fn description() -> Description {
    let routes = describe::document()
        .merge(verify::routes())
        .merge(api::readable())
        .merge(api::confidential())
        .merge(api::changeable())
        .merge(api::uploads())
        .merge(api::personal())
        .merge(session::routes())
        .merge(pages::routes());
    Description::of(routes.into_openapi())
}

async fn no_such_path() -> Problem {
    Problem::not_found("no_such_path", "there is nothing here: GET /docs lists what there is")
}

async fn no_such_method() -> Problem {
    let detail = "this path does not take this method: GET /docs lists what there is";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

/// Around every request: whose it is, whether it is one too many, how long it took, what became of it.
async fn front(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
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

/// Also for requests that are refused.
fn is_over_https(site: &Site, request: &Request) -> bool {
    let from = request.extensions().get::<RemoteAddress>();
    from.is_some_and(|from| Arrival::of(request.headers(), from.0.ip(), &site.settings).over_https)
}

fn admit(site: &Site, mut request: Request) -> Result<Request, Problem> {
    let Some(RemoteAddress(from)) = request.extensions().get().copied() else {
        return Err(Problem::internal("the listener", &"it gave no address"));
    };
    let headers: Vec<(&str, &[u8])> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let client = proxy::client_address(from.ip(), headers.iter().copied(), &site.settings.proxies)
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    site.callers.check_address(client.ip, site.parts.clock.now_ms())?;
    let arrival = Arrival::of(request.headers(), from.ip(), &site.settings);
    request.extensions_mut().insert(ClientAddress(client.ip));
    request.extensions_mut().insert(arrival);
    Ok(request)
}

/// Browsers are told to guess nothing, frame nothing, keep nothing; a page that needs more says so itself.
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
        // The older header knows no list of sites; the policy of such a page has it.
        if framable && name == X_FRAME_OPTIONS {
            continue;
        }
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Reads the body, within its bound and its time, before the work begins.
async fn take_body(State(site): State<Arc<Site>>, request: Request, next: Next) -> Result<Response, Problem> {
    let limits = &site.settings.limits;
    let (parts, body) = request.into_parts();
    let too_large = || {
        let detail =
            format!("the body is longer than {} bytes: see site.body_kib_max", limits.body_bytes_max);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    };
    // What says that it is too long is not waited for.
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(too_large());
    }
    let reading = to_bytes(body, limits.body_bytes_max);
    let read = tokio::time::timeout(limits.request_timeout, reading).await.map_err(|_| {
        site.counters.timeouts.increment();
        let detail =
            format!("the body took longer than {} s: send it again", limits.request_timeout.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail)
    })?;
    let body = read.map_err(|error| match std::error::Error::source(&error) {
        Some(source) if source.is::<LengthLimitError>() => too_large(),
        _ => Problem::bad_request("the body ended too soon, or is not as its head says: send it again"),
    })?;
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

/// A change goes on when its caller hangs up or is no longer waited for: otherwise it might be made and not recorded.
async fn to_the_end(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let under_way = UnderWay::begin(&site);
    let changing = async move {
        let response = next.run(request).await;
        drop(under_way);
        response
    };
    match tokio::spawn(changing).await {
        Ok(response) => response,
        Err(error) => Problem::internal("the change", &error).into_response(),
    }
}

/// Gives up waiting for a change that takes too long. It goes on, so its caller must look before they repeat it.
async fn answered_in_time(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let limit = site.settings.limits.request_timeout;
    tokio::time::timeout(limit, next.run(request)).await.map_err(|_| {
        site.counters.timeouts.increment();
        let detail = format!(
            "the change takes longer than {} s and goes on: look whether it was made before you repeat it",
            limit.as_secs()
        );
        Problem::new(StatusCode::GATEWAY_TIMEOUT, "still_under_way", detail)
    })
}

/// Gives up on what takes too long.
async fn in_time(State(site): State<Arc<Site>>, request: Request, next: Next) -> Result<Response, Problem> {
    let limit = site.settings.limits.request_timeout;
    tokio::time::timeout(limit, next.run(request)).await.map_err(|_| {
        site.counters.timeouts.increment();
        Problem::unavailable("what this request needs", &format!("no answer within {} s", limit.as_secs()))
    })
}
