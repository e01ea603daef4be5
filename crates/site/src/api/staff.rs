//! The staff queue, newest first: risk events, hit-and-runs, torrents that await approval, dead letters and failed
//! entries.
//!
//! A page of each source is read and merged by time, kind and the source's own order. A cursor is a position in the merged
//! order, from which each source continues.

use std::collections::HashMap;
use std::sync::Arc;

use access::{CatalogueKey, CatalogueOrder, Torrent};
use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{TorrentId, UnixTime, UserId};
use journal::{EntryId, Lane, Stored};
use ledger::{AccountKey, hit_and_run_status};
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::dead_letters::DeadLetterJson;
use super::figures::{AccountJson, HitAndRun};
use super::risks::RiskEvent;
use super::torrents_by_id::{self, Torrents};
use crate::app::Routes;
use crate::extract::{PageCursor, PageParams, QueryParams, query_parameter};
use crate::hit_and_run_list::HitAndRunList;
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(queue))
}

/// Kind of an item. The order of variants breaks ties between items of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum QueueKind {
    Risk,
    HitAndRun,
    Approval,
    DeadLetter,
    FailedEntry,
}

impl QueueKind {
    const ALL: [QueueKind; 5] = [
        QueueKind::Risk,
        QueueKind::HitAndRun,
        QueueKind::Approval,
        QueueKind::DeadLetter,
        QueueKind::FailedEntry,
    ];
}

#[derive(Serialize, ToSchema)]
struct QueueUser {
    id: u64,
    name: Option<String>,
    /// Null if the user was removed.
    enabled: Option<bool>,
}

#[derive(Serialize, ToSchema)]
struct QueueTorrent {
    id: u64,
    /// Null if the torrent was removed.
    name: Option<String>,
    /// Null if the torrent was removed.
    infohash: Option<String>,
    /// Size of the content; null if the torrent was removed, `"0"` if unknown.
    #[schema(pattern = "^[0-9]+$")]
    total_bytes: Option<String>,
}

/// An item of the queue. Of `risk`, `hit_and_run` and `dead_letter`, the one that belongs to `kind` is set.
#[derive(Serialize, ToSchema)]
struct QueueItem {
    /// Unique in the queue.
    #[schema(example = "1794742234000-0-7-0")]
    id: String,
    kind: QueueKind,
    /// Time of the risk event, of the user's last announce, of adding the torrent, or of the failure.
    at: u64,
    /// Null if the item has no user.
    user: Option<QueueUser>,
    /// Null if the item has no torrent.
    torrent: Option<QueueTorrent>,
    risk: Option<RiskEvent>,
    hit_and_run: Option<HitAndRun>,
    dead_letter: Option<DeadLetterJson>,
}

/// Items of each kind.
#[derive(Serialize, ToSchema)]
struct QueueCounts {
    risk: u64,
    /// Null during the first scan of all accounts.
    hit_and_run: Option<u64>,
    approval: u64,
    dead_letter: u64,
    failed_entry: u64,
}

#[derive(Serialize, ToSchema)]
struct QueuePage {
    /// Newest first.
    items: Vec<QueueItem>,
    /// `cursor` of the next page; null after the last page.
    next: Option<String>,
    /// Items of each kind on all pages.
    counts: QueueCounts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueParams {
    kind: Option<QueueKind>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl IntoParams for QueueParams {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let names = ["risk", "hit_and_run", "approval", "dead_letter", "failed_entry"];
        let kind = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        let mut parameters = PageParams::<QueueCursor>::into_params(within);
        parameters.push(query_parameter("kind", "Only this kind.", kind));
        parameters
    }
}

/// Position of an item in the merged order. `a` and `b` depend on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueueCursor {
    at_ms: u64,
    kind: QueueKind,
    a: u64,
    b: u64,
}

impl QueueCursor {
    fn cursor(&self) -> String {
        format!("{}-{}-{}-{}", self.at_ms, self.kind as u8, self.a, self.b)
    }

