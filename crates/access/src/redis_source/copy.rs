//! Copies the database to keys in Redis, for programs that read them. The gate, which follows the database, is the source.
//!
//! # Guarantees
//!
//! - All keys are written at the start. Later changes are written within a second; several changes of one subject are one
//!   write.
//! - A write sets the current value, so a repeated or late one is harmless; a failed one is retried.
//! - Everything is compared again every ten minutes, and at once if Redis has lost the copies.
//! - Only copies are changed or removed. They are recorded in Redis (`t:m:copies:<kind>`); all other keys are the site's own
//!   and are not changed, also if they differ from the database.
//! - An external user has a key with the id of its row while the passkey is verified (M4).
//!
//! Any number of processes may copy at the same time: all write the same values.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::Passkey;
use domain::clock::Clock;
use keyspace::RedisError;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use super::read::ScannedKey;
use super::sync;
use super::write::{DesiredKey, Notifications, WriteScope, WriteSummary};
use super::{Kind, RedisSource, Subject};
use crate::error::AccessError;
use crate::follow::Change;
use crate::gate::Gate;
use crate::store::Store;
use crate::whitelist::Whitelist;

/// Keys compared together.
const BATCH: usize = 1000;
/// Queued changes. If there are more, everything is compared.
const QUEUED_MAX: usize = 100_000;
/// How long changes are collected before they are written.
const COLLECT: Duration = Duration::from_millis(50);
/// Interval of the check whether Redis has lost the copies.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// Checks between two comparisons of everything.
const CHECKS_PER_COMPARISON: u32 = 120;
const RETRY_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct CopyCounters {
    /// Comparisons of all keys with the database.
    pub comparisons: AtomicU64,
    pub written: AtomicU64,
    pub removed: AtomicU64,
    /// Failed attempts; each is retried.
    pub failures: AtomicU64,
    /// Keys of the site's own that differ from the database, in the last comparison.
    pub conflicts: AtomicU64,
    /// Times the queue of changes was full, so that everything was compared.
    pub overflows: AtomicU64,
}

/// The queue of changes for the copier. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CopyQueue(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    changed: Mutex<Changed>,
    wake: Notify,
    counters: Arc<CopyCounters>,
}

#[derive(Debug, Default)]
struct Changed {
    subjects: HashSet<Subject>,
    clients: bool,
    everything: bool,
}

impl CopyQueue {
    /// Queues a change reported by the follower. Never blocks.
    pub fn push(&self, change: Change) {
        let subject = match change {
            Change::PasskeyChanged(passkey) | Change::PasskeyPublished(passkey) => {
                Some(Subject::User(passkey))
            }
            Change::InfoHashChanged(info_hash) => Some(Subject::Torrent(info_hash)),
            Change::ClientsChanged => None,
            _ => return,
        };
        self.add(subject.into_iter().collect(), subject.is_none());
        self.0.wake.notify_one();
    }

    pub fn counters(&self) -> Arc<CopyCounters> {
        Arc::clone(&self.0.counters)
    }

    fn add(&self, subjects: Vec<Subject>, clients: bool) {
        let mut changed = self.0.changed.lock();
        changed.clients |= clients;
        if changed.subjects.len() + subjects.len() > QUEUED_MAX {
            self.0.counters.overflows.fetch_add(1, Ordering::Relaxed);
            changed.subjects.clear();
            changed.everything = true;
        } else if !changed.everything {
            changed.subjects.extend(subjects);
        }
    }
}

pub struct CopierParts {
    pub keys: RedisSource,
    /// Follows the database.
    pub gate: Arc<Gate>,
    /// For the names of clients, which the gate does not have.
    pub store: Store,
    /// For external users without a cached answer.
    pub whitelist: Arc<dyn Whitelist>,
    /// Steady time is used.
    pub clock: Arc<dyn Clock>,
}

pub struct Copier {
    parts: CopierParts,
    queue: CopyQueue,
    /// The kinds that had copies at the last comparison of everything.
    copied: Mutex<Vec<Kind>>,
}

impl Copier {
    /// Every change that the follower of the gate reports must be pushed to the queue.
    pub fn new(parts: CopierParts) -> (Copier, CopyQueue) {
        let queue = CopyQueue::default();
        queue.0.changed.lock().everything = true;
        (Copier { parts, queue: queue.clone(), copied: Mutex::default() }, queue)
    }

