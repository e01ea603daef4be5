//! The data folder: present, writable, private, with free space, on a file system that supports locks.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use domain::counted;
use rustix::fs::{Access, StatVfs};

use super::Target;
use super::finding::Findings;

const MIB: u64 = 1 << 20;
/// The journal soon runs out of space.
const FREE_MIB_PROBLEM: u64 = 64;
const FREE_MIB_WARNING: u64 = 1024;

/// Magic numbers of file systems without reliable locks or shared memory for SQLite.
const NETWORK_FILE_SYSTEMS: [(i64, &str); 5] =
    [(0x6969, "NFS"), (0xff53_4d42, "CIFS"), (0xfe53_4d42, "SMB"), (0x517b, "SMB"), (0x0102_1997, "9p")];

pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("data folder");
    let data = &target.data;
    let shown = data.display();
    match fs::metadata(data) {
        Ok(folder) if folder.is_dir() => {}
        Ok(_) => {
            findings.problem(
                format!("{shown} is a file"),
                format!("mv {shown} {shown}.old, or use another folder with --data"),
            );
            return findings;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            absent(&mut findings, data);
            return findings;
        }
        Err(error) => {
            findings.problem(format!("cannot inspect {shown}: {error}"), format!("ls -ld {shown}"));
            return findings;
        }
    }
    writable(&mut findings, data);
    free_space(&mut findings, data);
    file_system(&mut findings, data);
    private(&mut findings, data);
    let state = if target.is_running { "in use by a server" } else { "not in use" };
    findings.ok(format!("{shown}: {state}"));
    findings
}

/// The first start creates it.
fn absent(findings: &mut Findings, data: &Path) {
    let parent = data.ancestors().skip(1).find(|folder| folder.as_os_str().is_empty() || folder.exists());
    let parent = match parent {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let shown = data.display();
    if may_write(&parent) {
        findings.ok(format!("{shown} does not exist yet: the first start creates it"));
        free_space(findings, &parent);
    } else {
        findings.problem(
            format!("{shown} does not exist, and {} is not writable", parent.display()),
            format!("as root: install -d -m 700 -o $(id -un) {shown}; or use another folder with --data"),
        );
    }
}

fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn writable(findings: &mut Findings, data: &Path) {
    if !may_write(data) {
        let shown = data.display();
        findings.problem(
            format!("{shown} is not writable by this user"),
            format!("run as the user of the server, or as root: chown -R $(id -un) {shown}"),
        );
    }
}

fn free_space(findings: &mut Findings, path: &Path) {
    let Ok(StatVfs { f_frsize, f_bavail, f_favail, f_files, .. }) = rustix::fs::statvfs(path) else { return };
    let free_mib = f_bavail.saturating_mul(f_frsize) / MIB;
    let found = format!("{free_mib} MiB free at {}", path.display());
    let remedy = "free space, or move the folder to a larger disk and use --data";
    match free_mib {
        ..FREE_MIB_PROBLEM => findings.problem(found, remedy),
        FREE_MIB_PROBLEM..FREE_MIB_WARNING => findings.warning(found, remedy),
        _ => findings.ok(found),
    }
    // Some file systems do not report inodes: 0 of 0.
    if f_files > 0 && f_favail < 100 {
        findings.problem(
            format!("inodes for only {} more at {}", counted(f_favail, "file"), path.display()),
            remedy,
        );
    }
}

fn file_system(findings: &mut Findings, data: &Path) {
    let Ok(system) = rustix::fs::statfs(data) else { return };
    // The kernel's number has 32 bits, whatever the type.
    let kind = i64::from(system.f_type as u32);
    if let Some((_, name)) = NETWORK_FILE_SYSTEMS.iter().find(|(number, _)| *number == kind) {
        findings.problem(
            format!("{} is on {name}, which can damage SQLite files", data.display()),
            "use a folder on a local disk with --data; for several machines use redis.url and database.url",
        );
    }
}

/// Folders of older versions, or created by hand, may be open to others.
fn private_folders(findings: &mut Findings, data: &Path) {
    let is_open =
        |folder: &PathBuf| fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o007 != 0);
    let folders = [data.to_owned(), data.join("logs")];
    // If the data folder is private, so is everything in it.
    if is_open(&folders[0]) {
        let open: Vec<String> = folders
            .iter()
            .filter(|folder| is_open(folder))
            .map(|folder| folder.display().to_string())
            .collect();
        let open = open.join(" ");
        findings.warning(format!("accessible by other users: {open}"), format!("chmod 700 {open}"));
    }
}

/// Files with passkeys must be private.
fn private(findings: &mut Findings, data: &Path) {
    let mut open_to_all: Vec<String> = Vec::new();
    let mut owners: Vec<u32> = Vec::new();
    for name in ["rollcall.db", "journal.db", "node", "logs/audit.log"] {
        let path = data.join(name);
        let Ok(file) = fs::metadata(&path) else { continue };
        owners.push(file.uid());
        if file.permissions().mode() & 0o077 != 0 {
            open_to_all.push(path.display().to_string());
        }
    }
    private_folders(findings, data);
    let folder_mode = fs::metadata(data).map_or(0o700, |folder| folder.permissions().mode());
    if !open_to_all.is_empty() && folder_mode & 0o007 != 0 {
        findings.warning(
            format!("readable by other users: {}", open_to_all.join(", ")),
            format!("chmod 600 {}", open_to_all.join(" ")),
        );
    }
    owners.dedup();
    if owners.len() > 1 {
        findings.problem(
            format!("the files in {} have different owners, so no server can use them all", data.display()),
            format!("as root: chown -R USER {}, where USER is the user of the server", data.display()),
        );
    }
}
