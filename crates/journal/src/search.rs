//! Search for the entries of one user, or for risk events of one kind.
//!
//! There is no index: thousands of entries are appended per second, searches are rare. A search scans backwards from a
//! given entry, up to a bound, and returns where to continue.

use domain::{InfoHash, Passkey, RiskKind, TorrentId, UserId};

use crate::fields::Fields;
use crate::id::EntryId;
use crate::port::Stored;
use crate::risk;

/// First page: large enough that the request's own cost does not matter.
pub(crate) const SCAN_PAGE_MIN: usize = 50;
/// Largest page: small enough not to block the store.
pub(crate) const SCAN_PAGE_MAX: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    pub user: Option<UserId>,
    /// The user's passkey, for entries without a user id, as other producers write them.
    pub passkey: Option<Passkey>,
    pub torrent: Option<TorrentFilter>,
    /// Only risk events of this kind.
    pub kind: Option<RiskKind>,
}

/// A torrent, by id or by infohash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorrentFilter {
    pub id: TorrentId,
    /// For entries without a torrent id.
    pub info_hashes: Vec<InfoHash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBounds {
    /// Entries to return at most.
    pub found_max: usize,
    /// Entries to scan at most.
    pub scanned_max: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Newest first.
    pub entries: Vec<Stored>,
    pub scanned: usize,
    /// Entry before which to continue; none if the oldest entry was scanned.
    pub next: Option<EntryId>,
}

impl EntryFilter {
    pub fn matches(&self, fields: &Fields) -> bool {
        self.user.is_none_or(|user| self.matches_user(user, fields))
            && self.torrent.as_ref().is_none_or(|torrent| torrent.matches(fields))
            && self.kind.is_none_or(|kind| risk::kind_of(fields) == kind.name().as_bytes())
    }

    /// The user id takes precedence: a passkey may have belonged to another user before.
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
    pub(crate) fn starting_before(before: EntryId) -> SearchResult {
        SearchResult { entries: Vec::new(), scanned: 0, next: Some(before) }
    }

    /// Whether to scan further.
    pub(crate) fn has_room(&self, bounds: SearchBounds) -> bool {
        self.has_room_for_more(bounds) && self.scanned < bounds.scanned_max
    }

    /// Whether another match may be added.
    pub(crate) fn has_room_for_more(&self, bounds: SearchBounds) -> bool {
        self.entries.len() < bounds.found_max
    }

    /// Scans entries, newest first, until enough match.
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
    fn a_user_is_matched_by_id_or_else_by_passkey() {
        let passkey: Passkey = "0123456789abcdef".parse().unwrap();
        let filter = EntryFilter { user: UserId::new(7), passkey: Some(passkey), ..EntryFilter::default() };
        assert!(filter.matches(&fields(&[("user", "7")])));
        assert!(filter.matches(&fields(&[("passkey", "0123456789ABCDEF")])));
        assert!(
            !filter.matches(&fields(&[("passkey", "0123456789abcdef"), ("user", "8")])),
            "the passkey belonged to user 8 then"
        );
        assert!(!filter.matches(&fields(&[("passkey", ""), ("user", "77")])));
        assert!(!filter.matches(&fields(&[("passkey", "none"), ("user", "\u{ff}")])));
        assert!(!filter.matches(&fields(&[])));
        assert!(
            !EntryFilter { passkey: None, ..filter }.matches(&fields(&[("passkey", "0123456789abcdef")]))
        );
    }

    #[test]
    fn a_torrent_is_matched_by_id_or_else_by_infohash() {
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
    fn a_risk_event_is_matched_by_kind_and_defaults_to_client_rate() {
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
