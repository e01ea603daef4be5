//! The file of the trail: opening, locking, its lines, its end; and the anchor beside it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::clock::Stopwatch;
use sha2::{Digest, Sha256};

use super::line::{Entry, LineHash, Link, Misfit, decode};
use super::{AuditError, LINE_BYTES_MAX, cannot_read};

/// The holder of the lock writes one line; it may be suspended meanwhile.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(1);

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates the file and its folder if they are missing.
pub(super) fn open_to_append(path: &Path) -> Result<File, AuditError> {
    let explain = |doing| move |source| AuditError::File { doing, path: path.to_owned(), source };
    let folder = folder_of(path);
    if !folder.exists() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.and_then(|()| give_to_owner_of(folder_of(folder), &File::open(folder)?))
            .map_err(explain("make the folder of"))?;
    }
    // Opening a pipe would wait for a reader.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(AuditError::NotAFile(path.to_owned()));
    }
    open(OpenOptions::new().read(true).append(true), path).map_err(explain("open"))
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    match options.mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = options.create(true).open(path)?;
            give_to_owner_of(folder_of(path), &file)?;
            // The name must be on the disk, too.
            let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
            Ok(file)
        }
        outcome => outcome,
    }
}

/// What root creates must stay writable for the account of the server.
fn give_to_owner_of(folder: &Path, file: &File) -> io::Result<()> {
    let owner = fs::metadata(folder)?;
    // Other accounts may not, and own it already.
    let _ = fchown(file, Some(owner.uid()), Some(owner.gid()));
    Ok(())
}

/// The file, and its length while no record is being written. `None` if it does not exist.
pub(super) fn open_to_read(path: &Path) -> Result<Option<(File, u64)>, AuditError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot_read(path, error)),
    };
    with_patience(path, || file.try_lock_shared())?;
    let length = file.metadata().map(|metadata| metadata.len());
    let _ = file.unlock();
    length.map(|length| Some((file, length))).map_err(|error| cannot_read(path, error))
}

/// Repeats an attempt to lock the file.
pub(super) fn with_patience(
    path: &Path,
    attempt: impl Fn() -> Result<(), TryLockError>,
) -> Result<(), AuditError> {
    let watch = Stopwatch::start();
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => {
                return Err(AuditError::File { doing: "lock", path: path.to_owned(), source });
            }
            Err(TryLockError::WouldBlock) if watch.elapsed() > LOCK_PATIENCE => {
                return Err(AuditError::Busy(path.to_owned()));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// The lines of a part of the file, in bounded memory: a line that is too long for a record comes in pieces.
pub(super) struct Lines<'a> {
    reader: BufReader<Take<&'a File>>,
    piece: Vec<u8>,
    /// Lines begun, the present one included.
    pub(super) count: u64,
}

/// Bytes with their newline, and the record that they are.
pub(super) type Piece<'a> = (&'a [u8], Result<Entry, Misfit>);

impl<'a> Lines<'a> {
    pub(super) fn between(mut file: &'a File, start: u64, end: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(start))?;
        let reader = BufReader::with_capacity(1 << 16, file.take(end.saturating_sub(start)));
        Ok(Lines { reader, piece: Vec::new(), count: 0 })
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        let begins = self.piece.is_empty() || self.piece.ends_with(b"\n");
        self.count += u64::from(begins);
        self.piece.clear();
        self.reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.piece)?;
        if self.piece.is_empty() {
            return Ok(None);
        }
        let line = self.piece.strip_suffix(b"\n").unwrap_or(&self.piece);
        let read = if begins { decode(line) } else { Err(Misfit::NotARecord) };
        Ok(Some((&self.piece, read)))
    }
}

/// Bytes after a record that are none. The last newline is not counted: it may be that of the record after them.
#[derive(Clone, Default)]
pub(super) struct Foreign {
    pub(super) bytes: u64,
    hasher: Sha256,
    newlines: u64,
    pub(super) ends_line: bool,
}

impl Foreign {
    pub(super) fn add(&mut self, piece: &[u8]) {
        if self.ends_line {
            self.hasher.update(b"\n");
            self.bytes += 1;
            self.newlines += 1;
        }
        let content = piece.strip_suffix(b"\n").unwrap_or(piece);
        self.ends_line = content.len() < piece.len();
        self.hasher.update(content);
        self.bytes += content.len() as u64;
    }

    pub(super) fn is_one_line(&self) -> bool {
        self.newlines == 0
    }

