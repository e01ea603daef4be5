//! The gate: the in-memory copy of users, torrents, clients and ports that decides about announces.
//!
//! # Guarantees
//!
//! - A read takes no lock and allocates nothing; any number of threads read while one writes.
//! - A change inserts the new state before it removes the old one, so a reader never misses a user or torrent that is being
//!   changed.
//! - A passkey or infohash that moved to another owner belongs to the newer one, in whichever order the two changes arrive.
//! - An unknown passkey or an external user is admitted only with a fresh positive answer of [`crate::verification`];
//!   without one the result is [`Refusal::NotVerified`].
//! - The database and the Redis source both count. Where both have an entry, the database decides, so a disabled user or
//!   torrent stays refused.
//! - The last passkey of a removed user and the id of a removed torrent stay available for a while: the `stopped` entries
//!   of their peers carry them.
//!
//! [`crate::follow`] and [`crate::redis_source`] fill the gate. Limits of what a client may do are the tracker's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use domain::{InfoHash, Passkey, PeerId, TorrentId, UnixTime, UserId};

use crate::clients::ClientRules;
use crate::leech_slots::LeechSlots;
use crate::ports::{PortBitmap, PortRange};
use crate::removed::RecentlyRemoved;
use crate::verification::UnknownPasskeys;
use crate::verification::unknown_passkeys::PasskeyStatus;

mod access;
mod table;

pub use access::{Approval, TorrentAccess, TorrentGrant, UserAccess};
use access::{TorrentEntry, TorrentRecord, UserEntry, UserGrant};
use table::Table;

type Map<K, V> = papaya::HashMap<K, V, foldhash::fast::RandomState>;

/// Added to the id of a torrent of the Redis source if the database has another torrent with that id, so that each has its
/// own accounts.
const TAKEN_ID_OFFSET: u64 = 1_000_000_000_000;

/// An admitted announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    pub user: UserId,
    pub torrent: TorrentId,
    /// The torrent's primary infohash: v1 for a hybrid torrent, also if it is announced by its v2 hash.
    pub info_hash: InfoHash,
    pub approval: Approval,
    /// How many torrents the user may leech at once.
    pub user_slots: LeechSlots,
    /// How many peers may leech the torrent at once.
    pub torrent_slots: LeechSlots,
}

/// Why an announce is refused. The `Display` text is sent to the client (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// No user has this passkey.
    #[error("unknown passkey: download the torrent file again, or copy the announce URL from the site")]
    UnknownPasskey,
    #[error("this account is disabled: ask the site's staff")]
    UserDisabled,
    #[error("unknown torrent: it is not registered here, or was removed")]
    UnknownTorrent,
    #[error("this torrent is disabled: see its page on the site")]
    TorrentDisabled,
    /// The peer id has a forbidden prefix, or none of the allowed ones.
    #[error("this client or its version is not allowed: see the site's list of clients")]
    ClientNotAllowed,
    #[error(
        "the port your client listens on is not allowed here: choose another in its settings, above 49152"
    )]
    PortBanned,
    /// No user has this passkey, and verification is unavailable.
    #[error("this passkey cannot be checked right now: try again later")]
    CannotCheck,
    /// The database does not have the torrent, and the Redis source was not read yet.
    #[error("this torrent cannot be checked right now: try again later")]
    CannotCheckTorrent,
    /// Undecided: request a verification ([`Gate::unknown_passkeys`]), then ask the gate again. A client is told that the
    /// passkey cannot be checked.
    #[error("this passkey cannot be checked right now: try again later")]
    NotVerified,
}

impl Refusal {
    /// Without [`Refusal::NotVerified`], which clients see as [`Refusal::CannotCheck`].
    pub const ALL: [Refusal; 8] = [
        Refusal::UnknownPasskey,
        Refusal::UserDisabled,
        Refusal::UnknownTorrent,
        Refusal::TorrentDisabled,
        Refusal::ClientNotAllowed,
        Refusal::PortBanned,
        Refusal::CannotCheck,
        Refusal::CannotCheckTorrent,
    ];

