//! The peers of a load test, derived from numbers.
//!
//! Everything about a peer follows from its number, so runs are repeatable, two clients agree without communication,
//! and ten million peers take four bytes each. Swarm sizes are Zipf-like (exponent 0.7): a few large swarms and a long
//! tail.

use domain::{AnnounceEvent, InfoHash, Passkey, TorrentId, UserId};

use crate::announce::Announce;
use crate::catalogue::{self, Purpose, rng_for};
use crate::clients::TRANSMISSION;

/// Percentage of seeders. Real private sites have more, but leechers get larger replies, which cost more.
const SEEDERS_PERCENT: u8 = 70;
/// How steeply swarm sizes fall with rank.
const ZIPF_EXPONENT: f64 = 0.7;
/// Peers ask for as many peers as most clients do.
const NUMWANT: i32 = 50;
/// All values follow from it and a number.
const SEED: u64 = 19;

/// How many peers on how many torrents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Torrents; each has at least one peer.
    pub torrents: u32,
    pub peers: u32,
}

/// The peers of one run.
#[derive(Debug)]
pub struct Peers {
    torrent_of_peer: Vec<u32>,
    torrents: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub number: u32,
    /// Each peer has a user of its own.
    pub user: UserId,
    pub torrent: TorrentId,
    /// Its first announce.
    pub announce: Announce,
}

impl Peers {
    /// Distributes the peers over the torrents.
    pub fn new(shape: Shape) -> Self {
        Peers::repeated(shape, 1)
    }

    /// Copies of a shape side by side: more peers with equal swarm sizes, so that the cost of announces is comparable.
    pub fn repeated(shape: Shape, times: u32) -> Self {
        let sizes = swarm_sizes(shape);
        let mut torrent_of_peer = Vec::with_capacity(shape.peers as usize * times as usize);
        for (torrent, size) in (0..).zip((0..times).flat_map(|_| &sizes)) {
            torrent_of_peer.resize(torrent_of_peer.len() + *size as usize, torrent);
        }
        Peers { torrent_of_peer, torrents: sizes.len() as u32 * times }
    }

    /// How many peers there are.
    pub fn count(&self) -> u32 {
        self.torrent_of_peer.len() as u32
    }

    /// All torrents with their infohashes.
    pub fn torrents(&self) -> impl Iterator<Item = (TorrentId, InfoHash)> + use<> {
        (1..=self.torrents)
            .map(|torrent| (catalogue::torrent_id(torrent), catalogue::info_hash_of(SEED, torrent)))
    }

    /// All users with their passkeys.
    pub fn users(&self) -> impl Iterator<Item = (UserId, Passkey)> + use<> {
        (0..self.count()).map(user_of)
    }

    pub fn get(&self, number: u32) -> Peer {
        let torrent = self.torrent_of_peer[number as usize] + 1;
        let (user, passkey) = user_of(number);
        let mut random = rng_for(SEED, Purpose::Peer, number);
        let announce = Announce {
            passkey,
            info_hash: catalogue::info_hash_of(SEED, torrent),
            peer_id: TRANSMISSION.peer_id(&mut random),
            agent: TRANSMISSION.agent,
            key: Some(random.u32(1..)),
            port: random.u16(1024..),
            uploaded: 0,
            downloaded: 0,
            left: if random.u8(..100) < SEEDERS_PERCENT { 0 } else { 1 << 30 },
            event: AnnounceEvent::Started,
            numwant: NUMWANT,
        };
        Peer { number, user, torrent: catalogue::torrent_id(torrent), announce }
    }
}

/// The user with this number, from 0.
pub fn user_of(number: u32) -> (UserId, Passkey) {
    (catalogue::user_id(number + 1), catalogue::passkey_of(SEED, number + 1))
}

/// Sizes that fall with rank, are at least one, and add up to the number of peers.
fn swarm_sizes(shape: Shape) -> Vec<u32> {
    let torrents = shape.torrents.clamp(1, shape.peers.max(1));
    let weights: Vec<f64> = (1..=torrents).map(|rank| f64::from(rank).powf(-ZIPF_EXPONENT)).collect();
    let total_weight: f64 = weights.iter().sum();
    let to_share = f64::from(shape.peers - torrents.min(shape.peers));
    let mut sizes = Vec::with_capacity(torrents as usize);
    let (mut weight_so_far, mut given) = (0.0, 0);
    for weight in weights {
        weight_so_far += weight;
        // Rounding the running sum, not each share, makes the sizes add up.
        let due = (to_share * weight_so_far / total_weight).round() as u32;
        sizes.push(1 + due - given);
        given = due;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn swarm_sizes_add_up_and_fall_with_rank() {
        for (torrents, peers) in [(10_000, 100_000), (1, 7), (1_000, 100_000), (5, 5), (100_000, 1_000_000)] {
            let sizes = swarm_sizes(Shape { torrents, peers });
            assert_eq!(sizes.len(), torrents as usize);
            assert_eq!(sizes.iter().sum::<u32>(), peers);
            assert!(sizes.iter().all(|size| *size >= 1));
            assert!(sizes[0] >= sizes[sizes.len() - 1]);
        }
    }

    #[test]
    fn repeating_a_shape_gives_more_swarms_of_the_same_sizes() {
        let once = Peers::new(Shape { torrents: 10, peers: 100 });
        let thrice = Peers::repeated(Shape { torrents: 10, peers: 100 }, 3);
        assert_eq!((thrice.count(), thrice.torrents), (300, 30));
        for number in 0..300 {
            let (copy, original) = (thrice.get(number), once.get(number % 100));
            assert_eq!(copy.torrent.get(), original.torrent.get() + u64::from(number / 100 * 10));
        }
    }

    #[test]
    fn every_peer_is_another_and_the_same_in_every_run() {
        let shape = Shape { torrents: 1_000, peers: 10_000 };
        let (peers, again) = (Peers::new(shape), Peers::new(shape));
        let (mut peer_ids, mut passkeys) = (HashSet::new(), HashSet::new());
        let torrents: HashSet<_> = peers.torrents().collect();
        for number in 0..peers.count() {
            let peer = peers.get(number);
            assert_eq!(peer, again.get(number));
            assert!(peer_ids.insert(peer.announce.peer_id) && passkeys.insert(peer.announce.passkey));
            assert!(torrents.contains(&(peer.torrent, peer.announce.info_hash)));
        }
        let seeders = (0..peers.count()).filter(|number| peers.get(*number).announce.left == 0).count();
        assert!((6_700..7_300).contains(&seeders), "{seeders} seeders of 10,000");
    }
}
