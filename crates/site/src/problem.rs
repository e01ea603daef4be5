//! Errors in responses: `application/problem+json` (RFC 9457), each with a remedy.
//!
//! Internal causes are logged and not sent to clients.

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

/// An error response.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after_s: Option<u64>,
}

/// An error (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Stable code for programs.
    #[schema(example = "unknown_user")]
    pub code: String,
    /// Name of the HTTP status.
    #[schema(example = "Not Found")]
    pub title: String,
    /// HTTP status.
    #[schema(example = 404)]
    pub status: u16,
    /// Problem and remedy.
    #[schema(example = "no user 7: see GET /api/v1/users")]
    pub detail: String,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into(), retry_after_s: None }
    }

    pub fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    pub fn not_found(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// No key, or an unknown one.
    pub fn unauthorized() -> Problem {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "a valid key is required: send it as X-API-Key, or as Authorization: Bearer; rollcall key create makes one; in a \
             browser, sign in at /",
        )
    }

    /// A key without the scope.
    pub fn forbidden(needed: &str) -> Problem {
        let detail = format!(
            "this key lacks the scope \"{needed}\": use another, or make one with rollcall key create"
        );
        Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub fn user_disabled() -> Problem {
        let detail = "this user is disabled: ask the site's staff; rollcall user enable enables it";
        Problem::new(StatusCode::FORBIDDEN, "user_disabled", detail)
    }

    /// A change with a missing or wrong CSRF token.
    pub fn csrf() -> Problem {
        let detail = "changes with a session must send csrf of GET /session as X-CSRF-Token: reload the page \
                      or send a key instead";
        Problem::new(StatusCode::FORBIDDEN, "csrf", detail)
    }

    pub fn too_many_requests(retry_after_s: u64, whose: &str) -> Problem {
        let detail = format!("too many requests {whose}: wait {retry_after_s} s");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail).after(retry_after_s)
    }

    /// A dependency is unavailable; the client should retry.
    pub fn unavailable(what: &str, error: &dyn Display) -> Problem {
        // Open dashboards poll every few seconds.
        static LOG: LogThrottle = LogThrottle::new();
        if let Some(left_out) = LOG.admit(SystemClock.now()) {
            warn!(what, reason = %error, lines_left_out = left_out, "request failed: dependency unavailable");
        }
        let detail = format!("{what} cannot be reached: try again; see GET /readyz");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).after(5)
    }

    /// A change was made but not recorded in the audit trail.
    pub fn change_not_recorded(error: &dyn Display) -> Problem {
        error!(reason = %error, "change made but not recorded in the audit trail");
        let detail = "the change was made, but not recorded in the audit trail: see the server's log; \
                      check the current state before you repeat it";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "change_not_recorded", detail)
    }

    /// The whitelist was changed, but trackers were not notified.
    pub fn notification_failed(error: &dyn Display) -> Problem {
        warn!(reason = %error, "whitelist changed, but trackers were not notified");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "notification_failed", error.to_string()).after(5)
    }

    /// An internal error.
    pub fn internal(what: &str, error: &dyn Display) -> Problem {
        error!(what, reason = %error, "request failed");
        let detail = format!("{what} failed: see the server's log");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Sets `Retry-After`.
    pub fn after(mut self, seconds: u64) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

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
