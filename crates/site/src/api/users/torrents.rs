//! A user's torrents: accounts, seeding and leeching (A5), hit-and-runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::TorrentId;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;
use views::{Cursor, Page as ListPage};

use super::find;
use crate::api::figures::{AccountJson, HitAndRun};
use crate::api::{Page, torrents_by_id};
use crate::app::Routes;
use crate::extract::{PageParams, PathParams, QueryParams};
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new()
        .routes(routes!(torrents))
        .routes(routes!(seeding))
        .routes(routes!(leeching))
        .routes(routes!(hit_and_runs))
}

/// A torrent that a user seeds or leeches now.
#[derive(Serialize, ToSchema)]
struct ActiveTorrent {
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// Torrent id; null if the torrent was removed.
    torrent: Option<u64>,
    /// Null if the torrent was removed.
    name: Option<String>,
    /// Time of the last announce.
    last_announce: u32,
}

/// Torrents that a user seeds or leeches, latest announce first.
#[derive(Serialize, ToSchema)]
struct ActiveTorrentPage {
    /// Torrents on all pages.
    count: u64,
    items: Vec<ActiveTorrent>,
    /// `cursor` of the next page; null after the last page.
    next: Option<String>,
}

/// List a user's accounts
#[utoipa::path(
    get, path = "/api/v1/users/{id}/torrents", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1), PageParams<TorrentId>),
    responses(
        (status = 200, description = "A page, sorted by torrent id", body = Page<AccountJson>),
    )
)]
async fn torrents(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<TorrentId>>,
) -> Result<Json<Page<AccountJson>>, Problem> {
    let after = params.cursor()?;
    let limit = params.limit()?;
    let user = find(&site, id).await?;
    let page = site.parts.ledger.accounts_of(user.id, after, limit).await?;
    let torrents = torrents_by_id::load(&site, page.accounts.iter().map(|(key, _)| key.torrent)).await?;
    let items = page.accounts.iter().map(|(key, account)| AccountJson::of(key, account, &torrents));
    Ok(Json(Page { items: items.collect(), next: page.next.map(|torrent| torrent.to_string()) }))
}

/// List the torrents that a user seeds
#[utoipa::path(
    get, path = "/api/v1/users/{id}/seeding", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1), PageParams<Cursor>),
    responses(
        (status = 200, description = "A page, latest announce first", body = ActiveTorrentPage),
    )
)]
async fn seeding(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<Cursor>>,
) -> Result<Json<ActiveTorrentPage>, Problem> {
    active(&site, id, &params, List::Seeding).await
}

/// List the torrents that a user leeches
#[utoipa::path(
    get, path = "/api/v1/users/{id}/leeching", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1), PageParams<Cursor>),
    responses(
        (status = 200, description = "A page, latest announce first", body = ActiveTorrentPage),
    )
)]
async fn leeching(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<Cursor>>,
) -> Result<Json<ActiveTorrentPage>, Problem> {
    active(&site, id, &params, List::Leeching).await
}

#[derive(Clone, Copy)]
enum List {
    Seeding,
    Leeching,
}

async fn active(
    site: &Site,
    id: u64,
    params: &PageParams<Cursor>,
    list: List,
) -> Result<Json<ActiveTorrentPage>, Problem> {
    let after = params.cursor()?;
    let page = ListPage { after, limit: params.limit()? as usize };
    let passkey = find(site, id).await?.passkey;
    let activity = &site.parts.activity;
    let listing = match list {
        List::Seeding => activity.seeding(&passkey, &page).await?,
        List::Leeching => activity.leeching(&passkey, &page).await?,
    };
    let counts = activity.counts(&passkey).await?;
    let id_of = |torrent: &views::ActiveTorrent| site.parts.gate.torrent_of(&torrent.info_hash);
    let torrents = torrents_by_id::load(site, listing.torrents.iter().filter_map(id_of)).await?;
    let shown = |torrent: &views::ActiveTorrent| {
        let id = id_of(torrent);
        ActiveTorrent {
            infohash: torrent.info_hash.to_string(),
            torrent: id.map(TorrentId::get),
            name: id.and_then(|id| torrents.get(&id)).map(|torrent| torrent.name.clone()),
            last_announce: torrent.at.0,
        }
    };
    Ok(Json(ActiveTorrentPage {
        count: match list {
            List::Seeding => counts.seeding,
            List::Leeching => counts.leeching,
        },
        items: listing.torrents.iter().map(shown).collect(),
        next: listing.next.map(|cursor| cursor.to_string()),
    }))
}

/// List a user's hit-and-runs and torrents with seeding time owed
#[utoipa::path(
    get, path = "/api/v1/users/{id}/hit-and-runs", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1), PageParams<TorrentId>),
    responses(
        (status = 200, description = "A page, sorted by torrent id; may be short or empty while `next` is not null",
            body = Page<HitAndRun>),
    )
)]
async fn hit_and_runs(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<TorrentId>>,
) -> Result<Json<Page<HitAndRun>>, Problem> {
    let after = params.cursor()?;
    let limit = params.limit()?;
    let user = find(&site, id).await?;
    // Reads one page of accounts, however many of them match, so that a request is bounded.
    let page = site.parts.ledger.accounts_of(user.id, after, limit).await?;
    let torrents = torrents_by_id::load(&site, page.accounts.iter().map(|(key, _)| key.torrent)).await?;
    let items = page.accounts.iter().filter_map(|(key, account)| {
        let standing = ledger::hit_and_run_status(account, &site.parts.hit_and_run);
        HitAndRun::of(AccountJson::of(key, account, &torrents), &standing)
    });
    Ok(Json(Page { items: items.collect(), next: page.next.map(|torrent| torrent.to_string()) }))
}
