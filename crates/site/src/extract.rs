//! What handlers take from a request. Whatever cannot be read is a [`Problem`] that says what is wrong.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

mod json;
mod page;

pub use json::{PasskeyText, UserNumber, slots, user_name, whole};
pub use page::{LIMIT_DEFAULT, PageAsked, Place, page_limit, plain_number, query_parameter};

/// The parameters behind the question mark. Unknown ones are refused where the type says so.
pub struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// The variable parts of the path.
pub struct Named<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match <Path<T> as FromRequestParts<S>>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Named(named)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// A body of JSON: an object, as all of ours are.
pub struct Said<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(json::Object(said))) => Ok(Said(said)),
            Err(rejection) => Err(Problem::new(rejection.status(), "bad_body", rejection.body_text())),
        }
    }
}