    /// Name in metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Refusal::UnknownPasskey => "unknown_passkey",
            Refusal::UserDisabled => "user_disabled",
            Refusal::UnknownTorrent => "unknown_torrent",
            Refusal::TorrentDisabled => "torrent_disabled",
            Refusal::ClientNotAllowed => "client_not_allowed",
            Refusal::PortBanned => "port_banned",
            Refusal::CannotCheck | Refusal::NotVerified => "cannot_check",
            Refusal::CannotCheckTorrent => "cannot_check_torrent",
        }
    }
}

/// The default gate is empty and refuses every announce.
#[derive(Debug, Default)]
pub struct Gate {
    by_passkey: Table<UserEntry>,
    users: Map<UserId, UserAccess>,
    by_info_hash: Table<TorrentEntry>,
    torrents: Map<TorrentId, TorrentRecord>,
    clients: ArcSwap<ClientRules>,
    banned_ports: PortBitmap,
    removed_users: RecentlyRemoved<UserId, Passkey>,
    removed_torrents: RecentlyRemoved<InfoHash, TorrentId>,
    /// None without verification: unknown passkeys are refused.
    unknown_passkeys: Option<Arc<UnknownPasskeys>>,
    /// A gate filled from the Redis source. None without Redis.
    redis_source: Option<Arc<Gate>>,
    /// Set once the source was read completely.
    is_loaded: AtomicBool,
    /// Held by writers only: each changes two maps together.
    writing: Mutex<()>,
}

impl Gate {
    /// An empty gate that admits verified passkeys.
    pub fn with_verification(unknown_passkeys: Arc<UnknownPasskeys>) -> Self {
        Gate { unknown_passkeys: Some(unknown_passkeys), ..Gate::default() }
    }

    /// Uses `redis_source` for what the database does not have. [`crate::redis_source::RedisSourceFollower`] fills it.
    pub fn with_redis_source(mut self, redis_source: Arc<Gate>) -> Self {
        self.redis_source = Some(redis_source);
        self
    }

    pub fn unknown_passkeys(&self) -> Option<&Arc<UnknownPasskeys>> {
        self.unknown_passkeys.as_ref()
    }
}

/// Reads.
impl Gate {
    /// Decides about an announce. The user is checked first, so a client without a valid passkey learns nothing about
    /// torrents or clients.
    pub fn admit(
        &self,
        passkey: &Passkey,
        info_hash: &InfoHash,
        peer_id: &PeerId,
        now: UnixTime,
    ) -> Result<Admission, Refusal> {
        // Before the passkey is looked up, so that memory delivers both at once.
        self.by_info_hash.touch(info_hash);
        let holder = self.holder(passkey);
        let user = self.decide_user(passkey, holder, |unknown| unknown.status(passkey, now))?;
        let torrent = self.torrent(info_hash).ok_or_else(|| self.missing_torrent_refusal())?;
        if !torrent.enabled {
            return Err(Refusal::TorrentDisabled);
        }
        if !self.allows_client(peer_id) {
            return Err(Refusal::ClientNotAllowed);
        }
        Ok(Admission {
            user,
            torrent: torrent.id,
            info_hash: torrent.info_hash,
            approval: torrent.approval,
            user_slots: holder.map_or(LeechSlots::DEFAULT, |grant| grant.leech_slots),
            torrent_slots: torrent.leech_slots,
        })
    }

    /// Decides about a scrape.
    pub fn admit_user(&self, passkey: &Passkey, now: UnixTime) -> Result<UserId, Refusal> {
        self.decide_user(passkey, self.holder(passkey), |unknown| unknown.status(passkey, now))
    }

