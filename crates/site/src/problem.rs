//! Errors as clients see them: `application/problem+json` (RFC 9457), each saying what to do.
//!
//! What went wrong inside is logged, and told to nobody.

use std::fmt::Display;

use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::LogThrottle;
use domain::clock::{Clock as _, SystemClock};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use tracing::{error, warn};
use utoipa::ToSchema;

/// Why a request was not answered with what it asked for.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after_s: Option<u64>,
}

/// A problem as it is written (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// What kind of problem it is, for programs.
    #[schema(example = "unknown_user")]
    pub code: String,
    /// The name of the status.
    #[schema(example = "Not Found")]
    pub title: String,
    /// The status, as in the head of the response.
    #[schema(example = 404)]
    pub status: u16,
    /// What is wrong with this request, and what to do, for people.
    #[schema(example = "there is no user 7: see GET /api/v1/users")]
    pub detail: String,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into(), retry_after_s: None }
    }

    /// The request cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    /// There is nothing there.
    pub fn not_found(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// It does not fit what is there.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// No key, or one that nobody knows.
    pub fn unauthorized() -> Problem {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "a valid key is needed: send it as X-API-Key, or as Authorization: Bearer; rollcall key create makes one; in a \
             browser, sign in at /",
        )
    }

    /// A key that may not do this.
    pub fn forbidden(needed: &str) -> Problem {
        let detail = format!(
            "this key lacks the scope \"{needed}\": use another, or make one with rollcall key create"
        );
        Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// A user that the tracker has disabled.
    pub fn user_disabled() -> Problem {
        let detail = "this user is disabled: ask the site's staff; rollcall user enable undoes it";
        Problem::new(StatusCode::FORBIDDEN, "user_disabled", detail)
    }

    /// A browser sent what none of our pages did.
    pub fn csrf() -> Problem {
        let detail = "who is signed in must send the csrf of GET /session as X-CSRF-Token with every change: load the page \
                      again, or send a key instead";
        Problem::new(StatusCode::FORBIDDEN, "csrf", detail)
    }

    /// One request too many.
    pub fn too_many_requests(retry_after_s: u64, whose: &str) -> Problem {
        let detail = format!("too many requests {whose}: wait {retry_after_s} s");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail).after(retry_after_s)
    }

    /// Something we depend on is away; waiting helps.
    pub fn unavailable(what: &str, error: &dyn Display) -> Problem {
        // A page that is open asks every few seconds.
        static LOG: LogThrottle = LogThrottle::new();
        if let Some(left_out) = LOG.admit(SystemClock.now()) {
            warn!(what, reason = %error, lines_left_out = left_out, "a request could not be answered");
        }
        let detail = format!("{what} cannot be reached right now: try again; GET /readyz says since when");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).after(5)
    }

    /// A change was made, but the audit trail does not have it.
    pub fn made_not_recorded(error: &dyn Display) -> Problem {
        error!(reason = %error, "a change was made that could not be recorded");
        let detail = "the change was made, but could not be recorded in the audit trail: the server's log says why; \
                      look at what is there before you repeat it";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "made_not_recorded", detail)
    }

    /// The whitelist was changed, but trackers could not be told.
    pub fn changed_not_told(error: &dyn Display) -> Problem {
        warn!(reason = %error, "trackers could not be told of a change of the whitelist");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "changed_not_told", error.to_string()).after(5)
    }

    /// Something is wrong with us.
    pub fn internal(what: &str, error: &dyn Display) -> Problem {
        error!(what, reason = %error, "a request failed");
        let detail = format!("{what} failed: the server's log says why");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Tells when to come back.
    pub fn after(mut self, seconds: u64) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    /// What is wrong, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What kind of problem it is.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            code: self.code.to_owned(),
            title: self.status.canonical_reason().unwrap_or_default().to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
        };
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
