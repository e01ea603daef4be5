//! The node's name and the locks of its data folder.
//!
//! # Locks
//!
//! All are kernel locks on files in the data folder (`flock`), released when the process ends in any way.
//!
//! - `lock` is held by the server that has the node's name and offers the take-over.
//! - `locks/ROLE` is held by the server with this role. Servers with different roles may share a data folder; two
//!   with the same role may not, because both would write the same snapshot, read the same entries and expire the
//!   same peers.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum;
use domain::clock::{Clock, SystemClock};
use journal::ProcessName;
use tracing::warn;

use crate::roles::{Role, Roles};

const LOCK_FILE: &str = "lock";
const ROLE_LOCKS: &str = "locks";
/// Generated once.
const NAME_FILE: &str = "node";
const HOLDER_BYTES_MAX: u64 = 32;

#[derive(Debug)]
pub struct Node {
    process: ProcessName,
    /// Released when the process ends in any way.
    lock: Option<File>,
    roles: Roles,
    /// Of all roles, or empty.
    role_locks: Vec<File>,
}

impl Node {
    /// Locks the data folder. If a server with other roles holds it, this process uses a name of its own and leaves
    /// the other's pending entries alone. Fails if a server has one of these roles.
    pub fn take(data: &Path, configured_name: Option<&str>, roles: &Roles) -> anyhow::Result<Node> {
        create_private_folder(data)?;
        let role_locks = match lock_roles(data, roles)? {
            RoleLocks::Ours(files) => files,
            RoleLocks::Held { role, holder } => bail!(
                "another server{holder} uses the data folder {} with the role {}: stop it first, or replace it with \
                 rollcall serve --take-over; or use another folder with --data",
                data.display(),
                role.name()
            ),
        };
        let lock = try_lock(&data.join(LOCK_FILE))?.ok();
        let name = name_of(data, configured_name)?;
        let name = if lock.is_some() {
            name
        } else {
            warn!(data = %data.display(), "another server with other roles uses the same data folder");
            format!("{name}-{}", std::process::id())
        };
        let process = ProcessName::new(&name, SystemClock.steady_ms());
        Ok(Node { process, lock, roles: roles.clone(), role_locks })
    }

    /// For a take-over: the next process of a node that still runs as process `running`. It has the node's name from
    /// the start and locks the data folder once the other has ended ([`Node::take_folder`]). Fails if the other has
    /// roles that this one lacks, because they would end with it, and if a third server has one of ours.
    pub fn for_take_over(
        data: &Path,
        configured_name: Option<&str>,
        roles: &Roles,
        running: Option<u32>,
    ) -> anyhow::Result<Node> {
        if let Some(running) = running {
            check_roles_of(running, data, roles)?;
        }
        let process = ProcessName::new(&name_of(data, configured_name)?, SystemClock.steady_ms());
        Ok(Node { process, lock: None, roles: roles.clone(), role_locks: Vec::new() })
    }

    /// Returns whether this process holds the data folder.
    pub fn take_folder(&mut self, data: &Path) -> anyhow::Result<bool> {
        if self.role_locks.is_empty()
            && let RoleLocks::Ours(files) = lock_roles(data, &self.roles)?
        {
            self.role_locks = files;
        }
        if self.lock.is_none() {
            self.lock = try_lock(&data.join(LOCK_FILE))?.ok();
        }
        Ok(self.has_folder())
    }

    pub fn has_folder(&self) -> bool {
        self.lock.is_some() && !self.role_locks.is_empty()
    }

    pub fn process(&self) -> &ProcessName {
        &self.process
    }
}

/// Creates no file.
pub fn is_taken(data: &Path) -> bool {
    // Shared, and released at once: a server that starts at this moment would at worst use another name.
    File::open(data.join(LOCK_FILE)).is_ok_and(|file| file.try_lock_shared().is_err())
}

/// Mode 0700, because it contains every passkey. An existing folder is not changed.
pub fn create_private_folder(folder: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))
}

enum RoleLocks {
    Ours(Vec<File>),
    Held {
        role: Role,
        /// Its process as text; empty if unknown.
        holder: String,
    },
}

fn lock_roles(data: &Path, roles: &Roles) -> anyhow::Result<RoleLocks> {
    let folder = data.join(ROLE_LOCKS);
    create_private_folder(&folder)?;
    let mut ours = Vec::new();
    for role in roles.iter() {
        match try_lock(&folder.join(role.name()))? {
            Ok(file) => ours.push(file),
            Err(holder) => return Ok(RoleLocks::Held { role, holder }),
        }
    }
    Ok(RoleLocks::Ours(ours))
}

