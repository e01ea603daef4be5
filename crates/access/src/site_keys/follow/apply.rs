//! Brings what the site's keys say into the gate, and says what that changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::{InfoHash, Passkey, TorrentId, UserId};

use super::{Change, Subject};
use crate::clients::{ClientPrefix, ClientRules};
use crate::gate::Gate;
use crate::site_keys::SiteKeyCounters;
use crate::site_keys::read::Found;

/// Fewer keys than this may go at once without a doubt.
const LOSS_MIN: usize = 20;
/// After so many rounds in a row it is believed that many keys are gone.
const LOSSES_BELIEVED: u32 = 3;

/// Writes to a gate and reports.
pub(super) struct SiteApplier {
    gate: Arc<Gate>,
    clients: HashSet<ClientPrefix>,
    /// Rounds in a row that found much less than there was.
    losses: u32,
    counters: Arc<SiteKeyCounters>,
}

impl SiteApplier {
    pub(super) fn new(gate: Arc<Gate>, counters: Arc<SiteKeyCounters>) -> Self {
        SiteApplier { gate, clients: HashSet::new(), losses: 0, counters }
    }

    pub(super) fn counters(&self) -> &SiteKeyCounters {
        &self.counters
    }

    /// Notes that all keys were read.
    pub(super) fn set_loaded(&self) {
        self.gate.set_loaded();
    }

    fn is_empty(&self) -> bool {
        self.gate.user_count() == 0 && self.gate.torrent_count() == 0 && self.clients.is_empty()
    }

