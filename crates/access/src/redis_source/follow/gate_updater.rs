//! Applies the site's keys to the gate, and reports the changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::{InfoHash, Passkey, TorrentId, UserId};

use super::{Change, Subject};
use crate::clients::{ClientPrefix, ClientRules};
use crate::gate::Gate;
use crate::redis_source::RedisSourceCounters;
use crate::redis_source::read::KeyValue;

/// Fewer missing keys than this are never taken for a loss of data.
const LOSS_MIN: usize = 20;
/// After this many consecutive scans with many missing keys, their removal is accepted.
const LOSSES_MAX: u32 = 3;

pub(super) struct GateUpdater {
    gate: Arc<Gate>,
    clients: HashSet<ClientPrefix>,
    /// Consecutive scans with many missing keys.
    losses: u32,
    counters: Arc<RedisSourceCounters>,
}

impl GateUpdater {
    pub(super) fn new(gate: Arc<Gate>, counters: Arc<RedisSourceCounters>) -> Self {
        GateUpdater { gate, clients: HashSet::new(), losses: 0, counters }
    }

    pub(super) fn counters(&self) -> &RedisSourceCounters {
        &self.counters
    }

    pub(super) fn set_loaded(&self) {
        self.gate.set_loaded();
    }

    fn is_empty(&self) -> bool {
        self.gate.user_count() == 0 && self.gate.torrent_count() == 0 && self.clients.is_empty()
    }