fn check_roles_of(running: u32, data: &Path, roles: &Roles) -> anyhow::Result<()> {
    for role in Role::value_variants() {
        let Some(holder) = holder_of(&data.join(ROLE_LOCKS).join(role.name())) else { continue };
        if holder == running && !roles.include(*role) {
            bail!(
                "the running server (process {running}) also has the role {}: take over with the same --roles as it has",
                role.name()
            );
        }
        if holder != running && roles.include(*role) {
            bail!(
                "another server (process {holder}) uses the data folder {} with the role {}, and is not part of this take-over: \
                 stop it first",
                data.display(),
                role.name()
            );
        }
    }
    Ok(())
}

/// None if the lock is free or its holder unknown.
fn holder_of(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok()?;
    file.try_lock_shared().err()?;
    pid_in(&mut file)
}

/// The lock, or its holder as text.
fn try_lock(path: &Path) -> anyhow::Result<Result<File, String>> {
    let explain = || format!("cannot write {}", path.display());
    // Not truncated: it may contain the process id of the holder.
    let mut file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .with_context(explain)?;
    match file.try_lock() {
        Ok(()) => {
            // Informational only, so a full disk does not prevent a start.
            let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            Ok(Ok(file))
        }
        Err(TryLockError::WouldBlock) => Ok(Err(holder_in(&mut file))),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn holder_in(file: &mut File) -> String {
    pid_in(file).map_or_else(String::new, |pid| format!(" (process {pid})"))
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn name_of(data: &Path, configured: Option<&str>) -> anyhow::Result<String> {
    match configured {
        Some(name) => Ok(name.to_owned()),
        None => name_in(data),
    }
}

/// Generated if there is none.
fn name_in(data: &Path) -> anyhow::Result<String> {
    let path = data.join(NAME_FILE);
    match fs::read_to_string(&path) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
        _ => {}
    }
    let random = getrandom::u64().context("cannot read random numbers from the system")?;
    let name = format!("rollcall-{:08x}", random as u32);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    writeln!(file, "{name}").with_context(|| format!("cannot write {}", path.display()))?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_name_and_concurrent_processes_have_different_ones() {
        let data = tempfile::tempdir().unwrap();
        let (tracker, ledger): (Roles, Roles) = ("tracker".parse().unwrap(), "ledger".parse().unwrap());
        let first = Node::take(data.path(), None, &tracker).unwrap();
        assert!(is_taken(data.path()));
        let second = Node::take(data.path(), None, &ledger).unwrap();
        let name = |node: &Node| node.process().to_string().split('.').next().unwrap().to_owned();
        let first_name = name(&first);
        assert_ne!(first_name, name(&second));
        drop((first, second));
        assert!(!is_taken(data.path()));
        assert_eq!(name(&Node::take(data.path(), None, &tracker).unwrap()), first_name);
        let named = Node::take(data.path(), Some("tracker-1"), &tracker).unwrap();
        assert!(name(&named).starts_with("tracker-1"));
        drop(named);

        let before = Node::take(data.path(), None, &tracker).unwrap();
        let both = "tracker,ledger".parse().unwrap();
        let own_pid = Some(std::process::id());
        let mut next = Node::for_take_over(data.path(), None, &tracker, own_pid).unwrap();
        assert!(Node::for_take_over(data.path(), None, &both, own_pid).is_ok(), "a role may be added");
        let lacking = Node::for_take_over(data.path(), None, &ledger, own_pid).unwrap_err().to_string();
        assert!(lacking.contains("also has the role tracker"), "{lacking}");
        let third = Node::for_take_over(data.path(), None, &tracker, Some(1)).unwrap_err().to_string();
        assert!(third.contains("is not part of this take-over"), "{third}");
        assert_eq!(name(&before), name(&next));
        assert!(!next.take_folder(data.path()).unwrap());
        drop(before);
        assert!(next.take_folder(data.path()).unwrap() && next.has_folder() && is_taken(data.path()));
    }

    #[test]
    fn a_role_is_held_once_and_a_conflict_releases_all_locks() {
        let data = tempfile::tempdir().unwrap();
        let all = Node::take(data.path(), None, &Roles::default()).unwrap();
        let error = Node::take(data.path(), None, &"site".parse().unwrap()).unwrap_err().to_string();
        for part in ["--take-over", "role site", &format!("process {}", std::process::id())] {
            assert!(error.contains(part), "{part} in {error}");
        }
        drop(all);
        let site = Node::take(data.path(), None, &"site".parse().unwrap()).unwrap();
        assert!(Node::take(data.path(), None, &Roles::default()).is_err());
        assert!(Node::take(data.path(), None, &"tracker,ledger".parse().unwrap()).is_ok());
        drop(site);
        assert!(Node::take(data.path(), None, &Roles::default()).unwrap().has_folder());
    }
}
