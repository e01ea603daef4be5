//! Torrents as people look through them: by how many are on them, by size, by age; all, or those that a search finds.
//!
//! How many are on them comes from the swarms of this process, or else from the indexes of the Redis layout (M10), or else
//! from nowhere; the rest comes from the database, for one page at a time.

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
use crate::extract::{PageCursor, PageParams, QueryParams, query_parameter};
use crate::problem::{Problem, ProblemBody};
use crate::ranking::{PageRequest, RankedBy, Ranking, RankingCursor};
use crate::scan_limit::ScanKind;
use crate::site::Site;

/// Torrents that a search finds, at the most, where they are ranked in memory.
const FOUND_MAX: u32 = 100_000;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

/// What a torrent is, without its swarm.
#[derive(Serialize, ToSchema)]
struct TorrentSummary {
    /// Its number.
    id: u64,
    /// Its one name.
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// What people call it.
    name: String,
    /// The size of its content; `"0"` where it is not known.
    #[schema(pattern = "^[0-9]+$")]
    total_bytes: String,
    /// Whether it may be announced.
    enabled: bool,
    /// Whether it is open to all.
    approved: bool,
    /// When it was added.
    created_at: u32,
}

/// A torrent and how many are on it.
#[derive(Serialize, ToSchema)]
struct ListedSwarm {
    /// The torrent.
    torrent: TorrentSummary,
    /// Peers that have everything; null if this process cannot know.
    seeders: Option<u32>,
    /// Peers that do not; null likewise.
    leechers: Option<u32>,
    /// How often it was completed; null likewise.
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

/// A page of torrents and how many are on them.
#[derive(Serialize, ToSchema)]
struct SwarmPage {
    /// What is on this page.
    items: Vec<ListedSwarm>,
    /// Where the next page begins; null if this is the last.
    next: Option<String>,
    /// How many there are in all; of a search that finds more than 100000, so many.
    total: u64,
}

/// What torrents are put in order by.
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

/// Which way.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    #[default]
    Desc,
    Asc,
}

/// Which torrents, in which order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwarmParams {
    #[serde(default)]
    sort: Sort,
    #[serde(default)]
    order: Order,
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
            query_parameter("sort", "By what. The torrents' numbers decide ties.", sort),
            query_parameter("order", "Whether the largest (the newest) comes first, or last.", order),
            query_parameter(
                "search",
                "Only torrents with this in their name, in upper or lower case; or whose infohash begins with these \
                 four or more hexadecimal digits; or with this number.",
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
        // Spaces around it are not looked for, but count.
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

/// A place in a list of swarms: the ranking it belongs to (0 where there is none), the last value, the last number.
impl PageCursor for RankingCursor {
    const PATTERN: &'static str = "^[0-9]{1,15}--?[0-9]{1,19}-[1-9][0-9]{0,18}$";

    fn parse(text: &str) -> Option<RankingCursor> {
        let number = |text: &str, digits_max: usize| {
            let is_decimal = text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_digit());
            is_decimal.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (made_ms, rest) = text.split_once('-')?;
        // Sites may have written times before 1970.
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

/// Torrents by how many are on them, by size, or by age
///
/// Pages join without gaps or repeats while swarms change, for at least a while: figures are those of the moment at which
/// the first page was asked for.
#[utoipa::path(
    get, path = "/api/v1/swarms", tag = "torrents", params(SwarmParams),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of torrents", body = SwarmPage),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    QueryParams(params): QueryParams<SwarmParams>,
) -> Result<Json<SwarmPage>, Problem> {
    let search = params.search()?;
    let descending = params.order == Order::Desc;
    let sort = params.sort;
    let page = PageParams::<RankingCursor>::of(params.limit, params.cursor);
    let params = Page { search, descending, after: page.cursor()?, limit: page.limit()? };
    let shown = match sort {
        Sort::Seeders => ranked(&site, RankedBy::Seeders, params).await,
        Sort::Leechers => ranked(&site, RankedBy::Leechers, params).await,
        Sort::Snatches => ranked(&site, RankedBy::Snatches, params).await,
        Sort::Size => catalogued(&site, CatalogueKey::Size, params).await,
        Sort::Added => catalogued(&site, CatalogueKey::Added, params).await,
    };
    shown.map(Json)
}

/// A page that is asked for, but for the order.
struct Page {
    search: Option<NameSearch>,
    descending: bool,
    after: Option<RankingCursor>,
    limit: u32,
}

/// By how many are on them.
async fn ranked(site: &Arc<Site>, by: RankedBy, params: Page) -> Result<SwarmPage, Problem> {
    let Page { search, descending, after, limit } = params;
    let (ranking, page, total) = match search {
        None => {
            let ranking = site.rankings.for_cursor(after, Some(by), site.parts.clock.now_ms()).await?;
            let request = PageRequest { by, descending, after, among: None, limit: limit as usize };
            let total = ranking.len();
            let (ranking, page) = paged(ranking, move |ranking| ranking.page(&request)).await?;
            (ranking, page, total)
        }
        Some(search) => {
            let looking = Arc::clone(site);
            let searching = async move {
                let found = found_by(&looking, &search).await?;
                let now_ms = looking.parts.clock.now_ms();
                let ranking = looking.rankings.for_cursor(after, Some(by), now_ms).await?;
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
    // One that was removed a moment ago is left out.
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

/// Reads in a ranking, off the threads that answer requests.
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

async fn found_by(site: &Site, search: &NameSearch) -> Result<Vec<TorrentId>, Problem> {
    let found = site.parts.store.find_torrents(search, FOUND_MAX).await?;
    if found.len() >= FOUND_MAX as usize {
        site.counters.searches_cut.increment();
    }
    Ok(found)
}

/// By what the database knows. Figures are those of the present moment.
async fn catalogued(site: &Arc<Site>, by: CatalogueKey, params: Page) -> Result<SwarmPage, Problem> {
    let Page { search, descending, after, limit } = params;
    let order = CatalogueOrder { by, descending, after: after.map(|place| (place.value, place.id)) };
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
