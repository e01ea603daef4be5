//! One peer's state, in one cache line, and the rules by which totals become deltas.

use domain::{
    Announce, AnnounceEvent, ClientId, ClientKey, InfoHash, PeerId, RateCeiling, RunId, Seconds, SessionId,
    UnixTime, UserId,
};

use crate::announce::Claim;
use crate::packed_state::PackedState;
use crate::remote::{RemoteAnnounce, RemoteTotals};

/// A dual-stack client announces over both families at once, and the two requests may be reordered. Within this time,
/// lower counters over the other family, or from another node, are the older of the two announces, not a restart.
const DUAL_STACK_WINDOW: Seconds = Seconds(30);

/// Extra time before a peer expires whose last announce another node received.
const REMOTE_GRACE: Seconds = Seconds(5);

/// The state of a peer, except for its addresses (see `members`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) user: UserId,
    pub(crate) uploaded: u64,
    pub(crate) downloaded: u64,
    pub(crate) packed: PackedState,
    pub(crate) peer_id: PeerId,
    pub(crate) key: ClientKey,
    pub(crate) last_announce: UnixTime,
    pub(crate) run: RunId,
}

// One cache line per peer: each further field costs memory for a million peers.
const _: () = assert!(size_of::<Peer>() == 64);

/// What one announce adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) uploaded: u64,
    pub(crate) downloaded: u64,
    pub(crate) since_last: Seconds,
    /// The claim, if it exceeds the ceiling (J8).
    pub(crate) implausible: Option<Claim>,
    /// Upload claimed although no other user leeched.
    pub(crate) upload_without_leechers: u64,
    /// The part of it that is not credited.
    pub(crate) uncredited_upload: u64,
}

/// Whether an announce of a known peer gets a peer list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListDue {
    /// The min interval has passed.
    Due,
    /// It has not, but the announce is exempt, up to a budget: the peer is new, announces over its other address family
    /// for the first time, has completed, or comes from another node.
    Budgeted,
    /// Before the min interval.
    TooSoon,
}

impl Credit {
    /// Of a first announce: its counters are the baseline.
    pub(crate) const NOTHING: Credit = Credit {
        uploaded: 0,
        downloaded: 0,
        since_last: Seconds(0),
        implausible: None,
        upload_without_leechers: 0,
        uncredited_upload: 0,
    };

    /// The claimed upload, credited or not.
    pub(crate) fn upload_claimed(&self) -> u64 {
        self.implausible.map_or(self.uploaded, |claim| claim.uploaded)
    }
}

impl Peer {
    pub(crate) fn new(user: UserId, announce: &Announce, swarm: u32, run: RunId) -> Self {
        let mut packed = PackedState::in_swarm(swarm);
        packed.set_last_was_v6(announce.ip.is_ipv6());
        Peer {
            user,
            uploaded: announce.uploaded,
            downloaded: announce.downloaded,
            packed,
            peer_id: announce.peer_id,
            key: announce.key,
            last_announce: announce.now,
            run,
        }
    }

    /// A new peer from a remote announce.
    pub(crate) fn from_remote(remote: &RemoteAnnounce, swarm: u32) -> Self {
        let mut packed = PackedState::in_swarm(swarm);
        packed.set_last_was_v6(remote.ip.is_ipv6());
        packed.set_remote(true);
        let totals = remote.totals.unwrap_or(RemoteTotals::NONE);
        Peer {
            user: remote.user,
            uploaded: totals.uploaded,
            downloaded: totals.downloaded,
            packed,
            peer_id: remote.peer_id,
            key: remote.key,
            last_announce: remote.at,
            run: totals.run,
        }
    }

    /// The slot of its swarm.
    pub(crate) fn swarm(&self) -> u32 {
        self.packed.swarm()
    }

    /// Its index among the swarm's members.
    pub(crate) fn position(&self) -> u32 {
        self.packed.position()
    }

    pub(crate) fn set_position(&mut self, position: u32) {
        self.packed.set_position(position);
    }

    /// Whether an announce of the same user on the same torrent is this client's, by peer id.
    pub(crate) fn has_peer_id(&self, peer_id: &PeerId) -> bool {
        self.peer_id == *peer_id
    }

    /// Whether another node received its last announce.
    pub(crate) fn is_remote(&self) -> bool {
        self.packed.is_remote()
    }

    pub(crate) fn key(&self) -> ClientKey {
        self.key
    }

    /// Likewise by key, which outlives a changed peer id.
    pub(crate) fn has_key(&self, key: ClientKey) -> bool {
        self.key.is_some() && self.key == key
    }