    /// Position from which the source of a kind continues: time, `a`, `b`.
    fn for_kind(after: Option<&QueueCursor>, kind: QueueKind) -> (u64, u64, u64) {
        match after {
            None => (u64::MAX, u64::MAX, u64::MAX),
            Some(position) if kind < position.kind => (position.at_ms, 0, 0),
            Some(position) if kind == position.kind => (position.at_ms, position.a, position.b),
            Some(position) => (position.at_ms, u64::MAX, u64::MAX),
        }
    }
}

impl PageCursor for QueueCursor {
    const PATTERN: &'static str = "^[0-9]{1,15}-[0-4]-[0-9]{1,19}-[0-9]{1,19}$";

    fn parse(text: &str) -> Option<QueueCursor> {
        let number = |text: &str, digits_max: usize| {
            let is_decimal = text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_digit());
            is_decimal.then(|| text.parse::<u64>().ok()).flatten()
        };
        let mut parts = text.split('-');
        let mut next = |digits_max: usize| parts.next().and_then(|part| number(part, digits_max));
        let (at_ms, kind, a, b) = (next(15)?, next(1)?, next(19)?, next(19)?);
        let kind = *QueueKind::ALL.get(usize::try_from(kind).ok()?)?;
        parts.next().is_none().then_some(QueueCursor { at_ms, kind, a, b })
    }
}

/// An item of a source, before names are loaded.
enum SourceItem {
    Risk(Stored),
    HitAndRun(AccountKey),
    Approval(Box<Torrent>),
    Letter(Stored),
}

/// List the staff queue
///
/// Newest first: risk events, hit-and-runs, torrents that await approval, dead letters and failed entries. Hit-and-runs
/// are updated every few minutes on a large site, more often on a small one.
#[utoipa::path(
    get, path = "/api/v1/staff/queue", tag = "staff", params(QueueParams),
    responses(
        (status = 200, description = "A page, newest first", body = QueuePage),
    )
)]
async fn queue(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(params): QueryParams<QueueParams>,
) -> Result<Json<QueuePage>, Problem> {
    let page = PageParams::<QueueCursor>::of(params.limit, params.cursor);
    let (limit, after) = (page.limit()? as usize, page.cursor()?);
    let list = site.hit_and_run_list().await.ok();
    let mut found: Vec<(QueueCursor, SourceItem)> = Vec::new();
    for kind in QueueKind::ALL.into_iter().filter(|kind| params.kind.is_none_or(|params| params == *kind)) {
        let after_position = QueueCursor::for_kind(after.as_ref(), kind);
        // One more than the limit shows whether there is a next page.
        found.extend(match kind {
            QueueKind::Risk => entries(&site, kind, Lane::Risk, after_position, limit + 1).await?,
            QueueKind::DeadLetter => entries(&site, kind, Lane::Dead, after_position, limit + 1).await?,
            QueueKind::FailedEntry => entries(&site, kind, Lane::Failed, after_position, limit + 1).await?,
            QueueKind::Approval => pending_torrents(&site, after_position, limit + 1).await?,
            QueueKind::HitAndRun => {
                list.as_deref().map_or_else(Vec::new, |list| hit_and_runs(list, after_position, limit + 1))
            }
        });
    }
    found.sort_by(|(one, _), (other, _)| {
        other
            .at_ms
            .cmp(&one.at_ms)
            .then(one.kind.cmp(&other.kind))
            .then((other.a, other.b).cmp(&(one.a, one.b)))
    });
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| is_more).map(|(position, _)| position.cursor());
    Ok(Json(QueuePage {
        items: queue_items(&site, &caller, found).await?,
        next,
        counts: counts(&site, list.as_deref()).await?,
    }))
}

/// Entries of a lane: `a` is the sequence number of the entry id.
async fn entries(
    site: &Site,
    kind: QueueKind,
    lane: Lane,
    (at_ms, a, _): (u64, u64, u64),
    limit: usize,
) -> Result<Vec<(QueueCursor, SourceItem)>, Problem> {
    let stored = site.parts.journal.list_newest(lane, EntryId { ms: at_ms, seq: a }, limit).await?;
    let position = |stored: &Stored| QueueCursor { at_ms: stored.id.ms, kind, a: stored.id.seq, b: 0 };
    let found = |stored: Stored| match kind {
        QueueKind::Risk => SourceItem::Risk(stored),
        _ => SourceItem::Letter(stored),
    };
    Ok(stored.into_iter().map(|stored| (position(&stored), found(stored))).collect())
}