    /// A user of the database is decided by the grant alone; an external user or unknown passkey needs a key in the Redis
    /// source or a positive answer, too.
    fn decide_user(
        &self,
        passkey: &Passkey,
        grant: Option<UserGrant>,
        status: impl Fn(&Arc<UnknownPasskeys>) -> PasskeyStatus,
    ) -> Result<UserId, Refusal> {
        match grant {
            Some(grant) if !grant.enabled => return Err(Refusal::UserDisabled),
            Some(grant) if !grant.is_external => return Ok(grant.id),
            _ => {}
        }
        let has_redis_key = self.redis_user_of(passkey).is_some();
        if let Some(grant) = grant.filter(|_| has_redis_key) {
            return Ok(grant.id);
        }
        match self.unknown_passkeys.as_ref().map(status) {
            // The row takes precedence over the answer: it may have changed since.
            Some(PasskeyStatus::Verified(user)) => Ok(grant.map_or(user, |grant| grant.id)),
            // A key without a row: verification creates the row.
            Some(_) if has_redis_key => Err(Refusal::NotVerified),
            Some(PasskeyStatus::Invalid) | None => Err(Refusal::UnknownPasskey),
            Some(PasskeyStatus::NotCached) => Err(Refusal::NotVerified),
            Some(PasskeyStatus::CannotCheck) => Err(Refusal::CannotCheck),
        }
    }

    /// The user with this passkey in the database, enabled or not, external or not.
    pub(crate) fn holder(&self, passkey: &Passkey) -> Option<UserGrant> {
        self.by_passkey.get(passkey)
    }

