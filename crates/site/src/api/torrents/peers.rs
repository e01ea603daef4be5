//! Peers of a torrent.

use std::collections::HashMap;
use std::sync::Arc;

use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{InfoHash, TorrentId, UserId};
use http::StatusCode;
use ledger::{Account, AccountKey};
use serde::Serialize;
use swarm::PeerInfo;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::find;
use crate::api::Page;
use crate::app::Routes;
use crate::extract::{PageCursor, PageParams, PathParams, QueryParams, plain_number};
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(peers))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Peer)]
struct PeerJson {
    user: u64,
    /// In hexadecimal digits.
    peer_id: String,
    /// Client prefix, such as `-TR3000-`; empty if the peer id has none.
    client: String,
    seeding: bool,
    /// Bytes left, by the account; null if unknown.
    #[schema(pattern = "^[0-9]+$")]
    left: Option<String>,
    /// As announced by the client.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// As announced by the client.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
    /// Time of the last announce.
    last_announce: u32,
    /// Only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
}

impl PeerJson {
    fn of(peer: &PeerInfo, left: Option<u64>, with_addresses: bool) -> PeerJson {
        let addresses = || [peer.v4, peer.v6].iter().flatten().map(ToString::to_string).collect();
        PeerJson {
            user: peer.user.get(),
            peer_id: peer.peer_id.to_string(),
            client: ledger::client_of(&peer.peer_id),
            seeding: peer.is_seeding,
            left: left.map(|left| left.to_string()),
            uploaded: peer.uploaded.to_string(),
            downloaded: peer.downloaded.to_string(),
            last_announce: peer.last_announce.0,
            addresses: with_addresses.then(addresses),
        }
    }
}

/// List the peers of a torrent
#[utoipa::path(
    get, path = "/api/v1/torrents/{id}/peers", tag = "torrents",
    params(
        ("id" = String, Path, description = "Torrent id or infohash", pattern = "^([1-9][0-9]{0,18}|[0-9a-fA-F]{40})$"),
        PageParams<PeerCursor>,
    ),
    responses(
        (status = 200, description = "A page, sorted by user id; with addresses for keys with `admin`", body = Page<PeerJson>),
    )
)]
async fn peers(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<String>,
    QueryParams(params): QueryParams<PageParams<PeerCursor>>,
) -> Result<Json<Page<PeerJson>>, Problem> {
    let limit = params.limit()? as usize;
    let after = params.cursor()?;
    let torrent = find(&site, &id).await?;
    let Some(tracker) = &site.parts.tracker else {
        let detail = "this process has no swarms: ask one whose roles include \"tracker\"";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_tracker", detail));
    };
    let mut peers = tracker.swarms().peers_of(&torrent.info_hash);
    peers.sort_by_key(PeerCursor::of);
    peers.retain(|peer| after.is_none_or(|after| PeerCursor::of(peer) > after));
    // One more shows whether there is a next page.
    peers.truncate(limit + 1);
    let accounts = accounts_of(&site, torrent.id, &peers[..peers.len().min(limit)]).await?;
    let with_addresses = caller.scopes.allow(Scope::Admin);
    let show = |peer: &PeerInfo| PeerJson::of(peer, left_of(peer, &accounts), with_addresses);
    Ok(Json(Page::of(peers, limit, |peer| PeerCursor::of(peer).to_string(), show)))
}

/// Accounts of the peers' users on the torrent.
async fn accounts_of(
    site: &Site,
    torrent: TorrentId,
    peers: &[PeerInfo],
) -> Result<HashMap<UserId, Account>, Problem> {
    let mut users: Vec<UserId> = peers.iter().map(|peer| peer.user).collect();
    users.dedup();
    let keys: Vec<AccountKey> = users.into_iter().map(|user| AccountKey { user, torrent }).collect();
    let accounts = site.parts.ledger.accounts(&keys).await?;
    Ok(accounts.into_iter().map(|(key, account)| (key.user, account)).collect())
}

/// An account has `left` of the client that announced last; it is unknown for other clients.
fn left_of(peer: &PeerInfo, accounts: &HashMap<UserId, Account>) -> Option<u64> {
    if peer.is_seeding {
        return Some(0);
    }
    let account = accounts.get(&peer.user).filter(|account| account.peer_id == Some(peer.peer_id));
    account.and_then(|account| account.left)
}

/// Position of a peer in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PeerCursor {
    user: u64,
    peer_id: [u8; 20],
}

impl PeerCursor {
    fn of(peer: &PeerInfo) -> PeerCursor {
        PeerCursor { user: peer.user.get(), peer_id: peer.peer_id.0 }
    }
}

impl PageCursor for PeerCursor {
    const PATTERN: &'static str = "^[1-9][0-9]{0,18}-[0-9a-f]{40}$";

    fn parse(text: &str) -> Option<PeerCursor> {
        let (user, peer_id) = text.split_once('-')?;
        // Both are 20 bytes in hexadecimal digits.
        let InfoHash(peer_id) = peer_id.parse().ok()?;
        Some(PeerCursor { user: plain_number(user)?, peer_id })
    }
}

impl std::fmt::Display for PeerCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.user, InfoHash(self.peer_id))
    }
}