    pub(super) fn hash(&self) -> LineHash {
        LineHash::finish(self.hasher.clone())
    }
}

/// The end of the file.
pub(super) struct End {
    pub(super) length: u64,
    /// The record that the next one follows.
    pub(super) last: Link,
    pub(super) foreign: Option<Foreign>,
    pub(super) needs_newline: bool,
    /// The trail ends before `last`, which the anchor names.
    pub(super) is_truncated: bool,
    pub(super) has_anchor: bool,
}

impl End {
    /// Reads from the anchor on; the whole file if that is of no use.
    pub(super) fn read(file: &File, path: &Path) -> io::Result<End> {
        // Before the length: a record that is written meanwhile must not look missing.
        let anchor = Anchor::read(&anchor_path(path))?;
        let length = file.metadata()?.len();
        let byte_before = |position: u64| -> io::Result<u8> {
            let mut byte = [b'\n'];
            if position > 0 {
                file.read_exact_at(&mut byte, position - 1)?;
            }
            Ok(byte[0])
        };
        let mut end = End {
            length,
            last: Link::start(),
            foreign: None,
            needs_newline: byte_before(length)? != b'\n',
            is_truncated: false,
            has_anchor: matches!(anchor, Anchor::At(..)),
        };
        let mut start = 0;
        if let Anchor::At(link, Some(position)) = &anchor
            && *position <= length
            && byte_before(*position)? == b'\n'
        {
            (start, end.last) = (*position, link.clone());
        }
        let mut lines = Lines::between(file, start, length)?;
        while let Some((piece, read)) = lines.next()? {
            match read {
                Ok(Entry { seq, hash, .. }) => (end.last, end.foreign) = (Link { seq, hash }, None),
                Err(_) => end.foreign.get_or_insert_default().add(piece),
            }
        }
        if let Anchor::At(link, _) = anchor
            && link.seq >= end.last.seq
            && link != end.last
        {
            (end.last, end.is_truncated) = (link, true);
        }
        Ok(end)
    }
}

/// Number and hash of the last record, and the length of the file with it, in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Missing,
    Unreadable,
    /// Earlier versions wrote no length.
    At(Link, Option<u64>),
}

const ANCHOR_SUFFIX: &str = ".anchor";

pub(super) fn anchor_path(trail: &Path) -> PathBuf {
    let mut name = OsString::from(trail.as_os_str());
    name.push(ANCHOR_SUFFIX);
    name.into()
}

pub(super) fn is_anchor(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().ends_with(ANCHOR_SUFFIX)
}

impl Anchor {
    pub(super) fn read(path: &Path) -> io::Result<Anchor> {
        match fs::read(path) {
            Ok(bytes) => Ok(Anchor::decode(&bytes).unwrap_or(Anchor::Unreadable)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Anchor::Missing),
            Err(error) => Err(error),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Anchor> {
        let mut fields = str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split(' ');
        let link = Link { seq: fields.next()?.parse().ok()?, hash: fields.next()?.parse().ok()? };
        let length = fields.next().map(str::parse).transpose().ok()?;
        Some(Anchor::At(link, length))
    }

    /// In place: always the same few bytes of one sector, which a crash does not tear.
    pub(super) fn write(trail: &Path, last: &Link, length: u64, is_synced: bool) -> io::Result<()> {
        let text = format!("{:020} {} {length:020}\n", last.seq, last.hash);
        let file = open(OpenOptions::new().write(true), &anchor_path(trail))?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)?;
        if is_synced { file.sync_data() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_read_as_it_was_written_and_anything_else_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let trail = folder.path().join("audit.log");
        let path = anchor_path(&trail);
        assert_eq!(Anchor::read(&path).unwrap(), Anchor::Missing);
        for seq in [0, 7, u64::MAX] {
            let link = Link { seq, hash: LineHash::of(b"x") };
            Anchor::write(&trail, &link, seq / 2, true).unwrap();
            assert_eq!(Anchor::read(&path).unwrap(), Anchor::At(link.clone(), Some(seq / 2)));
            fs::write(&path, format!("{seq:020} {}\n", link.hash)).unwrap();
            assert_eq!(Anchor::read(&path).unwrap(), Anchor::At(link, None), "of an earlier version");
        }
        for text in ["", "7", "7 abc\n", "x"] {
            fs::write(&path, text).unwrap();
            assert_eq!(Anchor::read(&path).unwrap(), Anchor::Unreadable, "{text}");
        }
        assert!(is_anchor(&path) && !is_anchor(&trail));
    }
}
