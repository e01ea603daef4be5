//! One peer's accounts, in one cache line, and the rules by which totals become deltas.

use domain::{
    AnnounceEvent, ClientId, ClientKey, InfoHash, PeerId, RateCeiling, RunId, Seconds, SessionId, UnixTime,
    UserId,
};

use crate::announce::{Announce, Claim};
use crate::heard::{Heard, HeardTotals};
use crate::place::Place;

/// A dual-stack client announces over both families at once; its two requests may overtake each other. Within this
/// time, lower counters over the other family, or at another node, are the slower twin of an announce, not a restarted
/// client.
const TWIN_WINDOW: Seconds = Seconds(30);

/// How much later a peer expires that another node heard last.
const ELSEWHERE_GRACE: Seconds = Seconds(5);

/// What the tracker remembers of a peer, besides its addresses (see `members`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) user: UserId,
    pub(crate) uploaded: u64,
    pub(crate) downloaded: u64,
    pub(crate) place: Place,
    pub(crate) peer_id: PeerId,
    pub(crate) key: ClientKey,
    pub(crate) last_announce: UnixTime,
    pub(crate) run: RunId,
}

// One cache line a peer. Whoever adds a field pays for it a million times.
const _: () = assert!(size_of::<Peer>() == 64);

/// What one announce adds to a peer's accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) uploaded: u64,
    pub(crate) downloaded: u64,
    pub(crate) since_last: Seconds,
    /// What the counters claimed, where that is more than can be believed (J8).
    pub(crate) implausible: Option<Claim>,
    /// Upload claimed although no other user leeched.
    pub(crate) upload_without_leechers: u64,
    /// How much of that is not credited.
    pub(crate) uncredited_upload: u64,
}

/// Whether an announce of a known peer is given peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListDue {
    /// The client kept to min interval.
    Due,
    /// It did not, but has a reason, which is granted a few times only: it is new here, announces over its other
    /// address family for the first time, has completed, or comes from another node.
    Budgeted,
    /// It came back sooner than it may.
    TooSoon,
}

impl Credit {
    /// Of a first announce: its counters are the baseline, whatever they say.
    pub(crate) const NOTHING: Credit = Credit {
        uploaded: 0,
        downloaded: 0,
        since_last: Seconds(0),
        implausible: None,
        upload_without_leechers: 0,
        uncredited_upload: 0,
    };

    /// What the counters claim to have uploaded.
    pub(crate) fn upload_claimed(&self) -> u64 {
        self.implausible.map_or(self.uploaded, |claim| claim.uploaded)
    }
}

impl Peer {
    /// A peer never seen before.
    pub(crate) fn new(announce: &Announce, swarm: u32, run: RunId) -> Self {
        let mut place = Place::in_swarm(swarm);
        place.set_last_was_v6(announce.ip.is_ipv6());
        Peer {
            user: announce.user,
            uploaded: announce.uploaded,
            downloaded: announce.downloaded,
            place,
            peer_id: announce.peer_id,
            key: announce.key,
            last_announce: announce.now,
            run,
        }
    }

    /// A peer never seen before that another node heard.
    pub(crate) fn of_heard(heard: &Heard, swarm: u32) -> Self {
        let mut place = Place::in_swarm(swarm);
        place.set_last_was_v6(heard.ip.is_ipv6());
        place.set_heard_elsewhere(true);
        let totals = heard.totals.unwrap_or(HeardTotals::NONE);
        Peer {
            user: heard.user,
            uploaded: totals.uploaded,
            downloaded: totals.downloaded,
            place,
            peer_id: heard.peer_id,
            key: heard.key,
            last_announce: heard.at,
            run: totals.run,
        }
    }

    /// The slot of its swarm.
    pub(crate) fn swarm(&self) -> u32 {
        self.place.swarm()
    }

    /// Its place among the swarm's members.
    pub(crate) fn position(&self) -> u32 {
        self.place.position()
    }

    /// Notes its new place among the swarm's members.
    pub(crate) fn set_position(&mut self, position: u32) {
        self.place.set_position(position);
    }

    /// Whether an announce of the same user on the same torrent is this client's: by its peer id.
    pub(crate) fn has_peer_id(&self, peer_id: &PeerId) -> bool {
        self.peer_id == *peer_id
    }

    /// Whether its last word came from another node.
    pub(crate) fn was_heard_elsewhere(&self) -> bool {
        self.place.was_heard_elsewhere()
    }

    /// The key by which its client is known.
    pub(crate) fn key(&self) -> ClientKey {
        self.key
    }

