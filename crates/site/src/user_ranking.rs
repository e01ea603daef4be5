//! All users sorted by traffic or activity, in pages.
//!
//! # Guarantees
//!
//! - The ranking is cached ([`CachedValue`](crate::cached_value::CachedValue)).
//! - A page costs its rows; with a filter, a pass over all users in memory.
//! - A page continues after the value and id of the previous one. A user whose value changes meanwhile may be on both
//!   pages or on neither.
//!
//! # Deliberately absent
//!
//! Names, passkeys and exact figures: they are read from the stores for one page.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::OnceLock;

use domain::UserId;
use ledger::Figures;
use serde::Deserialize;
use views::activity::Counts;

use crate::problem::Problem;
use crate::site::Parts;

/// Users per statement.
const USERS_PER_READ: u32 = 1000;
/// Ratios are compared in millionths.
const RATIO_SCALE: u128 = 1_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SortedBy {
    #[default]
    Id,
    Uploaded,
    Downloaded,
    Ratio,
    LastAnnounce,
    Seeding,
    Leeching,
}

const SORTS: usize = 7;

/// The values of a user that order and filters need.
#[derive(Clone, Debug)]
pub(crate) struct UserRow {
    pub(crate) id: UserId,
    pub(crate) enabled: bool,
    /// None before the first announce.
    figures: Option<Traffic>,
    pub(crate) active: Counts,
}

#[derive(Clone, Copy, Debug)]
struct Traffic {
    uploaded: u128,
    downloaded: u128,
    last_announce: u32,
}

impl UserRow {
    pub(crate) fn has_announced(&self) -> bool {
        self.figures.is_some()
    }

    /// None sorts last, whatever the direction.
    fn value(&self, by: SortedBy) -> Option<u128> {
        match by {
            SortedBy::Id => Some(0),
            SortedBy::Uploaded => self.figures.map(|moved| moved.uploaded),
            SortedBy::Downloaded => self.figures.map(|moved| moved.downloaded),
            SortedBy::Ratio => self.figures.filter(|moved| moved.downloaded > 0).map(|moved| {
                // Divides first if the product overflows.
                let product = moved.uploaded.checked_mul(RATIO_SCALE).map(|parts| parts / moved.downloaded);
                product.unwrap_or_else(|| (moved.uploaded / moved.downloaded).saturating_mul(RATIO_SCALE))
            }),
            SortedBy::LastAnnounce => self.figures.map(|moved| moved.last_announce.into()),
            SortedBy::Seeding => Some(self.active.seeding.into()),
            SortedBy::Leeching => Some(self.active.leeching.into()),
        }
    }
}

/// Value and id of the last user on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserCursor {
    pub(crate) value: Option<u128>,
    pub(crate) id: UserId,
}

impl UserCursor {
    fn compare(&self, other: &UserCursor, descending: bool) -> Ordering {
        let in_direction = |order: Ordering| if descending { order.reverse() } else { order };
        match (self.value, other.value) {
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            _ => in_direction((self.value, self.id).cmp(&(other.value, other.id))),
        }
    }
}

/// Order and position of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    pub(crate) by: SortedBy,
    pub(crate) descending: bool,
    pub(crate) after: Option<UserCursor>,
    pub(crate) limit: usize,
}

/// A page of the ranking.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UserRankingPage {
    pub(crate) users: Vec<UserId>,
    /// None after the last page.
    pub(crate) next: Option<UserCursor>,
    /// Users that match the filter, on all pages.
    pub(crate) total: usize,
}

/// All users at one time.
pub(crate) struct UserRanking {
    /// Sorted by id.
    rows: Vec<UserRow>,
    /// False if the activity lists could not be read.
    pub(crate) has_activity: bool,
    /// Positions of rows, per order and direction, sorted on first use.
    orders: [[OnceLock<Vec<u32>>; 2]; SORTS],
}

impl UserRanking {
    fn new(rows: Vec<UserRow>, has_activity: bool) -> UserRanking {
        UserRanking { rows, has_activity, orders: Default::default() }
    }

    /// Reads all users with traffic and activity. A failure of the activity lists is tolerated.
    pub(crate) async fn read(parts: Parts) -> Result<UserRanking, Problem> {
        let active = match parts.activity.active_users().await {
            Ok(active) => Some(active),
            Err(error) => {
                tracing::warn!(%error, "activity lists unavailable; users are listed without seeding and leeching");
                None
            }
        };
        let figures = load_traffic(&parts).await?;
        let mut rows: Vec<UserRow> = Vec::new();
        loop {
            let page = parts.store.list_users(rows.last().map(|row| row.id), USERS_PER_READ).await?;
            let is_last = page.len() < USERS_PER_READ as usize;
            rows.extend(page.iter().map(|user| UserRow {
                id: user.id,
                enabled: user.enabled,
                figures: figures.get(&user.id).copied(),
                active: active.as_ref().and_then(|all| all.get(&user.passkey)).copied().unwrap_or_default(),
            }));
            if is_last {
                return Ok(UserRanking::new(rows, active.is_some()));
            }
        }
    }

