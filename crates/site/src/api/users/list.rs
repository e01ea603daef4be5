//! The list of users, sorted, filtered and searched.
//!
//! By id, users are read from the database. Other orders and filters use the user ranking, which is cached for a few
//! seconds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use access::{NameSearch, User};
use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{Passkey, UserId};
use ledger::Figures;
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;
use views::activity::Counts;

use super::UserJson;
use crate::api::figures::FiguresJson;
use crate::api::presence::gateway_of;
use crate::app::Routes;
use crate::extract::{Order, PageCursor, PageParams, QueryParams, query_parameter};
use crate::problem::Problem;
use crate::scan_limit::ScanKind;
use crate::site::Site;
use crate::user_ranking::{PageRequest, SortedBy, UserCursor, UserRanking, UserRankingPage, UserRow};

/// Maximum length of a search: that of a display name.
const SEARCH_CHARS_MAX: usize = 100;
/// Maximum number of search results that are sorted in memory.
const FOUND_MAX: u32 = 100_000;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(list))
}

/// A user with traffic and activity.
#[derive(Serialize, ToSchema)]
struct ListedUser {
    #[serde(flatten)]
    user: UserJson,
    /// Traffic on all torrents; null before the first announce.
    figures: Option<FiguresJson>,
    /// Credited upload divided by credited download; null if nothing was downloaded.
    #[schema(example = 1.5)]
    ratio: Option<f64>,
    /// Torrents that the user seeds now; null while the activity lists are unavailable.
    seeding: Option<u64>,
    /// Torrents that the user leeches now; null while the activity lists are unavailable.
    leeching: Option<u64>,
}

