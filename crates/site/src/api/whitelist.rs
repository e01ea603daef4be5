//! The whitelist (W2): passkeys of external users.

use std::sync::Arc;
use std::time::Duration;

use access::Replaced;
use admin::audit::{Record, Subject};
use admin::keys::Authenticated;
use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::{Extension, Json};
use domain::Passkey;
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{Change, recorded_with};
use crate::app::Routes;
use crate::extract::{JsonBody, PasskeyText, QueryParams};
use crate::problem::Problem;
use crate::site::Site;

/// Passkeys in one request, except for a refresh.
const PASSKEYS_MAX: usize = 10_000;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(count)).routes(routes!(check))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(remove)).routes(routes!(undo))
}

pub(super) fn upload_routes() -> Routes {
    Routes::new().routes(routes!(refresh))
}

#[derive(Serialize, ToSchema)]
struct WhitelistSize {
    /// Passkeys on the whitelist.
    count: u64,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WhitelistPasskeys {
    /// 1 to 10000 passkeys of 8 to 64 hexadecimal digits; case is ignored.
    #[schema(min_items = 1, max_items = 10000)]
    passkeys: Vec<PasskeyText>,
}

impl WhitelistPasskeys {
    fn read(&self) -> Result<Vec<Passkey>, Problem> {
        if self.passkeys.is_empty() || self.passkeys.len() > PASSKEYS_MAX {
            let detail =
                format!("passkeys: 1 to {PASSKEYS_MAX} per request; for more, use PUT /api/v1/whitelist");
            return Err(Problem::bad_request(detail));
        }
        let read = |(position, text): (usize, &PasskeyText)| {
            text.read().map_err(|error| Problem::bad_request(format!("passkeys[{position}]: {error}")))
        };
        self.passkeys.iter().enumerate().map(read).collect()
    }
}

#[derive(Serialize, ToSchema)]
struct WhitelistChanged {
    /// Passkeys that were actually added or removed.
    changed: u64,
}

#[derive(Serialize, ToSchema)]
struct WhitelistChecked {
    /// In the order of the request.
    listed: Vec<bool>,
}

#[derive(Serialize, ToSchema)]
struct WhitelistReplaced {
    /// Passkeys before.
    before: u64,
    /// Passkeys now.
    after: u64,
}

impl From<Replaced> for WhitelistReplaced {
    fn from(replaced: Replaced) -> WhitelistReplaced {
        WhitelistReplaced { before: replaced.before, after: replaced.after }
    }
}

/// Get the size of the whitelist
#[utoipa::path(
    get, path = "/api/v1/whitelist", tag = "whitelist",
    responses(
        (status = 200, description = "The size", body = WhitelistSize),
    )
)]
async fn count(State(site): State<Arc<Site>>) -> Result<Json<WhitelistSize>, Problem> {
    Ok(Json(WhitelistSize { count: site.parts.passkeys.count().await? }))
}

/// Check passkeys against the whitelist
#[utoipa::path(
    post, path = "/api/v1/whitelist/check", tag = "whitelist", request_body = WhitelistPasskeys,
    responses(
        (status = 200, description = "In the order of the request", body = WhitelistChecked),
    )
)]
async fn check(
    State(site): State<Arc<Site>>,
    JsonBody(body): JsonBody<WhitelistPasskeys>,
) -> Result<Json<WhitelistChecked>, Problem> {
    Ok(Json(WhitelistChecked { listed: site.parts.passkeys.contains(&body.read()?).await? }))
}

/// Add passkeys to the whitelist
#[utoipa::path(
    post, path = "/api/v1/whitelist/add", tag = "whitelist", request_body = WhitelistPasskeys,
    responses(
        (status = 200, description = "Number of new passkeys", body = WhitelistChanged),
    )
)]
async fn add(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<WhitelistPasskeys>,
) -> Result<Json<WhitelistChanged>, Problem> {
    let passkeys = body.read()?;
    let operation = site.parts.passkeys.add(&passkeys);
    let change = Change::new("passkey.add", Subject::whitelist());
    let extend = |record: Record, _: &u64| record.about_passkeys(&passkeys);
    let changed = recorded_with(&site, &caller, change, operation, extend).await?;
    Ok(Json(WhitelistChanged { changed }))
}