    /// Position of a user; unknown users have no value.
    pub(crate) fn cursor_of(&self, id: UserId, by: SortedBy) -> UserCursor {
        let found = self.rows.binary_search_by_key(&id, |row| row.id).ok();
        UserCursor { value: found.and_then(|position| self.rows[position].value(by)), id }
    }

    fn cursor_at(&self, position: u32, by: SortedBy) -> UserCursor {
        let row = &self.rows[position as usize];
        UserCursor { value: row.value(by), id: row.id }
    }

    fn order(&self, by: SortedBy, descending: bool) -> &[u32] {
        self.orders[by as usize][usize::from(descending)].get_or_init(|| {
            let mut keyed: Vec<(UserCursor, u32)> = (0..self.rows.len() as u32)
                .map(|position| (self.cursor_at(position, by), position))
                .collect();
            keyed.sort_unstable_by(|(one, _), (other, _)| one.compare(other, descending));
            keyed.into_iter().map(|(_, position)| position).collect()
        })
    }

    /// Call on a blocking thread: the first page of an order sorts all users.
    pub(crate) fn page(&self, request: &PageRequest, matches: impl Fn(&UserRow) -> bool) -> UserRankingPage {
        let PageRequest { by, descending, after, limit } = *request;
        let order = self.order(by, descending);
        let begin = after.map_or(0, |after| {
            order.partition_point(|position| {
                self.cursor_at(*position, by).compare(&after, descending) != Ordering::Greater
            })
        });
        let is_match = |position: &&u32| matches(&self.rows[**position as usize]);
        let mut rest = order[begin..].iter().filter(is_match);
        let shown: Vec<u32> = rest.by_ref().take(limit).copied().collect();
        let is_more = rest.next().is_some();
        UserRankingPage {
            users: shown.iter().map(|position| self.rows[*position as usize].id).collect(),
            next: shown.last().filter(|_| is_more).map(|position| self.cursor_at(*position, by)),
            total: self.rows.iter().filter(|row| matches(row)).count(),
        }
    }
}

async fn load_traffic(parts: &Parts) -> Result<HashMap<UserId, Traffic>, Problem> {
    let moved = |figures: &Figures| Traffic {
        uploaded: figures.credited_uploaded(),
        downloaded: figures.credited_downloaded(),
        last_announce: figures.last_seen.unwrap_or_default().0,
    };
    let (mut all, mut after) = (HashMap::new(), None);
    loop {
        let page = parts.ledger.users_after(after).await?;
        let Some((last, _)) = page.last() else { return Ok(all) };
        after = Some(*last);
        all.extend(page.iter().map(|(user, figures)| (*user, moved(figures))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64, moved: Option<(u128, u128)>) -> UserRow {
        let figures =
            moved.map(|(uploaded, downloaded)| Traffic { uploaded, downloaded, last_announce: id as u32 });
        let active = Counts { seeding: id % 2, leeching: 0 };
        UserRow { id: UserId::new(id).unwrap(), enabled: id != 3, figures, active }
    }

    fn paged(ranking: &UserRanking, by: SortedBy, descending: bool, limit: usize) -> Vec<u64> {
        let (mut seen, mut after) = (Vec::new(), None);
        // Bounded, so that a repeating list fails the test.
        for _ in 0..20 {
            let page = ranking.page(&PageRequest { by, descending, after, limit }, |_| true);
            assert_eq!(page.total, 6);
            seen.extend(page.users.iter().map(|id| id.get()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        seen
    }

    #[test]
    fn pages_are_contiguous_in_every_order_and_users_without_a_value_come_last() {
        let most = u128::MAX / 4;
        let rows = vec![
            row(1, Some((50, 100))),
            row(2, None),
            row(3, Some((most, most / 2))),
            row(4, Some((50, 0))),
            row(5, Some((50, 100))),
            row(6, Some((1, 100))),
        ];
        let ranking = UserRanking::new(rows, true);
        for limit in 1..=7 {
            let ids = |by, descending| paged(&ranking, by, descending, limit);
            assert_eq!(ids(SortedBy::Id, false), [1, 2, 3, 4, 5, 6]);
            assert_eq!(ids(SortedBy::Ratio, false), [6, 1, 5, 3, 2, 4]);
            assert_eq!(ids(SortedBy::Ratio, true), [3, 5, 1, 6, 4, 2]);
            assert_eq!(ids(SortedBy::Uploaded, true), [3, 5, 4, 1, 6, 2]);
            assert_eq!(ids(SortedBy::LastAnnounce, false), [1, 3, 4, 5, 6, 2]);
        }
        let request = PageRequest { by: SortedBy::Uploaded, descending: true, after: None, limit: 1 };
        let page = ranking.page(&request, |row| !row.enabled);
        assert_eq!((page.users, page.next, page.total), (vec![UserId::new(3).unwrap()], None, 1));
    }
}
