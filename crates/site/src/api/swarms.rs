//! The list of torrents, sorted by peer counts, size or age, and searched.
//!
//! Counts come from the swarms of this process, else from the indexes of the Redis mirror (M10), else they are unknown.
//! Names, sizes and dates are read from the database, one page at a time.

use std::collections::HashSet;
use std::sync::Arc;

use access::{CatalogueKey, CatalogueOrder, NameSearch, Torrent};
use axum::Json;
use axum::extract::State;
use domain::TorrentId;
use serde::{Deserialize, Serialize};
use swarm::SwarmCounts;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::torrents_by_id;
use crate::app::Routes;
use crate::extract::{Order, PageCursor, PageParams, QueryParams, query_parameter};
use crate::problem::Problem;
use crate::ranking::{PageRequest, RankedBy, Ranking, RankingCursor};
use crate::scan_limit::ScanKind;
use crate::site::Site;

/// Maximum number of search results that are sorted in memory.
const FOUND_MAX: u32 = 100_000;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

/// A torrent without its swarm.
#[derive(Serialize, ToSchema)]
struct TorrentSummary {
    id: u64,
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    name: String,
    /// Size of the content; `"0"` if unknown.
    #[schema(pattern = "^[0-9]+$")]
    total_bytes: String,
    /// Whether announces are accepted.
    enabled: bool,
    /// While false, announces are accepted but no peers are returned.
    approved: bool,
    created_at: u32,
}

/// A torrent with the counts of its swarm.
#[derive(Serialize, ToSchema)]
struct ListedSwarm {
    torrent: TorrentSummary,
    /// Null if this process has no counts.
    seeders: Option<u32>,
    /// Null if this process has no counts.
    leechers: Option<u32>,
    /// Completions; null if this process has no counts.
    snatches: Option<u32>,
}

impl ListedSwarm {
    fn of(torrent: &Torrent, counts: Option<SwarmCounts>) -> ListedSwarm {
        ListedSwarm {
            torrent: TorrentSummary {
                id: torrent.id.get(),
                infohash: torrent.info_hash.to_string(),
                name: torrent.name.clone(),
                total_bytes: torrent.total_bytes.to_string(),
                enabled: torrent.enabled,
                approved: torrent.approved,
                created_at: torrent.created_at.0,
            },
            seeders: counts.map(|counts| counts.seeders),
            leechers: counts.map(|counts| counts.leechers),
            snatches: counts.map(|counts| counts.snatches),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct SwarmPage {
    items: Vec<ListedSwarm>,
    /// `cursor` of the next page; null after the last page.
    next: Option<String>,
    /// Torrents on all pages; for a search at most 100000.
    total: u64,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Seeders,
    Leechers,
    Snatches,
    Size,
    Added,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwarmParams {
    #[serde(default)]
    sort: Sort,
    order: Option<Order>,
    search: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl IntoParams for SwarmParams {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let sort = text()
            .enum_values(Some(["seeders", "leechers", "snatches", "size", "added"]))
            .default(Some("seeders".into()));
        let order = text().enum_values(Some(["desc", "asc"])).default(Some("desc".into()));
        let search = text().max_length(Some(NameSearch::CHARS_MAX)).pattern(Some("^[^\\x00]*$"));
        let mut parameters = vec![
            query_parameter("sort", "Sort key. Ties are broken by id.", sort),
            query_parameter("order", "Sort order.", order),
            query_parameter(
                "search",
                "Only torrents whose name contains this text, ignoring case; whose infohash begins with these \
                 four or more hexadecimal digits; or with this id.",
                search,
            ),
        ];
        parameters.extend(PageParams::<RankingCursor>::into_params(within));
        parameters
    }
}

impl SwarmParams {
    fn search(&self) -> Result<Option<NameSearch>, Problem> {
        let text = self.search.as_deref().unwrap_or_default();
        // Surrounding spaces are ignored, but count towards the limit.
        if text.len() > NameSearch::CHARS_MAX && text.chars().count() > NameSearch::CHARS_MAX {
            return Err(Problem::bad_request(format!(
                "search: at most {} characters",
                NameSearch::CHARS_MAX
            )));
        }
        match text.trim() {
            "" => Ok(None),
            text => Ok(Some(NameSearch::new(text)?)),
        }
    }
}

/// Id of the ranking (0 for lists from the database), last value, last torrent id.
impl PageCursor for RankingCursor {
    const PATTERN: &'static str = "^[0-9]{1,15}--?[0-9]{1,19}-[1-9][0-9]{0,18}$";

    fn parse(text: &str) -> Option<RankingCursor> {
        let number = |text: &str, digits_max: usize| {
            let is_decimal = text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_digit());
            is_decimal.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (made_ms, rest) = text.split_once('-')?;
        // Sites may have stored times before 1970.
        let (value, id) = rest.rsplit_once('-')?;
        let value = match value.strip_prefix('-') {
            Some(below) => 0_i64.saturating_sub_unsigned(number(below, 19)?),
            None => 0_i64.saturating_add_unsigned(number(value, 19)?),
        };
        Some(RankingCursor {
            made_ms: number(made_ms, 15)?,
            value,
            id: <TorrentId as PageCursor>::parse(id)?,
        })
    }
}

impl std::fmt::Display for RankingCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.made_ms, self.value, self.id)
    }
}

/// List torrents with their swarms
///
/// Pages of one ranking are consistent: counts are those of the first page, for about five minutes.
#[utoipa::path(
    get, path = "/api/v1/swarms", tag = "torrents", params(SwarmParams),
    responses(
        (status = 200, description = "A page", body = SwarmPage),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    QueryParams(params): QueryParams<SwarmParams>,
) -> Result<Json<SwarmPage>, Problem> {
    let search = params.search()?;
    let descending = params.order != Some(Order::Asc);
    let sort = params.sort;
    let page = PageParams::<RankingCursor>::of(params.limit, params.cursor);
    let params = PageSpec { search, descending, after: page.cursor()?, limit: page.limit()? };
    let shown = match sort {
        Sort::Seeders => ranked(&site, RankedBy::Seeders, params).await,
        Sort::Leechers => ranked(&site, RankedBy::Leechers, params).await,
        Sort::Snatches => ranked(&site, RankedBy::Snatches, params).await,
        Sort::Size => sorted_by_database(&site, CatalogueKey::Size, params).await,
        Sort::Added => sorted_by_database(&site, CatalogueKey::Added, params).await,
    };
    shown.map(Json)
}

/// Page parameters without the sort key.
struct PageSpec {
    search: Option<NameSearch>,
    descending: bool,
    after: Option<RankingCursor>,
    limit: u32,
}

/// Sorted by counts.
async fn ranked(site: &Arc<Site>, by: RankedBy, params: PageSpec) -> Result<SwarmPage, Problem> {
    let PageSpec { search, descending, after, limit } = params;
    let (ranking, page, total) = match search {
        None => {
            let ranking = site.rankings.for_cursor(after, Some(by), site.parts.clock.now_ms()).await?;
            let request = PageRequest { by, descending, after, among: None, limit: limit as usize };
            let total = ranking.len();
            let (ranking, page) = paged(ranking, move |ranking| ranking.page(&request)).await?;
            (ranking, page, total)
        }
        Some(search) => {
            let searched = Arc::clone(site);
            let searching = async move {
                let found = search_torrents(&searched, &search).await?;
                let now_ms = searched.parts.clock.now_ms();
                let ranking = searched.rankings.for_cursor(after, Some(by), now_ms).await?;
                let (ranking, (page, total)) = paged(ranking, move |ranking| {
                    let among: HashSet<TorrentId> = found.into_iter().collect();
                    let request =
                        PageRequest { by, descending, after, among: Some(&among), limit: limit as usize };
                    (ranking.page(&request), among.len())
                })
                .await?;
                Ok::<_, Problem>((ranking, page, total))
            };
            site.scan_limits.run(ScanKind::Names, &site.counters.scans_refused, searching).await??
        }
    };
    if page.next.is_some() {
        site.rankings.keep(&ranking);
    }
    let torrents = torrents_by_id::load(site, page.torrents.iter().map(|one| one.id)).await?;
    // Torrents that were removed meanwhile are omitted.
    let items = page.torrents.iter().filter_map(|one| {
        let counts = ranking.has_counts.then_some(one.counts);
        torrents.get(&one.id).map(|torrent| ListedSwarm::of(torrent, counts))
    });
    Ok(SwarmPage {
        items: items.collect(),
        next: page.next.map(|next| next.to_string()),
        total: total as u64,
    })
}

/// Reads from a ranking on a blocking thread.
async fn paged<T: Send + 'static>(
    ranking: Arc<Ranking>,
    read: impl FnOnce(&Ranking) -> T + Send + 'static,
) -> Result<(Arc<Ranking>, T), Problem> {
    let reading = tokio::task::spawn_blocking(move || {
        let page = read(&ranking);
        (ranking, page)
    });
    reading.await.map_err(|error| Problem::internal("the list of swarms", &error))
}

