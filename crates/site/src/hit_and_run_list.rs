//! All hit-and-runs of the site, newest first.
//!
//! Reading the list scans every account, so it is cached ([`CachedValue`](crate::cached_value::CachedValue)). Items are
//! checked again before they are returned.

use std::cmp::Reverse;
use std::collections::HashMap;

use domain::{UnixTime, UserId};
use ledger::AccountKey;

use crate::problem::Problem;
use crate::site::Parts;

/// Maximum number of hit-and-runs that are kept, the newest.
const KEPT_MAX: usize = 200_000;

pub(crate) struct HitAndRunList {
    /// Ties are broken by user and torrent id, highest first.
    pub(crate) newest_first: Vec<(UnixTime, AccountKey)>,
    /// Kept hit-and-runs per user.
    pub(crate) counts_by_user: HashMap<UserId, u32>,
}

impl HitAndRunList {
    pub(crate) async fn read(parts: Parts) -> Result<HitAndRunList, Problem> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = parts.ledger.hit_and_runs_after(after, &parts.hit_and_run).await?;
            all.extend(page.hit_and_runs.iter().map(|(key, since)| (*since, *key)));
            after = page.next;
            if after.is_none() {
                break;
            }
            if all.len() >= 2 * KEPT_MAX {
                keep_newest(&mut all);
            }
        }
        keep_newest(&mut all);
        Ok(HitAndRunList::of(all))
    }

    fn of(newest_first: Vec<(UnixTime, AccountKey)>) -> HitAndRunList {
        let mut counts_by_user = HashMap::new();
        for (_, key) in &newest_first {
            *counts_by_user.entry(key.user).or_default() += 1;
        }
        HitAndRunList { newest_first, counts_by_user }
    }

    /// Items after a position: time, user id, torrent id.
    pub(crate) fn after(&self, position: (UnixTime, u64, u64)) -> &[(UnixTime, AccountKey)] {
        let is_before =
            |(at, key): &(UnixTime, AccountKey)| (*at, key.user.get(), key.torrent.get()) >= position;
        &self.newest_first[self.newest_first.partition_point(is_before)..]
    }
}

fn keep_newest(all: &mut Vec<(UnixTime, AccountKey)>) {
    all.sort_unstable_by_key(|one| Reverse(*one));
    all.truncate(KEPT_MAX);
}

#[cfg(test)]
mod tests {
    use domain::TorrentId;

    use super::*;

    #[test]
    fn items_are_sorted_newest_first_and_pages_are_contiguous() {
        let one = |at: u32, user: u64, torrent: u64| {
            let key =
                AccountKey { user: UserId::new(user).unwrap(), torrent: TorrentId::new(torrent).unwrap() };
            (UnixTime(at), key)
        };
        let mut all = vec![one(5, 1, 1), one(9, 1, 2), one(5, 2, 1)];
        keep_newest(&mut all);
        let list = HitAndRunList::of(all);
        assert_eq!(list.newest_first, [one(9, 1, 2), one(5, 2, 1), one(5, 1, 1)]);
        assert_eq!(list.after((UnixTime(9), 1, 2)), &list.newest_first[1..]);
        assert_eq!(list.after((UnixTime(5), 2, 1)), [one(5, 1, 1)]);
        assert_eq!(list.after((UnixTime(5), 0, 0)), []);
        assert_eq!(list.counts_by_user[&UserId::new(1).unwrap()], 2);
    }
}
