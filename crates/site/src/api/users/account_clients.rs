//! An account by client, exact to the byte.
//!
//! Computed from the ledger's runs, not from journal entries: the journal may be trimmed, and bytes moved while no
//! tracker was reachable are in no entry. Bounded: the most recent clients are listed, the others are summed up.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::ClientId;
use ledger::{
    AccountKey, Bridge, ClientState, EXPLAINED_CLIENTS_MAX, ExplainedClient, ExplainedStretch, Moved,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::find;
use crate::api::figures::AccountJson;
use crate::api::torrents::torrent_id;
use crate::api::torrents_by_id;
use crate::app::Routes;
use crate::extract::PathParams;
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(clients))
}

/// A client id as hexadecimal digits.
pub(super) fn client_id_text(client: ClientId) -> String {
    format!("{:016x}", client.0)
}

#[derive(Serialize, ToSchema)]
struct Transferred {
    /// Raw bytes.
    #[schema(pattern = "^-?[0-9]+$")]
    uploaded: String,
    /// Raw bytes.
    #[schema(pattern = "^-?[0-9]+$")]
    downloaded: String,
}

impl Transferred {
    fn of(moved: Moved) -> Transferred {
        Transferred { uploaded: moved.uploaded.to_string(), downloaded: moved.downloaded.to_string() }
    }
}

/// Growth of a client's counters while no tracker received its announces.
#[derive(Serialize, ToSchema)]
struct BridgedTransfer {
    /// Uploaded bytes that are credited.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Downloaded bytes that are credited.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
    /// Uploaded bytes above the rate ceiling, not credited.
    #[schema(pattern = "^[0-9]+$")]
    withheld_uploaded: String,
    /// Downloaded bytes above the rate ceiling, not credited.
    #[schema(pattern = "^[0-9]+$")]
    withheld_downloaded: String,
}

impl BridgedTransfer {
    fn of(bridge: Bridge) -> BridgedTransfer {
        BridgedTransfer {
            uploaded: bridge.granted.uploaded.to_string(),
            downloaded: bridge.granted.downloaded.to_string(),
            withheld_uploaded: bridge.withheld.uploaded.to_string(),
            withheld_downloaded: bridge.withheld.downloaded.to_string(),
        }
    }
}

/// A period in which a client's counters grew without a gap. The growth is credited up to the client's rate ceiling.
#[derive(Serialize, ToSchema)]
struct Stretch {
    /// Time of the first announce.
    first: u32,
    /// Time of the last announce.
    last: u32,
    /// Lowest announced `uploaded`.
    #[schema(pattern = "^[0-9]+$")]
    uploaded_low: String,
    /// Highest announced `uploaded`.
    #[schema(pattern = "^[0-9]+$")]
    uploaded_high: String,
    /// Lowest announced `downloaded`.
    #[schema(pattern = "^[0-9]+$")]
    downloaded_low: String,
    /// Highest announced `downloaded`.
    #[schema(pattern = "^[0-9]+$")]
    downloaded_high: String,
    /// Tracker processes that received the announces. Bytes announced to several count once.
    nodes: u64,
    /// Uploaded bytes that are credited.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Downloaded bytes that are credited.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
    /// Uploaded bytes above the rate ceiling, not credited.
    #[schema(pattern = "^[0-9]+$")]
    withheld_uploaded: String,
    /// Downloaded bytes above the rate ceiling, not credited.
    #[schema(pattern = "^[0-9]+$")]
    withheld_downloaded: String,
    /// Whether this is the end of earlier stretches that were merged into `settled` of the client.
    is_settled: bool,
    /// Growth since the previous stretch, while no tracker received announces; null for the first stretch, after
    /// `stopped`, and where the counters restarted.
    bridged: Option<BridgedTransfer>,
}