    /// Runs until `shutdown` is ready.
    pub async fn run(self, shutdown: impl Future) {
        tokio::select! {
            () = self.copy_forever() => {}
            _ = shutdown => {}
        }
    }

    async fn copy_forever(&self) {
        let (mut checks, mut is_failing) = (0, false);
        let mut next_check = tokio::time::interval(CHECK_EVERY);
        next_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.copy().await {
                Ok(()) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("copies of the database in redis are written again");
                    }
                }
                Err(error) => {
                    self.queue.0.counters.failures.fetch_add(1, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(%error, "copies of the database in redis cannot be written; retrying");
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
            }
            tokio::select! {
                // First, so that constant changes do not delay the check.
                biased;
                _ = next_check.tick() => {
                    checks += 1;
                    // A Redis that does not answer is reported by the next write.
                    let is_lost = self.is_lost().await.unwrap_or(false);
                    if is_lost || checks >= CHECKS_PER_COMPARISON {
                        checks = 0;
                        self.queue.0.changed.lock().everything = true;
                    }
                }
                () = self.queue.0.wake.notified() => tokio::time::sleep(COLLECT).await,
            }
        }
    }

    /// Whether Redis has lost copies of a kind that had some.
    async fn is_lost(&self) -> Result<bool, RedisError> {
        let copied = self.copied.lock().clone();
        for kind in copied {
            if !self.parts.keys.has_copies(kind).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the queued changes, or everything if that is due.
    async fn copy(&self) -> Result<(), AccessError> {
        let changed = std::mem::take(&mut *self.queue.0.changed.lock());
        let outcome = match changed.everything {
            true => self.copy_everything().await,
            false => self.copy_changed(&changed).await,
        };
        if outcome.is_err() {
            self.queue.0.changed.lock().everything |= changed.everything;
            self.queue.add(changed.subjects.into_iter().collect(), changed.clients);
        }
        outcome
    }

    async fn copy_changed(&self, changed: &Changed) -> Result<(), AccessError> {
        let subjects: Vec<Subject> = changed.subjects.iter().copied().collect();
        self.copy_subjects(&subjects).await?;
        if changed.clients {
            self.copy_clients().await?;
        }
        Ok(())
    }

    async fn copy_everything(&self) -> Result<(), AccessError> {
        let CopierParts { keys, gate, .. } = &self.parts;
        let torrents = gate.info_hashes_where(|_| true).into_iter().map(Subject::Torrent);
        let users = gate.passkeys_where(|_| true).into_iter().map(Subject::User);
        let subjects: Vec<Subject> = torrents.chain(users).collect();
        let mut conflicts = self.copy_subjects(&subjects).await?;
        conflicts += self.copy_clients().await?;
        self.remove_stale(&[Kind::Torrents, Kind::Users]).await?;
        let mut copied = Vec::new();
        for kind in Kind::ALL {
            if keys.has_copies(kind).await? {
                copied.push(kind);
            }
        }
        *self.copied.lock() = copied;
        let counters = &self.queue.0.counters;
        if counters.conflicts.swap(conflicts, Ordering::Relaxed) != conflicts && conflicts > 0 {
            tracing::warn!(
                keys = conflicts,
                "the site's own keys in redis differ from the database, which takes precedence; they are not changed"
            );
        }
        counters.comparisons.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Copies users and torrents. Returns the number of conflicts.
    async fn copy_subjects(&self, subjects: &[Subject]) -> Result<u64, AccessError> {
        let mut conflicts = 0;
        for batch in subjects.chunks(BATCH) {
            // Looked up per batch, so that the values are current.
            let desired = self.desired_keys(batch).await;
            conflicts += self.write(&desired).await?;
        }
        Ok(conflicts)
    }

    /// Copies all allowed prefixes, and removes copies of others. Returns the number of conflicts.
    async fn copy_clients(&self) -> Result<u64, AccessError> {
        let allowed = self.parts.store.list_clients().await?.into_iter().filter(|rule| rule.allowed);
        let mut desired: Vec<DesiredKey> =
            allowed.map(|rule| (Subject::Client(rule.prefix), Some(rule.name))).collect();
        let wanted: HashSet<Subject> = desired.iter().map(|(subject, _)| *subject).collect();
        let mut cursor = 0;
        loop {
            let (next, copies) = self.parts.keys.scan_copies(Kind::Clients, cursor).await?;
            desired.extend(copies.into_iter().filter(|copy| !wanted.contains(copy)).map(|copy| (copy, None)));
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let mut conflicts = 0;
        for batch in desired.chunks(BATCH) {
            conflicts += self.write(batch).await?;
        }
        Ok(conflicts)
    }

    /// Removes copies of users and torrents that were removed while no process copied.
    async fn remove_stale(&self, kinds: &[Kind]) -> Result<(), AccessError> {
        for kind in kinds {
            let mut cursor = 0;
            loop {
                let (next, copies) = self.parts.keys.scan_copies(*kind, cursor).await?;
                let desired = self.desired_keys(&copies).await;
                let unwanted = desired.into_iter().filter(|(_, wanted)| wanted.is_none()).collect();
                let unwanted = self.confirm_unwanted(unwanted).await?;
                self.write(&unwanted).await?;
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Keeps those that the database does not have either: the gate of another process may be ahead of this one.
    async fn confirm_unwanted(&self, candidates: Vec<DesiredKey>) -> Result<Vec<DesiredKey>, AccessError> {
        let CopierParts { gate, store, .. } = &self.parts;
        let mut unwanted = Vec::with_capacity(candidates.len());
        for key in candidates {
            let is_in_gate = match &key.0 {
                Subject::Torrent(info_hash) => gate.database_torrent(info_hash).is_some(),
                Subject::User(passkey) => gate.holder(passkey).is_some(),
                Subject::Client(_) => false,
            };
            if is_in_gate || !sync::is_in_database(store, &ScannedKey::Subject(key.0)).await? {
                unwanted.push(key);
            }
        }
        Ok(unwanted)
    }

    /// Returns the number of conflicts. Copies are not published, since they are no source.
    async fn write(&self, desired: &[DesiredKey]) -> Result<u64, AccessError> {
        let mut unpublished = Notifications::default();
        let summary =
            self.parts.keys.write_differences(desired, WriteScope::Copies, &mut unpublished).await?;
        let WriteSummary { written, removed, conflicts, .. } = summary;
        let counters = &self.queue.0.counters;
        counters.written.fetch_add(written, Ordering::Relaxed);
        counters.removed.fetch_add(removed, Ordering::Relaxed);
        Ok(conflicts)
    }

    /// The desired keys of users and torrents, without external users that cannot be verified now.
    async fn desired_keys(&self, subjects: &[Subject]) -> Vec<DesiredKey> {
        let (gate, now) = (&self.parts.gate, self.parts.clock.steady());
        let (mut desired, mut unverified) = (Vec::with_capacity(subjects.len()), Vec::new());
        for subject in subjects {
            let wanted = match subject {
                Subject::Torrent(info_hash) => gate
                    .database_torrent(info_hash)
                    .filter(|grant| grant.enabled)
                    .map(|grant| grant.id.to_string()),
                Subject::User(passkey) => {
                    let grant = gate.holder(passkey).filter(|grant| grant.enabled);
                    let id = grant.map(|grant| grant.id.to_string());
                    let is_external = grant.is_some_and(|grant| grant.is_external);
                    if is_external && gate.redis_user_of(passkey).is_some() {
                        // The site has its own key for this user.
                        continue;
                    }
                    if is_external && !gate.is_verified(passkey, now) {
                        unverified.extend(id.map(|id| (*passkey, id)));
                        continue;
                    }
                    id
                }
                Subject::Client(_) => None,
            };
            desired.push((*subject, wanted));
        }
        desired.extend(self.check(unverified).await);
        desired
    }

    /// Decides by the whitelist about external users without a cached answer.
    async fn check(&self, unverified: Vec<(Passkey, String)>) -> Vec<DesiredKey> {
        let passkeys: Vec<Passkey> = unverified.iter().map(|(passkey, _)| *passkey).collect();
        if passkeys.is_empty() {
            return Vec::new();
        }
        let Ok(listed) = self.parts.whitelist.check(&passkeys).await else { return Vec::new() };
        let checked = unverified.into_iter().zip(listed);
        checked.map(|((passkey, id), is_listed)| (Subject::User(passkey), is_listed.then_some(id))).collect()
    }
}
