//! The journal: how far its views are (J7), and pausing them (J9).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use access::audit::Subject;
use access::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use journal::pause::{PausedView, pause, resume};
use journal::{GroupStatus, Journal, JournalError, Lane};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Change, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PathParams};
use crate::problem::{Problem, ProblemBody};
use crate::site::{Site, ViewGroup};

/// How long a request waits until a pause holds.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(status))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(change))
}

/// How the journal is.
#[derive(Serialize, ToSchema)]
struct JournalStatus {
    /// Entries it holds.
    entries: u64,
    /// Whether that is more than `journal.length_alarm`.
    too_long: bool,
    /// Entries ever appended.
    appended: u64,
    /// Dead letters, which are tried again.
    dlq: u64,
    /// Entries that were given up.
    failed: u64,
    /// Risk events.
    risks: u64,
    /// Whoever reads it, by group.
    groups: Vec<JournalGroup>,
}

/// A consumer group of the journal.
#[derive(Serialize, ToSchema)]
struct JournalGroup {
    /// The view; null for readers of other programs.
    view: Option<String>,
    /// The group.
    group: String,
    /// Entries that the view does not show yet.
    lag: u64,
    /// Of these: not given to it yet.
    unread: u64,
    /// Of these: given and not finished.
    pending: u64,
    /// How old the oldest of them is, in seconds.
    behind_s: f64,
    /// How many consumers it has.
    consumers: u64,
    /// Whether an operator has paused it.
    paused: bool,
}

/// How old the oldest entry is that a group has not finished. What it was given last says nothing about that: on a quiet
/// site that was long ago.
pub(crate) async fn behind_s(
    journal: &dyn Journal,
    group: &GroupStatus,
    now_ms: u64,
) -> Result<f64, JournalError> {
    let oldest = journal.oldest_unfinished(group).await?;
    Ok(oldest.map_or(0.0, |id| now_ms.saturating_sub(id.ms) as f64 / 1000.0))
}

/// How far each view is
#[utoipa::path(
    get, path = "/api/v1/journal", tag = "journal",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The journal and its readers", body = JournalStatus),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn status(State(site): State<Arc<Site>>) -> Result<Json<JournalStatus>, Problem> {
    let journal = &site.parts.journal;
    let traffic = journal.status(Lane::Traffic).await?;
    let paused: BTreeSet<String> = journal.paused().await?;
    let now_ms = site.parts.clock.now_ms();
    let mut groups = Vec::with_capacity(traffic.groups.len());
    for group in &traffic.groups {
        let view = site.parts.views.iter().find(|known| known.group == group.name).map(|known| known.view);
        groups.push(JournalGroup {
            view: view.map(str::to_owned),
            group: group.name.clone(),
            lag: group.lag(),
            unread: group.unread,
            pending: group.pending,
            behind_s: behind_s(&**journal, group, now_ms).await?,
            consumers: group.consumers,
            paused: view.is_some_and(|view| paused.contains(view)),
        });
    }
    Ok(Json(JournalStatus {
        entries: traffic.length,
        too_long: traffic.length > site.parts.journal_length_alarm,
        appended: traffic.appended,
        dlq: journal.status(Lane::Dead).await?.length,
        failed: journal.status(Lane::Failed).await?.length,
        risks: journal.status(Lane::Risk).await?.length,
        groups,
    }))
}

/// What to change about a view.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateView {
    /// Whether its entries wait in the journal.
    paused: bool,
}

/// What a view does.
#[derive(Serialize, ToSchema)]
struct ViewStatus {
    /// The view.
    view: String,
    /// Whether its entries wait in the journal.
    paused: bool,
}

/// Pauses a view, or lets it go on; answers once no process applies another entry
#[utoipa::path(
    patch, path = "/api/v1/journal/views/{view}", tag = "journal", request_body = UpdateView,
    params(("view" = String, Path, description = "`ledger` or `activity`")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "What it does now", body = ViewStatus),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn change(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(named): PathParams<String>,
    JsonBody(body): JsonBody<UpdateView>,
) -> Result<Json<ViewStatus>, Problem> {
    let Some(view) = site.parts.views.iter().find(|known| known.view == named) else {
        let known: Vec<&str> = site.parts.views.iter().map(|known| known.view).collect();
        let detail = format!("there is no such view: the views are {}", known.join(", "));
        return Err(Problem::not_found("unknown_view", detail));
    };
    let action = if body.paused { "view.pause" } else { "view.resume" };
    let change = Change::new(action, Subject::new("view", view.view));
    let unconfirmed = recorded(&site, &caller, change, set_paused(&site, view, body.paused)).await?;
    if !unconfirmed.is_empty() {
        let detail = format!(
            "{} is paused, but these processes have not confirmed it and may still apply entries: {}",
            view.view,
            unconfirmed.into_iter().collect::<Vec<_>>().join(", ")
        );
        return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "pause_unconfirmed", detail));
    }
    Ok(Json(ViewStatus { view: view.view.to_owned(), paused: body.paused }))
}

/// Pauses a view or lets it go on; returns the processes that have not confirmed a pause in time.
async fn set_paused(site: &Site, view: &ViewGroup, paused: bool) -> Result<BTreeSet<String>, Problem> {
    let journal = &*site.parts.journal;
    if !paused {
        resume(journal, view.view).await?;
        return Ok(BTreeSet::new());
    }
    let paused = PausedView { name: view.view, group: &view.group, dead_after: view.dead_after };
    let token = format!("{}.site", site.parts.clock.now_ms());
    Ok(pause(journal, paused, &token, CONFIRMED_WITHIN).await?)
}
