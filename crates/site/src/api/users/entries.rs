//! The entries of the journal that made a figure, newest first: the detail of why it is what it is.
//!
//! Entries are looked for by reading the journal backwards, so a request has a bound: a page may be short, or empty, and
//! still not be the last. What the journal has trimmed is gone; the figures have it.

use std::sync::Arc;

use access::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{TorrentId, UserId};
use journal::{EntryId, Lane, SearchBounds, Sought, SoughtTorrent, Stored, TrafficEntry};
use ledger::{AccountKey, PastTerms};
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::account_clients::number_of;
use super::find;
use crate::api::risks::{RiskEvent, RiskParams, search_risks};
use crate::api::torrents::torrent_id;
use crate::api::torrents_by_id::{self, Torrents};
use crate::api::{Page, SCANNED_MAX};
use crate::app::Routes;
use crate::extract::{PageParams, PathParams, QueryParams, query_parameter};
use crate::problem::{Problem, ProblemBody};
use crate::scan_limit::ScanKind;
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(entries)).routes(routes!(risks))
}

/// An announce of a user, or the end of a peer of theirs that fell silent.
#[derive(Serialize, ToSchema)]
struct Entry {
    /// Its place in the journal.
    #[schema(example = "1794742234000-0")]
    id: String,
    /// When it was announced.
    at: u32,
    /// The torrent's number; null if nobody knows it any more.
    torrent: Option<u64>,
    /// Its infohash.
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// What people call it; null if it was removed.
    name: Option<String>,
    /// The client's id, in hexadecimal digits.
    peer_id: String,
    /// The program, such as `-TR3000-`; empty where the peer id does not tell.
    client: String,
    /// The client's number, as `GET /api/v1/users/{id}/torrents/{torrent}/clients` lists it.
    #[schema(example = "0123456789abcdef")]
    client_id: String,
    /// From where; only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    /// none, started, completed or stopped.
    #[schema(example = "started")]
    event: &'static str,
    /// What made it happen: announce, timeout or removal.
    #[schema(example = "announce")]
    cause: &'static str,
    /// Bytes uploaded since the announce before.
    #[schema(pattern = "^[0-9]+$")]
    uploaded_delta: String,
    /// Bytes downloaded since the announce before.
    #[schema(pattern = "^[0-9]+$")]
    downloaded_delta: String,
    /// So many of them count as uploaded, by the multipliers in force; of what another producer wrote, no more than the
    /// ceiling allows. Null if that cannot be told, since an older version removed a multiplier.
    #[schema(pattern = "^[0-9]+$")]
    credited_uploaded: Option<String>,
    /// So many of them count as downloaded; null likewise.
    #[schema(pattern = "^[0-9]+$")]
    credited_downloaded: Option<String>,
    /// Bytes still wanted; null if the client did not say.
    #[schema(pattern = "^[0-9]+$")]
    left: Option<String>,
    /// Seconds since the announce before; 0 where there was none, null where that is not known.
    elapsed_s: Option<u32>,
}

/// A page of entries.
#[derive(Serialize, ToSchema)]
struct EntryPage {
    /// The entries, newest first. There may be few, or none, and still more to come.
    items: Vec<Entry>,
    /// Where to go on; null if the journal was read to its beginning.
    next: Option<String>,
    /// When the oldest entry was written that the journal still has, whoever's it is; null if it has none.
    since: Option<u64>,
    /// How many entries were looked at for this page.
    scanned: u64,
    /// Whether the journal was read to its beginning.
    complete: bool,
}

/// Which entries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryParams {
    limit: Option<u32>,
    cursor: Option<String>,
    torrent: Option<u64>,
}

impl IntoParams for EntryParams {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let torrent =
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(i64::MAX));
        let mut parameters = PageParams::<EntryId>::into_params(within);
        parameters.push(query_parameter("torrent", "Only those on the torrent with this number.", torrent));
        parameters
    }
}

