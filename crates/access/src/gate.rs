//! The gate: decides in memory who may announce what.
//!
//! # Guarantees
//!
//! - A read takes no lock and allocates nothing; any number of threads read while one writes.
//! - A reader never finds a user or torrent missing while it is being changed: what is new is put in before what is
//!   old is taken out.
//! - A passkey or infohash that moved from one owner to another belongs to the newer one, in whatever order the two
//!   changes arrive.
//! - The last passkey of a removed user is known for a while longer: the goodbye of their peers is written under it.
//!
//! # Deliberately absent
//!
//! Where the data comes from ([`crate::follow`]) and what a refused client did wrong before (limits are the
//! tracker's).

use std::sync::{Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use domain::{InfoHash, Passkey, PeerId, TorrentId, UserId};

use crate::clients::ClientRules;
use crate::removed::Removed;

type Map<K, V> = papaya::HashMap<K, V, foldhash::fast::RandomState>;

/// Who announces what, once let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The user behind the passkey.
    pub user: UserId,
    /// The torrent's number.
    pub torrent: TorrentId,
    /// The torrent's one name: a hybrid torrent announced by its v2 hash is found here under its v1 hash.
    pub info_hash: InfoHash,
}

/// Why somebody is not let in. What `Display` writes is told to the client (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Nobody has this passkey, or nobody has it any longer.
    #[error("unknown passkey: download the torrent file again, or copy the announce URL from the site")]
    UnknownPasskey,
    /// The user is known and shut out.
    #[error("this account is disabled: ask the site's staff")]
    UserDisabled,
    /// The torrent is not registered.
    #[error("unknown torrent: it is not registered here, or was removed")]
    UnknownTorrent,
    /// The torrent is registered and closed.
    #[error("this torrent is disabled: see its page on the site")]
    TorrentDisabled,
    /// The program is not on the list, or is forbidden.
    #[error("this client or its version is not allowed: see the site's list of clients")]
    ClientNotAllowed,
}

impl Refusal {
    /// Every refusal, for tables of counters.
    pub const ALL: [Refusal; 5] = [
        Refusal::UnknownPasskey,
        Refusal::UserDisabled,
        Refusal::UnknownTorrent,
        Refusal::TorrentDisabled,
        Refusal::ClientNotAllowed,
    ];

    /// Its name in counters and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Refusal::UnknownPasskey => "unknown_passkey",
            Refusal::UserDisabled => "user_disabled",
            Refusal::UnknownTorrent => "unknown_torrent",
            Refusal::TorrentDisabled => "torrent_disabled",
            Refusal::ClientNotAllowed => "client_not_allowed",
        }
    }
}

/// What an infohash stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorrentGrant {
    /// The torrent's number.
    pub id: TorrentId,
    /// The torrent's one name (see [`Admission::info_hash`]).
    pub info_hash: InfoHash,
    /// Whether it may be announced.
    pub enabled: bool,
}

/// Whom a passkey stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserGrant {
    id: UserId,
    enabled: bool,
}

/// What the gate knows of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserRecord {
    passkey: Passkey,
    enabled: bool,
}

/// What the gate knows of a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TorrentRecord {
    info_hash: InfoHash,
    info_hash_v2: Option<InfoHash>,
    enabled: bool,
}

impl TorrentRecord {
    fn names(&self) -> impl Iterator<Item = InfoHash> + use<> {
        [Some(self.info_hash), self.info_hash_v2].into_iter().flatten()
    }
}

/// Everyone and everything that may pass. The default gate is empty and lets nobody in.
#[derive(Debug, Default)]
pub struct Gate {
    by_passkey: Map<Passkey, UserGrant>,
    users: Map<UserId, UserRecord>,
    by_info_hash: Map<InfoHash, TorrentGrant>,
    torrents: Map<TorrentId, TorrentRecord>,
    clients: ArcSwap<ClientRules>,
    removed: Removed,
    /// Held by writers only: each changes two maps, which must not interleave.
    writing: Mutex<()>,
}

