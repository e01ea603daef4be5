//! The first admin key: shown on a terminal, otherwise written to a file that only its owner can read.
//!
//! Output that is not a terminal's is usually stored: by systemd's journal, by a container's log.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// In the data folder.
const FILE: &str = "first-admin-key";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstKey {
    /// The key itself.
    Shown(String),
    InFile(PathBuf),
}

impl FirstKey {
    /// Writes the file unless standard output is a terminal.
    pub fn deliver(key: &str, data: &Path) -> anyhow::Result<FirstKey> {
        if io::stdout().is_terminal() {
            return Ok(FirstKey::Shown(key.to_owned()));
        }
        let path = data.join(FILE);
        write(&path, key).with_context(|| format!("cannot write the first key to {}", path.display()))?;
        Ok(FirstKey::InFile(path))
    }
}

/// An existing file is from another database: it is replaced; links are not followed.
fn write(path: &Path, key: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}