    /// Likewise by its key, which outlives a changed peer id.
    pub(crate) fn has_key(&self, key: ClientKey) -> bool {
        self.key.is_some() && self.key == key
    }

    /// The session: the client, as every node derives it, and its run.
    pub(crate) fn session(&self, info_hash: &InfoHash) -> SessionId {
        let client = ClientId::derive(self.user, info_hash, self.key, &self.peer_id);
        SessionId { client, run: self.run }
    }

    /// Whether the client is given peers: min interval is counted for each address family.
    pub(crate) fn list_due(&self, announce: &Announce, min_interval: Seconds) -> ListDue {
        let Some(last) = self.last_over(announce.ip.is_ipv6()) else {
            return ListDue::Budgeted;
        };
        if announce.now.since(last) >= min_interval {
            return ListDue::Due;
        }
        let completes = announce.event == AnnounceEvent::Completed && !self.has_completed();
        // Perhaps another node that heard it died before it could answer, and the client tries its luck here.
        if completes || self.place.was_heard_elsewhere() { ListDue::Budgeted } else { ListDue::TooSoon }
    }

    /// Takes an announce into the accounts and says what it added. `new_run` is asked for a number where the totals
    /// do not go on from what was known.
    pub(crate) fn credit(
        &mut self,
        announce: &Announce,
        ceiling: RateCeiling,
        new_run: impl FnOnce() -> RunId,
    ) -> Credit {
        let went_back = announce.uploaded < self.uploaded || announce.downloaded < self.downloaded;
        let since_last = announce.now.since(self.last_announce);
        let credit = if self.run == RunId::NONE {
            // Another producer's entries said what was moved until now, and credited it.
            self.run = new_run();
            self.take_totals(announce);
            Credit { since_last, ..Credit::NOTHING }
        } else if went_back && (self.is_slower_twin(announce) || has_cleared_counters(announce)) {
            Credit { since_last, ..Credit::NOTHING }
        } else if went_back || self.begins_anew(announce) {
            self.run = new_run();
            self.take_totals(announce);
            Credit::NOTHING
        } else {
            let credit = self.plausible_credit(announce, ceiling);
            if credit.implausible.is_some() {
                // The ledger credits a run by its totals: what lies between two runs it judges by the same ceiling.
                self.run = new_run();
            }
            self.take_totals(announce);
            credit
        };
        self.note_time(announce.now, announce.ip.is_ipv6());
        self.place.set_heard_elsewhere(false);
        self.peer_id = announce.peer_id;
        credit
    }

    /// Takes in what another node heard, no earlier than the last word of this peer.
    pub(crate) fn hear(&mut self, heard: &Heard) {
        match heard.totals {
            Some(totals) => self.hear_totals(heard, totals),
            None if heard.at > self.last_announce => self.run = RunId::NONE,
            None => {}
        }
        self.hear_key(heard);
        self.note_time(heard.at, heard.ip.is_ipv6());
        self.place.set_heard_elsewhere(true);
        self.peer_id = heard.peer_id;
    }

    /// A client may send another key over another wire or family. Nodes derive the client from the key that they keep,
    /// so they keep the same one: the later, and of two at once the smaller.
    fn hear_key(&mut self, heard: &Heard) {
        let is_later = heard.at > self.last_announce || !self.key.is_some();
        if heard.key.is_some() && (is_later || heard.key.0 < self.key.0) {
            self.key = heard.key;
        }
    }

    fn hear_totals(&mut self, heard: &Heard, totals: HeardTotals) {
        if totals.run == self.run {
            return self.raise_totals(totals);
        }
        let went_back = totals.uploaded < self.uploaded || totals.downloaded < self.downloaded;
        let at_once = heard.event != AnnounceEvent::Started
            && heard.at.since(self.last_announce) <= TWIN_WINDOW
            && self.run != RunId::NONE;
        if went_back && at_once {
            return;
        }
        let is_same_word = heard.at == self.last_announce
            && (totals.uploaded, totals.downloaded) == (self.uploaded, self.downloaded)
            && self.run != RunId::NONE;
        // Two nodes heard a new client at once. Both take the smaller number, whichever was first.
        self.run = if is_same_word { self.run.min(totals.run) } else { totals.run };
        self.uploaded = totals.uploaded;
        self.downloaded = totals.downloaded;
    }

