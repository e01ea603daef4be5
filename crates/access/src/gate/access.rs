//! What the gate stores about users and torrents.

use std::sync::atomic::AtomicBool;

use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};

use super::table::Entry;
use crate::leech_slots::LeechSlots;

/// Since when a torrent is approved, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approval(UnixTime);

impl Approval {
    /// Not approved yet.
    pub const PENDING: Approval = Approval(UnixTime(u32::MAX));
    /// Approved before this process started.
    pub const ALWAYS: Approval = Approval(UnixTime(0));

    pub fn is_pending(self) -> bool {
        self == Self::PENDING
    }

    /// When it was approved; 0 if that was before this process started.
    pub fn since(self) -> Option<UnixTime> {
        (!self.is_pending()).then_some(self.0)
    }

    /// The next state, given whether the torrent is approved at `now`.
    pub(super) fn then(self, approved: bool, now: UnixTime) -> Approval {
        match (approved, self.is_pending()) {
            (false, _) => Self::PENDING,
            (true, true) => Approval(now),
            (true, false) => self,
        }
    }
}

/// The torrent of an infohash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorrentGrant {
    pub id: TorrentId,
    /// See [`super::Admission::info_hash`].
    pub info_hash: InfoHash,
    pub enabled: bool,
    pub approval: Approval,
    pub leech_slots: LeechSlots,
}

/// The user of a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserGrant {
    pub(crate) id: UserId,
    pub(crate) enabled: bool,
    /// Admitted only together with a verified passkey.
    pub(crate) is_external: bool,
    pub(crate) leech_slots: LeechSlots,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserAccess {
    pub passkey: Passkey,
    pub enabled: bool,
    /// Admitted only together with a verified passkey.
    pub is_external: bool,
    pub leech_slots: LeechSlots,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorrentAccess {
    /// See [`super::Admission::info_hash`].
    pub info_hash: InfoHash,
    /// The truncated v2 hash of a hybrid torrent.
    pub info_hash_v2: Option<InfoHash>,
    pub enabled: bool,
    pub approved: bool,
    pub leech_slots: LeechSlots,
}

impl TorrentAccess {
    pub(super) fn info_hashes(&self) -> impl Iterator<Item = InfoHash> + use<> {
        [Some(self.info_hash), self.info_hash_v2].into_iter().flatten()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TorrentRecord {
    pub(super) access: TorrentAccess,
    pub(super) approval: Approval,
}

/// A passkey and its user.
#[derive(Debug)]
pub(super) struct UserEntry {
    passkey: Passkey,
    user: UserGrant,
    is_dead: AtomicBool,
}

impl Entry for UserEntry {
    type Key = Passkey;
    type Value = UserGrant;

    fn new(passkey: Passkey, user: UserGrant) -> Self {
        UserEntry { passkey, user, is_dead: AtomicBool::new(false) }
    }

    fn key(&self) -> &Passkey {
        &self.passkey
    }

    fn value(&self) -> UserGrant {
        self.user
    }

    fn is_dead(&self) -> &AtomicBool {
        &self.is_dead
    }
}

/// An infohash and its torrent.
#[derive(Debug)]
pub(super) struct TorrentEntry {
    key: InfoHash,
    info_hash: InfoHash,
    /// In two halves: aligned to eight bytes the entry would not fit into a cache line.
    id: [u32; 2],
    approval: Approval,
    leech_slots: LeechSlots,
    enabled: bool,
    is_dead: AtomicBool,
}

const _: () = assert!(size_of::<UserEntry>() <= 60 && size_of::<TorrentEntry>() <= 60);

impl Entry for TorrentEntry {
    type Key = InfoHash;
    type Value = TorrentGrant;

    fn new(key: InfoHash, torrent: TorrentGrant) -> Self {
        let TorrentGrant { id, info_hash, enabled, approval, leech_slots } = torrent;
        let id = [id.get() as u32, (id.get() >> 32) as u32];
        TorrentEntry { key, info_hash, id, approval, leech_slots, enabled, is_dead: AtomicBool::new(false) }
    }

    fn key(&self) -> &InfoHash {
        &self.key
    }

    fn value(&self) -> TorrentGrant {
        let TorrentEntry { info_hash, id: [low, high], approval, leech_slots, enabled, .. } = *self;
        let id = TorrentId::new(u64::from(high) << 32 | u64::from(low)).expect("split from an id");
        TorrentGrant { id, info_hash, enabled, approval, leech_slots }
    }

    fn is_dead(&self) -> &AtomicBool {
        &self.is_dead
    }
}