    /// The user id in the site's key `t:user:<passkey>`. The user's row may have another id.
    pub fn redis_user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.redis_source.as_ref()?.holder(passkey).map(|grant| grant.id)
    }

    /// Whether there is a Redis source that was not read yet, so that it may have what the database has not.
    pub fn is_redis_source_unread(&self) -> bool {
        self.redis_source.as_ref().is_some_and(|source| !source.is_loaded.load(Ordering::Acquire))
    }

    fn missing_torrent_refusal(&self) -> Refusal {
        if self.is_redis_source_unread() { Refusal::CannotCheckTorrent } else { Refusal::UnknownTorrent }
    }

    /// The user of this passkey, enabled or not; for journal entries.
    pub fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        let row = self.by_passkey.get(passkey).map(|grant| grant.id);
        // The follower may not have read a new row yet.
        row.or_else(|| self.unknown_passkeys.as_ref()?.account_of(passkey))
    }

    /// The torrent of this infohash, enabled or not.
    pub fn torrent(&self, info_hash: &InfoHash) -> Option<TorrentGrant> {
        self.database_torrent(info_hash).or_else(|| {
            let grant = self.redis_source.as_ref()?.torrent(info_hash)?;
            Some(TorrentGrant { id: self.id_of_redis_torrent(grant.id), ..grant })
        })
    }

    /// The same in the database alone.
    pub(crate) fn database_torrent(&self, info_hash: &InfoHash) -> Option<TorrentGrant> {
        self.by_info_hash.get(info_hash)
    }

    /// The id for the accounts of a torrent of the Redis source.
    fn id_of_redis_torrent(&self, id: TorrentId) -> TorrentId {
        match self.torrents.pin().contains_key(&id) {
            true => TorrentId::new(id.get().saturating_add(TAKEN_ID_OFFSET)).unwrap_or(id),
            false => id,
        }
    }

    /// The id of the torrent with this infohash, enabled or not.
    pub fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.torrent(info_hash).map(|grant| grant.id)
    }

    /// The same, including a recently removed torrent; for events of peers that expired or were evicted.
    pub fn present_or_removed_torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.torrent_of(info_hash).or_else(|| self.removed_torrent_of(info_hash))
    }

    /// The id of the recently removed torrent with this infohash.
    fn removed_torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        let in_redis = || {
            let removed = self.redis_source.as_ref()?.removed_torrents.get(info_hash)?;
            Some(self.id_of_redis_torrent(removed))
        };
        self.removed_torrents.get(info_hash).or_else(in_redis)
    }

    /// Whether this torrent is known to be removed: its id is unused, and its infohash was recently removed or belongs to
    /// another torrent. False if the removal is too long ago to be known.
    pub fn is_torrent_removed(&self, torrent: TorrentId, info_hash: &InfoHash) -> bool {
        let holder = self.torrent_of(info_hash);
        let is_recent = || self.removed_torrent_of(info_hash) == Some(torrent);
        self.info_hash_of(torrent).is_none() && holder.map_or_else(is_recent, |holder| holder != torrent)
    }

    pub fn allows_client(&self, peer_id: &PeerId) -> bool {
        let rules = self.clients.load();
        match &self.redis_source {
            Some(source) => rules.allows_with(&source.clients.load(), peer_id),
            None => rules.allows(peer_id),
        }
    }

    pub fn allows_port(&self, port: u16) -> bool {
        !self.banned_ports.contains(port)
    }

    /// The passkey of a user, enabled or not, or the last one of a recently removed user; for events of peers that expired
    /// or were evicted.
    pub fn passkey_of(&self, user: UserId) -> Option<Passkey> {
        self.present_passkey_of(user).or_else(|| self.removed_users.get(&user))
    }

    /// The same without removed users.
    pub(crate) fn present_passkey_of(&self, user: UserId) -> Option<Passkey> {
        self.users.pin().get(&user).map(|record| record.passkey)
    }

    /// Removed users and torrents that were dropped because the table of recent removals was full.
    pub fn removed_forgotten(&self) -> u64 {
        self.removed_users.dropped() + self.removed_torrents.dropped()
    }

    /// Whether a user exists and is admitted.
    pub fn is_enabled(&self, user: UserId, now: UnixTime) -> bool {
        let passkey = self.users.pin().get(&user).map(|record| record.passkey);
        passkey.is_some_and(|passkey| {
            let status = |unknown: &Arc<UnknownPasskeys>| unknown.peek(&passkey, now);
            self.decide_user(&passkey, self.holder(&passkey), status) == Ok(user)
        })
    }

    /// Whether a user exists and is disabled.
    pub fn is_disabled(&self, user: UserId) -> bool {
        self.users.pin().get(&user).is_some_and(|record| !record.enabled)
    }

    /// The primary infohash of a torrent, enabled or not.
    pub fn info_hash_of(&self, torrent: TorrentId) -> Option<InfoHash> {
        let in_redis = || {
            let source = self.redis_source.as_ref()?;
            let moved =
                || source.info_hashes_of(TorrentId::new(torrent.get().checked_sub(TAKEN_ID_OFFSET)?)?);
            let (info_hash, _) = source.info_hashes_of(torrent).or_else(moved)?;
            (self.torrent_of(&info_hash) == Some(torrent)).then_some(info_hash)
        };
        self.info_hashes_of(torrent).map(|(info_hash, _)| info_hash).or_else(in_redis)
    }

    /// Visits every torrent, enabled or not, in no order. One that is added or removed meanwhile may be visited or not.
    pub fn each_torrent(&self, mut each: impl FnMut(TorrentId, &InfoHash)) {
        let torrents = self.torrents.pin();
        torrents.iter().for_each(|(torrent, record)| each(*torrent, &record.access.info_hash));
        let Some(source) = &self.redis_source else { return };
        source.torrents.pin().iter().for_each(|(torrent, record)| {
            let info_hash = &record.access.info_hash;
            if self.by_info_hash.get(info_hash).is_none() {
                each(self.id_of_redis_torrent(*torrent), info_hash);
            }
        });
    }

    /// Users in the database, enabled or not.
    pub fn user_count(&self) -> usize {
        self.users.len()
    }

    /// Torrents of both sources, enabled or not.
    pub fn torrent_count(&self) -> usize {
        self.torrents.len() + self.redis_source.as_ref().map_or(0, |source| source.torrents.len())
    }

    pub fn banned_port_count(&self) -> u32 {
        self.banned_ports.count()
    }

    /// Client prefixes of both sources, allowed or forbidden.
    pub fn client_count(&self) -> usize {
        self.clients.load().len() + self.redis_source.as_ref().map_or(0, |source| source.clients.load().len())
    }
}

