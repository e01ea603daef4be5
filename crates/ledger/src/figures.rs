//! The figures: what is kept of a user, of a torrent, and of a user on a torrent.
//!
//! Amounts are exact far beyond 64 bits (L2). What multipliers add or take stands apart from the raw figures, in
//! hundredths of a byte, so that nothing is ever rounded.

use domain::{PeerId, TorrentId, UnixTime, UserId};
use journal::EntryId;

use crate::spans::TimeSpent;

/// Sums over entries. The same are kept of users, torrents and accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes uploaded, as they are.
    pub uploaded: u128,
    /// Bytes downloaded, as they are.
    pub downloaded: u128,
    /// What multipliers add to the bytes uploaded, in hundredths.
    pub bonus_uploaded_x100: i128,
    /// What multipliers add to the bytes downloaded, in hundredths; below zero where they take.
    pub bonus_downloaded_x100: i128,
    /// Time spent seeding: wall clock for each user on each torrent, however many clients seed at the same time.
    pub seeding_s: u64,
    /// Time spent leeching, likewise.
    pub leeching_s: u64,
    /// How many times a user completed a torrent for the first time.
    pub completed_count: u64,
    /// How many times a user completed a torrent again.
    pub repeated_count: u64,
    /// When first heard of; none before.
    pub first_seen: Option<UnixTime>,
    /// When last heard of.
    pub last_seen: Option<UnixTime>,
}

impl Figures {
    /// Bytes uploaded, with what multipliers add.
    pub fn credited_uploaded(&self) -> u128 {
        with_bonus(self.uploaded, self.bonus_uploaded_x100)
    }

    /// Bytes downloaded, with what multipliers add or take.
    pub fn credited_downloaded(&self) -> u128 {
        with_bonus(self.downloaded, self.bonus_downloaded_x100)
    }

    /// What is credited as uploaded by what is credited as downloaded; none where nothing was downloaded.
    pub fn ratio(&self) -> Option<f64> {
        let (uploaded, downloaded) = (self.credited_uploaded(), self.credited_downloaded());
        (downloaded > 0).then(|| uploaded as f64 / downloaded as f64)
    }

    /// Adds what one entry or one client contribution.
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

/// Never below zero; a part of a byte does not count.
fn with_bonus(raw: u128, bonus_x100: i128) -> u128 {
    raw.saturating_add_signed(bonus_x100.div_euclid(100))
}

/// What an entry, or a client's runs, add to the figures. All may go down: a run that turns up late can show that
/// counters had begun anew where they seemed to go on, or that several nodes reported of the same time.
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

/// Which of two entries is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// When it was written, by a clock that is never set.
    pub at: UnixTime,
    /// Its place in the traffic lane.
    pub origin: EntryId,
}

/// A user on a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    /// The user.
    pub user: UserId,
    /// The torrent.
    pub torrent: TorrentId,
}

/// What is kept of a user on a torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The sums.
    pub figures: Figures,
    /// Bytes still wanted, by the latest entry; none if the client did not say.
    pub left: Option<u64>,
    /// How many of the user's clients seed it.
    pub seeding_clients: u64,
    /// How many of the user's clients leech it.
    pub leeching_clients: u64,
    /// When it was first completed (L5); it stays so.
    pub completed_at: Option<UnixTime>,
    /// The latest entry.
    pub latest: Stamp,
    /// The client that wrote the latest entry.
    pub peer_id: Option<PeerId>,
    /// When its clients seeded and leeched.
    pub time: TimeSpent,
    /// When the last of its clients is gone unless it is heard of (A4), by a clock that is never set; none in accounts
    /// from before this was kept.
    pub present_until: Option<UnixTime>,
    /// Whether any client ever announced before it had everything.
    pub has_leeched: bool,
    /// Whether the site has turned its last client out.
    pub was_removed: bool,
}

impl Account {
    /// Whether any client of this user seeds it (L3).
    pub fn is_seeding(&self) -> bool {
        self.seeding_clients > 0
    }

    /// The account as it is at a moment: clients whose silence is too long by then are gone (A4), also where no entry
    /// says so.
    pub(crate) fn at(mut self, now: UnixTime) -> Account {
        if self.present_until.is_some_and(|until| until <= now) {
            (self.seeding_clients, self.leeching_clients) = (0, 0);
        }
        self
    }

    /// Whether any client of this user leeches it.
    pub fn is_leeching(&self) -> bool {
        self.leeching_clients > 0
    }

    /// What further completions add to the figures: a user completes a torrent once, and again any number of times.
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

    /// The program that wrote the latest entry, such as `-TR3000-`; empty where the peer id does not tell.
    pub fn client(&self) -> String {
        self.peer_id.as_ref().map_or_else(String::new, client_of)
    }
}

/// The part of a peer id that names the program: `-TR3000-` of most, the first six characters of others.
pub fn client_of(peer_id: &PeerId) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'.';
    let length = if peer_id.0[0] == b'-' && peer_id.0[7] == b'-' { 8 } else { 6 };
    peer_id.0[..length].iter().take_while(|byte| is_plain(byte)).map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_a_bonus_never_makes_less_than_nothing() {
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
