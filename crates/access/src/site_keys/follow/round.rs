//! A round through all of the site's keys, a bounded step at a time.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use keyspace::RedisError;

use super::apply::SiteApplier;
use super::{Change, Kind, READ_AT_ONCE, SiteKeys, Subject};
use crate::site_keys::read::{Found, Met, Pages};

/// How far a round has come.
pub(super) struct Round {
    pages: Option<Pages>,
    /// What was there, by a hash: one that is taken for another stays until the next round, whose hash is another.
    seen: HashSet<u64, foldhash::fast::RandomState>,
    hasher: foldhash::fast::RandomState,
    bad: u64,
    /// Clients that were there.
    clients: Vec<Subject>,
    /// What another key seems to contradict.
    contested: Vec<(Subject, String)>,
    /// What the gate knows and the round did not see.
    missing: Option<Vec<Subject>>,
    /// Whether the site said that everything is to be looked at: then it is believed, however much is gone.
    is_asked_for: bool,
}

impl Round {
    pub(super) fn new(keys: &SiteKeys, is_asked_for: bool) -> Self {
        Round {
            pages: Some(keys.pages(&Kind::ALL)),
            seen: HashSet::default(),
            hasher: foldhash::fast::RandomState::default(),
            bad: 0,
            clients: Vec::new(),
            contested: Vec::new(),
            missing: None,
            is_asked_for,
        }
    }

    /// Whether the site asked for it.
    pub(super) fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// A step. True at the end.
    pub(super) async fn step(
        &mut self,
        keys: &SiteKeys,
        applier: &mut SiteApplier,
        on_change: &mut impl FnMut(Change),
    ) -> Result<bool, RedisError> {
        if let Some(pages) = &mut self.pages {
            match pages.next(keys).await? {
                Some(page) => self.take_page(page, keys, applier, on_change).await?,
                None => self.pages = None,
            }
            return Ok(false);
        }
        if self.missing.is_none() {
            self.missing = Some(self.compare(keys, applier, on_change).await?);
            return Ok(false);
        }
        self.settle_some(keys, applier, on_change).await
    }

    /// Everything was scanned: what the gate knows and the scan did not see. Nothing, where so much is gone that Redis
    /// has more likely lost it.
    async fn compare(
        &mut self,
        keys: &SiteKeys,
        applier: &mut SiteApplier,
        on_change: &mut impl FnMut(Change),
    ) -> Result<Vec<Subject>, RedisError> {
        // Asked for once more: messages may have told of some since they were scanned, and a scan may miss some.
        let clients = applier.clients_and(&self.clients);
        let found = keys.read_site(&clients).await?;
        let there = clients.iter().zip(&found).filter(|(_, found)| !is_gone(found));
        let there: Vec<Subject> = there.map(|(subject, _)| *subject).collect();
        let missing = applier.subjects_where(|subject| !self.seen.contains(&self.hasher.hash_one(subject)));
        let is_empty = self.seen.is_empty() && self.bad == 0 && there.is_empty();
        let is_redis_empty = is_empty && !keys.has_source_mark().await?;
        if applier.is_loss(is_redis_empty, &missing, there.len()) && !self.is_asked_for {
            return Ok(Vec::new());
        }
        if !is_empty {
            keys.set_source_mark().await?;
        }
        applier.set_clients(&there, on_change);
        Ok(missing)
    }

    /// Puts in what a page of keys says.
    async fn take_page(
        &mut self,
        page: Vec<Met>,
        keys: &SiteKeys,
        applier: &mut SiteApplier,
        on_change: &mut impl FnMut(Change),
    ) -> Result<(), RedisError> {
        let (mut subjects, mut unfit) = (Vec::with_capacity(page.len()), 0);
        for met in page {
            match met {
                Met::Subject(client @ Subject::Client(_)) => self.clients.push(client),
                Met::Subject(subject) => subjects.push(subject),
                Met::Unfit(..) => unfit += 1,
            }
        }
        self.bad += unfit;
        let found = keys.read_site(&subjects).await?;
        for (subject, found) in subjects.into_iter().zip(found) {
            match found {
                Found::Text(text) if applier.is_sound(&subject, &text) => {
                    self.seen.insert(self.hasher.hash_one(subject));
                    if applier.is_contested(&subject, &text) {
                        self.contested.push((subject, text));
                    } else {
                        applier.put(&subject, &text, on_change);
                    }
                }
                // It went between the scan and now.
                Found::Missing if !matches!(subject, Subject::User(_)) => {}
                Found::Copy => {}
                Found::Missing | Found::Other | Found::Text(_) => self.bad += 1,
            }
        }
        Ok(())
    }

    /// Asks for some of what was not seen, takes out what is gone, and then decides what was contested.
    async fn settle_some(
        &mut self,
        keys: &SiteKeys,
        applier: &mut SiteApplier,
        on_change: &mut impl FnMut(Change),
    ) -> Result<bool, RedisError> {
        let missing = self.missing.get_or_insert_default();
        if !missing.is_empty() {
            let some = missing.split_off(missing.len().saturating_sub(READ_AT_ONCE));
            let found = keys.read_site(&some).await?;
            // What somebody else may take over is not contested any longer.
            let gone = some.iter().zip(&found).filter(|(_, found)| is_gone(found));
            let gone: Vec<Subject> = gone.map(|(subject, _)| *subject).collect();
            applier.hand_over(&gone, &mut self.contested, on_change);
            gone.iter().for_each(|subject| applier.remove(subject, on_change));
            return Ok(false);
        }
        let counters = applier.counters();
        counters.keys_surplus.store(self.contested.len() as u64, Ordering::Relaxed);
        if counters.keys_bad.swap(self.bad, Ordering::Relaxed) != self.bad && self.bad > 0 {
            tracing::warn!(
                keys = self.bad,
                "some of the site's keys hold nothing that we understand; they are skipped"
            );
        }
        counters.rounds.fetch_add(1, Ordering::Relaxed);
        applier.set_loaded();
        Ok(true)
    }
}

/// Whether there is no key of the site's own.
fn is_gone(found: &Found) -> bool {
    matches!(found, Found::Missing | Found::Copy)
}
