//! Torrents and their swarms.
//!
//! # Layout
//!
//! - this file: torrents
//! - `peers`: peers of a torrent
//! - `file`: upload of a `.torrent` file
//! - `accounts`: accounts on a torrent

mod accounts;
mod file;
mod peers;

use std::sync::Arc;

use access::{LeechSlots, NewTorrent, TORRENT_NAME_CHARS_MAX, Torrent, TorrentChange};
use admin::audit::Subject;
use admin::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use domain::{InfoHash, TorrentId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use swarm::SwarmCounts;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::figures::FiguresJson;
use super::{Change, Page, recorded, recorded_with};
use crate::app::Routes;
use crate::extract::{JsonBody, PageParams, PathParams, QueryParams, plain_number, slots, whole};
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list)).routes(routes!(show)).merge(peers::routes()).merge(accounts::routes())
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(change, remove))
}

pub(crate) use file::upload_routes;

/// A torrent.
#[derive(Serialize, ToSchema)]
#[schema(as = Torrent)]
struct TorrentJson {
    id: u64,
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// Truncated v2 infohash of a hybrid torrent.
    infohash_v2: Option<String>,
    name: String,
    /// Size of the content; `"0"` if unknown.
    #[schema(pattern = "^[0-9]+$")]
    total_bytes: String,
    /// Whether announces are accepted.
    enabled: bool,
    /// While false, announces are accepted but no peers are returned.
    approved: bool,
    /// Leech slots; -1 is unlimited, null the configured default.
    leech_slots: Option<i64>,
    created_at: u32,
    /// Null if this process has no tracker.
    swarm: Option<SwarmCountsJson>,
}

/// Counts of a swarm.
#[derive(Serialize, ToSchema)]
#[schema(as = SwarmCounts)]
struct SwarmCountsJson {
    seeders: u32,
    leechers: u32,
    /// Completions since this process started.
    snatches: u32,
}

impl From<SwarmCounts> for SwarmCountsJson {
    fn from(counts: SwarmCounts) -> SwarmCountsJson {
        SwarmCountsJson { seeders: counts.seeders, leechers: counts.leechers, snatches: counts.snatches }
    }
}

impl TorrentJson {
    fn of(torrent: &Torrent, site: &Site) -> TorrentJson {
        let tracker = site.parts.tracker.as_ref();
        TorrentJson {
            id: torrent.id.get(),
            infohash: torrent.info_hash.to_string(),
            infohash_v2: torrent.info_hash_v2.map(|hash| hash.to_string()),
            name: torrent.name.clone(),
            total_bytes: torrent.total_bytes.to_string(),
            enabled: torrent.enabled,
            approved: torrent.approved,
            leech_slots: torrent.leech_slots.to_number(),
            created_at: torrent.created_at.0,
            swarm: tracker.map(|tracker| tracker.swarms().scrape(&torrent.info_hash).into()),
        }
    }
}

/// A torrent with its traffic.
#[derive(Serialize, ToSchema)]
struct TorrentDetails {
    torrent: TorrentJson,
    /// Null before the first announce.
    figures: Option<FiguresJson>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateTorrent {
    /// 40 hexadecimal digits.
    #[schema(min_length = 40, max_length = 40, pattern = "^[0-9a-fA-F]{40}$")]
    infohash: String,
    #[schema(max_length = 10000, pattern = "^[^\\x00]*$")]
    name: String,
    /// Default: the next free id.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    id: Option<u64>,
    /// For a hybrid torrent: the first 40 digits of the v2 infohash.
    #[schema(min_length = 40, max_length = 40, pattern = "^[0-9a-fA-F]{40}$")]
    infohash_v2: Option<String>,
    /// Size of the content, in decimal digits.
    #[schema(pattern = "^[0-9]{1,19}$")]
    total_bytes: Option<String>,
    /// False if the torrent awaits approval. Default: true.
    approved: Option<bool>,
}

/// Fields to change; omitted fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateTorrent {
    /// Whether announces are accepted.
    enabled: Option<bool>,
    /// While false, announces are accepted but no peers are returned.
    approved: Option<bool>,
    /// Leech slots; -1 is unlimited, null the configured default. Does not stop downloads in progress.
    #[serde(default, deserialize_with = "slots")]
    #[schema(value_type = Option<i64>, minimum = -1, maximum = 1000000)]
    leech_slots: Option<LeechSlots>,
}

