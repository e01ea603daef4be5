//! All hit-and-runs of the site, the newest first.
//!
//! Every account is looked through for them, so the list is read rarely ([`Snapshot`](crate::snapshot::Snapshot)).
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
pub(crate) struct Gone {
    /// The newest first; users and torrents decide ties, the highest first.
    pub(crate) newest_first: Vec<(UnixTime, AccountKey)>,
    /// How many each user has; of those that are kept.
    pub(crate) of_user: HashMap<UserId, u32>,
}

impl Gone {
    pub(crate) async fn read(parts: Parts) -> Result<Gone, Problem> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = parts.ledger.hit_and_runs_after(after, &parts.hit_and_run).await?;
            all.extend(page.hit_and_runs.iter().map(|(key, since)| (*since, *key)));
            after = page.next;
            if after.is_none() {
                break;
            }
            if all.len() >= 2 * KEPT_MAX {
                cut(&mut all);
            }
        }
        cut(&mut all);
        Ok(Gone::of(all))
    }

    fn of(newest_first: Vec<(UnixTime, AccountKey)>) -> Gone {
        let mut of_user = HashMap::new();
        for (_, key) in &newest_first {
            *of_user.entry(key.user).or_default() += 1;
        }
        Gone { newest_first, of_user }
    }

    /// Those behind a place: a moment, the number of a user and that of a torrent.
    pub(crate) fn behind(&self, place: (UnixTime, u64, u64)) -> &[(UnixTime, AccountKey)] {
        let is_before =
            |(at, key): &(UnixTime, AccountKey)| (*at, key.user.get(), key.torrent.get()) >= place;
        &self.newest_first[self.newest_first.partition_point(is_before)..]
    }
}

/// Keeps the newest.
fn cut(all: &mut Vec<(UnixTime, AccountKey)>) {
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
        cut(&mut all);
        let gone = Gone::of(all);
        assert_eq!(gone.newest_first, [one(9, 1, 2), one(5, 2, 1), one(5, 1, 1)]);
        assert_eq!(gone.behind((UnixTime(9), 1, 2)), &gone.newest_first[1..]);
        assert_eq!(gone.behind((UnixTime(5), 2, 1)), [one(5, 1, 1)]);
        assert_eq!(gone.behind((UnixTime(5), 0, 0)), []);
        assert_eq!(gone.of_user[&UserId::new(1).unwrap()], 2);
    }
}
