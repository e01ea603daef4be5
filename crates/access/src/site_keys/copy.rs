//! Keeps the site's keys equal to a gate that follows our database, for programs that read them.
//!
//! # Guarantees
//!
//! - All keys are written at the start. After that, what the follower reports is written within a second, put together
//!   so that many changes of one thing are one write.
//! - A write states what is, so one that is repeated or late does no harm; what failed is tried again.
//! - Everything is compared again every ten minutes, and at once when Redis has lost it.
//! - Only copies are changed or removed. Which keys are copies is noted in Redis (`t:m:copies:<kind>`); all others are the
//!   site's own, and are left alone, also where they say something else than the database.
//! - External users have a key, with the id they were given, while they are verified (M4).
//!
//! # Deliberately absent
//!
//! One process at a time: any number of them state the same.

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

use super::read::Met;
use super::sync;
use super::write::{Line, News, Reach, Settled};
use super::{Kind, SiteKeys, Subject};
use crate::error::AccessError;
use crate::follow::Change;
use crate::gate::Gate;
use crate::store::Store;
use crate::whitelist::Whitelist;

/// Keys that are compared together.
const AT_ONCE: usize = 1000;
/// Changes that are remembered. With more of them, everything is compared.
const NOTED_MAX: usize = 100_000;
/// How long changes are put together.
const GATHER: Duration = Duration::from_millis(50);
/// How often it is looked whether Redis has lost the copies.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// So many looks later everything is compared again.
const LOOKS_PER_ROUND: u32 = 120;
/// The pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What the copier did, counted since its start.
#[derive(Debug, Default)]
pub struct CopyCounters {
    /// Times that everything was compared.
    pub rounds: AtomicU64,
    /// Keys that were written.
    pub written: AtomicU64,
    /// Keys that were removed.
    pub removed: AtomicU64,
    /// Attempts that failed, and were made again.
    pub failures: AtomicU64,
    /// Keys of the site's own that say something else than the database, in the last round; they were left alone.
    pub foreign: AtomicU64,
    /// Times that there were more changes than are remembered, so that everything was compared.
    pub overflows: AtomicU64,
}

/// Takes note of what changed in the gate. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CopyNotes(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    changed: Mutex<Changed>,
    bell: Notify,
    counters: Arc<CopyCounters>,
}

#[derive(Debug, Default)]
struct Changed {
    subjects: HashSet<Subject>,
    clients: bool,
    everything: bool,
}

impl CopyNotes {
    /// Takes note of a change that the follower reports. Never waits.
    pub fn note(&self, change: Change) {
        let subject = match change {
            Change::PasskeyChanged(passkey) | Change::PasskeyPublished(passkey) => {
                Some(Subject::User(passkey))
            }
            Change::NameChanged(name) => Some(Subject::Torrent(name)),
            Change::ClientsChanged => None,
            _ => return,
        };
        self.add(subject.into_iter().collect(), subject.is_none());
        self.0.bell.notify_one();
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<CopyCounters> {
        Arc::clone(&self.0.counters)
    }

    fn add(&self, subjects: Vec<Subject>, clients: bool) {
        let mut changed = self.0.changed.lock();
        changed.clients |= clients;
        if changed.subjects.len() + subjects.len() > NOTED_MAX {
            self.0.counters.overflows.fetch_add(1, Ordering::Relaxed);
            changed.subjects.clear();
            changed.everything = true;
        } else if !changed.everything {
            changed.subjects.extend(subjects);
        }
    }
}

/// What the copier works with.
pub struct CopyParts {
    /// Where it writes.
    pub keys: SiteKeys,
    /// What it copies.
    pub gate: Arc<Gate>,
    /// Where the names of clients are.
    pub store: Store,
    /// Which external users are verified.
    pub whitelist: Arc<dyn Whitelist>,
    /// Goes by steady time.
    pub clock: Arc<dyn Clock>,
}

/// Writes the keys.
pub struct Copier {
    parts: CopyParts,
    notes: CopyNotes,
    /// The kinds of which there were copies when everything was last compared.
    copied: Mutex<Vec<Kind>>,
}

impl Copier {
    /// Whoever runs the follower of the gate hands every change to the notes.
    pub fn new(parts: CopyParts) -> (Copier, CopyNotes) {
        let notes = CopyNotes::default();
        notes.0.changed.lock().everything = true;
        (Copier { parts, notes: notes.clone(), copied: Mutex::default() }, notes)
    }

