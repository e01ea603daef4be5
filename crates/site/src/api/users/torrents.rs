//! What a user has on torrents: accounts, what they seed and leech right now (A5), where they owe seeding.

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
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new()
        .routes(routes!(torrents))
        .routes(routes!(seeding))
        .routes(routes!(leeching))
        .routes(routes!(hit_and_runs))
}

/// A torrent that a user seeds or leeches right now.
#[derive(Serialize, ToSchema)]
struct ActiveTorrent {
    /// The torrent.
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// Its number; null if nobody knows it any more.
    torrent: Option<u64>,
    /// What people call it; null likewise.
    name: Option<String>,
    /// The last announce.
    last_announce: u32,
}

/// A page of what a user seeds or leeches, newest announce first.
#[derive(Serialize, ToSchema)]
struct ActiveTorrentPage {
    /// How many there are in all.
    count: u64,
    /// What is on this page.
    items: Vec<ActiveTorrent>,
    /// Where the next page begins; null if this is the last.
    next: Option<String>,
}

/// A user's account on each torrent
#[utoipa::path(
    get, path = "/api/v1/users/{id}/torrents", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageParams<TorrentId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of accounts, by the torrents' numbers", body = Page<AccountJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

/// What a user seeds right now
#[utoipa::path(
    get, path = "/api/v1/users/{id}/seeding", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageParams<Cursor>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "Newest announce first", body = ActiveTorrentPage),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn seeding(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<Cursor>>,
) -> Result<Json<ActiveTorrentPage>, Problem> {
    active(&site, id, &params, List::Seeding).await
}

/// What a user leeches right now
#[utoipa::path(
    get, path = "/api/v1/users/{id}/leeching", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageParams<Cursor>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "Newest announce first", body = ActiveTorrentPage),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

/// Where a user owes seeding
#[utoipa::path(
    get, path = "/api/v1/users/{id}/hit-and-runs", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageParams<TorrentId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page, by the torrents' numbers; it may be short, or empty, and still not be the last",
            body = Page<HitAndRun>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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
    // One page of accounts is looked at, however many of them owe something: a request has a bound.
    let page = site.parts.ledger.accounts_of(user.id, after, limit).await?;
    let torrents = torrents_by_id::load(&site, page.accounts.iter().map(|(key, _)| key.torrent)).await?;
    let items = page.accounts.iter().filter_map(|(key, account)| {
        let standing = ledger::standing(account, &site.parts.hit_and_run);
        HitAndRun::of(AccountJson::of(key, account, &torrents), &standing)
    });
    Ok(Json(Page { items: items.collect(), next: page.next.map(|torrent| torrent.to_string()) }))
}
