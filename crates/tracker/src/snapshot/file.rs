//! The file format: header, shards, checksum.

use std::fs::{File, OpenOptions};
use std::hash::Hasher;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use journal::EntryId;
use siphasher::sip::SipHasher13;

use super::SnapshotError;

const MAGIC: &[u8; 8] = b"RCSWARMS";
const VERSION: u32 = 1;
/// In place of the length of a shard, behind the last one.
const END: u32 = u32::MAX;
/// Enough for fourteen million peers: a larger length is damage.
const SHARD_MAX: u32 = 1 << 30;
const HEAD_BYTES: usize = 8 + 4 + 8 + 8 + 8;
const BUFFER: usize = 1 << 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// In steady time, like all times in the file.
    pub(super) saved_ms: u64,
    /// All entries up to this one are in the file.
    pub(super) cursor: EntryId,
}

impl Head {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        for number in [self.saved_ms, self.cursor.ms, self.cursor.seq] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// None for another magic or version.
    fn of_bytes(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&VERSION.to_le_bytes())?;
        let number = |index: usize| {
            let eight = rest[8 * index..8 * index + 8].try_into().expect("eight bytes were taken");
            u64::from_le_bytes(eight)
        };
        Some(Head { saved_ms: number(0), cursor: EntryId { ms: number(1), seq: number(2) } })
    }
}

pub(super) struct Writer {
    file: BufWriter<File>,
    hasher: SipHasher13,
    bytes: u64,
}

impl Writer {
    /// Readable by its owner only: it contains users' addresses.
    pub(super) fn create(path: &Path, head: &Head) -> io::Result<Writer> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut writer =
            Writer { file: BufWriter::with_capacity(BUFFER, file), hasher: SipHasher13::new(), bytes: 0 };
        writer.put(&head.to_bytes())?;
        Ok(writer)
    }

    pub(super) fn write_shard(&mut self, shard: &[u8]) -> io::Result<()> {
        let length = u32::try_from(shard.len()).ok().filter(|length| *length <= SHARD_MAX);
        let length = length.ok_or_else(|| io::Error::other("a shard is too large for the file"))?;
        self.put(&length.to_le_bytes())?;
        self.put(shard)
    }

    /// Syncs the file; returns its length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.put(&END.to_le_bytes())?;
        let checksum = self.hasher.finish().to_le_bytes();
        self.file.write_all(&checksum)?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(self.bytes + checksum.len() as u64)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

pub(super) struct Reader {
    file: BufReader<File>,
    shard: Vec<u8>,
    hasher: SipHasher13,
    head: [u8; HEAD_BYTES],
}

impl Reader {
    pub(super) fn open(path: &Path) -> io::Result<Reader> {
        let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
        let mut head = [0; HEAD_BYTES];
        file.read_exact(&mut head)?;
        let mut hasher = SipHasher13::new();
        hasher.write(&head);
        Ok(Reader { file, shard: Vec::new(), hasher, head })
    }

    /// None behind the last shard.
    pub(super) fn next_shard(&mut self) -> io::Result<Option<&[u8]>> {
        let mut length = [0; 4];
        self.file.read_exact(&mut length)?;
        self.hasher.write(&length);
        let length = match u32::from_le_bytes(length) {
            END => return Ok(None),
            length if length > SHARD_MAX => return Err(ErrorKind::InvalidData.into()),
            length => length,
        };
        self.shard.clear();
        // Bounded by the file, whatever the length says.
        let read = (&mut self.file).take(length.into()).read_to_end(&mut self.shard)?;
        if read as u64 != u64::from(length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.hasher.write(&self.shard);
        Ok(Some(&self.shard))
    }

    fn checksum_matches(mut self) -> io::Result<bool> {
        let mut checksum = [0; 8];
        self.file.read_exact(&mut checksum)?;
        let is_end = self.file.read(&mut [0])? == 0;
        Ok(is_end && u64::from_le_bytes(checksum) == self.hasher.finish())
    }
}

/// The outer error is an I/O error.
pub(super) fn verify(path: &Path) -> io::Result<Result<Head, SnapshotError>> {
    let verified = (|| {
        let mut reader = Reader::open(path)?;
        let Some(head) = Head::of_bytes(&reader.head) else {
            return Ok(Err(SnapshotError::Foreign));
        };
        while reader.next_shard()?.is_some() {}
        let is_whole = reader.checksum_matches()?;
        Ok(if is_whole { Ok(head) } else { Err(SnapshotError::Damaged) })
    })();
    match verified {
        Err(error) if is_damage(&error) => Ok(Err(SnapshotError::Damaged)),
        verified => verified,
    }
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData)
}
