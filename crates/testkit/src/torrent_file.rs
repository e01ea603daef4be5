//! Random payloads and the private torrents that describe them.

use std::path::{Path, PathBuf};

use domain::InfoHash;
use sha1::{Digest, Sha1};

use crate::bencode::Value;

const PIECE_BYTES: usize = 32 * 1024;

/// A payload of one file, and its torrent.
#[derive(Clone)]
pub struct TorrentFile {
    name: String,
    payload: Vec<u8>,
    info: Value,
    info_hash: InfoHash,
}

impl TorrentFile {
    /// A private torrent of `bytes` random bytes; the same seed makes the same torrent.
    pub fn random(name: &str, bytes: usize, seed: u64) -> Self {
        Self::with_privacy(name, bytes, seed, true)
    }

    /// A torrent without the private flag, which a private tracker refuses.
    pub fn random_public(name: &str, bytes: usize, seed: u64) -> Self {
        Self::with_privacy(name, bytes, seed, false)
    }

    fn with_privacy(name: &str, bytes: usize, seed: u64, private: bool) -> Self {
        let mut payload = vec![0; bytes];
        fastrand::Rng::with_seed(seed).fill(&mut payload);
        let pieces = payload.chunks(PIECE_BYTES).flat_map(sha1_of).collect();
        let length = i64::try_from(bytes).expect("the payload is in memory");
        let mut info = Value::dict([
            ("length", Value::Integer(length)),
            ("name", Value::text(name)),
            ("piece length", Value::Integer(PIECE_BYTES as i64)),
            ("pieces", Value::Bytes(pieces)),
        ]);
        if let (true, Value::Dict(entries)) = (private, &mut info) {
            entries.insert(b"private".to_vec(), Value::Integer(1));
        }
        let info_hash = InfoHash(sha1_of(&info.encode()));
        TorrentFile { name: name.to_owned(), payload, info, info_hash }
    }

    /// Its name on the wire.
    pub fn info_hash(&self) -> InfoHash {
        self.info_hash
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long its file is.
    pub fn payload_bytes(&self) -> u64 {
        self.payload.len() as u64
    }

    /// The metainfo with these trackers, each in a tier of its own.
    pub fn metainfo(&self, trackers: &[String]) -> Vec<u8> {
        let tiers = trackers.iter().map(|url| Value::List(vec![Value::text(url)])).collect();
        let mut root = Value::dict([("info", self.info.clone())]);
        if let (Some(first), Value::Dict(entries)) = (trackers.first(), &mut root) {
            entries.insert(b"announce".to_vec(), Value::text(first));
            entries.insert(b"announce-list".to_vec(), Value::List(tiers));
        }
        root.encode()
    }

    pub fn write_metainfo(&self, path: &Path, trackers: &[String]) {
        write(path, &self.metainfo(trackers));
    }

    /// Writes the payload into a folder.
    pub fn write_payload(&self, folder: &Path) {
        write(&self.path_in(folder), &self.payload);
    }

    /// Panics unless the folder holds the payload, byte for byte.
    #[track_caller]
    pub fn assert_intact_in(&self, folder: &Path) {
        let path = self.path_in(folder);
        let found = std::fs::read(&path).unwrap_or_else(|error| panic!("no {}: {error}", path.display()));
        assert!(found == self.payload, "{} differs from what was sent", path.display());
    }

    fn path_in(&self, folder: &Path) -> PathBuf {
        folder.join(&self.name)
    }
}

fn sha1_of(bytes: &[u8]) -> [u8; 20] {
    Sha1::digest(bytes).into()
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_infohash_is_that_of_the_info_dictionary_in_the_file() {
        let torrent = TorrentFile::random("payload", 40_000, 1);
        let metainfo = torrent.metainfo(&["http://127.0.0.1:6969/announce".to_owned()]);
        let info = Value::decode(&metainfo).get("info").expect("a torrent has an info dictionary").encode();
        assert_eq!(torrent.info_hash(), InfoHash(sha1_of(&info)));
        assert_eq!(Value::decode(&info).get("private"), Some(&Value::Integer(1)));
        assert_eq!(Value::decode(&info).get("pieces").and_then(Value::as_bytes).map(<[u8]>::len), Some(40));
    }

    #[test]
    fn a_seed_makes_one_torrent() {
        let hash = |seed| TorrentFile::random("payload", 1_000, seed).info_hash();
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
        assert_ne!(hash(1), TorrentFile::random_public("payload", 1_000, 1).info_hash());
    }
}
