//! Peers, users and torrents, derived from numbers.
//!
//! Everything about a peer follows from its number, so runs are repeatable, two clients agree without communication,
//! and ten million peers take four bytes each. Swarm sizes are Zipf-like (exponent 0.7): a few large swarms and a long
//! tail.

use domain::{ClientKey, InfoHash, Passkey, PeerId, TorrentId, UserId};

/// Percentage of seeders. Real private sites have more, but leechers get larger replies, which cost more.
pub const SEEDERS_PERCENT: u64 = 70;

/// How steeply swarm sizes fall with rank.
const ZIPF_EXPONENT: f64 = 0.7;

/// How many peers on how many torrents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Torrents; each has at least one peer.
    pub torrents: u32,
    pub peers: u32,
}

/// The peers of one run.
#[derive(Debug)]
pub struct Population {
    torrent_of_peer: Vec<u32>,
    torrents: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub number: u32,
    /// The number of its torrent, from 0.
    pub torrent: u32,
    pub user: UserId,
    pub passkey: Passkey,
    pub info_hash: InfoHash,
    pub torrent_id: TorrentId,
    pub peer_id: PeerId,
    pub key: ClientKey,
    pub port: u16,
    /// Zero for a seeder.
    pub left: u64,
}

impl Population {
    /// Distributes the peers over the torrents.
    pub fn new(shape: Shape) -> Self {
        Population::repeated(shape, 1)
    }

    /// Copies of a shape side by side: more peers with equal swarm sizes, so that the cost of announces is comparable.
    pub fn repeated(shape: Shape, times: u32) -> Self {
        let sizes = swarm_sizes(shape);
        let mut torrent_of_peer = Vec::with_capacity(shape.peers as usize * times as usize);
        let mut torrent = 0;
        for _ in 0..times {
            for size in &sizes {
                torrent_of_peer.resize(torrent_of_peer.len() + *size as usize, torrent);
                torrent += 1;
            }
        }
        Population { torrent_of_peer, torrents: torrent }
    }

    /// How many peers there are.
    pub fn peers(&self) -> u32 {
        self.torrent_of_peer.len() as u32
    }

    /// How many torrents there are.
    pub fn torrents(&self) -> u32 {
        self.torrents
    }

    /// The peer with this number.
    pub fn peer(&self, number: u32) -> Peer {
        let torrent = self.torrent_of_peer[number as usize];
        let traits = mixed(number, Trait::Client);
        Peer {
            number,
            torrent,
            user: user_id(number),
            passkey: passkey(number),
            info_hash: info_hash(torrent),
            torrent_id: torrent_id(torrent),
            peer_id: peer_id(number),
            key: ClientKey((traits as u32).max(1)),
            port: 1024 + ((traits >> 32) % 64_000) as u16,
            left: if (traits >> 48) % 100 < SEEDERS_PERCENT { 0 } else { 1 << 30 },
        }
    }
}

/// The user of a peer; each has its own.
pub fn user_id(peer: u32) -> UserId {
    UserId::new(u64::from(peer) + 1).expect("one more than an unsigned number is positive")
}

/// The secret of a peer's user.
pub fn passkey(peer: u32) -> Passkey {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed(peer, Trait::PasskeyFirst).to_be_bytes());
    bytes[8..].copy_from_slice(&mixed(peer, Trait::PasskeySecond).to_be_bytes());
    Passkey::from_random_bytes(bytes)
}

/// The id of a torrent.
pub fn torrent_id(torrent: u32) -> TorrentId {
    TorrentId::new(u64::from(torrent) + 1).expect("one more than an unsigned number is positive")
}

pub fn info_hash(torrent: u32) -> InfoHash {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&mixed(torrent, Trait::InfoHashFirst).to_be_bytes());
    bytes[8..16].copy_from_slice(&mixed(torrent, Trait::InfoHashSecond).to_be_bytes());
    bytes[16..].copy_from_slice(&torrent.to_be_bytes());
    InfoHash(bytes)
}

/// A peer id as Transmission generates: the program, then letters and digits.
fn peer_id(peer: u32) -> PeerId {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut bytes = *b"-TR4060-............";
    let mut digits = mixed(peer, Trait::PeerId);
    for byte in &mut bytes[8..] {
        *byte = ALPHABET[(digits % 36) as usize];
        digits /= 36;
    }
    PeerId(bytes)
}

/// Separates the values derived for different purposes.
#[derive(Clone, Copy)]
enum Trait {
    Client = 1,
    PasskeyFirst,
    PasskeySecond,
    InfoHashFirst,
    InfoHashSecond,
    PeerId,
}

/// SplitMix64.
fn mixed(number: u32, purpose: Trait) -> u64 {
    let mut z = (u64::from(number) << 8 | purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
        let once = Population::new(Shape { torrents: 10, peers: 100 });
        let thrice = Population::repeated(Shape { torrents: 10, peers: 100 }, 3);
        assert_eq!((thrice.peers(), thrice.torrents()), (300, 30));
        for number in 0..300 {
            let (copy, original) = (thrice.peer(number), once.peer(number % 100));
            assert_eq!(copy.torrent, original.torrent + number / 100 * 10);
        }
    }

    #[test]
    fn peers_are_distinct_and_the_same_in_every_run() {
        let population = Population::new(Shape { torrents: 1_000, peers: 10_000 });
        let again = Population::new(Shape { torrents: 1_000, peers: 10_000 });
        let mut peer_ids = HashSet::new();
        let mut passkeys = HashSet::new();
        for number in 0..population.peers() {
            let peer = population.peer(number);
            assert_eq!(peer, again.peer(number));
            assert!(peer_ids.insert(peer.peer_id));
            assert!(passkeys.insert(peer.passkey));
            assert!(peer.port >= 1024);
            assert!(peer.key.is_some());
        }
        let seeders = (0..population.peers()).filter(|number| population.peer(*number).left == 0).count();
        assert!((6_700..7_300).contains(&seeders), "{seeders} seeders of 10,000");
    }
}
