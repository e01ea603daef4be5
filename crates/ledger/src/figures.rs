//! The amounts stored for a user, a torrent, and a user on a torrent.
//!
//! Amounts are exact far beyond 64 bits (L2). The bonus of multipliers is stored apart from the raw amounts, in
//! hundredths of a byte, so that nothing is rounded.

use domain::{PeerId, TorrentId, UnixTime, UserId};
use journal::EntryId;

use crate::spans::TimeSpent;

/// Sums over entries, for users, torrents and accounts alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Raw bytes uploaded.
    pub uploaded: u128,
    /// Raw bytes downloaded.
    pub downloaded: u128,
    /// Bonus of multipliers for bytes uploaded, in hundredths.
    pub bonus_uploaded_x100: i128,
    /// Bonus of multipliers for bytes downloaded, in hundredths; usually negative.
    pub bonus_downloaded_x100: i128,
    /// Wall-clock time for each user on each torrent, however many clients seed at the same time.
    pub seeding_s: u64,
    /// Likewise.
    pub leeching_s: u64,
    /// First completions of a torrent by a user.
    pub completed_count: u64,
    /// Further completions of a torrent by the same user.
    pub repeated_count: u64,
    pub first_seen: Option<UnixTime>,
    pub last_seen: Option<UnixTime>,
}

impl Figures {
    /// Raw bytes plus bonus.
    pub fn credited_uploaded(&self) -> u128 {
        with_bonus(self.uploaded, self.bonus_uploaded_x100)
    }

    /// Raw bytes plus bonus.
    pub fn credited_downloaded(&self) -> u128 {
        with_bonus(self.downloaded, self.bonus_downloaded_x100)
    }

    /// Credited upload divided by credited download; none if nothing was downloaded.
    pub fn ratio(&self) -> Option<f64> {
        let (uploaded, downloaded) = (self.credited_uploaded(), self.credited_downloaded());
        (downloaded > 0).then(|| uploaded as f64 / downloaded as f64)
    }

    /// Adds the gain of one entry or one client.
    pub(crate) fn add(&mut self, gain: &Gain) {
        self.uploaded = self.uploaded.saturating_add_signed(gain.uploaded);
        self.downloaded = self.downloaded.saturating_add_signed(gain.downloaded);
        self.bonus_uploaded_x100 = self.bonus_uploaded_x100.saturating_add(gain.bonus_uploaded_x100);
        self.bonus_downloaded_x100 = self.bonus_downloaded_x100.saturating_add(gain.bonus_downloaded_x100);
        self.seeding_s = self.seeding_s.saturating_add_signed(gain.seeding_s);
        self.leeching_s = self.leeching_s.saturating_add_signed(gain.leeching_s);
        self.completed_count = self.completed_count.saturating_add_signed(gain.completed_count);
        self.repeated_count = self.repeated_count.saturating_add_signed(gain.repeated_count);
        if let Some(at) = gain.seen_at {
            self.first_seen = Some(self.first_seen.map_or(at, |first| first.min(at)));
            self.last_seen = Some(self.last_seen.map_or(at, |last| last.max(at)));
        }
    }
}

/// Never negative; fractions of a byte do not count.
fn with_bonus(raw: u128, bonus_x100: i128) -> u128 {
    raw.saturating_add_signed(bonus_x100.div_euclid(100))
}

/// What an entry, or a client's runs, add to the figures. All values may be negative: a late run can show that counters
/// had restarted where they seemed to continue, or that several nodes reported the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gain {
    pub(crate) uploaded: i128,
    pub(crate) downloaded: i128,
    pub(crate) bonus_uploaded_x100: i128,
    pub(crate) bonus_downloaded_x100: i128,
    pub(crate) seeding_s: i64,
    pub(crate) leeching_s: i64,
    pub(crate) completed_count: i64,
    pub(crate) repeated_count: i64,
    pub(crate) seen_at: Option<UnixTime>,
}

/// Order of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// When it was written, in steady time.
    pub at: UnixTime,
    /// The id in the traffic lane.
    pub origin: EntryId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    pub user: UserId,
    pub torrent: TorrentId,
}

/// The data of a user on a torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub figures: Figures,
    /// From the latest entry; none if the client did not send it.
    pub left: Option<u64>,
    /// The user's clients that seed it.
    pub seeding_clients: u64,
    /// The user's clients that leech it.
    pub leeching_clients: u64,
    /// Time of the first completion (L5).
    pub completed_at: Option<UnixTime>,
    pub latest: Stamp,
    /// The client of the latest entry.
    pub peer_id: Option<PeerId>,
    /// When its clients seeded and leeched.
    pub time: TimeSpent,
    /// When the last of its clients expires without a further announce (A4), in steady time; none in accounts of older
    /// versions.
    pub present_until: Option<UnixTime>,
    /// Whether any client ever announced with something left.
    pub has_leeched: bool,
    /// Whether the site removed its last client.
    pub was_removed: bool,
    /// Clients last seen until then may have been removed because there were too many.
    pub clients_removed_until: UnixTime,
}

impl Account {
    /// Whether any client of this user seeds it (L3).
    pub fn is_seeding(&self) -> bool {
        self.seeding_clients > 0
    }

    /// The account at a given time: expired clients do not count (A4), even if no entry reports their expiry.
    pub(crate) fn at(mut self, now: UnixTime) -> Account {
        if self.present_until.is_some_and(|until| until <= now) {
            (self.seeding_clients, self.leeching_clients) = (0, 0);
        }
        self
    }

    pub fn is_leeching(&self) -> bool {
        self.leeching_clients > 0
    }

    /// What further completions add to the figures: the first one to `completed_count`, the others to `repeated_count`.
    pub(crate) fn count_completions(&self, completions: i64) -> (i64, i64) {
        let Figures { completed_count, repeated_count, .. } = self.figures;
        let before = completed_count.saturating_add(repeated_count);
        let after = before.saturating_add_signed(completions);
        let (completed, repeated) = (after.min(1), after.saturating_sub(1));
        // Small numbers, far from the limit.
        let less = |new: u64, old: u64| new.checked_signed_diff(old).unwrap_or_default();
        (less(completed, completed_count), less(repeated, repeated_count))
    }

    /// Whether it was ever completed (L5).
    pub fn is_completed(&self) -> bool {
        self.completed_at.is_some()
    }

    /// The client program of the latest entry, such as `-TR3000-`; empty if the peer id does not contain it.
    pub fn client(&self) -> String {
        self.peer_id.as_ref().map_or_else(String::new, client_of)
    }
}

/// The part of a peer id that identifies the program: `-TR3000-` for most, the first six characters of others.
pub fn client_of(peer_id: &PeerId) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'.';
    let length = if peer_id.0[0] == b'-' && peer_id.0[7] == b'-' { 8 } else { 6 };
    peer_id.0[..length].iter().take_while(|byte| is_plain(byte)).map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_credited_amounts_are_never_negative() {
        let figures = Figures {
            uploaded: 3,
            downloaded: 10,
            bonus_uploaded_x100: 150,
            bonus_downloaded_x100: -1500,
            ..Figures::default()
        };
        assert_eq!((figures.credited_uploaded(), figures.credited_downloaded()), (4, 0));
    }

    #[test]
    fn the_program_is_read_from_the_peer_id() {
        assert_eq!(client_of(&PeerId(*b"-TR3000-abcdefghijkl")), "-TR3000-");
        assert_eq!(client_of(&PeerId(*b"M7-9-2--abcdefghijkl")), "M7-9-2");
        assert_eq!(client_of(&PeerId([0; 20])), "");
    }
}
