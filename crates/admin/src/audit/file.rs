//! The file of the trail: opening, locking, its end.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::time::Duration;

use domain::clock::Stopwatch;

use super::line::{Entry, decode};
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
    let mut options = OpenOptions::new();
    match options.read(true).append(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(&mut options, path),
        outcome => outcome,
    }
    .map_err(explain("open"))
}

fn create(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.create(true).open(path)?;
    give_to_owner_of(folder_of(path), &file)?;
    // The name must be on the disk, too.
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    Ok(file)
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

/// The end of the file.
pub(super) struct End {
    pub(super) length: u64,
    /// The record that the next one follows.
    pub(super) last: Option<Entry>,
    /// A half-written line after the last newline.
    pub(super) torn: Option<Vec<u8>>,
    pub(super) needs_newline: bool,
}

impl End {
    /// Reads backwards until it has the last record: usually one line. Whole lines that are not records are passed over;
    /// [`super::verify`] reports them.
    pub(super) fn read(file: &File) -> io::Result<End> {
        let length = file.metadata()?.len();
        let mut window = LINE_BYTES_MAX as u64 + 1;
        loop {
            let start = length.saturating_sub(window);
            let mut bytes = vec![0; usize::try_from(length - start).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, start)?;
            let end = End::find(&bytes, length);
            if end.last.is_some() || start == 0 {
                return Ok(end);
            }
            window *= 2;
        }
    }

    fn find(bytes: &[u8], length: u64) -> End {
        let lines_end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let (lines, tail) = bytes.split_at(lines_end);
        // A line that lacks only its newline is a record.
        let unended = decode(tail).ok();
        let torn = (unended.is_none() && !tail.is_empty()).then(|| tail.to_vec());
        let last = unended.or_else(|| lines.rsplit(|byte| *byte == b'\n').find_map(|line| decode(line).ok()));
        End { length, last, torn, needs_newline: !tail.is_empty() }
    }
}
