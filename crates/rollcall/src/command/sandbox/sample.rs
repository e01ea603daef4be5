//! Sample torrents: small, private, and identical everywhere, so that the sandbox is idempotent.

use domain::InfoHash;
use sha1::{Digest, Sha1};
use wire::bencode::{push_bytes, push_integer};

/// A few pieces.
const BYTES: usize = 256 * 1024;
const PIECE_BYTES: usize = 32 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub name: String,
    pub content: Vec<u8>,
    /// The bencoded info dictionary.
    info: Vec<u8>,
    pub info_hash: InfoHash,
}

impl Sample {
    /// Depends on `number` only.
    pub fn numbered(number: u32) -> Self {
        let name = format!("rollcall-sandbox-{number}.txt");
        let mut content = Vec::with_capacity(BYTES + 64);
        for line in 1_u32.. {
            if content.len() >= BYTES {
                break;
            }
            content.extend_from_slice(format!("sample {number} of the sandbox, line {line}\n").as_bytes());
        }
        content.truncate(BYTES);
        let info = info_of(&name, &content);
        let info_hash = InfoHash(Sha1::digest(&info).into());
        Sample { name, content, info, info_hash }
    }

    pub fn torrent_name(&self) -> String {
        format!("{}.torrent", self.name)
    }

    /// The announce URL contains the user's passkey.
    pub fn metainfo(&self, announce_url: &str) -> Vec<u8> {
        let mut out = b"d".to_vec();
        push_bytes(&mut out, b"announce");
        push_bytes(&mut out, announce_url.as_bytes());
        push_bytes(&mut out, b"comment");
        push_bytes(&mut out, b"for testing an integration with rollcall");
        push_bytes(&mut out, b"info");
        out.extend_from_slice(&self.info);
        out.push(b'e');
        out
    }
}

/// Bencode requires sorted keys.
fn info_of(name: &str, content: &[u8]) -> Vec<u8> {
    let pieces: Vec<u8> =
        content.chunks(PIECE_BYTES).flat_map(|piece| <[u8; 20]>::from(Sha1::digest(piece))).collect();
    let mut out = b"d".to_vec();
    push_bytes(&mut out, b"length");
    push_integer(&mut out, content.len() as u64);
    push_bytes(&mut out, b"name");
    push_bytes(&mut out, name.as_bytes());
    push_bytes(&mut out, b"piece length");
    push_integer(&mut out, PIECE_BYTES as u64);
    push_bytes(&mut out, b"pieces");
    push_bytes(&mut out, &pieces);
    push_bytes(&mut out, b"private");
    push_integer(&mut out, 1);
    out.push(b'e');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::metainfo::Metainfo;

    #[test]
    fn a_sample_is_a_real_private_torrent_and_always_the_same() {
        let sample = Sample::numbered(1);
        let parsed = Metainfo::parse(&sample.metainfo("http://127.0.0.1:6969/0123abcd/announce")).unwrap();
        assert_eq!((parsed.info_hash, parsed.private), (sample.info_hash, true));
        assert_eq!((parsed.name.as_str(), parsed.total_bytes), ("rollcall-sandbox-1.txt", BYTES as u64));
        assert_eq!(Sample::numbered(1), sample);
        assert_ne!(Sample::numbered(2).info_hash, sample.info_hash);
        // A change makes existing sandboxes unrecognisable to `sandbox clear`.
        assert_eq!(sample.info_hash.to_string(), "0b6cf2ad1c8eeec76dc24d7054b89e354bcaf8e3");
    }
}
