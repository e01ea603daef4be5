//! Risk events (J8).

use std::sync::Arc;

use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::RiskKind;
use journal::{EntryFilter, EntryId, Lane, SearchBounds, Stored};
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{Page, SCANNED_MAX};
use crate::app::Routes;
use crate::extract::{PageParams, QueryParams, query_parameter};
use crate::problem::Problem;
use crate::scan_limit::ScanKind;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

/// A report that one or more announces look like cheating. Which fields apply depends on `kind`.
#[derive(Serialize, ToSchema)]
pub(super) struct RiskEvent {
    /// Entry id in the journal.
    id: String,
    #[schema(schema_with = kind_schema)]
    kind: String,
    user: Option<u64>,
    torrent: Option<u64>,
    infohash: String,
    /// In hexadecimal digits.
    peer_id: String,
    /// Only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    at: Option<u32>,
    /// Seconds since the previous announce.
    elapsed_s: Option<u64>,
    uploaded_claimed: String,
    /// Bytes credited instead of the claim.
    uploaded_credited: String,
    downloaded_claimed: String,
    /// Bytes credited instead of the claim.
    downloaded_credited: String,
    /// Rate ceiling in bytes per second; 0 for kinds that are not about a rate.
    ceiling_bytes_per_s: String,
    /// Minimum number of users that share the address (`shared_address`), or peer ids of the user on the torrent within an
    /// hour (`many_peer_ids`); 0 for other kinds.
    count: u64,
    /// Events of this user and kind that were suppressed before this one.
    unreported: Option<u64>,
}

impl RiskEvent {
    pub(super) fn of(stored: &Stored, with_address: bool) -> RiskEvent {
        let text =
            |name: &str| String::from_utf8_lossy(stored.fields.get(name).unwrap_or_default()).into_owned();
        RiskEvent {
            id: stored.id.to_string(),
            kind: String::from_utf8_lossy(journal::risk::kind_of(&stored.fields)).into_owned(),
            user: text("user").parse().ok(),
            torrent: text("torrent").parse().ok(),
            infohash: text("infohash"),
            peer_id: text("peer_id"),
            ip: with_address.then(|| text("ip")),
            at: text("ts").parse().ok(),
            elapsed_s: text("dt").parse().ok(),
            uploaded_claimed: text("du_claimed"),
            uploaded_credited: text("du_credited"),
            downloaded_claimed: text("dd_claimed"),
            downloaded_credited: text("dd_credited"),
            ceiling_bytes_per_s: text("ceiling_bytes_per_s"),
            count: text("count").parse().unwrap_or_default(),
            unreported: text("unreported").parse().ok(),
        }
    }
}

fn kind_schema() -> Object {
    let names = RiskKind::ALL.map(RiskKind::name);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RiskParams {
    limit: Option<u32>,
    cursor: Option<String>,
    kind: Option<String>,
}

impl RiskParams {
    pub(super) fn read(self) -> Result<(Option<RiskKind>, PageParams<EntryId>), Problem> {
        let unknown = || {
            let names = RiskKind::ALL.map(RiskKind::name).join(", ");
            Problem::bad_request(format!("kind is one of {names}"))
        };
        let kind = self.kind.map(|name| RiskKind::from_name(&name).ok_or_else(unknown)).transpose()?;
        Ok((kind, PageParams::of(self.limit, self.cursor)))
    }
}

impl IntoParams for RiskParams {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let names = RiskKind::ALL.map(RiskKind::name);
        let kind = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        let mut parameters = PageParams::<EntryId>::into_params(within);
        parameters.push(query_parameter("kind", "Only this kind.", kind));
        parameters
    }
}

/// Scans a bounded number of risk events: a page may be short or empty and not be the last.
pub(super) async fn search_risks(
    site: &Site,
    sought: EntryFilter,
    page: &PageParams<EntryId>,
    with_address: bool,
) -> Result<Json<Page<RiskEvent>>, Problem> {
    let (limit, before) = (page.limit()? as usize, page.cursor()?.unwrap_or(EntryId::MAX));
    let bounds = SearchBounds { found_max: limit, scanned_max: SCANNED_MAX };
    let journal = Arc::clone(&site.parts.journal);
    let searching = async move { journal.search(Lane::Risk, before, &sought, bounds).await };
    let found = site.scan_limits.run(ScanKind::Journal, &site.counters.scans_refused, searching).await??;
    Ok(Json(Page {
        items: found.entries.iter().map(|stored| RiskEvent::of(stored, with_address)).collect(),
        next: found.next.map(|next| next.to_string()),
    }))
}

/// List risk events
///
/// Newest first. With `kind`, each request scans a bounded number of events: a page may be short or empty. Continue until
/// `next` is null.
#[utoipa::path(
    get, path = "/api/v1/risks", tag = "risks", params(RiskParams),
    responses(
        (status = 200, description = "A page, newest first", body = Page<RiskEvent>),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(params): QueryParams<RiskParams>,
) -> Result<Json<Page<RiskEvent>>, Problem> {
    let (kind, page) = params.read()?;
    let with_address = caller.scopes.allow(Scope::Admin);
    if kind.is_some() {
        return search_risks(&site, EntryFilter { kind, ..EntryFilter::default() }, &page, with_address)
            .await;
    }
    let limit = page.limit()? as usize;
    let before = page.cursor()?.unwrap_or(EntryId::MAX);
    let stored = site.parts.journal.list_newest(Lane::Risk, before, limit + 1).await?;
    let show = |stored: &Stored| RiskEvent::of(stored, with_address);
    Ok(Json(Page::of(stored, limit, |stored| stored.id.to_string(), show)))
}