/// The entries that made a user's figures
///
/// Newest first, as far back as the journal goes. Each request looks at a bounded number of entries, so a page may be
/// short, or empty, and still not be the last: go on while there is a `next`.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/entries", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), EntryParams),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of entries; with addresses for keys with `admin`", body = EntryPage),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn entries(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<EntryParams>,
) -> Result<Json<EntryPage>, Problem> {
    let torrent = params.torrent.map(torrent_id).transpose()?;
    let page = PageParams::<EntryId>::of(params.limit, params.cursor);
    let (limit, before) = (page.limit()? as usize, page.cursor()?.unwrap_or(EntryId::MAX));
    let user = find(&site, id).await?;
    let sought = Sought {
        user: Some(user.id),
        passkey: Some(user.passkey),
        torrent: match torrent {
            Some(id) => Some(sought_torrent(&site, id).await?),
            None => None,
        },
        kind: None,
    };
    let journal = Arc::clone(&site.parts.journal);
    let bounds = SearchBounds { found_max: limit, scanned_max: SCANNED_MAX };
    let searching = async move {
        let found = journal.search(Lane::Traffic, before, &sought, bounds).await?;
        let oldest = journal.list(Lane::Traffic, EntryId::ZERO, 1).await?;
        Ok::<_, Problem>((found, oldest))
    };
    let (found, oldest) =
        site.scan_limits.run(ScanKind::Journal, &site.counters.scans_refused, searching).await??;
    // What nobody can read has made no figure: it is among the dead letters.
    let read = |stored: &Stored| Some((stored.id, TrafficEntry::parse(&stored.fields).ok()?));
    let read: Vec<(EntryId, TrafficEntry)> = found.entries.iter().filter_map(read).collect();
    let torrent_of = |entry: &TrafficEntry| {
        entry.torrent.or_else(|| site.parts.gate.torrent_of_departed(&entry.info_hash))
    };
    let torrents =
        torrents_by_id::load(&site, read.iter().filter_map(|(_, entry)| torrent_of(entry))).await?;
    let showing = Showing {
        user: user.id,
        terms: site.parts.ledger.past_terms().await?,
        torrents,
        with_address: caller.scopes.allow(Scope::Admin),
    };
    Ok(Json(EntryPage {
        items: read.iter().map(|(id, entry)| showing.entry(*id, entry, torrent_of(entry))).collect(),
        next: found.next.map(|next| next.to_string()),
        since: oldest.first().map(|stored| stored.id.ms / 1000),
        scanned: found.scanned as u64,
        complete: found.next.is_none(),
    }))
}

async fn sought_torrent(site: &Site, id: TorrentId) -> Result<SoughtTorrent, Problem> {
    let known = torrents_by_id::load(site, [id]).await?;
    let hashes = known.values().flat_map(|torrent| [Some(torrent.info_hash), torrent.info_hash_v2]);
    Ok(SoughtTorrent { id, info_hashes: hashes.flatten().collect() })
}

/// What is needed to show an entry.
struct Showing {
    user: UserId,
    terms: PastTerms,
    torrents: Torrents,
    with_address: bool,
}

impl Showing {
    fn entry(&self, id: EntryId, entry: &TrafficEntry, torrent: Option<TorrentId>) -> Entry {
        let account = torrent.map(|torrent| AccountKey { user: self.user, torrent });
        let moved = self.terms.believed(entry);
        let in_force = account.and_then(|key| self.terms.in_force(key, entry.at));
        Entry {
            id: id.to_string(),
            at: entry.at.0,
            torrent: torrent.map(TorrentId::get),
            infohash: entry.info_hash.to_string(),
            name: torrent.and_then(|id| self.torrents.get(&id)).map(|torrent| torrent.name.clone()),
            peer_id: entry.peer_id.to_string(),
            client: ledger::client_of(&entry.peer_id),
            client_id: number_of(ledger::client_id_of(self.user, entry)),
            ip: self.with_address.then(|| entry.ip.to_string()),
            event: entry.event.name(),
            cause: entry.cause.name(),
            uploaded_delta: entry.uploaded_delta.to_string(),
            downloaded_delta: entry.downloaded_delta.to_string(),
            credited_uploaded: in_force.map(|terms| terms.uploaded(moved.uploaded).to_string()),
            credited_downloaded: in_force.map(|terms| terms.downloaded(moved.downloaded).to_string()),
            left: entry.left.map(|left| left.to_string()),
            elapsed_s: entry.since_last.map(|seconds| seconds.0),
        }
    }
}

/// The risk events of a user
///
/// Newest first. Each request looks at a bounded number of risks, so a page may be short, or empty, and still not be the
/// last.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/risks", tag = "risks",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), RiskParams),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page, newest first", body = Page<RiskEvent>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn risks(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<RiskParams>,
) -> Result<Json<Page<RiskEvent>>, Problem> {
    let (kind, page) = params.read()?;
    let user = find(&site, id).await?;
    let sought = Sought { user: Some(user.id), kind, ..Sought::default() };
    search_risks(&site, sought, &page, caller.scopes.allow(Scope::Admin)).await
}