/// Remove passkeys from the whitelist
///
/// Takes effect on every tracker within a second; their peers are evicted.
#[utoipa::path(
    post, path = "/api/v1/whitelist/remove", tag = "whitelist", request_body = WhitelistPasskeys,
    responses(
        (status = 200, description = "Number of removed passkeys", body = WhitelistChanged),
    )
)]
async fn remove(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<WhitelistPasskeys>,
) -> Result<Json<WhitelistChanged>, Problem> {
    let passkeys = body.read()?;
    let operation = site.parts.passkeys.remove(&passkeys);
    let change = Change::new("passkey.remove", Subject::whitelist());
    let extend = |record: Record, _: &u64| record.about_passkeys(&passkeys);
    let changed = recorded_with(&site, &caller, change, operation, extend).await?;
    Ok(Json(WhitelistChanged { changed }))
}

/// Undo the last refresh
#[utoipa::path(
    post, path = "/api/v1/whitelist/undo", tag = "whitelist",
    responses(
        (status = 200, description = "Sizes before and after", body = WhitelistReplaced),
    )
)]
async fn undo(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
) -> Result<Json<WhitelistReplaced>, Problem> {
    let operation = async {
        let undone = site.parts.passkeys.undo().await?;
        undone.ok_or_else(|| Problem::conflict("nothing_to_undo", "there is no refresh to undo"))
    };
    let change = Change::new("passkey.undo", Subject::whitelist());
    Ok(Json(recorded_with(&site, &caller, change, operation, with_sizes).await?.into()))
}

/// Sizes for the audit trail.
fn with_sizes(record: Record, replaced: &Replaced) -> Record {
    record.with("before", replaced.before).with("after", replaced.after)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RefreshParams {
    /// Whether an upload without passkeys may empty the whitelist.
    #[serde(default)]
    #[param(default = false)]
    allow_empty: bool,
}

/// Replace the whitelist
///
/// One passkey per line; empty lines and lines that begin with `#` are ignored. The new list replaces the old one
/// atomically at the end of the upload. After a malformed line or an incomplete body nothing changes.
#[utoipa::path(
    put, path = "/api/v1/whitelist", tag = "whitelist", params(RefreshParams),
    request_body(content = Option<String>, content_type = "text/plain", description = "One passkey per line"),
    responses(
        (status = 200, description = "Sizes before and after", body = WhitelistReplaced),
    )
)]
async fn refresh(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(params): QueryParams<RefreshParams>,
    body: Body,
) -> Result<Json<WhitelistReplaced>, Problem> {
    let operation = receive(&site, body, params.allow_empty);
    let change = Change::new("passkey.refresh", Subject::whitelist());
    Ok(Json(recorded_with(&site, &caller, change, operation, with_sizes).await?.into()))
}

async fn receive(site: &Site, mut body: Body, allow_empty: bool) -> Result<Replaced, Problem> {
    let limits = &site.settings.limits;
    // Refuses by the declared length before reading.
    if body.size_hint().lower() > limits.upload_bytes_max {
        return Err(too_long());
    }
    let mut upload = site.parts.passkeys.upload().await?;
    let mut bytes = 0;
    loop {
        let step: Result<bool, Problem> = async {
            let Some(chunk) = next_chunk(&mut body, limits.request_timeout).await? else { return Ok(true) };
            bytes += chunk.len() as u64;
            if bytes > limits.upload_bytes_max {
                return Err(too_long());
            }
            upload.push(&chunk).await?;
            Ok(false)
        }
        .await;
        match step {
            Ok(false) => {}
            Ok(true) => return Ok(upload.finish(allow_empty).await?),
            Err(problem) => {
                upload.abandon().await;
                return Err(problem);
            }
        }
    }
}

fn too_long() -> Problem {
    let detail = "the upload is longer than site.upload_mib_max: raise it, or use rollcall passkey refresh";
    Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
}

/// None at the end of the body.
pub(super) async fn next_chunk(
    body: &mut Body,
    pause_max: Duration,
) -> Result<Option<axum::body::Bytes>, Problem> {
    loop {
        let frame = tokio::time::timeout(pause_max, body.frame()).await.map_err(|_| {
            let detail = "no data of the upload arrived in time: send it again";
            Problem::new(http::StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
        })?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(Problem::bad_request("the upload is incomplete: send it again")),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