/// Writes, by the followers. One writer at a time; readers are not blocked. Each returns whether it changed anything.
impl Gate {
    /// Inserts or updates a user with default slots.
    pub fn put_user(&self, user: UserId, passkey: Passkey, enabled: bool) -> bool {
        let leech_slots = LeechSlots::DEFAULT;
        self.put_user_access(user, UserAccess { passkey, enabled, is_external: false, leech_slots })
    }

    /// Inserts or updates an external user with default slots.
    pub fn put_external_user(&self, user: UserId, passkey: Passkey, enabled: bool) -> bool {
        let leech_slots = LeechSlots::DEFAULT;
        self.put_user_access(user, UserAccess { passkey, enabled, is_external: true, leech_slots })
    }

    pub fn put_user_access(&self, user: UserId, access: UserAccess) -> bool {
        let _writing = self.lock_writers();
        let (by_passkey, users) = (&self.by_passkey, self.users.pin());
        let UserAccess { passkey, enabled, is_external, leech_slots } = access;
        let grant = UserGrant { id: user, enabled, is_external, leech_slots };
        let before = users.get(&user).copied();
        if before == Some(access) && by_passkey.get(&passkey) == Some(grant) {
            return false;
        }
        by_passkey.insert(passkey, grant);
        users.insert(user, access);
        if let Some(old) = before.filter(|old| old.passkey != passkey) {
            self.forget_passkey(old.passkey, user);
        }
        true
    }

    pub fn remove_user(&self, user: UserId) -> bool {
        let _writing = self.lock_writers();
        let users = self.users.pin();
        let Some(record) = users.get(&user).copied() else { return false };
        // First, so that a reader finds the passkey in one place or the other.
        self.removed_users.insert(user, record.passkey);
        users.remove(&user);
        self.forget_passkey(record.passkey, user);
        true
    }

    /// Inserts or updates an approved torrent with default slots.
    pub fn put_torrent(
        &self,
        torrent: TorrentId,
        info_hash: InfoHash,
        info_hash_v2: Option<InfoHash>,
        enabled: bool,
    ) -> bool {
        let leech_slots = LeechSlots::DEFAULT;
        let access = TorrentAccess { info_hash, info_hash_v2, enabled, approved: true, leech_slots };
        self.put_torrent_access(torrent, access, UnixTime(0))
    }

    /// `now` becomes the time of approval if the torrent was pending before.
    pub fn put_torrent_access(&self, torrent: TorrentId, access: TorrentAccess, now: UnixTime) -> bool {
        let _writing = self.lock_writers();
        let (by_info_hash, torrents) = (&self.by_info_hash, self.torrents.pin());
        let before = torrents.get(&torrent).copied();
        let approval = before.map_or(Approval::ALWAYS, |record| record.approval).then(access.approved, now);
        let record = TorrentRecord { access, approval };
        let TorrentAccess { info_hash, enabled, leech_slots, .. } = access;
        let grant = TorrentGrant { id: torrent, info_hash, enabled, approval, leech_slots };
        if before == Some(record) && access.info_hashes().all(|hash| by_info_hash.get(&hash) == Some(grant)) {
            return false;
        }
        for hash in access.info_hashes() {
            by_info_hash.insert(hash, grant);
        }
        torrents.insert(torrent, record);
        for old in before.iter().flat_map(|record| record.access.info_hashes()) {
            if access.info_hashes().all(|hash| hash != old) {
                self.forget_info_hash(old, torrent);
            }
        }
        true
    }

