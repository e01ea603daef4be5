//! Why an account is what it is: what each client of a user brought on a torrent, to the byte.
//!
//! By the ledger's own runs, not by entries of the journal: the journal may have trimmed them, and what a client moved
//! while no tracker watched is in no entry. Bounded: the clients heard of last are listed, the others are one sum.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::ClientId;
use ledger::{AccountKey, Bridge, EXPLAINED_CLIENTS_MAX, ExplainedClient, ExplainedStretch, Moved, Presence};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::find;
use crate::api::figures::AccountJson;
use crate::api::torrents::torrent_id;
use crate::api::torrents_by_id;
use crate::app::Routes;
use crate::extract::PathParams;
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(clients))
}

/// A client's number, as it is written.
pub(super) fn number_of(client: ClientId) -> String {
    format!("{:016x}", client.0)
}

/// Bytes that were credited.
#[derive(Serialize, ToSchema)]
struct Transferred {
    /// Bytes uploaded, as they are.
    #[schema(pattern = "^-?[0-9]+$")]
    uploaded: String,
    /// Bytes downloaded, as they are.
    #[schema(pattern = "^-?[0-9]+$")]
    downloaded: String,
}

impl Transferred {
    fn of(moved: Moved) -> Transferred {
        Transferred { uploaded: moved.uploaded.to_string(), downloaded: moved.downloaded.to_string() }
    }
}

/// What counters grew by while no tracker watched.
#[derive(Serialize, ToSchema)]
struct BridgedTransfer {
    /// Bytes uploaded that are credited.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Bytes downloaded that are credited.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
    /// Bytes uploaded that are not: beyond what the ceiling allows for that time.
    #[schema(pattern = "^[0-9]+$")]
    withheld_uploaded: String,
    /// Bytes downloaded that are not.
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

/// Counters of a client that went on without a break, as far as trackers watched. How far they went is credited, up to
/// the client's rate limit, and what was bridged before it.
#[derive(Serialize, ToSchema)]
struct Stretch {
    /// When they were first heard.
    first: u32,
    /// When they were last heard.
    last: u32,
    /// The lowest the client said it had uploaded.
    #[schema(pattern = "^[0-9]+$")]
    uploaded_low: String,
    /// The highest.
    #[schema(pattern = "^[0-9]+$")]
    uploaded_high: String,
    /// The lowest the client said it had downloaded.
    #[schema(pattern = "^[0-9]+$")]
    downloaded_low: String,
    /// The highest.
    #[schema(pattern = "^[0-9]+$")]
    downloaded_high: String,
    /// How many tracker processes heard them; what several heard counts once.
    nodes: u64,
    /// Bytes uploaded that are credited of it.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Bytes downloaded that are credited of it.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
    /// Bytes uploaded that are not, being more than the client's rate limit allows.
    #[schema(pattern = "^[0-9]+$")]
    withheld_uploaded: String,
    /// Bytes downloaded that are not, likewise.
    #[schema(pattern = "^[0-9]+$")]
    withheld_downloaded: String,
    /// Whether it is only the end of those that were put away: see `settled` of the client.
    is_settled: bool,
    /// What the counters had grown by since the stretch before, while no tracker watched; null for the first, where
    /// the client began anew, and after it said `stopped`.
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

/// What a client brought.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountClient)]
struct AccountClientJson {
    /// Its number, as entries have it in `client_id`.
    #[schema(example = "0123456789abcdef")]
    id: String,
    /// `seeding`, `leeching` or `gone`.
    #[schema(example = "seeding")]
    state: &'static str,
    /// When it was last heard of.
    last_seen: u32,
    /// What it brought in all: its stretches with what was bridged, and the sums, without what was
    /// withheld.
    brought: Transferred,
    /// What stretches brought that were put away, since a client had too many.
    settled: Transferred,
    /// What entries brought that other producers wrote, without counters.
    foreign: Transferred,
    /// What was not credited, because all clients of the user together claimed more than their rate limit allows.
    withheld: Transferred,
    /// Its counters, the oldest first.
    stretches: Vec<Stretch>,
}

impl AccountClientJson {
    fn of(client: &ExplainedClient) -> AccountClientJson {
        AccountClientJson {
            id: number_of(client.client),
            state: match client.presence {
                Presence::Gone => "gone",
                Presence::Seeding => "seeding",
                Presence::Leeching => "leeching",
            },
            last_seen: client.last.0,
            brought: Transferred::of(client.brought()),
            settled: Transferred::of(client.sums.settled),
            foreign: Transferred::of(client.sums.foreign),
            withheld: Transferred::of(client.sums.withheld),
            stretches: client.stretches.iter().map(Stretch::of).collect(),
        }
    }
}

/// Why an account is what it is. What the clients brought and the rest are the account's bytes, exactly.
#[derive(Serialize, ToSchema)]
struct AccountClients {
    /// The account, of the same moment; null if nothing was ever heard.
    account: Option<AccountJson>,
    /// Its clients, those heard of last first, up to 100.
    clients: Vec<AccountClientJson>,
    /// Whether these are all that are known. If not, the others are in the rest.
    complete: bool,
    /// What is known only as a sum: clients that are not listed, or were not heard of for so long that they are no longer
    /// kept. What was credited under another ceiling than today's is in it, too, and may make it less than nothing.
    rest: Transferred,
}

/// What made a user's account on a torrent: its clients
///
/// What each client brought, by its own counters. Whatever the journal has trimmed, the parts come to the account's bytes.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/torrents/{torrent}/clients", tag = "users",
    params(
        ("id" = u64, Path, description = "The user's number", minimum = 1),
        ("torrent" = u64, Path, description = "The torrent's number", minimum = 1),
    ),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The account and its clients, those heard of last first", body = AccountClients),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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
