//! The users under one peer id on a torrent, as stored by `redis_mirror_torrent.lua`. Usually one; several users may share a
//! peer id, and each is counted.

use domain::{Seconds, UnixTime, UserId};

use super::last_announce::LastAnnounce;

#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Bytes per second, up and down, as stored.
    pub(super) speeds: (String, String),
    /// None if inactive.
    pub(super) last_announce: Option<LastAnnounce>,
}

impl StoredPeer {
    /// All users under one peer id. Malformed ones are skipped.
    pub(super) fn parse_all(text: &str) -> Vec<StoredPeer> {
        text.split('|').filter_map(StoredPeer::parse).collect()
    }

    fn parse(text: &str) -> Option<StoredPeer> {
        let mut fields = text.splitn(9, ' ');
        let flags = fields.next()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (last, first, active_s, reap_after) = (number()?, number()?, number()?, number()?);
        let user = fields.next()?.parse().ok()?;
        let speeds = (fields.next()?.to_owned(), fields.next()?.to_owned());
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
            last_announce: fields.next().and_then(LastAnnounce::parse),
        })
    }

    /// When the peer expires.
    pub(super) fn deadline(&self) -> UnixTime {
        self.last + self.reap_after
    }

    /// The user shown in the public hash: the latest active one, else the latest.
    pub(super) fn shown(all: &[StoredPeer]) -> Option<&StoredPeer> {
        all.iter().max_by_key(|stored| (stored.is_active, stored.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_users_are_parsed() {
        let text =
            "10 1750000100 1750000000 100 2410 7 1.5 0 - 10.0.0.1 0 17 1800 900 - - - - -|01 5 4 3 2 8 0 0 -";
        let [first, second] = StoredPeer::parse_all(text).try_into().unwrap();
        assert!(first.is_active && !first.is_complete && first.last_announce.is_some());
        assert_eq!(first.deadline(), UnixTime(1_750_002_510));
        assert!(!second.is_active && second.is_complete && second.last_announce.is_none());
        assert_eq!((second.user.get(), second.last, second.active_s), (8, UnixTime(5), 3));
        assert_eq!(StoredPeer::shown(&[first.clone(), second]), Some(&first));
        assert_eq!(StoredPeer::parse_all("").len(), 0);
        assert_eq!(StoredPeer::parse_all("1 2 3|x").len(), 0);
    }
}
