//! Extractors whose rejections are a [`Problem`].

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

mod json;
mod page;

pub use json::{PasskeyText, UserIdJson, slots, user_name, whole};
pub use page::{LIMIT_DEFAULT, Order, PageCursor, PageParams, page_limit, plain_number, query_parameter};

/// Query parameters. Unknown ones are refused if the type denies unknown fields.
pub struct QueryParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(QueryParams(params)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

pub struct PathParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match <Path<T> as FromRequestParts<S>>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(PathParams(named)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// A JSON object.
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(json::Object(body))) => Ok(JsonBody(body)),
            Err(rejection) => Err(Problem::new(rejection.status(), "bad_body", rejection.body_text())),
        }
    }
}