impl Stretch {
    fn of(stretch: &ExplainedStretch) -> Stretch {
        Stretch {
            first: stretch.first.0,
            last: stretch.last.0,
            uploaded_low: stretch.low.uploaded.to_string(),
            uploaded_high: stretch.high.uploaded.to_string(),
            downloaded_low: stretch.low.downloaded.to_string(),
            downloaded_high: stretch.high.downloaded.to_string(),
            nodes: stretch.nodes as u64,
            uploaded: stretch.moved.uploaded.to_string(),
            downloaded: stretch.moved.downloaded.to_string(),
            withheld_uploaded: stretch.withheld.uploaded.to_string(),
            withheld_downloaded: stretch.withheld.downloaded.to_string(),
            is_settled: stretch.is_settled,
            bridged: stretch.bridge.map(BridgedTransfer::of),
        }
    }
}

/// A client's share of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountClient)]
struct AccountClientJson {
    /// `client_id` of entries.
    #[schema(example = "0123456789abcdef")]
    id: String,
    /// `seeding`, `leeching` or `gone`.
    #[schema(example = "seeding")]
    state: &'static str,
    /// Time of the last announce.
    last_seen: u32,
    /// Total: stretches, bridged growth, `settled` and `foreign`, minus `withheld`.
    total: Transferred,
    /// Sum of earlier stretches that are no longer kept one by one.
    settled: Transferred,
    /// From entries of other producers, which have no counters.
    foreign: Transferred,
    /// Not credited: all clients of the user together exceeded the user's rate ceiling.
    withheld: Transferred,
    /// Oldest first.
    stretches: Vec<Stretch>,
}

impl AccountClientJson {
    fn of(client: &ExplainedClient) -> AccountClientJson {
        AccountClientJson {
            id: client_id_text(client.client),
            state: match client.state {
                ClientState::Inactive => "gone",
                ClientState::Seeding => "seeding",
                ClientState::Leeching => "leeching",
            },
            last_seen: client.last.0,
            total: Transferred::of(client.contribution()),
            settled: Transferred::of(client.sums.settled),
            foreign: Transferred::of(client.sums.foreign),
            withheld: Transferred::of(client.sums.withheld),
            stretches: client.stretches.iter().map(Stretch::of).collect(),
        }
    }
}

/// An account by client. Clients and rest add up to the account exactly.
#[derive(Serialize, ToSchema)]
struct AccountClients {
    /// Read in the same transaction; null before the first announce.
    account: Option<AccountJson>,
    /// Up to 100, latest announce first.
    clients: Vec<AccountClientJson>,
    /// Whether all clients are listed. If not, the others are in `rest`.
    complete: bool,
    /// Clients that are not listed or no longer kept. Credits under an earlier rate ceiling are included and may make it
    /// negative.
    rest: Transferred,
}

/// Explain a user's account on a torrent by client
///
/// Computed from client counters, independent of how far back the journal reaches.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/torrents/{torrent}/clients", tag = "users",
    params(
        ("id" = u64, Path, description = "User id", minimum = 1),
        ("torrent" = u64, Path, description = "Torrent id", minimum = 1),
    ),
    responses(
        (status = 200, description = "The account and its clients, latest announce first", body = AccountClients),
    )
)]
async fn clients(
    State(site): State<Arc<Site>>,
    PathParams((id, torrent)): PathParams<(u64, u64)>,
) -> Result<Json<AccountClients>, Problem> {
    let torrent = torrent_id(torrent)?;
    let user = find(&site, id).await?;
    let key = AccountKey { user: user.id, torrent };
    let Some(explanation) = site.parts.ledger.explain(key, EXPLAINED_CLIENTS_MAX).await? else {
        let rest = Transferred::of(Moved::default());
        return Ok(Json(AccountClients { account: None, clients: Vec::new(), complete: true, rest }));
    };
    let torrents = torrents_by_id::load(&site, [torrent]).await?;
    Ok(Json(AccountClients {
        account: Some(AccountJson::of(&key, &explanation.account, &torrents)),
        clients: explanation.clients.iter().map(AccountClientJson::of).collect(),
        complete: !explanation.is_cut,
        rest: Transferred::of(explanation.rest),
    }))
}