/// What the announce path asks.
impl Gate {
    /// Whether this announce is let in.
    ///
    /// The user is checked first: a stranger learns nothing about torrents or clients.
    pub fn admit(
        &self,
        passkey: &Passkey,
        info_hash: &InfoHash,
        peer_id: &PeerId,
    ) -> Result<Admission, Refusal> {
        let user = self.admit_user(passkey)?;
        let torrent = self.torrent(info_hash).ok_or(Refusal::UnknownTorrent)?;
        if !torrent.enabled {
            return Err(Refusal::TorrentDisabled);
        }
        if !self.allows_client(peer_id) {
            return Err(Refusal::ClientNotAllowed);
        }
        Ok(Admission { user, torrent: torrent.id, info_hash: torrent.info_hash })
    }

    /// Whose passkey this is; enough for a scrape.
    pub fn admit_user(&self, passkey: &Passkey) -> Result<UserId, Refusal> {
        match self.by_passkey.pin().get(passkey) {
            None => Err(Refusal::UnknownPasskey),
            Some(grant) if !grant.enabled => Err(Refusal::UserDisabled),
            Some(grant) => Ok(grant.id),
        }
    }

    /// Whose passkey this is, enabled or not; for entries that were written a while ago.
    pub fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.by_passkey.pin().get(passkey).map(|grant| grant.id)
    }

    /// What this infohash stands for, enabled or not.
    pub fn torrent(&self, info_hash: &InfoHash) -> Option<TorrentGrant> {
        self.by_info_hash.pin().get(info_hash).copied()
    }

    /// The number of the torrent with this infohash, enabled or not.
    pub fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.torrent(info_hash).map(|grant| grant.id)
    }

    /// Whether a client that calls itself `peer_id` may announce.
    pub fn allows_client(&self, peer_id: &PeerId) -> bool {
        self.clients.load().allows(peer_id)
    }

    /// The present passkey of a user, enabled or not, or the last one of a user who was removed lately; for events of
    /// peers that expired or were turned out.
    pub fn passkey_of(&self, user: UserId) -> Option<Passkey> {
        let present = self.users.pin().get(&user).map(|record| record.passkey);
        present.or_else(|| self.removed.passkey_of(user))
    }

    /// How many removed users were forgotten to make room for others who were removed later.
    pub fn removed_users_forgotten(&self) -> u64 {
        self.removed.forgotten()
    }

    /// Whether a user is known and enabled.
    pub fn is_enabled(&self, user: UserId) -> bool {
        let passkey = self.users.pin().get(&user).map(|record| record.passkey);
        passkey.is_some_and(|passkey| self.admit_user(&passkey) == Ok(user))
    }

    /// The one name of a torrent, enabled or not.
    pub fn info_hash_of(&self, torrent: TorrentId) -> Option<InfoHash> {
        self.torrents.pin().get(&torrent).map(|record| record.info_hash)
    }

    /// How many users are known, enabled or not.
    pub fn user_count(&self) -> usize {
        self.users.len()
    }

    /// How many torrents are known, enabled or not.
    pub fn torrent_count(&self) -> usize {
        self.torrents.len()
    }

    /// How many client prefixes are known, allowed or forbidden.
    pub fn client_count(&self) -> usize {
        self.clients.load().len()
    }
}

/// What the follower writes. One writer at a time; readers go on.
impl Gate {
    /// Takes in a user, new or changed. Tells whether that changed anything.
    pub fn put_user(&self, user: UserId, passkey: Passkey, enabled: bool) -> bool {
        let _writing = self.lock_writers();
        let (by_passkey, users) = (self.by_passkey.pin(), self.users.pin());
        let record = UserRecord { passkey, enabled };
        let grant = UserGrant { id: user, enabled };
        let before = users.get(&user).copied();
        if before == Some(record) && by_passkey.get(&passkey) == Some(&grant) {
            return false;
        }
        by_passkey.insert(passkey, grant);
        users.insert(user, record);
        if let Some(old) = before.filter(|old| old.passkey != passkey) {
            self.forget_passkey(old.passkey, user);
        }
        true
    }

