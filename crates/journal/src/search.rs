//! Looking for the entries of one user, or for risks of one kind.
//!
//! Nothing is indexed: entries come by the thousand each second and are looked for once in a while. So a search reads
//! backwards from where it is told to, for as long as it may, and says where to go on.

use domain::{InfoHash, Passkey, RiskKind, TorrentId, UserId};

use crate::fields::Fields;
use crate::id::EntryId;
use crate::port::Stored;
use crate::risk;

/// Entries that are asked for first: enough that the question's own cost does not matter.
pub(crate) const SCAN_PAGE_MIN: usize = 50;
/// Entries that are asked for at a time: few enough that the store is not held up.
pub(crate) const SCAN_PAGE_MAX: usize = 1000;

/// Which entries are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only of this user.
    pub user: Option<UserId>,
    /// Their passkey, for entries that name nobody else: other producers know no numbers.
    pub passkey: Option<Passkey>,
    /// Only on this torrent.
    pub torrent: Option<TorrentFilter>,
    /// Only risks of this kind.
    pub kind: Option<RiskKind>,
}

/// A torrent, by whatever entries call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorrentFilter {
    /// Its number.
    pub id: TorrentId,
    /// Its names, for entries without a number.
    pub info_hashes: Vec<InfoHash>,
}

/// How much is found and looked at, at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBounds {
    /// Entries to be found.
    pub found_max: usize,
    /// Entries to be looked at.
    pub scanned_max: usize,
}

/// What a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// The entries, newest first.
    pub entries: Vec<Stored>,
    /// How many entries were looked at.
    pub scanned: usize,
    /// Before which entry to go on; none if the oldest there is was looked at.
    pub next: Option<EntryId>,
}

impl EntryFilter {
    /// Whether an entry is one of them.
    pub fn matches(&self, fields: &Fields) -> bool {
        self.user.is_none_or(|user| self.matches_user(user, fields))
            && self.torrent.as_ref().is_none_or(|torrent| torrent.matches(fields))
            && self.kind.is_none_or(|kind| risk::kind_of(fields) == kind.name().as_bytes())
    }

    /// A number says who it was; passkeys change hands.
    fn matches_user(&self, user: UserId, fields: &Fields) -> bool {
        match fields.get("user") {
            Some(written) => is_number(written, user.get()),
            None => self.passkey.is_some_and(|passkey| {
                let written = fields.get("passkey").unwrap_or_default();
                Passkey::from_ascii(written).is_ok_and(|written| written == passkey)
            }),
        }
    }
}

impl TorrentFilter {
    fn matches(&self, fields: &Fields) -> bool {
        match fields.get("torrent") {
            Some(torrent) => is_number(torrent, self.id.get()),
            None => {
                let written = std::str::from_utf8(fields.get("infohash").unwrap_or_default());
                let written = written.ok().and_then(|text| text.parse::<InfoHash>().ok());
                written.is_some_and(|written| self.info_hashes.contains(&written))
            }
        }
    }
}

fn is_number(text: &[u8], number: u64) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse() == Ok(number))
}

impl SearchResult {
    /// Nothing yet, of what comes before this entry.
    pub(crate) fn starting_before(before: EntryId) -> SearchResult {
        SearchResult { entries: Vec::new(), scanned: 0, next: Some(before) }
    }

    /// Whether to look any further.
    pub(crate) fn has_room(&self, bounds: SearchBounds) -> bool {
        self.has_room_for_more(bounds) && self.scanned < bounds.scanned_max
    }

    /// Whether another entry may be found.
    pub(crate) fn has_room_for_more(&self, bounds: SearchBounds) -> bool {
        self.entries.len() < bounds.found_max
    }

    /// Looks at entries, newest first, until enough are found.
    pub(crate) fn scan(&mut self, page: Vec<Stored>, filter: &EntryFilter, bounds: SearchBounds) {
        for stored in page {
            if !self.has_room_for_more(bounds) {
                return;
            }
            self.scanned += 1;
            self.next = Some(stored.id);
            if filter.matches(&stored.fields) {
                self.entries.push(stored);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().copied().collect()
    }

    #[test]
    fn an_entry_is_somebodys_by_their_number_or_else_by_their_passkey() {
        let passkey: Passkey = "0123456789abcdef".parse().unwrap();
        let filter = EntryFilter { user: UserId::new(7), passkey: Some(passkey), ..EntryFilter::default() };
        assert!(filter.matches(&fields(&[("user", "7")])));
        assert!(filter.matches(&fields(&[("passkey", "0123456789ABCDEF")])));
        assert!(
            !filter.matches(&fields(&[("passkey", "0123456789abcdef"), ("user", "8")])),
            "it was theirs then"
        );
        assert!(!filter.matches(&fields(&[("passkey", ""), ("user", "77")])));
        assert!(!filter.matches(&fields(&[("passkey", "none"), ("user", "\u{ff}")])));
        assert!(!filter.matches(&fields(&[])));
        assert!(
            !EntryFilter { passkey: None, ..filter }.matches(&fields(&[("passkey", "0123456789abcdef")]))
        );
    }

    #[test]
    fn a_torrent_is_known_by_its_number_or_else_by_its_names() {
        let torrent =
            TorrentFilter { id: TorrentId::new(3).unwrap(), info_hashes: vec![InfoHash([0xab; 20])] };
        let filter = EntryFilter { user: UserId::new(7), torrent: Some(torrent), ..EntryFilter::default() };
        let hash = "AB".repeat(20);
        assert!(filter.matches(&fields(&[("user", "7"), ("torrent", "3")])));
        assert!(filter.matches(&fields(&[("user", "7"), ("infohash", &hash)])));
        assert!(!filter.matches(&fields(&[("user", "7"), ("infohash", &hash), ("torrent", "4")])));
        assert!(!filter.matches(&fields(&[("user", "7"), ("infohash", "ab")])));
        assert!(!filter.matches(&fields(&[("user", "8"), ("torrent", "3")])));
    }

    #[test]
    fn a_risk_is_found_by_its_kind_and_one_without_is_about_a_rate() {
        let of_kind = |kind| EntryFilter { kind: Some(kind), ..EntryFilter::default() };
        let shared = fields(&[("kind", "shared_address"), ("user", "7")]);
        assert!(of_kind(RiskKind::SharedAddress).matches(&shared));
        assert!(!of_kind(RiskKind::ClientRate).matches(&shared));
        assert!(
            of_kind(RiskKind::ClientRate).matches(&fields(&[("user", "7")])),
            "as older versions wrote it"
        );
        let of_user = EntryFilter { user: UserId::new(8), ..of_kind(RiskKind::SharedAddress) };
        assert!(!of_user.matches(&shared));
    }
}
