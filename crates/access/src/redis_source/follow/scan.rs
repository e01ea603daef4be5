//! A scan of all of the site's keys, in bounded steps.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use keyspace::RedisError;

use super::gate_updater::GateUpdater;
use super::{Change, Kind, READ_AT_ONCE, RedisSource, Subject};
use crate::redis_source::read::{KeyValue, Pages, ScannedKey};

pub(super) struct FullScan {
    pages: Option<Pages>,
    /// Hashes of the subjects found. After a collision a deleted key stays until the next scan, which has another hash seed.
    seen: HashSet<u64, foldhash::fast::RandomState>,
    hasher: foldhash::fast::RandomState,
    malformed: u64,
    clients: Vec<Subject>,
    /// Keys that contradict the gate, with their values.
    conflicting: Vec<(Subject, String)>,
    /// Subjects in the gate that the scan did not find. None before the end of the scan.
    missing: Option<Vec<Subject>>,
    /// Whether the site requested the scan: then any number of removals is accepted.
    is_requested: bool,
}

impl FullScan {
    pub(super) fn new(source: &RedisSource, is_requested: bool) -> Self {
        FullScan {
            pages: Some(source.pages(&Kind::ALL)),
            seen: HashSet::default(),
            hasher: foldhash::fast::RandomState::default(),
            malformed: 0,
            clients: Vec::new(),
            conflicting: Vec::new(),
            missing: None,
            is_requested,
        }
    }

    pub(super) fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// True at the end.
    pub(super) async fn step(
        &mut self,
        source: &RedisSource,
        updater: &mut GateUpdater,
        on_change: &mut impl FnMut(Change),
    ) -> Result<bool, RedisError> {
        if let Some(pages) = &mut self.pages {
            match pages.next(source).await? {
                Some(page) => self.apply_page(page, source, updater, on_change).await?,
                None => self.pages = None,
            }
            return Ok(false);
        }
        if self.missing.is_none() {
            self.missing = Some(self.find_missing(source, updater, on_change).await?);
            return Ok(false);
        }
        self.resolve_some(source, updater, on_change).await
    }

    /// Subjects in the gate that the scan did not find; none if so many are missing that Redis has more likely lost them.
    async fn find_missing(
        &mut self,
        source: &RedisSource,
        updater: &mut GateUpdater,
        on_change: &mut impl FnMut(Change),
    ) -> Result<Vec<Subject>, RedisError> {
        // Read again: messages may have changed some since they were scanned, and a scan may miss some.
        let clients = updater.clients_and(&self.clients);
        let values = source.read_site(&clients).await?;
        let present = clients.iter().zip(&values).filter(|(_, value)| !is_deleted(value));
        let present: Vec<Subject> = present.map(|(subject, _)| *subject).collect();
        let missing = updater.subjects_where(|subject| !self.seen.contains(&self.hasher.hash_one(subject)));
        let is_empty = self.seen.is_empty() && self.malformed == 0 && present.is_empty();
        let is_redis_empty = is_empty && !source.has_source_mark().await?;
        if updater.is_loss(is_redis_empty, &missing, present.len()) && !self.is_requested {
            return Ok(Vec::new());
        }
        if !is_empty {
            source.set_source_mark().await?;
        }
        updater.set_clients(&present, on_change);
        Ok(missing)
    }

    async fn apply_page(
        &mut self,
        page: Vec<ScannedKey>,
        source: &RedisSource,
        updater: &mut GateUpdater,
        on_change: &mut impl FnMut(Change),
    ) -> Result<(), RedisError> {
        let mut subjects = Vec::with_capacity(page.len());
        for key in page {
            match key {
                ScannedKey::Subject(client @ Subject::Client(_)) => self.clients.push(client),
                ScannedKey::Subject(subject) => subjects.push(subject),
                ScannedKey::Malformed(..) => self.malformed += 1,
            }
        }
        let values = source.read_site(&subjects).await?;
        for (subject, value) in subjects.into_iter().zip(values) {
            match value {
                KeyValue::Text(text) if updater.is_valid(&subject, &text) => {
                    self.seen.insert(self.hasher.hash_one(subject));
                    if updater.is_conflicting(&subject, &text) {
                        self.conflicting.push((subject, text));
                    } else {
                        updater.put(&subject, &text, on_change);
                    }
                }
                // Deleted since the page was scanned.
                KeyValue::Missing if !matches!(subject, Subject::User(_)) => {}
                KeyValue::Copy => {}
                KeyValue::Missing | KeyValue::Other | KeyValue::Text(_) => self.malformed += 1,
            }
        }
        Ok(())
    }

    /// Reads some of the missing keys and removes those that are deleted; at the end, counts what is left in conflict.
    async fn resolve_some(
        &mut self,
        source: &RedisSource,
        updater: &mut GateUpdater,
        on_change: &mut impl FnMut(Change),
    ) -> Result<bool, RedisError> {
        let missing = self.missing.get_or_insert_default();
        if !missing.is_empty() {
            let some = missing.split_off(missing.len().saturating_sub(READ_AT_ONCE));
            let values = source.read_site(&some).await?;
            let deleted = some.iter().zip(&values).filter(|(_, value)| is_deleted(value));
            let deleted: Vec<Subject> = deleted.map(|(subject, _)| *subject).collect();
            // A deletion may resolve a conflict; the successor is inserted before the deleted key is removed.
            updater.replace_deleted(&deleted, &mut self.conflicting, on_change);
            deleted.iter().for_each(|subject| updater.remove(subject, on_change));
            return Ok(false);
        }
        let counters = updater.counters();
        counters.keys_conflicting.store(self.conflicting.len() as u64, Ordering::Relaxed);
        let malformed = self.malformed;
        if counters.keys_malformed.swap(malformed, Ordering::Relaxed) != malformed && malformed > 0 {
            tracing::warn!(
                keys = malformed,
                "some of the site's keys in redis have a malformed name or value; they are skipped"
            );
        }
        counters.scans.fetch_add(1, Ordering::Relaxed);
        updater.set_loaded();
        Ok(true)
    }
}

/// Whether the site has no key of its own.
fn is_deleted(value: &KeyValue) -> bool {
    matches!(value, KeyValue::Missing | KeyValue::Copy)
}
