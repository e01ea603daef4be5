//! One peer's accounts, in one cache line, and the rules by which totals become deltas.

use domain::{AnnounceEvent, ClientKey, InfoHash, PeerId, Seconds, SessionId, UnixTime, UserId};

use crate::announce::Announce;

/// A dual-stack client announces over both families at once; its two requests may overtake each other. Within this
/// time, lower counters over the other family are the slower twin of an announce, not a restarted client.
const TWIN_WINDOW: Seconds = Seconds(30);

const HAS_COMPLETED: u8 = 1;
const LAST_WAS_V6: u8 = 2;
const VACANT: u8 = 4;

/// What the tracker remembers of a peer, besides its addresses (see `members`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) user: UserId,
    pub(crate) uploaded: u64,
    pub(crate) downloaded: u64,
    pub(crate) peer_id: PeerId,
    key: ClientKey,
    pub(crate) last_announce: UnixTime,
    /// The slot of its swarm.
    pub(crate) swarm: u32,
    /// Its place among the swarm's members.
    pub(crate) position: u32,
    /// How long before `last_announce` the peer announced over the other address family; the maximum means never.
    other_family_s: u16,
    /// How often its counters went backwards.
    restarts: u8,
    flags: u8,
}

// One cache line a peer. Whoever adds a field pays for it a million times.
const _: () = assert!(size_of::<Peer>() == 64);

/// What one announce adds to a peer's accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) uploaded: u64,
    pub(crate) downloaded: u64,
    pub(crate) since_last: Seconds,
}

impl Credit {
    /// Of a first announce: its counters are the baseline, whatever they say.
    pub(crate) const NOTHING: Credit = Credit { uploaded: 0, downloaded: 0, since_last: Seconds(0) };
}

impl Peer {
    /// A peer never seen before.
    pub(crate) fn new(announce: &Announce, swarm: u32) -> Self {
        let over_v6 = if announce.ip.is_ipv6() { LAST_WAS_V6 } else { 0 };
        Peer {
            user: announce.user,
            uploaded: announce.uploaded,
            downloaded: announce.downloaded,
            peer_id: announce.peer_id,
            key: announce.key,
            last_announce: announce.now,
            swarm,
            position: 0,
            other_family_s: u16::MAX,
            restarts: 0,
            flags: over_v6,
        }
    }

    /// Whether an announce of the same user on the same torrent is this client's: by its peer id.
    pub(crate) fn has_peer_id(&self, announce: &Announce) -> bool {
        self.peer_id == announce.peer_id
    }

    /// Likewise by its key, which outlives a changed peer id.
    pub(crate) fn has_key(&self, announce: &Announce) -> bool {
        self.key.is_some() && self.key == announce.key
    }

    /// The session, as every node derives it.
    pub(crate) fn session(&self, info_hash: &InfoHash) -> SessionId {
        SessionId::derive(self.user, info_hash, self.key, &self.peer_id, self.restarts)
    }

    /// Whether the client comes back sooner than it may, over the same address family.
    pub(crate) fn is_too_soon(&self, announce: &Announce, min_interval: Seconds) -> bool {
        match self.last_over(announce.ip.is_ipv6()) {
            Some(last) => announce.now.since(last) < min_interval,
            None => false,
        }
    }

    /// Takes an announce into the accounts and says what it added.
    pub(crate) fn credit(&mut self, announce: &Announce) -> Credit {
        let went_back = announce.uploaded < self.uploaded || announce.downloaded < self.downloaded;
        let credit = if went_back && self.is_slower_twin(announce) {
            Credit { since_last: announce.now.since(self.last_announce), ..Credit::NOTHING }
        } else if went_back {
            self.restarts = self.restarts.wrapping_add(1);
            self.uploaded = announce.uploaded;
            self.downloaded = announce.downloaded;
            Credit::NOTHING
        } else {
            let credit = Credit {
                uploaded: announce.uploaded - self.uploaded,
                downloaded: announce.downloaded - self.downloaded,
                since_last: announce.now.since(self.last_announce),
            };
            self.uploaded = announce.uploaded;
            self.downloaded = announce.downloaded;
            credit
        };
        self.note_time(announce);
        self.peer_id = announce.peer_id;
        credit
    }

    /// Whether nothing was heard over the other address family for so long that its address cannot be trusted.
    pub(crate) fn other_family_is_stale(&self, silence_max: Seconds) -> bool {
        u32::from(self.other_family_s) >= silence_max.0.min(u16::MAX.into())
    }

    /// Notes a completion; true the first time.
    pub(crate) fn complete(&mut self) -> bool {
        let first = self.flags & HAS_COMPLETED == 0;
        self.flags |= HAS_COMPLETED;
        first
    }

    /// Whether a completion has been noted.
    pub(crate) fn has_completed(&self) -> bool {
        self.flags & HAS_COMPLETED != 0
    }

    /// Marks the slot as empty, for the wheel that will come by.
    pub(crate) fn vacate(&mut self) {
        self.flags |= VACANT;
    }

    pub(crate) fn is_vacant(&self) -> bool {
        self.flags & VACANT != 0
    }

    fn is_slower_twin(&self, announce: &Announce) -> bool {
        announce.event != AnnounceEvent::Started
            && announce.ip.is_ipv6() != self.last_was_v6()
            && announce.now.since(self.last_announce) <= TWIN_WINDOW
    }

    fn last_was_v6(&self) -> bool {
        self.flags & LAST_WAS_V6 != 0
    }

    /// When the peer last announced over IPv6 or IPv4.
    fn last_over(&self, v6: bool) -> Option<UnixTime> {
        if v6 == self.last_was_v6() {
            return Some(self.last_announce);
        }
        (self.other_family_s != u16::MAX).then(|| self.last_announce - Seconds(self.other_family_s.into()))
    }

    fn note_time(&mut self, announce: &Announce) {
        let over_v6 = announce.ip.is_ipv6();
        let other_family_last = self.last_over(!over_v6);
        self.last_announce = self.last_announce.max(announce.now);
        self.other_family_s = match other_family_last {
            Some(last) => u16::try_from(self.last_announce.since(last).0).unwrap_or(u16::MAX),
            None => u16::MAX,
        };
        self.flags = if over_v6 { self.flags | LAST_WAS_V6 } else { self.flags & !LAST_WAS_V6 };
    }
}