#[derive(Serialize, ToSchema)]
struct UserPage {
    items: Vec<ListedUser>,
    /// `cursor` of the next page; null after the last page.
    next: Option<String>,
    /// Users on all pages; null for a search sorted by id.
    total: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UserState {
    Enabled,
    Disabled,
    Seeding,
    Leeching,
    Online,
    HitAndRun,
    NeverAnnounced,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserListParams {
    #[serde(default)]
    sort: SortedBy,
    order: Option<Order>,
    state: Option<UserState>,
    search: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl IntoParams for UserListParams {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let sorts = ["id", "uploaded", "downloaded", "ratio", "last_announce", "seeding", "leeching"];
        let states =
            ["enabled", "disabled", "seeding", "leeching", "online", "hit_and_run", "never_announced"];
        let search = text().max_length(Some(SEARCH_CHARS_MAX)).pattern(Some("^[^\\x00]*$"));
        let mut parameters = vec![
            query_parameter(
                "sort",
                "Sort key; amounts are credited bytes. Users without a value come last; ties are broken by id.",
                text().enum_values(Some(sorts)).default(Some("id".into())),
            ),
            query_parameter(
                "order",
                "Default: `asc` for `id`, otherwise `desc`.",
                text().enum_values(Some(["asc", "desc"])),
            ),
            query_parameter(
                "state",
                "Only users in this state. `online` needs a process with the role \"gateway\" and covers its own \
                 connections.",
                text().enum_values(Some(states)),
            ),
            query_parameter(
                "search",
                "Only users whose name contains this text, ignoring case, who have this id or, for keys with \
                 `admin`, this complete passkey.",
                search,
            ),
        ];
        parameters.extend(PageParams::<UserListCursor>::into_params(within));
        parameters
    }
}

/// A position in the list: an id if sorted by id, else a value and an id.
enum UserListCursor {
    Id(UserId),
    Value(UserCursor),
}

impl UserListCursor {
    const fn id(&self) -> UserId {
        match self {
            UserListCursor::Id(id) => *id,
            UserListCursor::Value(cursor) => cursor.id,
        }
    }
}

impl PageCursor for UserListCursor {
    const PATTERN: &'static str = "^(([0-9]{1,38}|none)-)?[1-9][0-9]{0,18}$";

    fn parse(text: &str) -> Option<UserListCursor> {
        let Some((value, id)) = text.split_once('-') else {
            return <UserId as PageCursor>::parse(text).map(UserListCursor::Id);
        };
        let is_decimal = value.len() <= 38 && value.bytes().all(|byte| byte.is_ascii_digit());
        let value = match value {
            "none" => None,
            _ => Some(is_decimal.then(|| value.parse().ok()).flatten()?),
        };
        Some(UserListCursor::Value(UserCursor { value, id: <UserId as PageCursor>::parse(id)? }))
    }
}

fn cursor_of(cursor: &UserCursor) -> String {
    match cursor.value {
        // Capped at the maximum length of a cursor, beyond any real amount.
        Some(value) => format!("{}-{}", value.min(10_u128.pow(38) - 1), cursor.id),
        None => format!("none-{}", cursor.id),
    }
}

struct Search {
    name: NameSearch,
    /// Only for callers that may see passkeys.
    passkey: Option<Passkey>,
}

impl Search {
    fn read(text: Option<&str>, caller: &Authenticated) -> Result<Option<Search>, Problem> {
        let text = text.unwrap_or_default();
        if text.chars().take(SEARCH_CHARS_MAX + 1).count() > SEARCH_CHARS_MAX {
            return Err(Problem::bad_request(format!("search: at most {SEARCH_CHARS_MAX} characters")));
        }
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let passkey = text.parse().ok().filter(|_| caller.scopes.allow(Scope::Admin));
        Ok(Some(Search { name: NameSearch::new(text)?, passkey }))
    }

    async fn holder(&self, site: &Site) -> Result<Option<User>, Problem> {
        match &self.passkey {
            Some(passkey) => Ok(site.parts.store.user_by_passkey(passkey).await?),
            None => Ok(None),
        }
    }

    /// Sorted by id: up to `limit` after `after`.
    async fn users(&self, site: &Site, after: Option<UserId>, limit: u32) -> Result<Vec<User>, Problem> {
        let mut found = site.parts.store.search_users(&self.name, after, limit).await?;
        found.extend(self.holder(site).await?.filter(|user| after.is_none_or(|after| user.id > after)));
        found.sort_by_key(|user| user.id);
        found.dedup_by_key(|user| user.id);
        Ok(found)
    }

    async fn ids(&self, site: &Site) -> Result<HashSet<UserId>, Problem> {
        let found = site.parts.store.find_users(&self.name, FOUND_MAX).await?;
        if found.len() >= FOUND_MAX as usize {
            site.counters.searches_cut.increment();
        }
        Ok(found.into_iter().chain(self.holder(site).await?.map(|user| user.id)).collect())
    }
}

/// List users
///
/// Sorted by id by default. Other orders and states lag by a few seconds; the figures on a page are current.
#[utoipa::path(
    get, path = "/api/v1/users", tag = "users", params(UserListParams),
    responses(
        (status = 200, description = "A page", body = UserPage),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(params): QueryParams<UserListParams>,
) -> Result<Json<UserPage>, Problem> {
    let search = Search::read(params.search.as_deref(), &caller)?;
    let page = PageParams::<UserListCursor>::of(params.limit, params.cursor);
    let (limit, after) = (page.limit()?, page.cursor()?);
    let descending = params.order.map_or(params.sort != SortedBy::Id, |order| order == Order::Desc);
    if params.sort == SortedBy::Id && !descending && params.state.is_none() {
        return sorted_by_id(&site, &caller, search, after, limit).await;
    }
    let request = PageRequest { by: params.sort, descending, after: None, limit: limit as usize };
    let among = match search {
        None => None,
        Some(search) => {
            let searched = Arc::clone(&site);
            let searching = async move { search.ids(&searched).await };
            Some(site.scan_limits.run(ScanKind::Names, &site.counters.scans_refused, searching).await??)
        }
    };
    let page = from_ranking(&site, &caller, (request, after), params.state, among).await?;
    let users = site.parts.store.users_with(&page.users).await?;
    let mut users: HashMap<UserId, User> = users.into_iter().map(|user| (user.id, user)).collect();
    // Users that were removed meanwhile are omitted.
    let users = page.users.iter().filter_map(|id| users.remove(id)).collect();
    Ok(Json(UserPage {
        items: with_figures(&site, &caller, users).await?,
        next: page.next.as_ref().map(cursor_of),
        total: Some(page.total as u64),
    }))
}

async fn sorted_by_id(
    site: &Arc<Site>,
    caller: &Authenticated,
    search: Option<Search>,
    after: Option<UserListCursor>,
    limit: u32,
) -> Result<Json<UserPage>, Problem> {
    let after = after.map(|cursor| cursor.id());
    let total = search.is_none().then(|| site.parts.gate.user_count() as u64);
    let mut users = match search {
        None => site.parts.store.list_users(after, limit + 1).await?,
        Some(search) => {
            let searched = Arc::clone(site);
            let searching = async move { search.users(&searched, after, limit + 1).await };
            site.scan_limits.run(ScanKind::Names, &site.counters.scans_refused, searching).await??
        }
    };
    let is_more = users.len() > limit as usize;
    users.truncate(limit as usize);
    let next = users.last().filter(|_| is_more).map(|user| user.id.to_string());
    Ok(Json(UserPage { items: with_figures(site, caller, users).await?, next, total }))
}

async fn from_ranking(
    site: &Arc<Site>,
    caller: &Authenticated,
    (request, after): (PageRequest, Option<UserListCursor>),
    state: Option<UserState>,
    among: Option<HashSet<UserId>>,
) -> Result<UserRankingPage, Problem> {
    let now_ms = site.parts.clock.now_ms();
    let ranking = site.user_ranking.get(now_ms, UserRanking::read(site.parts.clone())).await?;
    // A cursor of the list by id is converted to a position in this order.
    let after = after.map(|after| match after {
        UserListCursor::Value(cursor) => cursor,
        UserListCursor::Id(id) => ranking.cursor_of(id, request.by),
    });
    let request = PageRequest { after, ..request };
    let needs_activity = matches!(request.by, SortedBy::Seeding | SortedBy::Leeching)
        || matches!(state, Some(UserState::Seeding | UserState::Leeching));
    if needs_activity && !ranking.has_activity {
        return Err(Problem::unavailable("the store of the activity lists", &"activity is unavailable"));
    }
    let with_state = match state {
        Some(UserState::Online) => {
            let with_hidden = caller.scopes.allow(Scope::Admin);
            Some(gateway_of(site)?.hub.admin.online_users(with_hidden).into_iter().collect())
        }
        Some(UserState::HitAndRun) => {
            Some(site.hit_and_run_list().await?.counts_by_user.keys().copied().collect())
        }
        _ => None::<HashSet<UserId>>,
    };
    let reading = tokio::task::spawn_blocking(move || {
        ranking.page(&request, |row| {
            let is_in = |set: &Option<HashSet<UserId>>| set.as_ref().is_none_or(|set| set.contains(&row.id));
            is_in(&among) && is_in(&with_state) && state.is_none_or(|state| matches_state(row, state))
        })
    });
    reading.await.map_err(|error| Problem::internal("the list of users", &error))
}

fn matches_state(row: &UserRow, state: UserState) -> bool {
    match state {
        UserState::Enabled => row.enabled,
        UserState::Disabled => !row.enabled,
        UserState::Seeding => row.active.seeding > 0,
        UserState::Leeching => row.active.leeching > 0,
        UserState::NeverAnnounced => !row.has_announced(),
        // Filtered by a set of users.
        UserState::Online | UserState::HitAndRun => true,
    }
}

/// Adds figures and activity, one read for all users.
async fn with_figures(
    site: &Site,
    caller: &Authenticated,
    users: Vec<User>,
) -> Result<Vec<ListedUser>, Problem> {
    let ids: Vec<UserId> = users.iter().map(|user| user.id).collect();
    let passkeys: Vec<Passkey> = users.iter().map(|user| user.passkey).collect();
    let figures: HashMap<UserId, Figures> = site.parts.ledger.users(&ids).await?.into_iter().collect();
    // The activity store may be unavailable.
    let active = site.parts.activity.counts_of(&passkeys).await.ok();
    let listed = users.iter().enumerate().map(|(position, user)| {
        let figures = figures.get(&user.id);
        let active: Option<Counts> = active.as_ref().and_then(|all| all.get(position)).copied();
        ListedUser {
            user: UserJson::of(user, caller),
            figures: figures.map(FiguresJson::of),
            ratio: figures.and_then(Figures::ratio),
            seeding: active.map(|counts| counts.seeding),
            leeching: active.map(|counts| counts.leeching),
        }
    });
    Ok(listed.collect())
}
