//! Dead letters and failed entries (J7): entries that a view could not take.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use journal::letters;
use journal::{EntryId, Lane, Letter, Stored};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Page, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PageParams, PathParams, QueryParams};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

mod selection;

use selection::DeadLetterSelection;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list)).routes(routes!(show))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(replay)).routes(routes!(discard))
}

/// Which of the two.
fn lane_of(named: &str) -> Result<Lane, Problem> {
    match named {
        "dlq" => Ok(Lane::Dead),
        "failed" => Ok(Lane::Failed),
        _ => Err(Problem::not_found("unknown_lane", "there is no such lane: dlq and failed are the two")),
    }
}

/// An entry that could not be taken.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(super) struct DeadLetterJson {
    /// Its place among its like.
    #[schema(example = "1794742234000-0")]
    id: String,
    /// Its place in the journal.
    origin: String,
    /// The group whose view could not take it.
    group: String,
    /// How often it was tried again.
    retry: u32,
    /// Why it could not be taken.
    reason: String,
    /// When it last failed.
    failed_at: u32,
    /// When it is tried again.
    due_at: u32,
    /// What it says; a passkey only by its first digits, an address only for keys with `admin`.
    fields: BTreeMap<String, String>,
}

impl DeadLetterJson {
    pub(super) fn of(stored: &Stored, caller: &Authenticated) -> DeadLetterJson {
        let with_address = caller.scopes.allow(Scope::Admin);
        let letter = Letter::from_fields(&stored.fields);
        DeadLetterJson {
            id: stored.id.to_string(),
            origin: letter.origin.to_string(),
            retry: letter.retry,
            failed_at: letter.failed_at.0,
            due_at: letter.due_at.0,
            fields: letter.shown_fields().filter(|(name, _)| with_address || name != "ip").collect(),
            group: letter.group,
            reason: letter.reason,
        }
    }
}

/// How many there were.
#[derive(Serialize, ToSchema)]
struct DeadLetterCount {
    /// How many of those meant were there.
    count: u64,
}

/// Dead letters, or failed entries
#[utoipa::path(
    get, path = "/api/v1/letters/{lane}", tag = "journal",
    params(("lane" = String, Path, description = "`dlq` (tried again) or `failed` (given up)", pattern = "^(dlq|failed)$"), PageParams<EntryId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page, oldest first", body = Page<DeadLetterJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(lane): PathParams<String>,
    QueryParams(params): QueryParams<PageParams<EntryId>>,
) -> Result<Json<Page<DeadLetterJson>>, Problem> {
    let lane = lane_of(&lane)?;
    let limit = params.limit()? as usize;
    let after = params.cursor()?.unwrap_or(EntryId::ZERO);
    let stored = site.parts.journal.list(lane, after, limit + 1).await?;
    let show = |stored: &Stored| DeadLetterJson::of(stored, &caller);
    Ok(Json(Page::of(stored, limit, |stored| stored.id.to_string(), show)))
}

/// One dead letter, or failed entry
#[utoipa::path(
    get, path = "/api/v1/letters/{lane}/{id}", tag = "journal",
    params(
        ("lane" = String, Path, description = "`dlq` (tried again) or `failed` (given up)", pattern = "^(dlq|failed)$"),
        ("id" = String, Path, description = "Its id", pattern = "^[0-9]{1,19}-[0-9]{1,19}$"),
    ),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The entry", body = DeadLetterJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn show(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams((lane, id)): PathParams<(String, String)>,
) -> Result<Json<DeadLetterJson>, Problem> {
    let lane = lane_of(&lane)?;
    let id: EntryId =
        id.parse().map_err(|error: journal::id::NotAnEntryId| Problem::bad_request(error.to_string()))?;
    match site.parts.journal.get(lane, id).await? {
        Some(stored) => Ok(Json(DeadLetterJson::of(&stored, &caller))),
        None => Err(Problem::not_found("unknown_letter", format!("there is no {} entry {id}", lane.name()))),
    }
}

/// Tries entries again, now
#[utoipa::path(
    post, path = "/api/v1/letters/{lane}/replay", tag = "journal", request_body = DeadLetterSelection,
    params(("lane" = String, Path, description = "`dlq` (tried again) or `failed` (given up)", pattern = "^(dlq|failed)$")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "How many", body = DeadLetterCount),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn replay(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(lane): PathParams<String>,
    JsonBody(body): JsonBody<DeadLetterSelection>,
) -> Result<Json<DeadLetterCount>, Problem> {
    let lane = lane_of(&lane)?;
    let chosen = body.chosen()?;
    let operation = letters::replay(&*site.parts.journal, lane, &chosen);
    let count = recorded(&site, &caller, body.change(lane, "dlq.replay", "failed.replay"), operation).await?;
    Ok(Json(DeadLetterCount { count }))
}

/// Throws entries away
#[utoipa::path(
    post, path = "/api/v1/letters/{lane}/drop", tag = "journal", request_body = DeadLetterSelection,
    params(("lane" = String, Path, description = "`dlq` (tried again) or `failed` (given up)", pattern = "^(dlq|failed)$")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "How many", body = DeadLetterCount),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn discard(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(lane): PathParams<String>,
    JsonBody(body): JsonBody<DeadLetterSelection>,
) -> Result<Json<DeadLetterCount>, Problem> {
    let lane = lane_of(&lane)?;
    let chosen = body.chosen()?;
    let operation = letters::discard(&*site.parts.journal, lane, &chosen);
    let count = recorded(&site, &caller, body.change(lane, "dlq.drop", "failed.drop"), operation).await?;
    Ok(Json(DeadLetterCount { count }))
}
