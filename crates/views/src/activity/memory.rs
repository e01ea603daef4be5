//! Activity in memory, for a server without Redis. Rebuilt from the journal at each start.
//!
//! Users with torrents are also ordered by when their next report may expire. A heartbeat does not move a user in this
//! order; the sweep finds the user early and moves it.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use domain::{Passkey, Seconds, UnixTime};
use parking_lot::Mutex;

use super::fold::UserChanges;
use super::record::ClientState;
use super::settings::Window;
use super::store::{ActivityStore, Applied, Counts, Listing, MemoryUsage, Page, REMOVE_MAX, Swept};
use super::user_torrents::UserTorrents;
use crate::error::ViewsError;

#[derive(Debug, Default)]
pub struct MemoryActivity {
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    users: HashMap<Passkey, User>,
    due: BTreeSet<(UnixTime, Passkey)>,
    longest: LongestSilence,
}

#[derive(Debug)]
struct User {
    torrents: UserTorrents,
    /// In [`Lists::due`]. Not later than the first expiry of a torrent.
    due: UnixTime,
}

/// The most extra silence of any report that has not expired.
#[derive(Debug, Default)]
struct LongestSilence {
    extra: Seconds,
    until: UnixTime,
}

impl Lists {
    fn apply(&mut self, changes: &UserChanges, cutoff: UnixTime) -> u64 {
        let passkey = changes.passkey;
        let user = self
            .users
            .entry(passkey)
            .or_insert_with(|| User { torrents: UserTorrents::default(), due: UnixTime(u32::MAX) });
        let (mut evicted, mut due) = (0, user.due);
        for change in &changes.changes {
            let changed = user.torrents.apply(change, cutoff);
            evicted += changed.evicted;
            due = changed.after.map_or(due, |after| due.min(after.until));
            self.longest.add(change.report.extra_silence, change.report.expires_at());
        }
        self.reschedule(passkey, Some(due));
        evicted
    }

    /// Removes expired reports of one user from up to `torrents_max` torrents. Returns the number of torrents.
    fn expire(&mut self, passkey: &Passkey, cutoff: UnixTime, torrents_max: usize) -> usize {
        let Some(user) = self.users.get_mut(passkey) else { return 0 };
        if user.due > cutoff {
            return 0;
        }
        let expired = user.torrents.expire(cutoff, torrents_max);
        let due = user.torrents.due();
        self.reschedule(*passkey, due);
        expired
    }

    /// Sets when the user is due; none, or a user without torrents, removes it.
    fn reschedule(&mut self, passkey: Passkey, due: Option<UnixTime>) {
        let Some(user) = self.users.get_mut(&passkey) else { return };
        match due.filter(|_| !user.torrents.is_empty()) {
            Some(due) if due == user.due => {}
            Some(due) => {
                self.due.remove(&(user.due, passkey));
                self.due.insert((due, passkey));
                user.due = due;
            }
            None => {
                self.due.remove(&(user.due, passkey));
                self.users.remove(&passkey);
            }
        }
    }

    fn first_due(&self, cutoff: UnixTime) -> Option<Passkey> {
        self.due.first().filter(|(due, _)| *due <= cutoff).map(|(_, passkey)| *passkey)
    }
}

impl LongestSilence {
    fn add(&mut self, extra: Seconds, until: UnixTime) {
        if extra.0 > 0 {
            self.extra = self.extra.max(extra);
            self.until = self.until.max(until);
        }
    }
}

#[async_trait]
impl ActivityStore for MemoryActivity {
    async fn apply(&self, users: &[UserChanges], window: &Window) -> Result<Applied, ViewsError> {
        let mut lists = self.lists.lock();
        let evicted = users.iter().map(|changes| lists.apply(changes, window.cutoff())).sum();
        Ok(Applied { refused: Vec::new(), clients_evicted: evicted })
    }

    async fn list(
        &self,
        passkey: &Passkey,
        state: ClientState,
        page: &Page,
        window: &Window,
    ) -> Result<Listing, ViewsError> {
        let mut lists = self.lists.lock();
        lists.expire(passkey, window.cutoff(), usize::MAX);
        let found = lists.users.get(passkey).map(|user| user.torrents.page(state, page));
        drop(lists);
        Ok(Listing::of(found.unwrap_or_default(), page))
    }

    async fn counts(&self, passkey: &Passkey, window: &Window) -> Result<Counts, ViewsError> {
        let mut lists = self.lists.lock();
        lists.expire(passkey, window.cutoff(), usize::MAX);
        Ok(lists.users.get(passkey).map(|user| user.torrents.counts()).unwrap_or_default())
    }

    async fn active_users(&self) -> Result<HashMap<Passkey, Counts>, ViewsError> {
        let lists = self.lists.lock();
        let counts = lists.users.iter().map(|(passkey, user)| (*passkey, user.torrents.counts()));
        Ok(counts.filter(|(_, counts)| *counts != Counts::default()).collect())
    }

    async fn sweep(&self, users_max: usize, window: &Window) -> Result<Swept, ViewsError> {
        let cutoff = window.cutoff();
        let mut swept = Swept::default();
        while swept.users < users_max as u64 {
            // One lock per user, so that a long sweep does not delay entries and reads.
            let mut lists = self.lists.lock();
            let Some(passkey) = lists.first_due(cutoff) else { break };
            let expired = lists.expire(&passkey, cutoff, REMOVE_MAX);
            swept.users += 1;
            swept.torrents += expired as u64;
            swept.is_behind |= expired >= REMOVE_MAX;
            if swept.is_behind {
                break;
            }
        }
        swept.is_behind |= swept.users >= users_max as u64;
        let longest = &mut self.lists.lock().longest;
        if longest.until <= cutoff {
            *longest = LongestSilence::default();
        }
        Ok(swept)
    }

    fn longest_extra_silence(&self) -> Seconds {
        self.lists.lock().longest.extra
    }

    fn memory_usage(&self) -> MemoryUsage {
        let lists = self.lists.lock();
        let torrents = lists.users.values().map(|user| user.torrents.len() as u64).sum();
        let bytes: usize = lists.users.values().map(|user| user.torrents.bytes()).sum();
        let of_users = lists.users.capacity() * size_of::<(Passkey, User)>()
            + lists.due.len() * size_of::<(UnixTime, Passkey)>();
        MemoryUsage { torrents, bytes: (bytes + of_users) as u64 }
    }
}
