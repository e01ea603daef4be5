//! The journal entries behind a user's figures, newest first.
//!
//! A request reads a bounded number of entries backwards, so a page may be short or empty and not be the last. Trimmed
//! entries are missing here, but included in the figures.

use std::sync::Arc;

use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{TorrentId, UserId};
use journal::{EntryFilter, EntryId, Lane, SearchBounds, Stored, TorrentFilter, TrafficEntry};
use ledger::{AccountKey, PastMultipliers};
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::account_clients::client_id_text;
use super::find;
use crate::api::risks::{RiskEvent, RiskParams, search_risks};
use crate::api::torrents::torrent_id;
use crate::api::torrents_by_id::{self, Torrents};
use crate::api::{Page, SCANNED_MAX};
use crate::app::Routes;
use crate::extract::{PageParams, PathParams, QueryParams, query_parameter};
use crate::problem::Problem;
use crate::scan_limit::ScanKind;
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(entries)).routes(routes!(risks))
}

/// An announce, or the expiry or removal of a peer.
#[derive(Serialize, ToSchema)]
struct Entry {
    /// Entry id in the journal.
    #[schema(example = "1794742234000-0")]
    id: String,
    /// Time of the announce.
    at: u32,
    /// Torrent id; null if the torrent was removed.
    torrent: Option<u64>,
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// Null if the torrent was removed.
    name: Option<String>,
    /// In hexadecimal digits.
    peer_id: String,
    /// Client prefix, such as `-TR3000-`; empty if the peer id has none.
    client: String,
    /// Id in `GET /api/v1/users/{id}/torrents/{torrent}/clients`.
    #[schema(example = "0123456789abcdef")]
    client_id: String,
    /// Only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    /// none, started, completed or stopped.
    #[schema(example = "started")]
    event: &'static str,
    /// announce, timeout or removal.
    #[schema(example = "announce")]
    cause: &'static str,
    /// Bytes since the previous announce.
    #[schema(pattern = "^[0-9]+$")]
    uploaded_delta: String,
    /// Bytes since the previous announce.
    #[schema(pattern = "^[0-9]+$")]
    downloaded_delta: String,
    /// After multipliers; entries of other producers are limited by the rate ceiling. Null if unknown, because an older
    /// version removed a multiplier.
    #[schema(pattern = "^[0-9]+$")]
    credited_uploaded: Option<String>,
    /// As `credited_uploaded`.
    #[schema(pattern = "^[0-9]+$")]
    credited_downloaded: Option<String>,
    /// Bytes left; null if the client did not send it.
    #[schema(pattern = "^[0-9]+$")]
    left: Option<String>,
    /// Seconds since the previous announce; 0 for the first, null if unknown.
    elapsed_s: Option<u32>,
}

#[derive(Serialize, ToSchema)]
struct EntryPage {
    /// Newest first. May be short or empty while `next` is not null.
    items: Vec<Entry>,
    /// `cursor` of the next page; null if the journal was read to its beginning.
    next: Option<String>,
    /// Time of the oldest entry in the journal, of any user; null if the journal is empty.
    since: Option<u64>,
    /// Entries scanned for this page.
    scanned: u64,
    /// Whether the journal was read to its beginning.
    complete: bool,
}

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
        parameters.push(query_parameter("torrent", "Only entries of this torrent id.", torrent));
        parameters
    }
}

/// List the journal entries of a user
///
/// Newest first, as far back as the journal reaches. Each request scans a bounded number of entries: a page may be short
/// or empty. Continue until `next` is null.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/entries", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1), EntryParams),
    responses(
        (status = 200, description = "A page; with addresses for keys with `admin`", body = EntryPage),
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
    let sought = EntryFilter {
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
    // Malformed entries are in no figure: they are dead letters.
    let read = |stored: &Stored| Some((stored.id, TrafficEntry::parse(&stored.fields).ok()?));
    let read: Vec<(EntryId, TrafficEntry)> = found.entries.iter().filter_map(read).collect();
    let torrent_of = |entry: &TrafficEntry| {
        entry.torrent.or_else(|| site.parts.gate.present_or_removed_torrent_of(&entry.info_hash))
    };
    let torrents =
        torrents_by_id::load(&site, read.iter().filter_map(|(_, entry)| torrent_of(entry))).await?;
    let context = EntryContext {
        user: user.id,
        terms: site.parts.ledger.past_multipliers().await?,
        torrents,
        with_address: caller.scopes.allow(Scope::Admin),
    };
    Ok(Json(EntryPage {
        items: read.iter().map(|(id, entry)| context.entry(*id, entry, torrent_of(entry))).collect(),
        next: found.next.map(|next| next.to_string()),
        since: oldest.first().map(|stored| stored.id.ms / 1000),
        scanned: found.scanned as u64,
        complete: found.next.is_none(),
    }))
}

async fn sought_torrent(site: &Site, id: TorrentId) -> Result<TorrentFilter, Problem> {
    let known = torrents_by_id::load(site, [id]).await?;
    let hashes = known.values().flat_map(|torrent| [Some(torrent.info_hash), torrent.info_hash_v2]);
    Ok(TorrentFilter { id, info_hashes: hashes.flatten().collect() })
}

/// What the conversion of an entry needs.
struct EntryContext {
    user: UserId,
    terms: PastMultipliers,
    torrents: Torrents,
    with_address: bool,
}

impl EntryContext {
    fn entry(&self, id: EntryId, entry: &TrafficEntry, torrent: Option<TorrentId>) -> Entry {
        let account = torrent.map(|torrent| AccountKey { user: self.user, torrent });
        let moved = self.terms.plausible(entry);
        let in_force = account.and_then(|key| self.terms.in_force(key, entry.at));
        Entry {
            id: id.to_string(),
            at: entry.at.0,
            torrent: torrent.map(TorrentId::get),
            infohash: entry.info_hash.to_string(),
            name: torrent.and_then(|id| self.torrents.get(&id)).map(|torrent| torrent.name.clone()),
            peer_id: entry.peer_id.to_string(),
            client: ledger::client_of(&entry.peer_id),
            client_id: client_id_text(ledger::client_id_of(self.user, entry)),
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

/// List the risk events of a user
///
/// Newest first. Each request scans a bounded number of events: a page may be short or empty. Continue until `next` is
/// null.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/risks", tag = "risks",
    params(("id" = u64, Path, description = "User id", minimum = 1), RiskParams),
    responses(
        (status = 200, description = "A page, newest first", body = Page<RiskEvent>),
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
    let sought = EntryFilter { user: Some(user.id), kind, ..EntryFilter::default() };
    search_risks(&site, sought, &page, caller.scopes.allow(Scope::Admin)).await
}
