//! The journal: lag of its views (J7), pause and resume (J9).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use admin::audit::Subject;
use admin::keys::Authenticated;
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
use crate::problem::Problem;
use crate::site::{Site, ViewGroup};

/// How long a request waits for every process to confirm a pause.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(status))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(change))
}

#[derive(Serialize, ToSchema)]
struct JournalStatus {
    /// Entries in the journal.
    entries: u64,
    /// Whether `entries` exceeds `journal.length_alarm`.
    too_long: bool,
    appended: u64,
    /// Dead letters.
    dlq: u64,
    /// Dead letters after their last retry.
    failed: u64,
    risks: u64,
    groups: Vec<JournalGroup>,
}

/// A consumer group of the journal.
#[derive(Serialize, ToSchema)]
struct JournalGroup {
    /// Null for a group of another program.
    view: Option<String>,
    group: String,
    /// Entries that are not acknowledged: `unread` plus `pending`.
    lag: u64,
    /// Entries not delivered yet.
    unread: u64,
    /// Entries delivered and not acknowledged.
    pending: u64,
    /// Age of the oldest of them, in seconds.
    behind_s: f64,
    consumers: u64,
    /// Whether an operator paused the view.
    paused: bool,
}

/// Age of the oldest entry that a group has not acknowledged. The last delivered id does not give it: without traffic that
/// id is old although nothing is pending.
pub(crate) async fn behind_s(
    journal: &dyn Journal,
    group: &GroupStatus,
    now_ms: u64,
) -> Result<f64, JournalError> {
    let oldest = journal.oldest_unacknowledged(group).await?;
    Ok(oldest.map_or(0.0, |id| now_ms.saturating_sub(id.ms) as f64 / 1000.0))
}

/// Get the state of the journal
#[utoipa::path(
    get, path = "/api/v1/journal", tag = "journal",
    responses(
        (status = 200, description = "The journal and its consumer groups", body = JournalStatus),
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateView {
    /// While true, the view applies no entries.
    paused: bool,
}

#[derive(Serialize, ToSchema)]
struct ViewStatus {
    view: String,
    /// While true, the view applies no entries.
    paused: bool,
}

/// Pause or resume a view; returns when every process has confirmed
#[utoipa::path(
    patch, path = "/api/v1/journal/views/{view}", tag = "journal", request_body = UpdateView,
    params(("view" = String, Path, description = "`ledger`, `activity`, `mirror` or `sites`")),
    responses(
        (status = 200, description = "The view", body = ViewStatus),
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
        let detail = format!("no such view: the views are {}", known.join(", "));
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

/// Returns the processes that have not confirmed a pause in time.
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