    /// The client, as every node derives it, and its run.
    pub(crate) fn session(&self, info_hash: &InfoHash) -> SessionId {
        let client = ClientId::derive(self.user, info_hash, self.key, &self.peer_id);
        SessionId { client, run: self.run }
    }

    /// The min interval is counted for each address family.
    pub(crate) fn list_due(&self, announce: &Announce, min_interval: Seconds) -> ListDue {
        let Some(last) = self.last_over(announce.ip.is_ipv6()) else {
            return ListDue::Budgeted;
        };
        if announce.now.since(last) >= min_interval {
            return ListDue::Due;
        }
        let completes = announce.event == AnnounceEvent::Completed && !self.has_completed();
        // Another node may have failed before it replied, and the client retries here.
        if completes || self.packed.is_remote() { ListDue::Budgeted } else { ListDue::TooSoon }
    }

    /// Applies an announce and returns what it added. `new_run` assigns a number if the totals do not continue the
    /// known ones.
    pub(crate) fn credit(
        &mut self,
        announce: &Announce,
        ceiling: RateCeiling,
        new_run: impl FnOnce() -> RunId,
    ) -> Credit {
        let went_back = announce.uploaded < self.uploaded || announce.downloaded < self.downloaded;
        let since_last = announce.now.since(self.last_announce);
        let credit = if self.run == RunId::NONE {
            // Entries of another producer have already credited everything up to now.
            self.run = new_run();
            self.take_totals(announce);
            Credit { since_last, ..Credit::NOTHING }
        } else if went_back && (self.is_late_duplicate(announce) || has_cleared_counters(announce)) {
            Credit { since_last, ..Credit::NOTHING }
        } else if went_back || self.is_restart(announce) {
            self.run = new_run();
            self.take_totals(announce);
            Credit::NOTHING
        } else {
            let credit = self.plausible_credit(announce, ceiling);
            if credit.implausible.is_some() {
                // The ledger credits a run by its totals, and limits the difference between two runs by the same
                // ceiling.
                self.run = new_run();
            }
            self.take_totals(announce);
            credit
        };
        self.update_last_announce(announce.now, announce.ip.is_ipv6());
        self.packed.set_remote(false);
        self.peer_id = announce.peer_id;
        credit
    }

    /// Applies a remote announce that is no older than the last announce of this peer.
    pub(crate) fn apply_remote(&mut self, remote: &RemoteAnnounce) {
        match remote.totals {
            Some(totals) => self.apply_remote_totals(remote, totals),
            None if remote.at > self.last_announce => self.run = RunId::NONE,
            None => {}
        }
        self.apply_remote_key(remote);
        self.update_last_announce(remote.at, remote.ip.is_ipv6());
        self.packed.set_remote(true);
        self.peer_id = remote.peer_id;
    }

    /// A client may send different keys over different protocols or families. All nodes must keep the same key, because
    /// they derive the client from it: the later one, and of two at the same time the smaller.
    fn apply_remote_key(&mut self, remote: &RemoteAnnounce) {
        let is_later = remote.at > self.last_announce || !self.key.is_some();
        if remote.key.is_some() && (is_later || remote.key.0 < self.key.0) {
            self.key = remote.key;
        }
    }

    fn apply_remote_totals(&mut self, remote: &RemoteAnnounce, totals: RemoteTotals) {
        if totals.run == self.run {
            return self.raise_totals(totals);
        }
        let went_back = totals.uploaded < self.uploaded || totals.downloaded < self.downloaded;
        let at_once = remote.event != AnnounceEvent::Started
            && remote.at.since(self.last_announce) <= DUAL_STACK_WINDOW
            && self.run != RunId::NONE;
        if went_back && at_once {
            return;
        }
        let is_same_announce = remote.at == self.last_announce
            && (totals.uploaded, totals.downloaded) == (self.uploaded, self.downloaded)
            && self.run != RunId::NONE;
        // Two nodes received a new client at the same time. Both adopt the smaller number.
        self.run = if is_same_announce { self.run.min(totals.run) } else { totals.run };
        self.uploaded = totals.uploaded;
        self.downloaded = totals.downloaded;
    }

    /// Applies a remote announce that is older than the last announce of this peer. True if its address is new.
    pub(crate) fn apply_late_remote(&mut self, remote: &RemoteAnnounce, silence_max: Seconds) -> bool {
        if let Some(totals) = remote.totals
            && totals.run == self.run
        {
            self.raise_totals(totals);
        }
        if remote.ip.is_ipv6() == self.packed.last_was_v6() {
            return false;
        }
        let before_last = self.last_announce.since(remote.at).0;
        let is_newer = self.packed.other_family_s().is_none_or(|known| before_last < known);
        let is_new = is_newer && before_last < silence_max.0.min(PackedState::OTHER_FAMILY_S_MAX);
        if is_new {
            self.packed.set_other_family_s(Some(before_last));
        }
        is_new
    }