    /// All clients that are known, and these.
    pub(super) fn clients_and(&self, seen: &[Subject]) -> Vec<Subject> {
        let known = self.clients.iter().map(|prefix| Subject::Client(*prefix));
        let all: HashSet<Subject> = known.chain(seen.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Whether a round found so little that Redis has more likely lost keys than the site removed them: an empty Redis,
    /// no client any longer, or less than half of the torrents or users. The latter two are believed in the end, if
    /// they last.
    pub(super) fn is_loss(&mut self, is_redis_empty: bool, missing: &[Subject], clients: usize) -> bool {
        if is_redis_empty && !self.is_empty() {
            tracing::warn!("redis has none of the site's keys any longer, going on with what is known");
            self.counters.rounds_empty.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let torrents = missing.iter().filter(|subject| matches!(subject, Subject::Torrent(_))).count();
        let users = missing.len() - torrents;
        let is_half = |gone: usize, known: usize| gone >= LOSS_MIN && gone * 2 > known;
        let is_much = is_half(torrents, self.gate.torrent_count())
            || is_half(users, self.gate.user_count())
            || clients == 0 && !self.clients.is_empty();
        self.losses = if is_much { self.losses + 1 } else { 0 };
        let is_loss = is_much && self.losses < LOSSES_BELIEVED;
        if is_loss {
            self.counters.rounds_empty.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                torrents,
                users,
                clients,
                "many of the site's keys are gone at once, going on with what is known: that is believed if it lasts for \
                 {LOSSES_BELIEVED} rounds, or at once after an empty message on one of the site's channels"
            );
        }
        is_loss
    }

    /// What the gate has of users and torrents and for which `is_wanted` holds.
    pub(super) fn subjects_where(&self, is_wanted: impl Fn(&Subject) -> bool) -> Vec<Subject> {
        let users = self.gate.passkeys_where(|passkey| is_wanted(&Subject::User(*passkey)));
        let torrents = self.gate.names_where(|name| is_wanted(&Subject::Torrent(*name)));
        users.into_iter().map(Subject::User).chain(torrents.into_iter().map(Subject::Torrent)).collect()
    }

    /// Takes in what the keys say that the site told of: first what is there, then what is gone.
    pub(super) fn take_told(
        &mut self,
        subjects: &[Subject],
        found: Vec<Found>,
        on_change: &mut impl FnMut(Change),
    ) {
        let mut clients = self.clients.clone();
        let mut gone = Vec::new();
        for (subject, found) in subjects.iter().zip(found) {
            match (subject, found) {
                (Subject::Client(prefix), Found::Missing | Found::Copy) => drop(clients.remove(prefix)),
                (Subject::Client(prefix), _) => drop(clients.insert(*prefix)),
                (_, Found::Missing | Found::Copy) => gone.push(*subject),
                (_, Found::Text(text)) if self.is_sound(subject, &text) => {
                    self.put(subject, &text, on_change)
                }
                (_, Found::Text(_) | Found::Other) => {
                    self.counters.messages_bad.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        gone.iter().for_each(|subject| self.remove(subject, on_change));
        self.replace_clients(clients, on_change);
    }

    /// Whether a key's value can be what it should be.
    pub(super) fn is_sound(&self, subject: &Subject, text: &str) -> bool {
        match subject {
            Subject::Torrent(_) => text.parse::<TorrentId>().is_ok(),
            Subject::User(_) => text.parse::<UserId>().is_ok(),
            Subject::Client(_) => true,
        }
    }

    /// Whether another key says otherwise, as far as the gate knows: a user has another passkey, a torrent two other
    /// infohashes.
    pub(super) fn is_contested(&self, subject: &Subject, text: &str) -> bool {
        match (subject, text.parse::<UserId>(), text.parse::<TorrentId>()) {
            (Subject::User(passkey), Ok(user), _) => {
                // The last passkey of a user who was removed is no rival.
                self.gate
                    .passkey_of(user)
                    .is_some_and(|present| present != *passkey && self.gate.user_of(&present) == Some(user))
            }
            (Subject::Torrent(name), _, Ok(torrent)) => match self.gate.names_of(torrent) {
                Some((first, Some(second))) => first != *name && second != *name,
                _ => false,
            },
            _ => false,
        }
    }

    /// Lets what was contested take the place of what is gone.
    pub(super) fn hand_over(
        &mut self,
        gone: &[Subject],
        contested: &mut Vec<(Subject, String)>,
        on_change: &mut impl FnMut(Change),
    ) {
        if contested.is_empty() || gone.is_empty() {
            return;
        }
        for (subject, text) in std::mem::take(contested) {
            let is_free = match (&subject, text.parse::<UserId>(), text.parse::<TorrentId>()) {
                (Subject::User(_), Ok(user), _) => {
                    self.gate.passkey_of(user).is_some_and(|present| gone.contains(&Subject::User(present)))
                }
                (Subject::Torrent(_), _, Ok(torrent)) => {
                    let names = self.gate.names_of(torrent).into_iter();
                    let mut names =
                        names.flat_map(|(first, second)| [Some(first), second].into_iter().flatten());
                    match names.find(|name| gone.contains(&Subject::Torrent(*name))) {
                        Some(name) => {
                            self.remove_name(name, on_change);
                            true
                        }
                        None => false,
                    }
                }
                _ => false,
            };
            match is_free {
                true => self.put(&subject, &text, on_change),
                false => contested.push((subject, text)),
            }
        }
    }

    /// Puts in what a key says.
    pub(super) fn put(&mut self, subject: &Subject, text: &str, on_change: &mut impl FnMut(Change)) {
        match subject {
            Subject::User(passkey) => {
                if let Ok(user) = text.parse() {
                    self.put_user(user, *passkey, on_change);
                }
            }
            Subject::Torrent(name) => {
                if let Ok(torrent) = text.parse() {
                    self.put_name(torrent, *name, on_change);
                }
            }
            Subject::Client(_) => {}
        }
    }

    /// Takes out what a key said.
    pub(super) fn remove(&mut self, subject: &Subject, on_change: &mut impl FnMut(Change)) {
        match subject {
            Subject::User(passkey) => {
                let owner = self.gate.user_of(passkey);
                if let Some(user) = owner.filter(|user| self.gate.passkey_of(*user) == Some(*passkey)) {
                    self.remove_user(user, on_change);
                }
            }
            Subject::Torrent(name) => self.remove_name(*name, on_change),
            Subject::Client(_) => {}
        }
    }

    /// Replaces the list of clients.
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
        // Whoever had this passkey has none now.
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

    /// A torrent got a name. It is known by the smaller of two, so that all trackers call it the same.
    fn put_name(&mut self, torrent: TorrentId, name: InfoHash, on_change: &mut impl FnMut(Change)) {
        let before = self.gate.torrent_of(&name).filter(|before| *before != torrent);
        let mut names = match self.gate.names_of(torrent) {
            Some((first, Some(second))) if first != name && second != name => vec![name, first],
            Some((first, second)) => [Some(first), second, Some(name)].into_iter().flatten().collect(),
            None => vec![name],
        };
        names.sort_unstable();
        names.dedup();
        self.set_names(torrent, &names, on_change);
        // Whichever torrent had this name lost it.
        if let Some(before) = before {
            self.take_name(before, name, on_change);
        }
    }

    fn remove_name(&mut self, name: InfoHash, on_change: &mut impl FnMut(Change)) {
        if let Some(torrent) = self.gate.torrent_of(&name) {
            self.take_name(torrent, name, on_change);
        }
    }

    fn take_name(&mut self, torrent: TorrentId, name: InfoHash, on_change: &mut impl FnMut(Change)) {
        let Some((first, second)) = self.gate.names_of(torrent) else { return };
        let left: Vec<InfoHash> =
            [Some(first), second].into_iter().flatten().filter(|other| *other != name).collect();
        if left.is_empty() {
            let lost = self.gate.remove_torrent(torrent);
            lost.into_iter().for_each(|lost| self.report_lost(lost, on_change));
        } else {
            self.set_names(torrent, &left, on_change);
        }
    }

    fn set_names(&mut self, torrent: TorrentId, names: &[InfoHash], on_change: &mut impl FnMut(Change)) {
        let Some(first) = names.first() else { return };
        let old = self.gate.info_hash_of(torrent);
        if self.gate.put_torrent(torrent, *first, names.get(1).copied(), true) {
            self.report(Change::TorrentAdmitted(*first), on_change);
            old.filter(|old| old != first).into_iter().for_each(|old| self.report_lost(old, on_change));
        }
    }

    /// The peers of a swarm must go, unless it is another torrent's by now.
    fn report_lost(&self, name: InfoHash, on_change: &mut impl FnMut(Change)) {
        let is_served =
            self.gate.torrent(&name).is_some_and(|grant| grant.enabled && grant.info_hash == name);
        if !is_served {
            self.report(Change::TorrentRemoved(name), on_change);
        }
    }

    fn report(&self, change: Change, on_change: &mut impl FnMut(Change)) {
        self.counters.changes.fetch_add(1, Ordering::Relaxed);
        on_change(change);
    }
}
