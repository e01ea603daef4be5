//! Who is on a torrent right now.

use std::collections::HashMap;
use std::sync::Arc;

use access::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{InfoHash, TorrentId, UserId};
use http::StatusCode;
use ledger::{Account, AccountKey};
use serde::Serialize;
use swarm::PeerSight;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::find;
use crate::api::Page;
use crate::app::Routes;
use crate::extract::{PageCursor, PageParams, PathParams, QueryParams, plain_number};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(peers))
}

/// A peer of a swarm.
#[derive(Serialize, ToSchema)]
#[schema(as = Peer)]
struct PeerJson {
    /// Whose it is.
    user: u64,
    /// The client's id, in hexadecimal digits.
    peer_id: String,
    /// The program, such as `-TR3000-`; empty where the peer id does not tell.
    client: String,
    /// Whether it has everything.
    seeding: bool,
    /// Bytes it still wants, according to the accounts; null if they do not say.
    #[schema(pattern = "^[0-9]+$")]
    left: Option<String>,
    /// Its running total.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Its running total.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
    /// When it last announced.
    last_announce: u32,
    /// Where it can be reached; only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
}

impl PeerJson {
    fn of(peer: &PeerSight, left: Option<u64>, with_addresses: bool) -> PeerJson {
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

/// Who is on a torrent right now
#[utoipa::path(
    get, path = "/api/v1/torrents/{id}/peers", tag = "torrents",
    params(
        ("id" = String, Path, description = "The torrent's number, or its infohash", pattern = "^([1-9][0-9]{0,18}|[0-9a-fA-F]{40})$"),
        PageParams<PeerCursor>,
    ),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of peers, by user; with addresses for keys with `admin`", body = Page<PeerJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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
    // One more tells whether there is another page.
    peers.truncate(limit + 1);
    let accounts = accounts_of(&site, torrent.id, &peers[..peers.len().min(limit)]).await?;
    let with_addresses = caller.scopes.allow(Scope::Admin);
    let show = |peer: &PeerSight| PeerJson::of(peer, left_of(peer, &accounts), with_addresses);
    Ok(Json(Page::of(peers, limit, |peer| PeerCursor::of(peer).to_string(), show)))
}

/// The accounts of those whose peers these are.
async fn accounts_of(
    site: &Site,
    torrent: TorrentId,
    peers: &[PeerSight],
) -> Result<HashMap<UserId, Account>, Problem> {
    let mut users: Vec<UserId> = peers.iter().map(|peer| peer.user).collect();
    users.dedup();
    let keys: Vec<AccountKey> = users.into_iter().map(|user| AccountKey { user, torrent }).collect();
    let accounts = site.parts.ledger.accounts(&keys).await?;
    Ok(accounts.into_iter().map(|(key, account)| (key.user, account)).collect())
}

/// What a peer still wants. An account has the word of the client that announced last: of others nobody knows.
fn left_of(peer: &PeerSight, accounts: &HashMap<UserId, Account>) -> Option<u64> {
    if peer.is_seeding {
        return Some(0);
    }
    let account = accounts.get(&peer.user).filter(|account| account.peer_id == Some(peer.peer_id));
    account.and_then(|account| account.left)
}

/// A peer's place in the list of its swarm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PeerCursor {
    user: u64,
    peer_id: [u8; 20],
}

impl PeerCursor {
    fn of(peer: &PeerSight) -> PeerCursor {
        PeerCursor { user: peer.user.get(), peer_id: peer.peer_id.0 }
    }
}

impl PageCursor for PeerCursor {
    const PATTERN: &'static str = "^[1-9][0-9]{0,18}-[0-9a-f]{40}$";

    fn parse(text: &str) -> Option<PeerCursor> {
        let (user, peer_id) = text.split_once('-')?;
        // An infohash is twenty bytes in hexadecimal digits, as is a peer id.
        let InfoHash(peer_id) = peer_id.parse().ok()?;
        Some(PeerCursor { user: plain_number(user)?, peer_id })
    }
}

impl std::fmt::Display for PeerCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.user, InfoHash(self.peer_id))
    }
}
