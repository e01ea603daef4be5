//! The data folder of a demo: temporary, or the one given by `--data`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use simulate::Plan;
use tempfile::TempDir;

/// Marks the folder of a demo; contains its parameters.
const MARKER_FILE: &str = "demo";

pub(super) enum Folder {
    /// Removed at the end.
    Temporary(TempDir),
    Kept(PathBuf),
}

impl Folder {
    /// A folder with anything but the same demo is refused.
    pub(super) fn open(wanted: Option<PathBuf>, plan: &Plan) -> anyhow::Result<Folder> {
        let Some(path) = wanted else {
            let folder = tempfile::Builder::new().prefix("rollcall-demo-").tempdir();
            return Ok(Folder::Temporary(folder.context("cannot create a temporary folder")?));
        };
        fs::create_dir_all(&path).with_context(|| format!("cannot create the folder {}", path.display()))?;
        let mark = format!(
            "seed {} torrents {} peers {} people {}\n",
            plan.seed, plan.torrents, plan.peers, plan.members
        );
        let found = match fs::read_to_string(path.join(MARKER_FILE)) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let is_empty =
            fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?.next().is_none();
        match found {
            Some(found) if found == mark => {}
            Some(found) => bail!(
                "{} contains a demo with other parameters ({}): use these, or another folder",
                path.display(),
                found.trim()
            ),
            None if is_empty => {
                fs::write(path.join(MARKER_FILE), mark)
                    .with_context(|| format!("cannot write to {}", path.display()))?;
            }
            None => bail!("{} is not empty and not of a demo: choose another folder", path.display()),
        }
        Ok(Folder::Kept(path))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Folder::Temporary(folder) => folder.path(),
            Folder::Kept(path) => path,
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Folder::Kept(_))
    }

    pub(super) fn close(self) -> anyhow::Result<()> {
        match self {
            Folder::Temporary(folder) => {
                let path = folder.path().display().to_string();
                folder.close().with_context(|| format!("cannot remove {path}"))
            }
            Folder::Kept(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan { torrents: 1, peers: 2, members: 3, pace: 1.0, seed: 4, misbehaviour: true };

    #[test]
    fn a_temporary_folder_is_removed_and_a_given_one_is_kept() {
        let folder = Folder::open(None, &PLAN).unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir() && !folder.is_kept());
        folder.close().unwrap();
        assert!(!path.exists());
        let home = tempfile::tempdir().unwrap();
        let wanted = home.path().join("demo");
        for _ in 0..2 {
            let folder = Folder::open(Some(wanted.clone()), &PLAN).unwrap();
            assert!(folder.is_kept());
            folder.close().unwrap();
            assert!(wanted.is_dir());
        }
        let other = Folder::open(Some(wanted), &Plan { seed: 5, ..PLAN }).err().unwrap().to_string();
        assert!(other.contains("seed 4") && other.contains("another folder"), "{other}");
    }

    #[test]
    fn the_data_of_a_real_server_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("rollcall.db"), "precious").unwrap();
        let error = Folder::open(Some(home.path().to_owned()), &PLAN).err().unwrap().to_string();
        assert!(error.contains("not of a demo"), "{error}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
