//! What handlers take from a request. Whatever cannot be read is a [`Problem`] that says what is wrong.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::problem::Problem;

/// Items on a page if the caller does not say how many.
pub const LIMIT_DEFAULT: u32 = 100;
/// Items on a page at the most.
pub const LIMIT_MAX: u32 = 1000;
/// The longest cursor that is looked at.
const CURSOR_CHARS_MAX: usize = 200;

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

/// A body of JSON.
pub struct Said<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(said)) => Ok(Said(said)),
            Err(rejection) => Err(Problem::new(rejection.status(), "bad_body", rejection.body_text())),
        }
    }
}

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageAsked {
    /// How many items, at the most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next_cursor` of the page before; left out for the first page.
    #[param(max_length = 200)]
    cursor: Option<String>,
}

impl PageAsked {
    /// How many items.
    pub fn limit(&self) -> Result<u32, Problem> {
        page_limit(self.limit.unwrap_or(LIMIT_DEFAULT))
    }

    /// Where the page begins, as the list at hand reads its cursors.
    pub fn cursor<T>(&self, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let Some(text) = &self.cursor else { return Ok(None) };
        let read = Some(text.as_str()).filter(|text| text.len() <= CURSOR_CHARS_MAX).and_then(read);
        read.map(Some).ok_or_else(|| {
            Problem::bad_request(
                "cursor is not one of ours: send next_cursor of the page before, or leave it out",
            )
        })
    }
}

/// How many items a page may have.
pub fn page_limit(limit: u32) -> Result<u32, Problem> {
    match limit {
        1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::bad_request(format!("limit is {limit}: it must be from 1 to {LIMIT_MAX}"))),
    }
}