    /// Copies until `shutdown` is ready.
    pub async fn run(self, shutdown: impl Future) {
        tokio::select! {
            () = self.copy_for_ever() => {}
            _ = shutdown => {}
        }
    }

    async fn copy_for_ever(&self) {
        let (mut looks, mut is_failing) = (0, false);
        let mut next_look = tokio::time::interval(LOOK_EVERY);
        next_look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.copy().await {
                Ok(()) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("the site's keys are written again");
                    }
                }
                Err(error) => {
                    self.notes.0.counters.failures.fetch_add(1, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(%error, "the site's keys cannot be written, trying again");
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
            }
            tokio::select! {
                // First, so that a site that changes something all the time keeps nobody from looking.
                biased;
                _ = next_look.tick() => {
                    looks += 1;
                    // A Redis that does not answer shows when something has to be written.
                    let is_lost = self.is_lost().await.unwrap_or(false);
                    if is_lost || looks >= LOOKS_PER_ROUND {
                        looks = 0;
                        self.notes.0.changed.lock().everything = true;
                    }
                }
                () = self.notes.0.bell.notified() => tokio::time::sleep(GATHER).await,
            }
        }
    }

    /// Whether Redis has lost copies that were there.
    async fn is_lost(&self) -> Result<bool, RedisError> {
        let copied = self.copied.lock().clone();
        for kind in copied {
            if !self.parts.keys.has_copies(kind).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what changed; everything, if that is due.
    async fn copy(&self) -> Result<(), AccessError> {
        let changed = std::mem::take(&mut *self.notes.0.changed.lock());
        let outcome = match changed.everything {
            true => self.copy_everything().await,
            false => self.copy_changed(&changed).await,
        };
        if outcome.is_err() {
            let mut notes = self.notes.0.changed.lock();
            notes.everything |= changed.everything;
            drop(notes);
            self.notes.add(changed.subjects.into_iter().collect(), changed.clients);
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
        let CopyParts { keys, gate, .. } = &self.parts;
        let torrents = gate.names_where(|_| true).into_iter().map(Subject::Torrent);
        let users = gate.passkeys_where(|_| true).into_iter().map(Subject::User);
        let subjects: Vec<Subject> = torrents.chain(users).collect();
        let mut left_alone = self.copy_subjects(&subjects).await?;
        left_alone += self.copy_clients().await?;
        self.remove_stale(&[Kind::Torrents, Kind::Users]).await?;
        let mut copied = Vec::new();
        for kind in Kind::ALL {
            if keys.has_copies(kind).await? {
                copied.push(kind);
            }
        }
        *self.copied.lock() = copied;
        let counters = &self.notes.0.counters;
        if counters.foreign.swap(left_alone, Ordering::Relaxed) != left_alone && left_alone > 0 {
            tracing::warn!(
                keys = left_alone,
                "keys of the site in redis say something else than the database, which decides; they are left alone"
            );
        }
        counters.rounds.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Copies users and torrents. Tells how many keys of the site's own were left alone.
    async fn copy_subjects(&self, subjects: &[Subject]) -> Result<u64, AccessError> {
        let mut left_alone = 0;
        for some in subjects.chunks(AT_ONCE) {
            // Looked up only now: meanwhile it may have changed.
            let lines = self.lines(some).await;
            left_alone += self.settle(&lines).await?;
        }
        Ok(left_alone)
    }

    /// Copies all allowed prefixes, and removes the copies of others.
    async fn copy_clients(&self) -> Result<u64, AccessError> {
        let allowed = self.parts.store.list_clients().await?.into_iter().filter(|rule| rule.allowed);
        let mut lines: Vec<Line> =
            allowed.map(|rule| (Subject::Client(rule.prefix), Some(rule.name))).collect();
        let wanted: HashSet<Subject> = lines.iter().map(|(subject, _)| *subject).collect();
        let mut cursor = 0;
        loop {
            let (next, copies) = self.parts.keys.some_copies(Kind::Clients, cursor).await?;
            lines.extend(copies.into_iter().filter(|copy| !wanted.contains(copy)).map(|copy| (copy, None)));
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let mut left_alone = 0;
        for some in lines.chunks(AT_ONCE) {
            left_alone += self.settle(some).await?;
        }
        Ok(left_alone)
    }

    /// Removes copies of users and torrents that are gone, from while no process copied.
    async fn remove_stale(&self, kinds: &[Kind]) -> Result<(), AccessError> {
        for kind in kinds {
            let mut cursor = 0;
            loop {
                let (next, copies) = self.parts.keys.some_copies(*kind, cursor).await?;
                let lines = self.lines(&copies).await;
                let unwanted = lines.into_iter().filter(|(_, wanted)| wanted.is_none()).collect();
                let unwanted = self.still_unwanted(unwanted).await?;
                self.settle(&unwanted).await?;
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Of what the gate does not know, what the database does not know either: another process may have learnt of it
    /// before this one.
    async fn still_unwanted(&self, lines: Vec<Line>) -> Result<Vec<Line>, AccessError> {
        let CopyParts { gate, store, .. } = &self.parts;
        let mut unwanted = Vec::with_capacity(lines.len());
        for line in lines {
            let is_in_gate = match &line.0 {
                Subject::Torrent(name) => gate.own_torrent(name).is_some(),
                Subject::User(passkey) => gate.holder(passkey).is_some(),
                Subject::Client(_) => false,
            };
            if is_in_gate || !sync::is_known(store, &Met::Subject(line.0)).await? {
                unwanted.push(line);
            }
        }
        Ok(unwanted)
    }

    /// Copies are not published: no tracker takes them for the site's word.
    async fn settle(&self, lines: &[Line]) -> Result<u64, AccessError> {
        let settled = self.parts.keys.settle(lines, Reach::Copies, &mut News::default()).await?;
        self.count(settled);
        Ok(settled.left_alone)
    }

    /// What the keys of these users and torrents should say. External users of whom that cannot be found out now are
    /// left out.
    async fn lines(&self, subjects: &[Subject]) -> Vec<Line> {
        let (gate, now) = (&self.parts.gate, self.parts.clock.steady());
        let (mut lines, mut unsure) = (Vec::with_capacity(subjects.len()), Vec::new());
        for subject in subjects {
            let wanted = match subject {
                Subject::Torrent(name) => {
                    gate.own_torrent(name).filter(|grant| grant.enabled).map(|grant| grant.id.to_string())
                }
                Subject::User(passkey) => {
                    let grant = gate.holder(passkey).filter(|grant| grant.enabled);
                    let id = grant.map(|grant| grant.id.to_string());
                    let is_external = grant.is_some_and(|grant| grant.vouched);
                    if is_external && gate.site_user_of(passkey).is_some() {
                        // The site has a key of its own for them.
                        continue;
                    }
                    if is_external && !gate.is_verified(passkey, now) {
                        unsure.extend(id.map(|id| (*passkey, id)));
                        continue;
                    }
                    id
                }
                Subject::Client(_) => None,
            };
            lines.push((*subject, wanted));
        }
        lines.extend(self.check(unsure).await);
        lines
    }

    /// Asks the whitelist about external users, whom it has if they are verified.
    async fn check(&self, unsure: Vec<(Passkey, String)>) -> Vec<Line> {
        let passkeys: Vec<Passkey> = unsure.iter().map(|(passkey, _)| *passkey).collect();
        if passkeys.is_empty() {
            return Vec::new();
        }
        let Ok(listed) = self.parts.whitelist.check(&passkeys).await else { return Vec::new() };
        let told = unsure.into_iter().zip(listed);
        told.map(|((passkey, id), is_listed)| (Subject::User(passkey), is_listed.then_some(id))).collect()
    }

    fn count(&self, settled: Settled) {
        let counters = &self.notes.0.counters;
        counters.written.fetch_add(settled.written, Ordering::Relaxed);
        counters.removed.fetch_add(settled.removed, Ordering::Relaxed);
    }
}
