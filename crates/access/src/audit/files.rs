//! The files of a trail: the one that is written, and those put aside as `audit.log.<n>`, the highest number newest.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::clock::Stopwatch;

use super::error::AuditError;

/// How long a lock is waited for. Whoever holds it writes one line.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries: short beside what bringing a line to the disk takes.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// A file that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AsideFile {
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

/// Where a file goes when it is put aside.
pub(super) fn aside_path(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(format!(".{number}"));
    name.into()
}

/// The files put aside, oldest first.
pub(super) fn list_aside(path: &Path) -> Result<Vec<AsideFile>, AuditError> {
    let explain = |source| AuditError::File { doing: "list the files of", path: path.to_owned(), source };
    let (Some(folder), Some(name)) = (folder_of(path), path.file_name()) else { return Ok(Vec::new()) };
    let prefix = format!("{}.", name.to_string_lossy());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(explain(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.map_err(explain)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix)).and_then(canonical_number);
        files.extend(number.map(|number| AsideFile { number, path: aside_path(path, number) }));
    }
    files.sort_by_key(|file| file.number);
    Ok(files)
}

/// A number in the one way that we write it: without a sign or zeros in front.
fn canonical_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// The folder of a file; the present one for a bare name.
pub(super) fn folder_of(path: &Path) -> Option<&Path> {
    path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// Opens the file to append; makes it and its folder where they are missing.
pub(super) fn open_to_append(path: &Path) -> Result<File, AuditError> {
    make_folder_of(path)?;
    // Opening a pipe would wait for a reader.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(AuditError::NotAFile(path.to_owned()));
    }
    let explain = |source| AuditError::File { doing: "open", path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            give_to_owner_of_folder(&file, path);
            sync_folder_of(path);
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match options.open(path) {
            // Put aside by another process just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                options.create(true).open(path).map_err(explain)
            }
            outcome => outcome.map_err(explain),
        },
        Err(error) => Err(explain(error)),
    }
}

fn make_folder_of(path: &Path) -> Result<(), AuditError> {
    let Some(folder) = folder_of(path).filter(|folder| !folder.exists()) else { return Ok(()) };
    let explain = |source| AuditError::Folder { path: folder.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(explain)?;
    if let Ok(opened) = File::open(folder) {
        give_to_owner_of_folder(&opened, folder);
    }
    Ok(())
}

/// What root makes in the folder of another account would be closed to that account: the server's own trail, after one
/// command with sudo. Nobody but root can give files away, so elsewhere this fails, and nothing is lost.
pub(super) fn give_to_owner_of_folder(file: &File, path: &Path) {
    if let Some(Ok(owner)) = folder_of(path).map(fs::metadata) {
        let _ = fchown(file, Some(owner.uid()), Some(owner.gid()));
    }
}

/// Brings names to the disk. Where a folder cannot be synced, names are as safe as that file system makes them.
pub(super) fn sync_folder_of(path: &Path) {
    if let Some(Ok(folder)) = folder_of(path).map(File::open) {
        let _ = folder.sync_all();
    }
}

/// Whether the open file is still the one of this name.
pub(super) fn is_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// A lock, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Locked<'a>(&'a File);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing the file gives it back as well.
        let _ = self.0.unlock();
    }
}

/// Takes the lock to write.
pub(super) fn lock<'a>(file: &'a File, path: &Path) -> Result<Locked<'a>, AuditError> {
    patiently(path, || file.try_lock())?;
    Ok(Locked(file))
}

/// How long the file is while nobody writes. It may grow afterwards; it never becomes shorter than this, which it does
/// while a writer takes back what it had no room for.
pub(super) fn settled_length(file: &File, path: &Path) -> Result<u64, AuditError> {
    patiently(path, || file.try_lock_shared())?;
    let _locked = Locked(file);
    let metadata = file.metadata();
    metadata.map(|metadata| metadata.len()).map_err(|source| AuditError::File {
        doing: "read",
        path: path.to_owned(),
        source,
    })
}

/// Waits, but not for ever: a process may be stopped while it holds the lock.
fn patiently(path: &Path, attempt: impl Fn() -> Result<(), TryLockError>) -> Result<(), AuditError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_put_aside_are_listed_by_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for name in
            ["audit.log", "audit.log.10", "audit.log.9", "audit.log.07", "audit.log.gz", "other.log.1"]
        {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let numbers: Vec<u64> = list_aside(&path).unwrap().iter().map(|file| file.number).collect();
        assert_eq!(numbers, [9, 10]);
        assert_eq!(list_aside(Path::new("no/such/audit.log")).unwrap(), []);
    }
}
