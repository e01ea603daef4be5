//! The users under one peer id on a torrent, as in the state hash. Usually one; several users may share a peer id, and
//! each is counted. Separated by `|`; of each: flags active and complete, last and first announce, active seconds,
//! silence after which it expires, user, speeds up and down, and what a timeout entry needs of the last announce.

use std::fmt::{self, Display, Write};

use domain::{Seconds, UnixTime, UserId};

use super::last_announce::LastAnnounce;

/// Maximum number of users under one peer id.
pub(super) const SHARED_MAX: usize = 8;

/// In place of an encoded [`LastAnnounce`].
pub(super) const NO_ANNOUNCE: &str = "-";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredPeer {
    pub(super) is_active: bool,
    pub(super) is_complete: bool,
    /// Last announce.
    pub(super) last: UnixTime,
    pub(super) first: UnixTime,
    pub(super) active_s: u64,
    /// The peer expires this long after its last announce.
    pub(super) reap_after: Seconds,
    pub(super) user: UserId,
    /// Bytes per second, up and down.
    pub(super) speeds: (f64, f64),
    /// Encoded [`LastAnnounce`], or [`NO_ANNOUNCE`].
    pub(super) announce: Box<str>,
}

impl Display for StoredPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredPeer { last, first, active_s, reap_after, user, speeds, announce, .. } = self;
        let (active, complete) = (u8::from(self.is_active), u8::from(self.is_complete));
        let (up, down, reap_s) = (speeds.0, speeds.1, reap_after.0);
        write!(f, "{active}{complete} {last} {first} {active_s} {reap_s} {user} {up} {down} {announce}")
    }
}

impl StoredPeer {
    /// Inactive, with its first announce.
    pub(super) fn new(user: UserId, at: UnixTime) -> StoredPeer {
        StoredPeer {
            is_active: false,
            is_complete: false,
            last: at,
            first: at,
            active_s: 0,
            reap_after: Seconds(0),
            user,
            speeds: (0.0, 0.0),
            announce: NO_ANNOUNCE.into(),
        }
    }

    /// All users under one peer id. Malformed ones are skipped.
    pub(super) fn parse_all(text: &str) -> Vec<StoredPeer> {
        text.split('|').filter_map(StoredPeer::parse).collect()
    }

    pub(super) fn to_text(all: &[StoredPeer]) -> String {
        let mut text = String::with_capacity(all.len() * 160);
        for (number, stored) in all.iter().enumerate() {
            if number > 0 {
                text.push('|');
            }
            write!(text, "{stored}").expect("text is written to memory");
        }
        text
    }

    fn parse(text: &str) -> Option<StoredPeer> {
        let mut fields = text.splitn(9, ' ');
        let flags = fields.next()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (last, first, active_s, reap_after) = (number()?, number()?, number()?, number()?);
        let user = fields.next()?.parse().ok()?;
        let speeds = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let [active, complete] = flags.as_bytes() else { return None };
        Some(StoredPeer {
            is_active: *active == b'1',
            is_complete: *complete == b'1',
            last: UnixTime(last.try_into().ok()?),
            first: UnixTime(first.try_into().ok()?),
            active_s,
            reap_after: Seconds(reap_after.try_into().ok()?),
            user,
            speeds,
            announce: fields.next().unwrap_or(NO_ANNOUNCE).into(),
        })
    }

    /// None if inactive.
    pub(super) fn last_announce(&self) -> Option<LastAnnounce> {
        LastAnnounce::parse(&self.announce)
    }

    /// When the peer expires.
    pub(super) fn deadline(&self) -> UnixTime {
        self.last + self.reap_after
    }

    /// Of several users the one shown in the public hash: the latest active one, else the latest.
    pub(super) fn shown(all: &[StoredPeer]) -> Option<&StoredPeer> {
        all.iter().max_by_key(|stored| (stored.is_active, stored.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_users_are_parsed_and_written() {
        let text =
            "10 1750000100 1750000000 100 2410 7 1.5 0 - 10.0.0.1 0 17 1800 900 - - - - -|01 5 4 3 2 8 0 0 -";
        let [first, second] = StoredPeer::parse_all(text).try_into().unwrap();
        assert!(first.is_active && !first.is_complete && first.last_announce().is_some());
        assert_eq!(first.deadline(), UnixTime(1_750_002_510));
        assert!(!second.is_active && second.is_complete && second.last_announce().is_none());
        assert_eq!((second.user.get(), second.last, second.active_s), (8, UnixTime(5), 3));
        assert_eq!(StoredPeer::to_text(&[first.clone(), second.clone()]), text);
        assert_eq!(StoredPeer::shown(&[first.clone(), second]), Some(&first));
        assert_eq!(StoredPeer::parse_all("").len(), 0);
        assert_eq!(StoredPeer::parse_all("1 2 3|x").len(), 0);
    }
}
