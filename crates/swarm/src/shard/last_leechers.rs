//! When a swarm last had a leecher of another user.
//!
//! Upload needs a downloader: a seeder that claims upload while no other user leeched is suspicious. Each swarm stores
//! when its last leecher left. Which user it belonged to matters only for users with several clients on the torrent,
//! which are rare, so it is stored separately.

use domain::{UnixTime, UserId};

/// Users with several clients on a torrent stored per shard. Beyond that the oldest is evicted: then a leecher of the
/// same user counts as another user's.
const USERS_MAX: usize = 64;

/// A user with several clients on a torrent, of which one ended leeching.
#[derive(Clone, Copy, Debug)]
struct OwnLeecher {
    swarm: u32,
    user: UserId,
    ended: UnixTime,
    /// When the last leecher of another user had ended by then.
    others_ended: UnixTime,
}

/// The users of a shard who ended leeching with one client while they had others.
#[derive(Debug, Default)]
pub(crate) struct OwnLeechers {
    ended: Vec<OwnLeecher>,
    next: usize,
}

impl OwnLeechers {
    /// Records such an end; `last_ended` is when the swarm's last leecher had ended before.
    pub(crate) fn note(&mut self, swarm: u32, user: UserId, now: UnixTime, last_ended: UnixTime) {
        let others_ended = self.others_ended(swarm, user, last_ended);
        let noted = OwnLeecher { swarm, user, ended: now, others_ended };
        if let Some(known) = self.ended.iter_mut().find(|known| (known.swarm, known.user) == (swarm, user)) {
            *known = noted;
        } else if self.ended.len() < USERS_MAX {
            self.ended.push(noted);
        } else {
            self.ended[self.next] = noted;
            self.next = (self.next + 1) % USERS_MAX;
        }
    }

    /// When the last leecher of another user ended, if the last one of all ended at `last_ended`.
    pub(crate) fn others_ended(&self, swarm: u32, user: UserId, last_ended: UnixTime) -> UnixTime {
        let is_last = |own: &&OwnLeecher| (own.swarm, own.user, own.ended) == (swarm, user, last_ended);
        self.ended.iter().find(is_last).map_or(last_ended, |own| own.others_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leechers_of_the_same_user_are_not_counted_as_others() {
        let [own, other] = [1, 2].map(|number| UserId::new(number).unwrap());
        let mut leechers = OwnLeechers::default();
        let never = UnixTime::default();
        leechers.note(7, own, UnixTime(100), never);
        leechers.note(7, own, UnixTime(200), UnixTime(100));
        assert_eq!(leechers.others_ended(7, own, UnixTime(200)), never);
        assert_eq!(leechers.others_ended(7, other, UnixTime(200)), UnixTime(200));
        assert_eq!(leechers.others_ended(8, own, UnixTime(200)), UnixTime(200), "another torrent");
        assert_eq!(leechers.others_ended(7, own, UnixTime(250)), UnixTime(250), "another user ended since");
        leechers.note(7, own, UnixTime(300), UnixTime(250));
        assert_eq!(leechers.others_ended(7, own, UnixTime(300)), UnixTime(250));
    }

    #[test]
    fn the_number_of_users_is_bounded() {
        let mut leechers = OwnLeechers::default();
        for user in 1..=1000 {
            leechers.note(7, UserId::new(user).unwrap(), UnixTime(100), UnixTime(50));
        }
        assert_eq!(leechers.ended.len(), USERS_MAX);
    }
}