impl UpdateTorrent {
    /// Action in the audit trail; none if nothing changes.
    fn action(&self) -> Option<&'static str> {
        match (self.enabled, self.approved, self.leech_slots) {
            (None, None, None) => None,
            (Some(true), None, None) => Some("torrent.enable"),
            (Some(false), None, None) => Some("torrent.disable"),
            (None, Some(true), None) => Some("torrent.approve"),
            (None, Some(false), None) => Some("torrent.unapprove"),
            _ => Some("torrent.change"),
        }
    }

    /// Details in the audit trail.
    fn details(&self) -> Vec<(&'static str, serde_json::Value)> {
        let details = [
            ("enabled", self.enabled.map(Into::into)),
            ("approved", self.approved.map(Into::into)),
            ("leech_slots", self.leech_slots.map(|slots| slots.to_string().into())),
        ];
        details.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

pub(super) fn torrent_id(number: u64) -> Result<TorrentId, Problem> {
    TorrentId::new(number)
        .ok_or_else(|| Problem::bad_request("a torrent id is an integer from 1 to 9223372036854775807"))
}

fn info_hash_of(name: &str, text: &str) -> Result<InfoHash, Problem> {
    text.parse().map_err(|_| Problem::bad_request(format!("{name} must be 40 hexadecimal digits")))
}

/// Finds a torrent by id or infohash.
async fn find(site: &Site, id_or_hash: &str) -> Result<Torrent, Problem> {
    let found = match id_or_hash.len() {
        40 => site.parts.store.torrent_by_info_hash(&info_hash_of("infohash", id_or_hash)?).await?,
        _ => {
            let number = plain_number(id_or_hash).ok_or_else(|| {
                Problem::bad_request(
                    "a torrent is identified by its id, or by its infohash of 40 hexadecimal digits",
                )
            })?;
            // Out of range: no such torrent.
            match TorrentId::new(number) {
                Some(id) => site.parts.store.torrent(id).await?,
                None => None,
            }
        }
    };
    found.ok_or_else(|| {
        Problem::not_found("unknown_torrent", format!("no torrent {id_or_hash}: see GET /api/v1/torrents"))
    })
}

/// List torrents
#[utoipa::path(
    get, path = "/api/v1/torrents", tag = "torrents", params(PageParams<TorrentId>),
    responses(
        (status = 200, description = "A page, sorted by id", body = Page<TorrentJson>),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    QueryParams(params): QueryParams<PageParams<TorrentId>>,
) -> Result<Json<Page<TorrentJson>>, Problem> {
    let limit = params.limit()?;
    let after = params.cursor()?;
    let torrents = site.parts.store.list_torrents(after, limit + 1).await?;
    let show = |torrent: &Torrent| TorrentJson::of(torrent, &site);
    Ok(Json(Page::of(torrents, limit as usize, |torrent| torrent.id.to_string(), show)))
}

/// Get a torrent
#[utoipa::path(
    get, path = "/api/v1/torrents/{id}", tag = "torrents",
    params(("id" = String, Path, description = "Torrent id or infohash", pattern = "^([1-9][0-9]{0,18}|[0-9a-fA-F]{40})$")),
    responses(
        (status = 200, description = "The torrent", body = TorrentDetails),
    )
)]
async fn show(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<TorrentDetails>, Problem> {
    let torrent = find(&site, &id).await?;
    let figures = site.parts.ledger.torrent(torrent.id).await?;
    Ok(Json(TorrentDetails {
        torrent: TorrentJson::of(&torrent, &site),
        figures: figures.as_ref().map(FiguresJson::of),
    }))
}

/// Add a torrent
#[utoipa::path(
    post, path = "/api/v1/torrents", tag = "torrents", request_body = CreateTorrent,
    responses(
        (status = 201, description = "The torrent", body = TorrentJson),
    )
)]
async fn add(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<CreateTorrent>,
) -> Result<(StatusCode, Json<TorrentJson>), Problem> {
    check_name(&body.name)?;
    let total_bytes = body.total_bytes.as_deref().unwrap_or("0").parse();
    let new = NewTorrent {
        id: body.id.map(torrent_id).transpose()?,
        info_hash: info_hash_of("infohash", &body.infohash)?,
        info_hash_v2: body
            .infohash_v2
            .as_deref()
            .map(|text| info_hash_of("infohash_v2", text))
            .transpose()?,
        name: body.name,
        total_bytes: total_bytes.map_err(|_| {
            Problem::bad_request("total_bytes must be decimal digits, at most 9223372036854775807")
        })?,
        created_at: site.parts.clock.now(),
    };
    add_recorded(&site, &caller, new, body.approved.unwrap_or(true)).await
}

