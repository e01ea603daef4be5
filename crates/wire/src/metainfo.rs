//! The parts of a `.torrent` file that a tracker needs: hashes, name, size, private flag.
//!
//! Version 1 (BEP 3), version 2 and hybrids of both (BEP 52). Pieces are not verified.

use domain::InfoHash;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::bencode::{self, BencodeError, Value};

pub const MAX_METAINFO_BYTES: usize = 32 << 20;
/// Longer names and announce URLs are refused.
pub const MAX_TEXT_BYTES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetainfoError {
    #[error("the file is larger than {} MiB", MAX_METAINFO_BYTES >> 20)]
    TooLarge,
    #[error("the file is not valid bencode: {0}")]
    Bencode(#[from] BencodeError),
    #[error("the file is not a dictionary")]
    NotADictionary,
    #[error("{key:?} is missing")]
    Missing { key: &'static str },
    #[error("{key:?} is not {expected}")]
    Invalid { key: &'static str, expected: &'static str },
    #[error("the total size of the files exceeds 64 bits")]
    TotalTooLarge,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metainfo {
    /// The hash clients announce: SHA-1 of the info dictionary, or for a torrent of version 2 only the first 20 bytes
    /// of its SHA-256.
    pub info_hash: InfoHash,
    /// The other hash clients announce for a hybrid: the first 20 bytes of the SHA-256. None for all others.
    pub info_hash_v2: Option<InfoHash>,
    /// Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The size of all files, without padding.
    pub total_bytes: u64,
    /// Whether clients must get peers from the tracker only (BEP 27).
    pub private: bool,
    /// None if missing or not UTF-8.
    pub announce: Option<String>,
}

impl Metainfo {
    pub fn parse(bytes: &[u8]) -> Result<Self, MetainfoError> {
        if bytes.len() > MAX_METAINFO_BYTES {
            return Err(MetainfoError::TooLarge);
        }
        let root = bencode::parse(bytes)?;
        if root.entries().is_none() {
            return Err(MetainfoError::NotADictionary);
        }
        let info = root.get(b"info").ok_or(MetainfoError::Missing { key: "info" })?;
        let fields = InfoFields::read(info)?;
        let version = fields.version()?;
        let (info_hash, info_hash_v2) = match version {
            Version::One => (hash_v1(info), None),
            Version::Two => (hash_v2(info), None),
            Version::Hybrid => (hash_v1(info), Some(hash_v2(info))),
        };
        Ok(Metainfo {
            info_hash,
            info_hash_v2,
            name: fields.name()?,
            total_bytes: fields.total_bytes(version)?,
            private: fields.private.and_then(|value| value.as_integer()) == Some(1),
            announce: read_announce(root)?,
        })
    }
}

fn hash_v1(info: Value<'_>) -> InfoHash {
    InfoHash(Sha1::digest(info.raw()).into())
}

fn hash_v2(info: Value<'_>) -> InfoHash {
    let digest: [u8; 32] = Sha256::digest(info.raw()).into();
    let mut truncated = [0; 20];
    truncated.copy_from_slice(&digest[..20]);
    InfoHash(truncated)
}

fn read_announce(root: Value<'_>) -> Result<Option<String>, MetainfoError> {
    let url = root.get(b"announce").and_then(|value| value.as_str()).filter(|url| !url.is_empty());
    match url {
        Some(url) if url.len() > MAX_TEXT_BYTES => {
            Err(MetainfoError::Invalid { key: "announce", expected: "a URL of at most 4096 bytes" })
        }
        _ => Ok(url.map(str::to_owned)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
    Hybrid,
}

/// The relevant keys of an info dictionary, found in one pass.
#[derive(Default)]
struct InfoFields<'a> {
    file_tree: Option<Value<'a>>,
    files: Option<Value<'a>>,
    length: Option<Value<'a>>,
    meta_version: Option<Value<'a>>,
    name: Option<Value<'a>>,
    name_utf8: Option<Value<'a>>,
    piece_length: Option<Value<'a>>,
    pieces: Option<Value<'a>>,
    private: Option<Value<'a>>,
}

impl<'a> InfoFields<'a> {
    fn read(info: Value<'a>) -> Result<Self, MetainfoError> {
        let entries =
            info.entries().ok_or(MetainfoError::Invalid { key: "info", expected: "a dictionary" })?;
        let mut fields = InfoFields::default();
        for (key, value) in entries {
            let field = match key {
                b"file tree" => &mut fields.file_tree,
                b"files" => &mut fields.files,
                b"length" => &mut fields.length,
                b"meta version" => &mut fields.meta_version,
                b"name" => &mut fields.name,
                b"name.utf-8" => &mut fields.name_utf8,
                b"piece length" => &mut fields.piece_length,
                b"pieces" => &mut fields.pieces,
                b"private" => &mut fields.private,
                _ => continue,
            };
            *field = Some(value);
        }
        Ok(fields)
    }

    /// Checks that the keys of the version are present.
    fn version(&self) -> Result<Version, MetainfoError> {
        let piece_length = self.piece_length.ok_or(MetainfoError::Missing { key: "piece length" })?;
        if piece_length.as_integer().is_none_or(|length| length <= 0) {
            return Err(MetainfoError::Invalid { key: "piece length", expected: "a positive number" });
        }
        if let Some(pieces) = self.pieces
            && pieces.as_bytes().is_none_or(|hashes| hashes.len() % 20 != 0)
        {
            return Err(MetainfoError::Invalid { key: "pieces", expected: "a string of 20-byte hashes" });
        }
        let is_v2 = match self.meta_version {
            None => false,
            Some(number) if number.as_integer() == Some(2) => true,
            Some(_) => return Err(MetainfoError::Invalid { key: "meta version", expected: "2" }),
        };
        match (is_v2, self.pieces.is_some()) {
            (true, true) => Ok(Version::Hybrid),
            (true, false) => Ok(Version::Two),
            (false, true) => Ok(Version::One),
            (false, false) => Err(MetainfoError::Missing { key: "pieces" }),
        }
    }

    fn name(&self) -> Result<String, MetainfoError> {
        let value = self.name_utf8.or(self.name).ok_or(MetainfoError::Missing { key: "name" })?;
        match value.as_bytes() {
            Some(bytes) if !bytes.is_empty() && bytes.len() <= MAX_TEXT_BYTES => {
                Ok(String::from_utf8_lossy(bytes).into_owned())
            }
            _ => Err(MetainfoError::Invalid { key: "name", expected: "a string of 1 to 4096 bytes" }),
        }
    }

    fn total_bytes(&self, version: Version) -> Result<u64, MetainfoError> {
        if version != Version::One {
            let tree = self.file_tree.ok_or(MetainfoError::Missing { key: "file tree" })?;
            return sum_file_tree(tree);
        }
        match (self.length, self.files) {
            (Some(length), None) => read_length(length),
            (None, Some(files)) => sum_files(files),
            (None, None) => Err(MetainfoError::Missing { key: "length" }),
            (Some(_), Some(_)) => {
                Err(MetainfoError::Invalid { key: "files", expected: "allowed beside \"length\"" })
            }
        }
    }
}

fn read_length(value: Value<'_>) -> Result<u64, MetainfoError> {
    value
        .as_integer()
        .and_then(|length| u64::try_from(length).ok())
        .ok_or(MetainfoError::Invalid { key: "length", expected: "a number of bytes" })
}

fn add_length(total: u64, file: Value<'_>) -> Result<u64, MetainfoError> {
    let length = file.get(b"length").ok_or(MetainfoError::Missing { key: "length" })?;
    total.checked_add(read_length(length)?).ok_or(MetainfoError::TotalTooLarge)
}

/// Version 1: a list of files. Padding (BEP 47) is never transferred, so it does not count.
fn sum_files(files: Value<'_>) -> Result<u64, MetainfoError> {
    let files = files.items().ok_or(MetainfoError::Invalid { key: "files", expected: "a list" })?;
    let mut total = 0;
    for file in files {
        let attributes = file.get(b"attr").and_then(|value| value.as_bytes()).unwrap_or_default();
        if !attributes.contains(&b'p') {
            total = add_length(total, file)?;
        }
    }
    Ok(total)
}

/// Version 2: a tree of dictionaries, in which an empty key marks a file. The reader has bounded its depth, and with it
/// the recursion here.
fn sum_file_tree(tree: Value<'_>) -> Result<u64, MetainfoError> {
    let bad_tree = MetainfoError::Invalid { key: "file tree", expected: "a tree of dictionaries" };
    let mut unfinished = vec![tree.entries().ok_or(bad_tree)?];
    let mut total = 0;
    while let Some(level) = unfinished.last_mut() {
        match level.next() {
            None => {
                unfinished.pop();
            }
            Some((b"", file)) => total = add_length(total, file)?,
            Some((_, subtree)) => unfinished.push(subtree.entries().ok_or(bad_tree)?),
        }
    }
    Ok(total)
}