/// Torrents that await approval: `a` is the torrent id.
async fn pending_torrents(
    site: &Site,
    (at_ms, a, _): (u64, u64, u64),
    limit: usize,
) -> Result<Vec<(QueueCursor, SourceItem)>, Problem> {
    // The table has whole seconds.
    let after_position = match at_ms.is_multiple_of(1000) {
        true => (at_ms / 1000, a),
        false => (at_ms / 1000 + 1, 0),
    };
    // 0 is no torrent id: continue before that second.
    let second = i64::try_from(after_position.0).unwrap_or(i64::MAX);
    let (second, number) = match after_position.1 {
        0 => (second.saturating_sub(1), i64::MAX as u64),
        number => (second, number.min(i64::MAX as u64)),
    };
    let after = TorrentId::new(number).map(|id| (second, id));
    let order = CatalogueOrder { by: CatalogueKey::Added, descending: true, after };
    let page = site.parts.store.pending_torrents(order, u32::try_from(limit).unwrap_or(u32::MAX)).await?;
    let position = |torrent: &Torrent| QueueCursor {
        at_ms: u64::from(torrent.created_at.0) * 1000,
        kind: QueueKind::Approval,
        a: torrent.id.get(),
        b: 0,
    };
    Ok(page
        .torrents
        .into_iter()
        .map(|torrent| (position(&torrent), SourceItem::Approval(Box::new(torrent))))
        .collect())
}

/// Hit-and-runs: `a` is the user, `b` the torrent.
fn hit_and_runs(
    list: &HitAndRunList,
    (at_ms, a, b): (u64, u64, u64),
    limit: usize,
) -> Vec<(QueueCursor, SourceItem)> {
    let (at_s, a, b) = match at_ms.is_multiple_of(1000) {
        true => (at_ms / 1000, a, b),
        false => (at_ms / 1000 + 1, 0, 0),
    };
    let since = UnixTime(u32::try_from(at_s).unwrap_or(u32::MAX));
    let position = |(at, key): &(UnixTime, AccountKey)| QueueCursor {
        at_ms: u64::from(at.0) * 1000,
        kind: QueueKind::HitAndRun,
        a: key.user.get(),
        b: key.torrent.get(),
    };
    let rest = list.after((since, a, b)).iter().take(limit);
    rest.map(|one| (position(one), SourceItem::HitAndRun(one.1))).collect()
}

async fn counts(site: &Site, list: Option<&HitAndRunList>) -> Result<QueueCounts, Problem> {
    let length = async |lane| site.parts.journal.status(lane).await.map(|status| status.length);
    Ok(QueueCounts {
        risk: length(Lane::Risk).await?,
        hit_and_run: list.map(|list| list.newest_first.len() as u64),
        approval: site.parts.store.count_pending_torrents().await?,
        dead_letter: length(Lane::Dead).await?,
        failed_entry: length(Lane::Failed).await?,
    })
}

/// Users, torrents and accounts of a page.
struct PageData {
    users: HashMap<UserId, access::User>,
    torrents: Torrents,
    accounts: HashMap<AccountKey, ledger::Account>,
}

/// Adds names. A hit-and-run that was cleared meanwhile is omitted.
async fn queue_items(
    site: &Site,
    caller: &Authenticated,
    found: Vec<(QueueCursor, SourceItem)>,
) -> Result<Vec<QueueItem>, Problem> {
    let subjects: Vec<(Option<UserId>, Option<TorrentId>)> =
        found.iter().map(|(_, found)| found.subjects()).collect();
    let mut users: Vec<UserId> = subjects.iter().filter_map(|(user, _)| *user).collect();
    users.sort_unstable();
    users.dedup();
    let keys: Vec<AccountKey> = found.iter().filter_map(|(_, found)| found.account()).collect();
    let data = PageData {
        users: site.parts.store.users_with(&users).await?.into_iter().map(|user| (user.id, user)).collect(),
        torrents: torrents_by_id::load(site, subjects.iter().filter_map(|(_, torrent)| *torrent)).await?,
        accounts: site.parts.ledger.accounts(&keys).await?.into_iter().collect(),
    };
    let show = |(position, found): &(QueueCursor, SourceItem)| data.item(site, caller, *position, found);
    Ok(found.iter().filter_map(show).collect())
}

