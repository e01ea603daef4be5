//! Dead letters and failed entries (J7): entries that a view rejected.

use std::collections::BTreeMap;
use std::sync::Arc;

use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use journal::dead_letters;
use journal::{DeadLetter, EntryId, Lane, Stored};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Page, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PageParams, PathParams, QueryParams};
use crate::problem::Problem;
use crate::site::Site;

mod selection;

use selection::DeadLetterSelection;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list)).routes(routes!(show))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(replay)).routes(routes!(discard))
}

fn lane_of(name: &str) -> Result<Lane, Problem> {
    match name {
        "dlq" => Ok(Lane::Dead),
        "failed" => Ok(Lane::Failed),
        _ => Err(Problem::not_found("unknown_lane", "no such lane: use dlq or failed")),
    }
}

/// An entry that a view rejected.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(super) struct DeadLetterJson {
    /// Entry id in this lane.
    #[schema(example = "1794742234000-0")]
    id: String,
    /// Id of the rejected entry in the traffic lane.
    origin: String,
    /// Consumer group of the view.
    group: String,
    /// Retries so far.
    retry: u32,
    /// Why the view rejected it.
    reason: String,
    /// Time of the last failure.
    failed_at: u32,
    /// Time of the next retry.
    due_at: u32,
    /// Fields of the entry; passkeys are shortened, addresses need `admin`.
    fields: BTreeMap<String, String>,
}

impl DeadLetterJson {
    pub(super) fn of(stored: &Stored, caller: &Authenticated) -> DeadLetterJson {
        let with_address = caller.scopes.allow(Scope::Admin);
        let letter = DeadLetter::from_fields(&stored.fields);
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

#[derive(Serialize, ToSchema)]
struct DeadLetterCount {
    /// Entries that were found.
    count: u64,
}

/// List dead letters or failed entries
#[utoipa::path(
    get, path = "/api/v1/dead-letters/{lane}", tag = "journal",
    params(("lane" = String, Path, description = "`dlq` (will be retried) or `failed` (after the last retry)", pattern = "^(dlq|failed)$"), PageParams<EntryId>),
    responses(
        (status = 200, description = "A page, oldest first", body = Page<DeadLetterJson>),
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

/// Get a dead letter or failed entry
#[utoipa::path(
    get, path = "/api/v1/dead-letters/{lane}/{id}", tag = "journal",
    params(
        ("lane" = String, Path, description = "`dlq` (will be retried) or `failed` (after the last retry)", pattern = "^(dlq|failed)$"),
        ("id" = String, Path, description = "Entry id", pattern = "^[0-9]{1,19}-[0-9]{1,19}$"),
    ),
    responses(
        (status = 200, description = "The entry", body = DeadLetterJson),
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
        None => Err(Problem::not_found("unknown_dead_letter", format!("no {} entry {id}", lane.name()))),
    }
}

/// Retry entries now
#[utoipa::path(
    post, path = "/api/v1/dead-letters/{lane}/replay", tag = "journal", request_body = DeadLetterSelection,
    params(("lane" = String, Path, description = "`dlq` (will be retried) or `failed` (after the last retry)", pattern = "^(dlq|failed)$")),
    responses(
        (status = 200, description = "Number of entries", body = DeadLetterCount),
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
    let operation = dead_letters::replay(&*site.parts.journal, lane, &chosen);
    let count = recorded(&site, &caller, body.change(lane, "dlq.replay", "failed.replay"), operation).await?;
    Ok(Json(DeadLetterCount { count }))
}

/// Delete entries
#[utoipa::path(
    post, path = "/api/v1/dead-letters/{lane}/drop", tag = "journal", request_body = DeadLetterSelection,
    params(("lane" = String, Path, description = "`dlq` (will be retried) or `failed` (after the last retry)", pattern = "^(dlq|failed)$")),
    responses(
        (status = 200, description = "Number of entries", body = DeadLetterCount),
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
    let operation = dead_letters::discard(&*site.parts.journal, lane, &chosen);
    let count = recorded(&site, &caller, body.change(lane, "dlq.drop", "failed.drop"), operation).await?;
    Ok(Json(DeadLetterCount { count }))
}
