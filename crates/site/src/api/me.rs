//! `GET /api/v1/me`: a member's own data, authenticated by the member's token. For `/me`, which a site can embed.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use domain::{TorrentId, UserId};
use gateway::hub::Identity;
use ledger::{AccountKey, Figures, HitAndRunStatus};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;
use views::Page as ListPage;

use super::figures::FiguresJson;
use super::presence::gateway_of;
use super::presence::schema::{PresenceJson, SessionJson};
use super::torrents_by_id;
use crate::app::Routes;
use crate::problem::Problem;
use crate::site::Site;

mod hit_and_run_counts;

pub(crate) use hit_and_run_counts::HitAndRunCounts;

/// Pages of `gateway.allowed_origins` may call it.
pub(crate) const PATH: &str = "/api/v1/me";

/// Torrents in each list.
const LISTED_MAX: usize = 50;
/// Maximum number of account pages that are scanned for hit-and-runs.
const ACCOUNT_PAGES_MAX: usize = 50;
const ACCOUNTS_PER_PAGE: u32 = 1000;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(me))
}

/// A member's own data.
#[derive(Serialize, ToSchema)]
struct Me {
    id: u64,
    /// As the member's own devices see it.
    presence: PresenceJson,
    /// Sessions at this gateway.
    sessions: Vec<SessionJson>,
    /// Traffic on all torrents; null before the first announce.
    figures: Option<FiguresJson>,
    /// Credited upload divided by credited download; null if nothing was downloaded.
    #[schema(example = 1.5)]
    ratio: Option<f64>,
    seeding: OwnTorrents,
    leeching: OwnTorrents,
    /// Hit-and-runs among the first 50000 accounts. Counted at most once a minute.
    hit_and_runs: u64,
    /// Number of friends.
    friends: u64,
}

/// Torrents that a member seeds or leeches.
#[derive(Default, Serialize, ToSchema)]
struct OwnTorrents {
    /// Total number.
    count: u64,
    /// Up to 50, latest announce first.
    items: Vec<OwnTorrent>,
}

/// A torrent that a member seeds or leeches.
#[derive(Serialize, ToSchema)]
struct OwnTorrent {
    /// Torrent id; null if the torrent was removed.
    torrent: Option<u64>,
    /// Null if the torrent was removed.
    name: Option<String>,
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// Time of the last announce.
    last_announce: u32,
    /// `left` of the latest announce; null if the client did not send it.
    #[schema(pattern = "^[0-9]+$")]
    left: Option<String>,
    /// Size of the content; null if unknown.
    #[schema(pattern = "^[0-9]+$")]
    total_bytes: Option<String>,
}

/// Get a member's own data
///
/// Takes the user's token, as for a connection; not an API key.
#[utoipa::path(
    get, path = "/api/v1/me", tag = "presence",
    security(("user_token" = [])),
    responses(
        (status = 200, description = "The member, also before the first announce", body = Me),
    )
)]
async fn me(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Me>, Problem> {
    let (hub, user) = (&gateway_of(&site)?.hub, identity.user);
    let presence = PresenceJson::of(&hub.admin.own_status(user).await?);
    let node = hub.admin.node_name();
    let sessions =
        hub.users.devices(user).iter().map(|session| SessionJson::of(session, node.clone())).collect();
    let figures = site.parts.ledger.user(user).await?;
    let (seeding, leeching) = own_torrents(&site, user).await?;
    Ok(Json(Me {
        id: user.get(),
        presence,
        sessions,
        ratio: figures.as_ref().and_then(ratio_of),
        figures: figures.as_ref().map(FiguresJson::of),
        seeding,
        leeching,
        hit_and_runs: hit_and_runs(&site, user).await?,
        friends: site.parts.friends.count_friends(user).await?,
    }))
}

/// Floating point suffices: the page shows two decimals.
fn ratio_of(figures: &Figures) -> Option<f64> {
    let downloaded = figures.credited_downloaded();
    (downloaded > 0).then(|| figures.credited_uploaded() as f64 / downloaded as f64)
}

/// Empty for a member without a user in the database.
async fn own_torrents(site: &Site, user: UserId) -> Result<(OwnTorrents, OwnTorrents), Problem> {
    let Some(known) = site.parts.store.user(user).await? else {
        return Ok((OwnTorrents::default(), OwnTorrents::default()));
    };
    let (activity, page) = (&site.parts.activity, ListPage::first(LISTED_MAX));
    let counts = activity.counts(&known.passkey).await?;
    let seeding = activity.seeding(&known.passkey, &page).await?.torrents;
    let leeching = activity.leeching(&known.passkey, &page).await?.torrents;
    Ok((
        OwnTorrents { count: counts.seeding, items: own_torrent_list(site, user, &seeding).await? },
        OwnTorrents { count: counts.leeching, items: own_torrent_list(site, user, &leeching).await? },
    ))
}

async fn own_torrent_list(
    site: &Site,
    user: UserId,
    listed: &[views::ActiveTorrent],
) -> Result<Vec<OwnTorrent>, Problem> {
    let id_of = |one: &views::ActiveTorrent| site.parts.gate.torrent_of(&one.info_hash);
    let ids: Vec<TorrentId> = listed.iter().filter_map(id_of).collect();
    let torrents = torrents_by_id::load(site, ids.iter().copied()).await?;
    let keys: Vec<AccountKey> = ids.iter().map(|torrent| AccountKey { user, torrent: *torrent }).collect();
    let accounts = site.parts.ledger.accounts(&keys).await?;
    let left_of = |torrent: TorrentId| {
        let account = accounts.iter().find(|(key, _)| key.torrent == torrent);
        account.and_then(|(_, account)| account.left)
    };
    let describe = |one: &views::ActiveTorrent| {
        let id = id_of(one);
        let torrent = id.and_then(|id| torrents.get(&id));
        let total_bytes = torrent.map(|torrent| torrent.total_bytes).filter(|bytes| *bytes > 0);
        OwnTorrent {
            torrent: id.map(TorrentId::get),
            name: torrent.map(|torrent| torrent.name.clone()),
            infohash: one.info_hash.to_string(),
            last_announce: one.at.0,
            left: id.and_then(left_of).map(|left| left.to_string()),
            total_bytes: total_bytes.map(|bytes| bytes.to_string()),
        }
    };
    Ok(listed.iter().map(describe).collect())
}

async fn hit_and_runs(site: &Arc<Site>, user: UserId) -> Result<u64, Problem> {
    let (counted, now_ms) = (Arc::clone(site), site.parts.clock.now_ms());
    let counting = async move { count_hit_and_runs(&counted, user).await };
    site.hit_and_run_counts.of(user, now_ms, &site.counters.hit_and_runs_forgotten, counting).await
}

async fn count_hit_and_runs(site: &Site, user: UserId) -> Result<u64, Problem> {
    let (mut count, mut after) = (0, None);
    for _ in 0..ACCOUNT_PAGES_MAX {
        let page = site.parts.ledger.accounts_of(user, after, ACCOUNTS_PER_PAGE).await?;
        let hit_and_runs = page.accounts.iter().filter(|(_, account)| {
            let standing = ledger::hit_and_run_status(account, &site.parts.hit_and_run);
            matches!(standing, HitAndRunStatus::HitAndRun { .. })
        });
        count += hit_and_runs.count() as u64;
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(count)
}