impl SourceItem {
    /// User and torrent of the item.
    fn subjects(&self) -> (Option<UserId>, Option<TorrentId>) {
        match self {
            SourceItem::Risk(stored) | SourceItem::Letter(stored) => {
                let number = |name: &str| std::str::from_utf8(stored.fields.get(name)?).ok()?.parse().ok();
                (number("user").and_then(UserId::new), number("torrent").and_then(TorrentId::new))
            }
            SourceItem::HitAndRun(key) => (Some(key.user), Some(key.torrent)),
            SourceItem::Approval(torrent) => (None, Some(torrent.id)),
        }
    }

    const fn account(&self) -> Option<AccountKey> {
        match self {
            SourceItem::HitAndRun(key) => Some(*key),
            SourceItem::Risk(_) | SourceItem::Approval(_) | SourceItem::Letter(_) => None,
        }
    }
}

impl PageData {
    fn item(
        &self,
        site: &Site,
        caller: &Authenticated,
        position: QueueCursor,
        found: &SourceItem,
    ) -> Option<QueueItem> {
        let (user, torrent) = found.subjects();
        let item = QueueItem {
            id: position.cursor(),
            kind: position.kind,
            at: position.at_ms / 1000,
            user: user.map(|id| self.user(id)),
            torrent: torrent.map(|id| self.torrent(id)),
            risk: None,
            hit_and_run: None,
            dead_letter: None,
        };
        Some(match found {
            SourceItem::Approval(_) => item,
            SourceItem::Risk(stored) => {
                QueueItem { risk: Some(RiskEvent::of(stored, caller.scopes.allow(Scope::Admin))), ..item }
            }
            SourceItem::Letter(stored) => {
                QueueItem { dead_letter: Some(DeadLetterJson::of(stored, caller)), ..item }
            }
            SourceItem::HitAndRun(key) => {
                let account = self.accounts.get(key)?;
                let standing = hit_and_run_status(account, &site.parts.hit_and_run);
                let shown = HitAndRun::of(AccountJson::of(key, account, &self.torrents), &standing)?;
                QueueItem { hit_and_run: Some(shown), ..item }
            }
        })
    }

    fn user(&self, id: UserId) -> QueueUser {
        let known = self.users.get(&id);
        QueueUser {
            id: id.get(),
            name: known.and_then(|user| user.name.clone()),
            enabled: known.map(|user| user.enabled),
        }
    }

    fn torrent(&self, id: TorrentId) -> QueueTorrent {
        let known = self.torrents.get(&id);
        QueueTorrent {
            id: id.get(),
            name: known.map(|torrent| torrent.name.clone()),
            infohash: known.map(|torrent| torrent.info_hash.to_string()),
            total_bytes: known.map(|torrent| torrent.total_bytes.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_malformed_ones_are_refused() {
        let position = QueueCursor { at_ms: 1_794_742_234_000, kind: QueueKind::Approval, a: 7, b: 0 };
        assert_eq!(QueueCursor::parse(&position.cursor()), Some(position));
        for text in ["", "1-2-3", "1-5-3-4", "1-2-3-4-5", "-1-2-3", "1-2-3-x", "1-2-3-99999999999999999999"] {
            assert_eq!(QueueCursor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_source_continues_after_the_merged_page() {
        let position = QueueCursor { at_ms: 50, kind: QueueKind::Approval, a: 7, b: 3 };
        let after_position = |kind| QueueCursor::for_kind(Some(&position), kind);
        assert_eq!(after_position(QueueKind::Risk), (50, 0, 0), "all items of that time come before it");
        assert_eq!(after_position(QueueKind::Approval), (50, 7, 3));
        assert_eq!(
            after_position(QueueKind::DeadLetter),
            (50, u64::MAX, u64::MAX),
            "all items of that time come after it"
        );
    }
}
