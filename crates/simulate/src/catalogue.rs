//! Users, torrents and friendships of a simulation.
//!
//! All of it follows from the seed and a number, secrets included: only for servers on loopback.

use domain::{InfoHash, Passkey, TorrentId, UserId};
use fastrand::Rng;

use crate::names::{Title, title};
use crate::plan::Plan;

/// Friendships that each member starts; on average a member has twice as many.
const FRIENDS_MADE: u32 = 4;
/// Separates the random sequences of different purposes.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Passkey = 1,
    Torrent,
    Peer,
    User,
    Friends,
}

/// The random generator of one purpose and number.
pub(crate) fn rng_for(seed: u64, purpose: Purpose, number: u32) -> Rng {
    let mixed = seed ^ (u64::from(number) << 8 | purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Neighbouring seeds give similar first values: seed twice.
    Rng::with_seed(Rng::with_seed(mixed).u64(..))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedTorrent {
    pub info_hash: InfoHash,
    pub title: Title,
}

pub fn passkey_of(seed: u64, user: u32) -> Passkey {
    let mut bytes = [0; 16];
    rng_for(seed, Purpose::Passkey, user).fill(&mut bytes);
    Passkey::from_random_bytes(bytes)
}

/// Numbered from 1.
pub fn torrent_of(seed: u64, torrent: u32) -> SimulatedTorrent {
    let mut random = rng_for(seed, Purpose::Torrent, torrent);
    let info_hash = draw_info_hash(&mut random);
    SimulatedTorrent { info_hash, title: title(torrent.saturating_sub(1), &mut random) }
}

/// That of [`torrent_of`].
pub fn info_hash_of(seed: u64, torrent: u32) -> InfoHash {
    draw_info_hash(&mut rng_for(seed, Purpose::Torrent, torrent))
}

fn draw_info_hash(random: &mut Rng) -> InfoHash {
    let mut bytes = [0; 20];
    random.fill(&mut bytes);
    InfoHash(bytes)
}

pub fn user_id(user: u32) -> UserId {
    UserId::new(u64::from(user).max(1)).expect("it is positive")
}

pub fn torrent_id(torrent: u32) -> TorrentId {
    TorrentId::new(u64::from(torrent).max(1)).expect("it is positive")
}

/// The torrent that awaits approval: the newest one, if there are at least five.
pub fn pending_torrent(plan: &Plan) -> Option<u32> {
    (plan.torrents >= 5).then_some(plan.torrents)
}

/// Each pair once.
pub fn friendships(plan: &Plan) -> Vec<(UserId, UserId)> {
    let mut pairs = std::collections::BTreeSet::new();
    for user in 1..=plan.members {
        let mut random = rng_for(plan.seed, Purpose::Friends, user);
        for _ in 0..FRIENDS_MADE {
            let other = random.u32(1..=plan.members);
            if other != user {
                pairs.insert((user.min(other), user.max(other)));
            }
        }
    }
    pairs.into_iter().map(|(one, other)| (user_id(one), user_id(other))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_have_secrets_and_hashes_of_their_own() {
        let passkeys: HashSet<_> = (1..=5_000).map(|user| passkey_of(1, user)).collect();
        let hashes: HashSet<_> = (1..=5_000).map(|torrent| torrent_of(1, torrent).info_hash).collect();
        assert_eq!((passkeys.len(), hashes.len()), (5_000, 5_000));
        assert_ne!(passkey_of(1, 1), passkey_of(2, 1));
        assert_eq!(torrent_of(1, 9), torrent_of(1, 9));
        assert_eq!(torrent_of(1, 9).info_hash, info_hash_of(1, 9));
    }

    #[test]
    fn most_members_have_a_few_friends_each_pair_once() {
        let plan = Plan { torrents: 1, peers: 1, members: 60, pace: 1.0, seed: 4, misbehaviour: false };
        let pairs = friendships(&plan);
        let distinct: HashSet<_> = pairs.iter().collect();
        assert_eq!(distinct.len(), pairs.len());
        assert!((150..=240).contains(&pairs.len()), "{}", pairs.len());
        assert!(pairs.iter().all(|(one, other)| one < other));
    }
}
