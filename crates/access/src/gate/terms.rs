//! On which terms users and torrents are let in.

use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};

use crate::slots::LeechSlots;

/// Since when a torrent is open to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approval(UnixTime);

impl Approval {
    /// It awaits approval.
    pub const PENDING: Approval = Approval(UnixTime(u32::MAX));
    /// It was never known to await it.
    pub const ALWAYS: Approval = Approval(UnixTime(0));

    /// Whether it awaits approval.
    pub fn is_pending(self) -> bool {
        self == Self::PENDING
    }

    /// When it was approved, if it is; the beginning of time if nobody saw it happen.
    pub fn since(self) -> Option<UnixTime> {
        (!self.is_pending()).then_some(self.0)
    }

    /// What follows if it is, or is not, approved by `now`.
    pub(super) fn then(self, approved: bool, now: UnixTime) -> Approval {
        match (approved, self.is_pending()) {
            (false, _) => Self::PENDING,
            (true, true) => Approval(now),
            (true, false) => self,
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
    /// Whether it still awaits approval.
    pub approval: Approval,
    /// How many peers may leech it at once.
    pub leech_slots: LeechSlots,
}

/// Whom a passkey stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserGrant {
    pub(crate) id: UserId,
    pub(crate) enabled: bool,
    /// Not ours: counts only together with a verdict.
    pub(crate) vouched: bool,
    pub(crate) leech_slots: LeechSlots,
}

/// What the gate is told of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserTerms {
    /// The secret in their announce URL.
    pub passkey: Passkey,
    /// Whether they may announce.
    pub enabled: bool,
    /// Whether they are not ours: they are let in as long as somebody vouches for them.
    pub vouched: bool,
    /// How many torrents they may leech at once.
    pub leech_slots: LeechSlots,
}

/// What the gate is told of a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorrentTerms {
    /// Its one name.
    pub info_hash: InfoHash,
    /// The second name of a hybrid torrent.
    pub info_hash_v2: Option<InfoHash>,
    /// Whether it may be announced.
    pub enabled: bool,
    /// Whether it is open to all, or awaits approval.
    pub approved: bool,
    /// How many peers may leech it at once.
    pub leech_slots: LeechSlots,
}

impl TorrentTerms {
    pub(super) fn names(&self) -> impl Iterator<Item = InfoHash> + use<> {
        [Some(self.info_hash), self.info_hash_v2].into_iter().flatten()
    }
}

/// What the gate knows of a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TorrentRecord {
    pub(super) terms: TorrentTerms,
    pub(super) approval: Approval,
}