    /// Forgets a user. Tells whether there was one.
    pub fn remove_user(&self, user: UserId) -> bool {
        let _writing = self.lock_writers();
        let users = self.users.pin();
        let Some(record) = users.get(&user).copied() else { return false };
        // First, so that a reader finds the passkey in one place or the other.
        self.removed.remember(user, record.passkey);
        users.remove(&user);
        self.forget_passkey(record.passkey, user);
        true
    }

    /// Takes in a torrent, new or changed. Tells whether that changed anything.
    pub fn put_torrent(
        &self,
        torrent: TorrentId,
        info_hash: InfoHash,
        info_hash_v2: Option<InfoHash>,
        enabled: bool,
    ) -> bool {
        let _writing = self.lock_writers();
        let (by_info_hash, torrents) = (self.by_info_hash.pin(), self.torrents.pin());
        let record = TorrentRecord { info_hash, info_hash_v2, enabled };
        let grant = TorrentGrant { id: torrent, info_hash, enabled };
        let before = torrents.get(&torrent).copied();
        if before == Some(record) && record.names().all(|name| by_info_hash.get(&name) == Some(&grant)) {
            return false;
        }
        for name in record.names() {
            by_info_hash.insert(name, grant);
        }
        torrents.insert(torrent, record);
        for old_name in before.iter().flat_map(TorrentRecord::names) {
            if record.names().all(|name| name != old_name) {
                self.forget_info_hash(old_name, torrent);
            }
        }
        true
    }

    /// Forgets a torrent. Gives back the name under which it was known.
    pub fn remove_torrent(&self, torrent: TorrentId) -> Option<InfoHash> {
        let _writing = self.lock_writers();
        let torrents = self.torrents.pin();
        let record = *torrents.remove(&torrent)?;
        for name in record.names() {
            self.forget_info_hash(name, torrent);
        }
        Some(record.info_hash)
    }

    /// Replaces the list of clients. Tells whether that changed anything.
    pub fn set_clients(&self, rules: ClientRules) -> bool {
        let _writing = self.lock_writers();
        let changed = **self.clients.load() != rules;
        if changed {
            self.clients.store(rules.into());
        }
        changed
    }

    /// The users for whom `is_gone` holds.
    pub(crate) fn users_where(&self, mut is_gone: impl FnMut(UserId) -> bool) -> Vec<UserId> {
        self.users.pin().keys().copied().filter(|user| is_gone(*user)).collect()
    }

    /// The torrents for which `is_gone` holds.
    pub(crate) fn torrents_where(&self, mut is_gone: impl FnMut(TorrentId) -> bool) -> Vec<TorrentId> {
        self.torrents.pin().keys().copied().filter(|torrent| is_gone(*torrent)).collect()
    }

    /// Drops a passkey unless it belongs to somebody else by now.
    fn forget_passkey(&self, passkey: Passkey, owner: UserId) {
        let by_passkey = self.by_passkey.pin();
        if by_passkey.get(&passkey).is_some_and(|grant| grant.id == owner) {
            by_passkey.remove(&passkey);
        }
    }

    /// Drops an infohash unless it belongs to another torrent by now.
    fn forget_info_hash(&self, info_hash: InfoHash, owner: TorrentId) {
        let by_info_hash = self.by_info_hash.pin();
        if by_info_hash.get(&info_hash).is_some_and(|grant| grant.id == owner) {
            by_info_hash.remove(&info_hash);
        }
    }

    fn lock_writers(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data of its own: a writer that panicked leaves nothing half-read behind it.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
