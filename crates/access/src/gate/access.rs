//! What the gate stores about users and torrents.

use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};

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
