//! Loads the site's keys from our database: what `rollcall torrent sync`, `user sync` and `client sync` do.
//!
//! # Guarantees
//!
//! - The database is read in bounded pages, and only keys that differ are written. What changed is told on the channels.
//! - Keys whose subject the database does not know are counted, and removed only if that is asked for; each is looked up
//!   in the database once more before, so nothing that was added meanwhile is lost.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::read::Met;
use super::write::{Line, News, Reach, Settled};
use super::{Kind, SiteKeys, Subject};
use crate::error::AccessError;
use crate::store::{Store, Torrent, User};

/// Rows that are read, and keys that are compared, together.
const PAGE_ROWS: u32 = 1000;

/// What to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncOptions {
    /// Remove keys whose subject the database does not know.
    pub flush: bool,
    /// Change nothing, and say what would be done.
    pub is_dry: bool,
    /// Remove keys even where the database has nothing, which usually means that it is the wrong one.
    pub allow_empty: bool,
}

/// What was found and done; or, in a dry run, what would have been done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Keys there should be.
    pub wanted: u64,
    /// Keys that were missing or said something else, and were written.
    pub written: u64,
    /// Keys that said what they should.
    pub unchanged: u64,
    /// Keys whose subject is disabled or was asked to go, and which were removed.
    pub removed: u64,
    /// Keys whose subject the database does not know, and which were left.
    pub unknown: u64,
}

/// A sync that is under way.
struct Sync<'a> {
    store: &'a Store,
    keys: &'a SiteKeys,
    options: SyncOptions,
    /// What the database names, by a hash: what is taken for another is left, never removed.
    named: HashSet<u64, foldhash::fast::RandomState>,
    /// Keys there should be.
    wanted: u64,
    hasher: foldhash::fast::RandomState,
    settled: Settled,
    news: News,
}

/// Makes the keys of a kind say what the database says. `progress` hears how many rows have been read.
pub async fn sync(
    store: &Store,
    keys: &SiteKeys,
    kind: Kind,
    options: SyncOptions,
    mut progress: impl FnMut(u64),
) -> Result<SyncReport, AccessError> {
    let mut sync = Sync {
        store,
        keys,
        options,
        named: HashSet::default(),
        wanted: 0,
        hasher: foldhash::fast::RandomState::default(),
        settled: Settled::default(),
        news: News::default(),
    };
    match kind {
        Kind::Torrents => sync.torrents(&mut progress).await?,
        Kind::Users => sync.users(&mut progress).await?,
        Kind::Clients => sync.clients(&mut progress).await?,
    }
    if options.flush && sync.wanted == 0 && !options.allow_empty && !options.is_dry {
        return Err(AccessError::NothingToKeep(kind.name()));
    }
    let unknown = sync.look_for_unknown(kind).await?;
    keys.tell(sync.news).await?;
    let Settled { written, removed, unchanged, .. } = sync.settled;
    Ok(SyncReport { wanted: sync.wanted, written, unchanged, removed, unknown })
}