async fn add_recorded(
    site: &Site,
    caller: &Authenticated,
    new: NewTorrent,
    is_approved: bool,
) -> Result<(StatusCode, Json<TorrentJson>), Problem> {
    let change = Change::new("torrent.add", Subject::torrent(new.id))
        .with("infohash", new.info_hash.to_string())
        .with("name", new.name.as_str());
    let adding = async {
        match is_approved {
            true => site.parts.store.add_torrent(new).await,
            false => site.parts.store.add_pending_torrent(new).await,
        }
    };
    let torrent = recorded_with(site, caller, change, adding, |record, torrent| {
        record.about(Subject::torrent(Some(torrent.id)))
    })
    .await?;
    Ok((StatusCode::CREATED, Json(TorrentJson::of(&torrent, site))))
}

fn check_name(name: &str) -> Result<(), Problem> {
    match name.chars().count() > TORRENT_NAME_CHARS_MAX || name.contains('\0') {
        true => Err(Problem::bad_request(format!(
            "name must be at most {TORRENT_NAME_CHARS_MAX} characters, without NUL"
        ))),
        false => Ok(()),
    }
}

/// Update a torrent
#[utoipa::path(
    patch, path = "/api/v1/torrents/{id}", tag = "torrents", request_body = UpdateTorrent,
    params(("id" = String, Path, description = "Torrent id or infohash", pattern = "^([1-9][0-9]{0,18}|[0-9a-fA-F]{40})$")),
    responses(
        (status = 200, description = "The torrent", body = TorrentJson),
    )
)]
async fn change(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<UpdateTorrent>,
) -> Result<Json<TorrentJson>, Problem> {
    let torrent = find(&site, &id).await?;
    let Some(action) = body.action() else { return Ok(Json(TorrentJson::of(&torrent, &site))) };
    let details = if action == "torrent.change" { body.details() } else { Vec::new() };
    let change = Change { action, subject: Subject::torrent(Some(torrent.id)), details };
    let UpdateTorrent { enabled, approved, leech_slots } = body;
    let operation =
        site.parts.store.change_torrent(torrent.id, TorrentChange { enabled, approved, leech_slots });
    recorded(&site, &caller, change, operation).await?;
    Ok(Json(TorrentJson::of(&find(&site, &id).await?, &site)))
}

/// Remove a torrent; accounts are kept
#[utoipa::path(
    delete, path = "/api/v1/torrents/{id}", tag = "torrents",
    params(("id" = String, Path, description = "Torrent id or infohash", pattern = "^([1-9][0-9]{0,18}|[0-9a-fA-F]{40})$")),
    responses(
        (status = 204, description = "Removed"),
    )
)]
async fn remove(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, Problem> {
    let torrent = find(&site, &id).await?;
    let change = Change::new("torrent.remove", Subject::torrent(Some(torrent.id)));
    recorded(&site, &caller, change, site.parts.store.remove_torrent(torrent.id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
