//! The anchor: the number and hash of the last record, kept in `audit.log.anchor` beside the trail, so that an end that
//! was cut off shows.
//!
//! It is written under the lock of the trail's file, after the record that it names. With [`super::AuditSync::Always`]
//! and `EverySecond` that record is on the disk by then, so that a crash leaves the anchor behind the trail, never ahead
//! of it: by the last record, or by those of the last second. With `Never` a power failure may lose records that the
//! anchor names.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::AuditError;
use super::files;
use super::line::Link;

/// What its file name ends in.
const SUFFIX: &str = ".anchor";

/// The anchor of the trail in this file.
pub(super) fn path_of(trail: &Path) -> PathBuf {
    let mut name = OsString::from(trail.as_os_str());
    name.push(SUFFIX);
    name.into()
}

/// Whether a file is named as an anchor is.
pub(super) fn is_anchor(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX))
}

/// What an anchor file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// There is no such file.
    Missing,
    /// There is one that cannot be understood.
    Unreadable,
    /// The last record was this one.
    At(Link),
}

pub(super) fn read(path: &Path) -> Result<Anchor, AuditError> {
    match fs::read(path) {
        Ok(bytes) => Ok(decode(&bytes).map_or(Anchor::Unreadable, Anchor::At)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Anchor::Missing),
        Err(source) => Err(AuditError::File { doing: "read", path: path.to_owned(), source }),
    }
}

fn decode(bytes: &[u8]) -> Option<Link> {
    let (seq, hash) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
    Some(Link { seq: seq.parse().ok()?, hash: hash.parse().ok()? })
}

/// Writes it in place: always the same few bytes of one sector, which no crash tears.
pub(super) fn write(trail: &Path, link: Link, is_synced: bool) -> Result<(), AuditError> {
    let path = path_of(trail);
    let explain = |source| AuditError::Write { path: path.clone(), source };
    let text = format!("{:020} {}\n", link.seq, link.hash);
    let file = open(&path).map_err(explain)?;
    file.write_all_at(text.as_bytes(), 0).map_err(explain)?;
    file.set_len(text.len() as u64).map_err(explain)?;
    if is_synced {
        file.sync_data().map_err(explain)?;
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = options.create(true).open(path)?;
            files::give_to_owner_of_folder(&file, path);
            files::sync_folder_of(path);
            Ok(file)
        }
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::LineHash;
    use super::*;

    #[test]
    fn an_anchor_is_read_as_it_was_written_and_anything_else_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let trail = folder.path().join("audit.log");
        let path = path_of(&trail);
        assert_eq!(read(&path).unwrap(), Anchor::Missing);
        for seq in [0, 7, u64::MAX] {
            let link = Link { seq, hash: LineHash::of(b"x") };
            write(&trail, link, true).unwrap();
            assert_eq!(read(&path).unwrap(), Anchor::At(link));
        }
        for text in ["", "7", "7 abc\n", "x"] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), Anchor::Unreadable, "{text}");
        }
        assert!(is_anchor(&path) && !is_anchor(&trail));
    }
}