impl Sync<'_> {
    async fn torrents(&mut self, progress: &mut impl FnMut(u64)) -> Result<(), AccessError> {
        let (mut after, mut rows) = (None, 0);
        loop {
            let page = self.store.list_torrents(after, PAGE_ROWS).await?;
            self.load(page.iter().flat_map(lines_of_torrent).collect()).await?;
            rows += page.len() as u64;
            progress(rows);
            after = match page.last() {
                Some(last) => Some(last.id),
                None => return Ok(()),
            };
        }
    }

    async fn users(&mut self, progress: &mut impl FnMut(u64)) -> Result<(), AccessError> {
        let (mut after, mut rows) = (None, 0);
        loop {
            let page = self.store.list_users(after, PAGE_ROWS).await?;
            for user in page.iter().filter(|user| user.enabled && user.vouched) {
                self.named.insert(self.hasher.hash_one(Subject::User(user.passkey)));
            }
            self.load(page.iter().filter_map(line_of_user).collect()).await?;
            rows += page.len() as u64;
            progress(rows);
            after = match page.last() {
                Some(last) => Some(last.id),
                None => return Ok(()),
            };
        }
    }

    async fn clients(&mut self, progress: &mut impl FnMut(u64)) -> Result<(), AccessError> {
        let rules = self.store.list_clients().await?;
        progress(rules.len() as u64);
        let line =
            |rule: crate::ClientRule| (Subject::Client(rule.prefix), rule.allowed.then_some(rule.name));
        self.load(rules.into_iter().map(line).collect()).await
    }

    /// Takes in what the database says.
    async fn load(&mut self, lines: Vec<Line>) -> Result<(), AccessError> {
        for (subject, wanted) in &lines {
            self.named.insert(self.hasher.hash_one(subject));
            self.wanted += u64::from(wanted.is_some());
        }
        self.settle(lines).await
    }

    async fn settle(&mut self, lines: Vec<Line>) -> Result<(), AccessError> {
        for some in lines.chunks(PAGE_ROWS as usize) {
            let reach = if self.options.is_dry { Reach::Nothing } else { Reach::All };
            let settled = self.keys.settle(some, reach, &mut self.news).await?;
            self.settled.add(settled);
        }
        Ok(())
    }

    /// Counts the keys that nobody wants, and removes them if that is asked for. Tells how many are left.
    async fn look_for_unknown(&mut self, kind: Kind) -> Result<u64, AccessError> {
        let (mut unknown, mut pages) = (0, self.keys.pages(&[kind]));
        let mut seen: HashSet<Met> = HashSet::new();
        while let Some(page) = pages.next(self.keys).await? {
            let (mut lines, mut unfit) = (Vec::new(), Vec::new());
            for met in page.into_iter().filter(|met| !self.is_named(met)) {
                // A scan may meet a key twice.
                if !seen.insert(met.clone()) || is_known(self.store, &met).await? {
                    continue;
                }
                match met {
                    Met::Subject(subject) => lines.push((subject, None)),
                    Met::Unfit(_, key) => unfit.push(key),
                }
            }
            if !self.options.flush {
                unknown += (lines.len() + unfit.len()) as u64;
                continue;
            }
            self.settle(lines).await?;
            self.settled.removed += unfit.len() as u64;
            if !self.options.is_dry {
                self.keys.remove_unfit(&unfit).await?;
            }
        }
        Ok(unknown)
    }

    fn is_named(&self, met: &Met) -> bool {
        match met {
            Met::Subject(subject) => self.named.contains(&self.hasher.hash_one(subject)),
            Met::Unfit(..) => false,
        }
    }
}

/// Whether the database knows it by now.
pub(super) async fn is_known(store: &Store, met: &Met) -> Result<bool, AccessError> {
    Ok(match met {
        Met::Subject(Subject::Torrent(name)) => {
            store.torrent_by_info_hash(name).await?.is_some_and(|torrent| torrent.enabled)
        }
        Met::Subject(Subject::User(passkey)) => {
            store.user_by_passkey(passkey).await?.is_some_and(|user| user.enabled)
        }
        Met::Subject(Subject::Client(prefix)) => {
            store.list_clients().await?.iter().any(|rule| rule.prefix == *prefix && rule.allowed)
        }
        Met::Unfit(..) => false,
    })
}

fn lines_of_torrent(torrent: &Torrent) -> Vec<Line> {
    let names = [Some(torrent.info_hash), torrent.info_hash_v2].into_iter().flatten();
    let id = torrent.enabled.then(|| torrent.id.to_string());
    names.map(|name| (Subject::Torrent(name), id.clone())).collect()
}

/// None where the key depends on more than the row: external users have one while they are verified.
fn line_of_user(user: &User) -> Option<Line> {
    let subject = Subject::User(user.passkey);
    match (user.enabled, user.vouched) {
        (false, _) => Some((subject, None)),
        (true, true) => None,
        (true, false) => Some((subject, Some(user.id.to_string()))),
    }
}
