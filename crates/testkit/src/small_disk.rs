//! A disk of a few MiB (tmpfs) that a test fills and frees.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A page, so that nothing is left for another file.
const PIECE: [u8; 4096] = [0xa5; 4096];
const BALLAST: &str = "ballast";

/// A mounted tmpfs. Dropping it unmounts it.
#[derive(Debug)]
pub struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Why file systems cannot be mounted here; none if they can. A test that needs one prints the reason and ends.
    pub fn unavailable() -> Option<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        SmallDisk::try_mount(folder.path(), 1).err()
    }

    /// Mounts it at a folder, which is made.
    #[track_caller]
    pub fn mount(at: &Path, mib: u32) -> SmallDisk {
        fs::create_dir_all(at).expect("the folder can be made");
        SmallDisk::try_mount(at, mib).unwrap_or_else(|reason| panic!("cannot mount a tmpfs: {reason}"))
    }

    fn try_mount(at: &Path, mib: u32) -> Result<SmallDisk, String> {
        let options = format!("size={mib}m,mode=0700");
        let tried =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "rollcall-test"]).arg(at).output();
        match tried {
            Ok(output) if output.status.success() => Ok(SmallDisk { at: at.to_owned() }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("mount: {error}")),
        }
    }

    /// Takes all the room there is.
    #[track_caller]
    pub fn fill(&self) {
        let mut ballast = File::options()
            .append(true)
            .create(true)
            .open(self.ballast())
            .expect("the ballast can be opened");
        loop {
            match ballast.write(&PIECE) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("cannot fill the disk: {error}"),
            }
        }
    }

    /// Frees what [`SmallDisk::fill`] took.
    #[track_caller]
    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("the ballast can be removed");
    }

    pub fn path(&self) -> &Path {
        &self.at
    }

    fn ballast(&self) -> PathBuf {
        self.at.join(BALLAST)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy: a process that is just ending may still have a file open.
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}
