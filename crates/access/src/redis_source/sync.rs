//! Loads the keys from the database: `rollcall torrent sync`, `user sync` and `client sync`.
//!
//! # Guarantees
//!
//! - The database is read in pages, and only keys that differ are written. Changes are published.
//! - Keys whose subject is not in the database are counted, and removed only with [`SyncOptions::flush`]. Each is looked up
//!   once more before its removal, so that a row added meanwhile keeps its key.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::read::ScannedKey;
use super::write::{DesiredKey, Notifications, WriteScope, WriteSummary};
use super::{Kind, RedisSource, Subject};
use crate::error::AccessError;
use crate::store::{Store, Torrent, User};

/// Rows and keys per page.
const PAGE_ROWS: u32 = 1000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncOptions {
    /// Remove keys whose subject is not in the database.
    pub flush: bool,
    /// Change nothing; the report says what would be done.
    pub is_dry: bool,
    /// Permit a flush from an empty database, which is usually the wrong one.
    pub allow_empty: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Keys that should exist.
    pub wanted: u64,
    /// Keys that were missing or had another value.
    pub written: u64,
    pub unchanged: u64,
    /// Removed keys: subjects that are disabled, or not in the database.
    pub removed: u64,
    /// Keys whose subject is not in the database, and which were not removed.
    pub unknown: u64,
}

struct Sync<'a> {
    store: &'a Store,
    source: &'a RedisSource,
    options: SyncOptions,
    /// Hashes of the subjects in the database. After a collision a key is left in place, never removed.
    known: HashSet<u64, foldhash::fast::RandomState>,
    wanted: u64,
    hasher: foldhash::fast::RandomState,
    summary: WriteSummary,
    notifications: Notifications,
}

/// Makes the keys of a kind equal to the database. `progress` gets the number of rows read so far.
pub async fn sync(
    store: &Store,
    source: &RedisSource,
    kind: Kind,
    options: SyncOptions,
    mut progress: impl FnMut(u64),
) -> Result<SyncReport, AccessError> {
    let mut sync = Sync {
        store,
        source,
        options,
        known: HashSet::default(),
        wanted: 0,
        hasher: foldhash::fast::RandomState::default(),
        summary: WriteSummary::default(),
        notifications: Notifications::default(),
    };
    match kind {
        Kind::Torrents => sync.torrents(&mut progress).await?,
        Kind::Users => sync.users(&mut progress).await?,
        Kind::Clients => sync.clients(&mut progress).await?,
    }
    if options.flush && sync.wanted == 0 && !options.allow_empty && !options.is_dry {
        return Err(AccessError::EmptyDatabase(kind.name()));
    }
    let unknown = sync.handle_unknown(kind).await?;
    source.publish(sync.notifications).await?;
    let WriteSummary { written, removed, unchanged, .. } = sync.summary;
    Ok(SyncReport { wanted: sync.wanted, written, unchanged, removed, unknown })
}

impl Sync<'_> {
    async fn torrents(&mut self, progress: &mut impl FnMut(u64)) -> Result<(), AccessError> {
        let (mut after, mut rows) = (None, 0);
        loop {
            let page = self.store.list_torrents(after, PAGE_ROWS).await?;
            self.load(page.iter().flat_map(keys_of_torrent).collect()).await?;
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
            for user in page.iter().filter(|user| user.enabled && user.is_external) {
                self.known.insert(self.hasher.hash_one(Subject::User(user.passkey)));
            }
            self.load(page.iter().filter_map(key_of_user).collect()).await?;
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
        let key = |rule: crate::ClientRule| (Subject::Client(rule.prefix), rule.allowed.then_some(rule.name));
        self.load(rules.into_iter().map(key).collect()).await
    }

    async fn load(&mut self, desired: Vec<DesiredKey>) -> Result<(), AccessError> {
        for (subject, wanted) in &desired {
            self.known.insert(self.hasher.hash_one(subject));
            self.wanted += u64::from(wanted.is_some());
        }
        self.write(desired).await
    }

    async fn write(&mut self, desired: Vec<DesiredKey>) -> Result<(), AccessError> {
        for page in desired.chunks(PAGE_ROWS as usize) {
            let scope = if self.options.is_dry { WriteScope::DryRun } else { WriteScope::All };
            let summary = self.source.write_differences(page, scope, &mut self.notifications).await?;
            self.summary.add(summary);
        }
        Ok(())
    }

    /// Counts or removes the keys whose subject is not in the database. Returns how many are left.
    async fn handle_unknown(&mut self, kind: Kind) -> Result<u64, AccessError> {
        let (mut unknown, mut pages) = (0, self.source.pages(&[kind]));
        let mut seen: HashSet<ScannedKey> = HashSet::new();
        while let Some(page) = pages.next(self.source).await? {
            let (mut unwanted, mut malformed) = (Vec::new(), Vec::new());
            for key in page.into_iter().filter(|key| !self.is_known(key)) {
                // A scan may return a key twice.
                if !seen.insert(key.clone()) || is_in_database(self.store, &key).await? {
                    continue;
                }
                match key {
                    ScannedKey::Subject(subject) => unwanted.push((subject, None)),
                    ScannedKey::Malformed(_, key) => malformed.push(key),
                }
            }
            if !self.options.flush {
                unknown += (unwanted.len() + malformed.len()) as u64;
                continue;
            }
            self.write(unwanted).await?;
            self.summary.removed += malformed.len() as u64;
            if !self.options.is_dry {
                self.source.remove_malformed(&malformed).await?;
            }
        }
        Ok(unknown)
    }

    fn is_known(&self, key: &ScannedKey) -> bool {
        match key {
            ScannedKey::Subject(subject) => self.known.contains(&self.hasher.hash_one(subject)),
            ScannedKey::Malformed(..) => false,
        }
    }
}

/// Whether the database has the subject, enabled, at this moment.
pub(super) async fn is_in_database(store: &Store, key: &ScannedKey) -> Result<bool, AccessError> {
    Ok(match key {
        ScannedKey::Subject(Subject::Torrent(info_hash)) => {
            store.torrent_by_info_hash(info_hash).await?.is_some_and(|torrent| torrent.enabled)
        }
        ScannedKey::Subject(Subject::User(passkey)) => {
            store.user_by_passkey(passkey).await?.is_some_and(|user| user.enabled)
        }
        ScannedKey::Subject(Subject::Client(prefix)) => {
            store.list_clients().await?.iter().any(|rule| rule.prefix == *prefix && rule.allowed)
        }
        ScannedKey::Malformed(..) => false,
    })
}

fn keys_of_torrent(torrent: &Torrent) -> Vec<DesiredKey> {
    let info_hashes = [Some(torrent.info_hash), torrent.info_hash_v2].into_iter().flatten();
    let id = torrent.enabled.then(|| torrent.id.to_string());
    info_hashes.map(|info_hash| (Subject::Torrent(info_hash), id.clone())).collect()
}

/// None for an external user, whose key exists only while the passkey is verified.
fn key_of_user(user: &User) -> Option<DesiredKey> {
    let subject = Subject::User(user.passkey);
    match (user.enabled, user.is_external) {
        (false, _) => Some((subject, None)),
        (true, true) => None,
        (true, false) => Some((subject, Some(user.id.to_string()))),
    }
}