    /// The clients in the gate and in `seen`.
    pub(super) fn clients_and(&self, seen: &[Subject]) -> Vec<Subject> {
        let known = self.clients.iter().map(|prefix| Subject::Client(*prefix));
        let all: HashSet<Subject> = known.chain(seen.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Whether so many keys are missing that Redis has more likely lost them than the site removed them: all, all clients,
    /// or more than half of the torrents or users. The latter two are accepted after [`LOSSES_MAX`] scans.
    pub(super) fn is_loss(&mut self, is_redis_empty: bool, missing: &[Subject], clients: usize) -> bool {
        if is_redis_empty && !self.is_empty() {
            tracing::warn!("redis has lost the site's keys; using those already read");
            self.counters.scans_discarded.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let torrents = missing.iter().filter(|subject| matches!(subject, Subject::Torrent(_))).count();
        let users = missing.len() - torrents;
        let is_half = |missing: usize, known: usize| missing >= LOSS_MIN && missing * 2 > known;
        let is_much = is_half(torrents, self.gate.torrent_count())
            || is_half(users, self.gate.user_count())
            || clients == 0 && !self.clients.is_empty();
        self.losses = if is_much { self.losses + 1 } else { 0 };
        let is_loss = is_much && self.losses < LOSSES_MAX;
        if is_loss {
            self.counters.scans_discarded.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                torrents,
                users,
                clients,
                "many of the site's keys are missing in redis; using those already read. The removal is accepted after \
                 {LOSSES_MAX} scans, or at once after an empty message on one of the site's channels"
            );
        }
        is_loss
    }

    /// Users and torrents in the gate.
    pub(super) fn subjects_where(&self, is_wanted: impl Fn(&Subject) -> bool) -> Vec<Subject> {
        let users = self.gate.passkeys_where(|passkey| is_wanted(&Subject::User(*passkey)));
        let torrents = self.gate.info_hashes_where(|info_hash| is_wanted(&Subject::Torrent(*info_hash)));
        users.into_iter().map(Subject::User).chain(torrents.into_iter().map(Subject::Torrent)).collect()
    }

    /// Applies keys that were read individually: first the present ones, then the deleted ones.
    pub(super) fn apply_changed(
        &mut self,
        subjects: &[Subject],
        values: Vec<KeyValue>,
        on_change: &mut impl FnMut(Change),
    ) {
        let mut clients = self.clients.clone();
        let mut deleted = Vec::new();
        for (subject, value) in subjects.iter().zip(values) {
            match (subject, value) {
                (Subject::Client(prefix), KeyValue::Missing | KeyValue::Copy) => drop(clients.remove(prefix)),
                (Subject::Client(prefix), _) => drop(clients.insert(*prefix)),
                (_, KeyValue::Missing | KeyValue::Copy) => deleted.push(*subject),
                (_, KeyValue::Text(text)) if self.is_valid(subject, &text) => {
                    self.put(subject, &text, on_change)
                }
                (_, KeyValue::Text(_) | KeyValue::Other) => {
                    self.counters.messages_malformed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        deleted.iter().for_each(|subject| self.remove(subject, on_change));
        self.replace_clients(clients, on_change);
    }

    /// Whether a key's value is well-formed.
    pub(super) fn is_valid(&self, subject: &Subject, text: &str) -> bool {
        match subject {
            Subject::Torrent(_) => text.parse::<TorrentId>().is_ok(),
            Subject::User(_) => text.parse::<UserId>().is_ok(),
            Subject::Client(_) => true,
        }
    }

    /// Whether a key contradicts the gate: the user has another passkey there, or the torrent two other infohashes.
    pub(super) fn is_conflicting(&self, subject: &Subject, text: &str) -> bool {
        match (subject, text.parse::<UserId>(), text.parse::<TorrentId>()) {
            (Subject::User(passkey), Ok(user), _) => {
                // The last passkey of a removed user does not count.
                self.gate
                    .passkey_of(user)
                    .is_some_and(|present| present != *passkey && self.gate.user_of(&present) == Some(user))
            }
            (Subject::Torrent(info_hash), _, Ok(torrent)) => match self.gate.info_hashes_of(torrent) {
                Some((first, Some(second))) => first != *info_hash && second != *info_hash,
                _ => false,
            },
            _ => false,
        }
    }

    /// Inserts conflicting keys whose rival is deleted.
    pub(super) fn replace_deleted(
        &mut self,
        deleted: &[Subject],
        conflicting: &mut Vec<(Subject, String)>,
        on_change: &mut impl FnMut(Change),
    ) {
        if conflicting.is_empty() || deleted.is_empty() {
            return;
        }
        for (subject, text) in std::mem::take(conflicting) {
            let is_free = match (&subject, text.parse::<UserId>(), text.parse::<TorrentId>()) {
                (Subject::User(_), Ok(user), _) => self
                    .gate
                    .passkey_of(user)
                    .is_some_and(|present| deleted.contains(&Subject::User(present))),
                (Subject::Torrent(_), _, Ok(torrent)) => {
                    let hashes = self.gate.info_hashes_of(torrent).into_iter();
                    let mut hashes =
                        hashes.flat_map(|(first, second)| [Some(first), second].into_iter().flatten());
                    match hashes.find(|hash| deleted.contains(&Subject::Torrent(*hash))) {
                        Some(hash) => {
                            self.remove_info_hash(hash, on_change);
                            true
                        }
                        None => false,
                    }
                }
                _ => false,
            };
            match is_free {
                true => self.put(&subject, &text, on_change),
                false => conflicting.push((subject, text)),
            }
        }
    }

    pub(super) fn put(&mut self, subject: &Subject, text: &str, on_change: &mut impl FnMut(Change)) {
        match subject {
            Subject::User(passkey) => {
                if let Ok(user) = text.parse() {
                    self.put_user(user, *passkey, on_change);
                }
            }
            Subject::Torrent(info_hash) => {
                if let Ok(torrent) = text.parse() {
                    self.put_info_hash(torrent, *info_hash, on_change);
                }
            }
            Subject::Client(_) => {}
        }
    }

    pub(super) fn remove(&mut self, subject: &Subject, on_change: &mut impl FnMut(Change)) {
        match subject {
            Subject::User(passkey) => {
                let owner = self.gate.user_of(passkey);
                if let Some(user) = owner.filter(|user| self.gate.passkey_of(*user) == Some(*passkey)) {
                    self.remove_user(user, on_change);
                }
            }
            Subject::Torrent(info_hash) => self.remove_info_hash(*info_hash, on_change),
            Subject::Client(_) => {}
        }
    }

    pub(super) fn set_clients(&mut self, clients: &[Subject], on_change: &mut impl FnMut(Change)) {
        let prefix = |subject: &Subject| match subject {
            Subject::Client(prefix) => Some(*prefix),
            _ => None,
        };
        self.replace_clients(clients.iter().filter_map(prefix).collect(), on_change);
    }

    fn replace_clients(&mut self, clients: HashSet<ClientPrefix>, on_change: &mut impl FnMut(Change)) {
        if self.gate.set_clients(ClientRules::new(clients.iter().map(|prefix| (*prefix, true)))) {
            self.report(Change::ClientsChanged, on_change);
        }
        self.clients = clients;
    }

    fn put_user(&mut self, user: UserId, passkey: Passkey, on_change: &mut impl FnMut(Change)) {
        let before = self.gate.user_of(&passkey).filter(|before| *before != user);
        let old = self.gate.present_passkey_of(user).filter(|old| *old != passkey);
        if self.gate.put_user(user, passkey, true) {
            self.report(Change::UserAdmitted(user), on_change);
            for changed in old.into_iter().chain([passkey]) {
                self.report(Change::PasskeyChanged(changed), on_change);
            }
        }
        // The previous user of this passkey has none now.
        if let Some(before) = before.filter(|before| self.gate.passkey_of(*before) == Some(passkey)) {
            self.remove_user(before, on_change);
        }
    }

    fn remove_user(&mut self, user: UserId, on_change: &mut impl FnMut(Change)) {
        let passkey = self.gate.present_passkey_of(user);
        if self.gate.remove_user(user) {
            self.report(Change::UserRemoved(user), on_change);
            passkey.into_iter().for_each(|old| self.report(Change::PasskeyChanged(old), on_change));
        }
    }

    /// The smaller infohash of a torrent is the primary one, so that all trackers use the same.
    fn put_info_hash(&mut self, torrent: TorrentId, added: InfoHash, on_change: &mut impl FnMut(Change)) {
        let before = self.gate.torrent_of(&added).filter(|before| *before != torrent);
        let mut hashes = match self.gate.info_hashes_of(torrent) {
            Some((first, Some(second))) if first != added && second != added => vec![added, first],
            Some((first, second)) => [Some(first), second, Some(added)].into_iter().flatten().collect(),
            None => vec![added],
        };
        hashes.sort_unstable();
        hashes.dedup();
        self.set_info_hashes(torrent, &hashes, on_change);
        // The previous torrent of this infohash has lost it.
        if let Some(before) = before {
            self.remove_info_hash_of(before, added, on_change);
        }
    }

    fn remove_info_hash(&mut self, info_hash: InfoHash, on_change: &mut impl FnMut(Change)) {
        if let Some(torrent) = self.gate.torrent_of(&info_hash) {
            self.remove_info_hash_of(torrent, info_hash, on_change);
        }
    }

    fn remove_info_hash_of(
        &mut self,
        torrent: TorrentId,
        removed: InfoHash,
        on_change: &mut impl FnMut(Change),
    ) {
        let Some((first, second)) = self.gate.info_hashes_of(torrent) else { return };
        let left: Vec<InfoHash> =
            [Some(first), second].into_iter().flatten().filter(|hash| *hash != removed).collect();
        if left.is_empty() {
            let primary = self.gate.remove_torrent(torrent);
            primary.into_iter().for_each(|primary| self.report_removed(primary, on_change));
        } else {
            self.set_info_hashes(torrent, &left, on_change);
        }
    }

    fn set_info_hashes(
        &mut self,
        torrent: TorrentId,
        hashes: &[InfoHash],
        on_change: &mut impl FnMut(Change),
    ) {
        let Some(primary) = hashes.first() else { return };
        let old = self.gate.info_hash_of(torrent);
        if self.gate.put_torrent(torrent, *primary, hashes.get(1).copied(), true) {
            self.report(Change::TorrentAdmitted(*primary), on_change);
            old.filter(|old| old != primary).into_iter().for_each(|old| self.report_removed(old, on_change));
        }
    }

    /// Reports that a swarm must be evicted, unless it is another torrent's by now.
    fn report_removed(&self, info_hash: InfoHash, on_change: &mut impl FnMut(Change)) {
        let grant = self.gate.torrent(&info_hash);
        if !grant.is_some_and(|grant| grant.enabled && grant.info_hash == info_hash) {
            self.report(Change::TorrentRemoved(info_hash), on_change);
        }
    }

    fn report(&self, change: Change, on_change: &mut impl FnMut(Change)) {
        self.counters.changes.fetch_add(1, Ordering::Relaxed);
        on_change(change);
    }
}
