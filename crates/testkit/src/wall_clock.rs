//! The wall clock of a process, set by a test while it runs: libfaketime reads the offset from a file.

use std::path::{Path, PathBuf};

use crate::process::missing;

/// Where Debian's package `libfaketime` puts it, for any architecture.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The file that says how far the wall clock is off, in a server's folder.
pub(crate) fn offset_file(folder: &Path) -> PathBuf {
    folder.join("wall-clock")
}

/// Sets the wall clock this many seconds ahead of the machine's, or behind it.
pub(crate) fn set(folder: &Path, ahead_s: i64) {
    // Renamed into place: the process may read it at any time.
    let unfinished = folder.join("wall-clock.unfinished");
    std::fs::write(&unfinished, format!("{ahead_s:+}\n")).expect("the folder can be written to");
    std::fs::rename(&unfinished, offset_file(folder)).expect("the folder can be written to");
}

/// Arguments of `env` that apply the file to a command. Its monotonic clock is the machine's.
pub(crate) fn environment(folder: &Path) -> Vec<String> {
    vec![
        format!("LD_PRELOAD={}", library().display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", offset_file(folder).display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        "NO_FAKE_STAT=1".to_owned(),
    ]
}

fn library() -> PathBuf {
    let folders = std::fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
    let mut found = folders.map(|folder| folder.path().join(LIBRARY)).filter(|path| path.exists());
    found.next().unwrap_or_else(|| panic!("{}", missing("faketime")))
}
