//! A separate database for each test.

use access::{NewTorrent, NewUser, Store};
use domain::{InfoHash, Passkey, PeerId, TorrentId, UnixTime, UserId};

pub const NOW: UnixTime = UnixTime(1_750_000_000);

pub use testkit::TestDatabase as Fixture;

pub trait OpenStore {
    /// Another store on the same database, as in another process.
    async fn store(&self) -> Store;
}

impl OpenStore for Fixture {
    async fn store(&self) -> Store {
        Store::open(&self.url()).await.unwrap()
    }
}

pub fn user_id(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

pub fn torrent_id(number: u64) -> TorrentId {
    TorrentId::new(number).unwrap()
}

pub fn passkey(number: u64) -> Passkey {
    format!("{number:032x}").parse().unwrap()
}

pub fn info_hash(number: u64) -> InfoHash {
    format!("{number:040x}").parse().unwrap()
}

pub fn peer_id(prefix: &str) -> PeerId {
    let mut bytes = [b'x'; 20];
    bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
    PeerId(bytes)
}

pub fn new_user(number: u64) -> NewUser {
    NewUser { id: Some(user_id(number)), passkey: Some(passkey(number)), created_at: NOW }
}

pub fn new_torrent(number: u64) -> NewTorrent {
    NewTorrent {
        id: Some(torrent_id(number)),
        info_hash: info_hash(number),
        info_hash_v2: None,
        name: format!("torrent {number}"),
        total_bytes: 1 << 30,
        created_at: NOW,
    }
}

pub fn new_torrent_without_id(number: u64) -> NewTorrent {
    NewTorrent { id: None, ..new_torrent(number) }
}