    /// Takes in what another node heard, earlier than the last word of this peer: whether its address is news.
    pub(crate) fn hear_late(&mut self, heard: &Heard, silence_max: Seconds) -> bool {
        if let Some(totals) = heard.totals
            && totals.run == self.run
        {
            self.raise_totals(totals);
        }
        if heard.ip.is_ipv6() == self.place.last_was_v6() {
            return false;
        }
        let before_last = self.last_announce.since(heard.at).0;
        let is_newer = self.place.other_family_s().is_none_or(|known| before_last < known);
        let is_news = is_newer && before_last < silence_max.0.min(Place::OTHER_FAMILY_S_MAX);
        if is_news {
            self.place.set_other_family_s(Some(before_last));
        }
        is_news
    }

    /// Takes in that the client had said goodbye before it came back: what was heard over the other address family until
    /// then no longer counts. True if there was something.
    pub(crate) fn forgets_other_family(&mut self, farewell: UnixTime) -> bool {
        let forgets = self.last_over(!self.last_was_v6()).is_some_and(|last| last <= farewell);
        if forgets {
            self.place.set_other_family_s(None);
        }
        forgets
    }

    /// Whether it last announced over IPv6.
    pub(crate) fn last_was_v6(&self) -> bool {
        self.place.last_was_v6()
    }

    /// Within a run counters only grow, whatever the order in which they are heard.
    fn raise_totals(&mut self, totals: HeardTotals) {
        self.uploaded = self.uploaded.max(totals.uploaded);
        self.downloaded = self.downloaded.max(totals.downloaded);
    }

    /// When the peer is gone if nothing is heard of it. A little later where another node heard it last: that one
    /// writes down that it is gone.
    pub(crate) fn deadline(&self, silence_max: Seconds) -> UnixTime {
        let deadline = self.last_announce + silence_max;
        if self.place.was_heard_elsewhere() { deadline + ELSEWHERE_GRACE } else { deadline }
    }

    fn take_totals(&mut self, announce: &Announce) {
        self.uploaded = announce.uploaded;
        self.downloaded = announce.downloaded;
    }

    /// What the counters grew by, but no more than the ceiling allows.
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

    /// Whether nothing was heard over the other address family for so long that its address cannot be trusted.
    pub(crate) fn other_family_is_stale(&self, silence_max: Seconds) -> bool {
        match self.place.other_family_s() {
            Some(seconds) => seconds >= silence_max.0.min(Place::OTHER_FAMILY_S_MAX),
            None => true,
        }
    }

    /// Notes a completion; true the first time.
    pub(crate) fn complete(&mut self) -> bool {
        let first = !self.place.has_completed();
        self.place.set_completed();
        first
    }

    /// Whether a completion has been noted.
    pub(crate) fn has_completed(&self) -> bool {
        self.place.has_completed()
    }

    /// Marks the slot as empty, for the wheel that will come by.
    pub(crate) fn vacate(&mut self) {
        self.place.set_vacant();
    }

    pub(crate) fn is_vacant(&self) -> bool {
        self.place.is_vacant()
    }

    /// Whether a client that is known by its key begins under another peer id, from zero: it was started again, also where
    /// it had moved nothing before, as far as is known here. One whose counters went on has only changed its peer id.
    fn begins_anew(&self, announce: &Announce) -> bool {
        announce.event == AnnounceEvent::Started
            && self.peer_id != announce.peer_id
            && (announce.uploaded, announce.downloaded) == (0, 0)
    }

    fn is_slower_twin(&self, announce: &Announce) -> bool {
        announce.event != AnnounceEvent::Started
            && (announce.ip.is_ipv6() != self.place.last_was_v6() || self.place.was_heard_elsewhere())
            && announce.now.since(self.last_announce) <= TWIN_WINDOW
    }

    /// When the peer last announced over IPv6 or IPv4.
    fn last_over(&self, v6: bool) -> Option<UnixTime> {
        if v6 == self.place.last_was_v6() {
            return Some(self.last_announce);
        }
        self.place.other_family_s().map(|seconds| self.last_announce - Seconds(seconds))
    }

    fn note_time(&mut self, at: UnixTime, over_v6: bool) {
        let other_family_last = self.last_over(!over_v6);
        self.last_announce = self.last_announce.max(at);
        self.place.set_other_family_s(other_family_last.map(|last| self.last_announce.since(last).0));
        self.place.set_last_was_v6(over_v6);
    }
}

/// Whether a client cleared its counters before it sent `stopped`, as WebTorrent does. Counters that are merely lower are
/// those of another run, whose beginning this tracker may have missed (it was restarted): they begin a run here, so that
/// the ledger credits what lies between.
fn has_cleared_counters(announce: &Announce) -> bool {
    announce.event == AnnounceEvent::Stopped && announce.uploaded == 0 && announce.downloaded == 0
}
