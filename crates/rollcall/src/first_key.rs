//! The first admin key: shown on a terminal, otherwise written to a file that only its owner can read.
//!
//! What is printed elsewhere than on a terminal is kept: by the journal of systemd, by the log of a container, by
//! whatever collects them.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Its name in the data folder.
const FILE: &str = "first-admin-key";

/// Where the first key is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstKey {
    /// On the terminal: this is the key.
    Shown(String),
    /// In this file.
    InFile(PathBuf),
}

impl FirstKey {
    /// Decides by what standard output is, and writes the file.
    pub fn deliver(key: &str, data: &Path) -> anyhow::Result<FirstKey> {
        if io::stdout().is_terminal() {
            return Ok(FirstKey::Shown(key.to_owned()));
        }
        let path = data.join(FILE);
        write(&path, key).with_context(|| format!("cannot write the first key to {}", path.display()))?;
        Ok(FirstKey::InFile(path))
    }
}

/// A file that is there already was left by another database: it is replaced, never followed as a link or widened.
fn write(path: &Path, key: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}