async fn search_torrents(site: &Site, search: &NameSearch) -> Result<Vec<TorrentId>, Problem> {
    let found = site.parts.store.find_torrents(search, FOUND_MAX).await?;
    if found.len() >= FOUND_MAX as usize {
        site.counters.searches_cut.increment();
    }
    Ok(found)
}

/// Sorted by the database. Counts are current.
async fn sorted_by_database(
    site: &Arc<Site>,
    by: CatalogueKey,
    params: PageSpec,
) -> Result<SwarmPage, Problem> {
    let PageSpec { search, descending, after, limit } = params;
    let order = CatalogueOrder { by, descending, after: after.map(|cursor| (cursor.value, cursor.id)) };
    let store = site.parts.store.clone();
    let (page, total) = match search {
        None => {
            let page = store.torrents_in_order(order, None, limit).await?;
            (page, site.parts.gate.torrent_count() as u64)
        }
        Some(search) => {
            let searching = async move {
                let page = store.torrents_in_order(order, Some(&search), limit).await?;
                let total = store.count_found(&search).await?.min(FOUND_MAX.into());
                Ok::<_, Problem>((page, total))
            };
            site.scan_limits.run(ScanKind::Names, &site.counters.scans_refused, searching).await??
        }
    };
    let items = match &site.parts.tracker {
        Some(tracker) => {
            let counts = |torrent: &Torrent| Some(tracker.swarms().scrape(&torrent.info_hash));
            page.torrents.iter().map(|torrent| ListedSwarm::of(torrent, counts(torrent))).collect()
        }
        None => {
            let ranking = site.rankings.for_cursor(None, None, site.parts.clock.now_ms()).await?;
            let counts = |torrent: &Torrent| ranking.counts_of(torrent.id);
            page.torrents.iter().map(|torrent| ListedSwarm::of(torrent, counts(torrent))).collect()
        }
    };
    Ok(SwarmPage {
        items,
        next: page.next.map(|(value, id)| RankingCursor { made_ms: 0, value, id }.to_string()),
        total,
    })
}
