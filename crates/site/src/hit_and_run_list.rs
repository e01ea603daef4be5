//! All hit-and-runs of the site, the newest first.
//!
//! Every account is looked through for them, so the list is read rarely ([`CachedValue`](crate::cached_value::CachedValue)).
//! Whether one still is a hit-and-run is asked again for those that are shown.

use std::cmp::Reverse;
use std::collections::HashMap;

use domain::{UnixTime, UserId};
use ledger::AccountKey;

use crate::problem::Problem;
use crate::site::Parts;

/// Hit-and-runs that are kept: the newest.
const KEPT_MAX: usize = 200_000;

/// The list.
pub(crate) struct HitAndRunList {
    /// The newest first; users and torrents decide ties, the highest first.
    pub(crate) newest_first: Vec<(UnixTime, AccountKey)>,
    /// How many each user has; of those that are kept.
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

    /// Those behind a place: a moment, the number of a user and that of a torrent.
    pub(crate) fn after(&self, place: (UnixTime, u64, u64)) -> &[(UnixTime, AccountKey)] {
        let is_before =
            |(at, key): &(UnixTime, AccountKey)| (*at, key.user.get(), key.torrent.get()) >= place;
        &self.newest_first[self.newest_first.partition_point(is_before)..]
    }
}

/// Keeps the newest.
fn keep_newest(all: &mut Vec<(UnixTime, AccountKey)>) {
    all.sort_unstable_by_key(|one| Reverse(*one));
    all.truncate(KEPT_MAX);
}

#[cfg(test)]
mod tests {
    use domain::TorrentId;

    use super::*;

    #[test]
    fn the_newest_come_first_and_pages_join() {
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
