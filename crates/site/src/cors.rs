//! CORS: `site.cors_origins` may use the API, and `gateway.allowed_origins` the routes for members.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderValue, Method, StatusCode};

use crate::api;
use crate::site::Site;

/// Adds CORS headers for allowed origins and answers preflight requests.
pub async fn allow(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let Some(origin) = allowed_origin(&site, &request) else {
        return next.run(request).await;
    };
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match is_preflight {
        true => preflight(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag, retry-after"));
    headers.append(VARY, HeaderValue::from_static("origin"));
    response
}

fn allowed_origin(site: &Site, request: &Request) -> Option<HeaderValue> {
    let origin = request.headers().get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    let is_in = |origins: &[String]| origins.iter().any(|named| named.eq_ignore_ascii_case(text));
    let is_user_route = api::USER_PATHS.contains(&request.uri().path());
    let is_named =
        is_in(&site.settings.cors_origins) || (is_user_route && is_in(&site.settings.gateway_origins));
    is_named.then(|| origin.clone())
}

fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, x-api-key, content-type, if-none-match"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
