//! What the state hash has of a user on a torrent.

use super::torrent::Memberships;

/// Figures of a user on a torrent, as in the state hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::redis_mirror) struct UserFigures {
    pub(in crate::redis_mirror) peers: u64,
    pub(in crate::redis_mirror) active_s: u64,
    pub(in crate::redis_mirror) has_leeched: bool,
    pub(in crate::redis_mirror) is_complete: bool,
    pub(in crate::redis_mirror) has_snatched: bool,
    pub(in crate::redis_mirror) was_removed: bool,
    /// Unix time up to which `active_s` is counted.
    pub(in crate::redis_mirror) counted_until: u64,
}

impl UserFigures {
    pub(in crate::redis_mirror) fn parse(text: &str) -> Option<UserFigures> {
        let fields: Vec<&str> = text.split(' ').collect();
        let (peers, active_s, flags, counted_until) = match fields.as_slice() {
            [peers, active_s, flags] => (peers, active_s, flags, &"0"),
            [peers, active_s, flags, counted_until] => (peers, active_s, flags, counted_until),
            _ => return None,
        };
        let [leeched, complete, snatched, removed] = flags.as_bytes() else { return None };
        Some(UserFigures {
            peers: peers.parse().ok()?,
            active_s: active_s.parse().ok()?,
            has_leeched: *leeched == b'1',
            is_complete: *complete == b'1',
            has_snatched: *snatched == b'1',
            was_removed: *removed == b'1',
            counted_until: counted_until.parse().ok()?,
        })
    }

    pub(in crate::redis_mirror) fn to_text(self) -> String {
        let flags = [self.has_leeched, self.is_complete, self.has_snatched, self.was_removed];
        let flags: String = flags.map(|flag| if flag { '1' } else { '0' }).iter().collect();
        format!("{} {} {flags} {}", self.peers, self.active_s, self.counted_until)
    }

    /// Whether the torrent is in the user's sets.
    pub(in crate::redis_mirror) fn memberships(&self, hit_and_run_active_s: u64) -> Memberships {
        let is_gone = self.peers == 0;
        let is_short = self.active_s < hit_and_run_active_s;
        let is_hit_and_run = is_gone && self.has_leeched && !self.was_removed && is_short;
        [!is_gone, self.is_complete, !self.is_complete, is_hit_and_run]
    }
}
