//! Keeps the site's keys equal to a gate that follows our database, for programs that read them.
//!
//! # Guarantees
//!
//! - All keys are written at the start. After that, what the follower reports is written within a second, put together
//!   so that many changes of one thing are one write.
//! - A write states what is, so one that is repeated or late does no harm; what failed is tried again.
//! - Everything is compared again now and then, and at once when Redis has lost it, which a mark beside the keys shows.
//! - Keys that somebody else wrote before we did are left alone and reported: without the mark they may be the site's.
//!
//! # Deliberately absent
//!
//! One process at a time: any number of them state the same.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyspace::Trouble;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use super::read::Met;
use super::sync;
use super::write::{Line, News, Settled};
use super::{Kind, SiteKeys, Subject};
use crate::error::AccessError;
use crate::follow::Change;
use crate::gate::Gate;
use crate::store::Store;

/// Keys that are compared together.
const AT_ONCE: usize = 1000;
/// Changes that are remembered. With more of them, everything is compared.
const NOTED_MAX: usize = 100_000;
/// How long changes are put together.
const GATHER: Duration = Duration::from_millis(50);
/// How often the mark is looked for.
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
    /// Keys of somebody else that were found in the last round, and left alone.
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
            Change::PasskeyChanged(passkey) => Some(Subject::User(passkey)),
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

/// Writes the keys.
#[derive(Debug)]
pub struct Copier {
    keys: SiteKeys,
    gate: Arc<Gate>,
    store: Store,
    notes: CopyNotes,
}

impl Copier {
    /// Copies what `gate` has, and the names of clients from `store`. Whoever runs the follower of the gate hands every
    /// change to the notes.
    pub fn new(keys: SiteKeys, gate: Arc<Gate>, store: Store) -> (Copier, CopyNotes) {
        let notes = CopyNotes::default();
        notes.0.changed.lock().everything = true;
        (Copier { keys, gate, store, notes: notes.clone() }, notes)
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

    /// Whether a mark is gone that was set: Redis has lost what it had. Where keys of others are, there is none.
    async fn is_lost(&self) -> Result<bool, Trouble> {
        let is_foreign = self.notes.0.counters.foreign.load(Ordering::Relaxed) > 0;
        for kind in Kind::ALL.into_iter().filter(|_| !is_foreign) {
            if !self.keys.is_marked(kind).await? {
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
        let mut lines: Vec<Line> = changed.subjects.iter().map(|subject| self.line(subject)).collect();
        if changed.clients {
            return self.copy_everything_of(&[Kind::Clients], lines).await;
        }
        let mut news = News::default();
        while !lines.is_empty() {
            let some = lines.split_off(lines.len().saturating_sub(AT_ONCE));
            self.count(self.keys.settle(&some, false, &mut news).await?);
        }
        Ok(self.keys.tell(news).await?)
    }

    async fn copy_everything(&self) -> Result<(), AccessError> {
        let torrents = self.gate.names_where(|_| true).into_iter().map(Subject::Torrent);
        let users = self.gate.passkeys_where(|_| true).into_iter().map(Subject::User);
        let subjects: Vec<Subject> = torrents.chain(users).collect();
        let mut news = News::default();
        for some in subjects.chunks(AT_ONCE) {
            // Looked up only now: meanwhile it may have changed.
            let lines: Vec<Line> = some.iter().map(|subject| self.line(subject)).collect();
            self.count(self.keys.settle(&lines, false, &mut news).await?);
        }
        self.keys.tell(news).await?;
        self.copy_everything_of(&Kind::ALL, Vec::new()).await?;
        self.notes.0.counters.rounds.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Writes these lines and, where clients are meant, all clients; then looks for keys of these kinds that should not
    /// be there.
    async fn copy_everything_of(&self, kinds: &[Kind], mut lines: Vec<Line>) -> Result<(), AccessError> {
        let allowed = self.store.list_clients().await?.into_iter().filter(|rule| rule.allowed);
        let clients: Vec<(Subject, String)> =
            allowed.map(|rule| (Subject::Client(rule.prefix), rule.name)).collect();
        lines.extend(clients.iter().map(|(subject, name)| (*subject, Some(name.clone()))));
        let mut news = News::default();
        for some in lines.chunks(AT_ONCE) {
            self.count(self.keys.settle(some, false, &mut news).await?);
        }
        let wanted: HashSet<Subject> = clients.into_iter().map(|(subject, _)| subject).collect();
        let is_ours = |subject: &Subject| match subject {
            Subject::Client(_) => wanted.contains(subject),
            _ => self.line(subject).1.is_some(),
        };
        let mut foreign = 0;
        for kind in kinds {
            foreign += self.clear_away(*kind, &is_ours, &mut news).await?;
        }
        if kinds.len() == Kind::ALL.len() {
            self.notes.0.counters.foreign.store(foreign, Ordering::Relaxed);
        }
        Ok(self.keys.tell(news).await?)
    }

    /// Removes the keys of a kind that are not `wanted`, if all of that kind are ours. Tells how many were left alone.
    async fn clear_away(
        &self,
        kind: Kind,
        wanted: &impl Fn(&Subject) -> bool,
        news: &mut News,
    ) -> Result<u64, AccessError> {
        let is_marked = self.keys.is_marked(kind).await?;
        let (mut foreign, mut pages) = (0, self.keys.pages(&[kind]));
        while let Some(page) = pages.next(&self.keys).await? {
            let unwanted = page.into_iter().filter_map(|met| match met {
                Met::Subject(subject) => (!wanted(&subject)).then_some((subject, None)),
                Met::Unfit(..) => None,
            });
            let mut unwanted: Vec<Line> = unwanted.collect();
            if is_marked {
                unwanted = self.still_unwanted(unwanted).await?;
            }
            match is_marked {
                true => self.count(self.keys.settle(&unwanted, false, news).await?),
                false => foreign += unwanted.len() as u64,
            }
        }
        let name = kind.name();
        match (is_marked, foreign) {
            (false, 0) => self.keys.mark(kind).await?,
            (false, _) => tracing::warn!(
                kind = name,
                keys = foreign,
                "redis has keys of the site that the database knows nothing of, which are left alone: set access.source = \
                 \"redis\" if the site writes them, or remove them with \"rollcall {} sync --flush\"",
                name.trim_end_matches('s'),
            ),
            (true, _) => {}
        }
        Ok(foreign)
    }

    /// Of what the gate does not know, what the database does not know either: another process may have heard of it
    /// before this one.
    async fn still_unwanted(&self, lines: Vec<Line>) -> Result<Vec<Line>, AccessError> {
        let mut unwanted = Vec::with_capacity(lines.len());
        for line in lines {
            if !sync::is_known(&self.store, &Met::Subject(line.0)).await? {
                unwanted.push(line);
            }
        }
        Ok(unwanted)
    }

    /// What the key of a user or torrent should say.
    fn line(&self, subject: &Subject) -> Line {
        let wanted = match subject {
            Subject::Torrent(name) => {
                self.gate.torrent(name).filter(|grant| grant.enabled).map(|grant| grant.id.to_string())
            }
            Subject::User(passkey) => {
                let grant = self.gate.holder(passkey).filter(|grant| grant.enabled && !grant.vouched);
                grant.map(|grant| grant.id.to_string())
            }
            Subject::Client(_) => None,
        };
        (*subject, wanted)
    }

    fn count(&self, settled: Settled) {
        let counters = &self.notes.0.counters;
        counters.written.fetch_add(settled.written, Ordering::Relaxed);
        counters.removed.fetch_add(settled.removed, Ordering::Relaxed);
    }
}