    /// Returns the primary infohash of the removed torrent.
    pub fn remove_torrent(&self, torrent: TorrentId) -> Option<InfoHash> {
        let _writing = self.lock_writers();
        let torrents = self.torrents.pin();
        let record = *torrents.remove(&torrent)?;
        for hash in record.access.info_hashes() {
            self.forget_info_hash(hash, torrent);
        }
        Some(record.access.info_hash)
    }

    pub fn set_clients(&self, rules: ClientRules) -> bool {
        let _writing = self.lock_writers();
        let changed = **self.clients.load() != rules;
        if changed {
            self.clients.store(rules.into());
        }
        changed
    }

    pub fn set_banned_ports(&self, ranges: impl IntoIterator<Item = PortRange>) -> bool {
        let _writing = self.lock_writers();
        self.banned_ports.replace(ranges)
    }

    pub(crate) fn set_loaded(&self) {
        self.is_loaded.store(true, Ordering::Release);
    }

    /// Expires the cached answer about a passkey; the next request verifies it again.
    pub fn expire_answer(&self, passkey: &Passkey, now: UnixTime) {
        if let Some(unknown_passkeys) = &self.unknown_passkeys {
            unknown_passkeys.expire(passkey, now);
        }
    }

    /// The infohashes of a torrent of this gate, enabled or not; the primary one first.
    pub(crate) fn info_hashes_of(&self, torrent: TorrentId) -> Option<(InfoHash, Option<InfoHash>)> {
        self.torrents.pin().get(&torrent).map(|record| (record.access.info_hash, record.access.info_hash_v2))
    }

    pub(crate) fn passkeys_where(&self, mut is_wanted: impl FnMut(&Passkey) -> bool) -> Vec<Passkey> {
        let users = self.users.pin();
        users.values().map(|record| record.passkey).filter(|passkey| is_wanted(passkey)).collect()
    }

    /// Whether a fresh positive answer about this passkey is cached.
    pub(crate) fn is_verified(&self, passkey: &Passkey, now: UnixTime) -> bool {
        let status = self.unknown_passkeys.as_ref().map(|unknown| unknown.peek(passkey, now));
        matches!(status, Some(PasskeyStatus::Verified(_)))
    }

    /// Both infohashes of hybrid torrents count.
    pub(crate) fn info_hashes_where(&self, mut is_wanted: impl FnMut(&InfoHash) -> bool) -> Vec<InfoHash> {
        let torrents = self.torrents.pin();
        torrents
            .values()
            .flat_map(|record| record.access.info_hashes())
            .filter(|hash| is_wanted(hash))
            .collect()
    }

    pub(crate) fn users_where(&self, mut is_wanted: impl FnMut(UserId) -> bool) -> Vec<UserId> {
        self.users.pin().keys().copied().filter(|user| is_wanted(*user)).collect()
    }

    pub(crate) fn torrents_where(&self, mut is_wanted: impl FnMut(TorrentId) -> bool) -> Vec<TorrentId> {
        self.torrents.pin().keys().copied().filter(|torrent| is_wanted(*torrent)).collect()
    }

    /// Removes a passkey unless another user has it by now.
    fn forget_passkey(&self, passkey: Passkey, owner: UserId) {
        let by_passkey = &self.by_passkey;
        if by_passkey.get(&passkey).is_some_and(|grant| grant.id == owner) {
            by_passkey.remove(&passkey);
            // A cached answer would name the removed account.
            if let Some(unknown_passkeys) = &self.unknown_passkeys {
                unknown_passkeys.forget(&passkey);
            }
        }
    }

    /// Removes an infohash unless another torrent has it by now.
    fn forget_info_hash(&self, info_hash: InfoHash, owner: TorrentId) {
        let by_info_hash = &self.by_info_hash;
        if by_info_hash.get(&info_hash).is_some_and(|grant| grant.id == owner) {
            // First, so that a reader finds the id in one place or the other.
            self.removed_torrents.insert(info_hash, owner);
            by_info_hash.remove(&info_hash);
        }
    }

    fn lock_writers(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a poisoned one is still usable.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