    /// The client had stopped before it returned: the address of the other family is invalid if its last announce was
    /// before the stop. True if it was.
    pub(crate) fn clear_stale_other_family(&mut self, stop: UnixTime) -> bool {
        let is_stale = self.last_over(!self.last_was_v6()).is_some_and(|last| last <= stop);
        if is_stale {
            self.packed.set_other_family_s(None);
        }
        is_stale
    }

    pub(crate) fn last_was_v6(&self) -> bool {
        self.packed.last_was_v6()
    }

    /// Within a run counters only grow, in whatever order they arrive.
    fn raise_totals(&mut self, totals: RemoteTotals) {
        self.uploaded = self.uploaded.max(totals.uploaded);
        self.downloaded = self.downloaded.max(totals.downloaded);
    }

    /// When the peer expires without a further announce. A little later if another node received the last one: that
    /// node reports the timeout.
    pub(crate) fn deadline(&self, silence_max: Seconds) -> UnixTime {
        let deadline = self.last_announce + silence_max;
        if self.packed.is_remote() { deadline + REMOTE_GRACE } else { deadline }
    }

    fn take_totals(&mut self, announce: &Announce) {
        self.uploaded = announce.uploaded;
        self.downloaded = announce.downloaded;
    }

    /// Growth of the counters, up to the ceiling.
    fn plausible_credit(&self, announce: &Announce, ceiling: RateCeiling) -> Credit {
        let since_last = announce.now.since(self.last_announce);
        let claim = Claim {
            uploaded: announce.uploaded - self.uploaded,
            downloaded: announce.downloaded - self.downloaded,
        };
        let allowance = ceiling.allowance(since_last);
        let is_implausible = claim.uploaded > allowance || claim.downloaded > allowance;
        Credit {
            uploaded: claim.uploaded.min(allowance),
            downloaded: claim.downloaded.min(allowance),
            since_last,
            implausible: is_implausible.then_some(claim),
            ..Credit::NOTHING
        }
    }

    /// Whether the last announce over the other address family is too old for its address to be valid.
    pub(crate) fn other_family_is_stale(&self, silence_max: Seconds) -> bool {
        match self.packed.other_family_s() {
            Some(seconds) => seconds >= silence_max.0.min(PackedState::OTHER_FAMILY_S_MAX),
            None => true,
        }
    }

    /// Marks the peer as completed; true the first time.
    pub(crate) fn complete(&mut self) -> bool {
        let first = !self.packed.has_completed();
        self.packed.set_completed();
        first
    }

    pub(crate) fn has_completed(&self) -> bool {
        self.packed.has_completed()
    }

    /// Marks the slot as empty, for the next check of the timing wheel.
    pub(crate) fn vacate(&mut self) {
        self.packed.set_vacant();
    }

    pub(crate) fn is_vacant(&self) -> bool {
        self.packed.is_vacant()
    }

    /// Whether a client known by its key starts from zero under another peer id: it was restarted, even if it had moved
    /// nothing before. A client whose counters continued has only changed its peer id.
    fn is_restart(&self, announce: &Announce) -> bool {
        announce.event == AnnounceEvent::Started
            && self.peer_id != announce.peer_id
            && (announce.uploaded, announce.downloaded) == (0, 0)
    }

    fn is_late_duplicate(&self, announce: &Announce) -> bool {
        announce.event != AnnounceEvent::Started
            && (announce.ip.is_ipv6() != self.packed.last_was_v6() || self.packed.is_remote())
            && announce.now.since(self.last_announce) <= DUAL_STACK_WINDOW
    }

    fn last_over(&self, v6: bool) -> Option<UnixTime> {
        if v6 == self.packed.last_was_v6() {
            return Some(self.last_announce);
        }
        self.packed.other_family_s().map(|seconds| self.last_announce - Seconds(seconds))
    }

    fn update_last_announce(&mut self, at: UnixTime, over_v6: bool) {
        let other_family_last = self.last_over(!over_v6);
        self.last_announce = self.last_announce.max(at);
        self.packed.set_other_family_s(other_family_last.map(|last| self.last_announce.since(last).0));
        self.packed.set_last_was_v6(over_v6);
    }
}

/// Whether a client cleared its counters before it sent `stopped`, as WebTorrent does. Counters that are merely lower
/// belong to another run, whose beginning this tracker may have missed (it was restarted): they begin a run here, so
/// that the ledger credits the difference.
fn has_cleared_counters(announce: &Announce) -> bool {
    announce.event == AnnounceEvent::Stopped && announce.uploaded == 0 && announce.downloaded == 0
}
