//! This process among others: the data folder it holds, and its name.
//!
//! # Locks
//!
//! All of them are locks of the kernel on files in the data folder (`flock`), which end with the process, however it ends.
//!
//! - `lock` is held by one server: it has the node's name, and can be taken over from.
//! - `locks/ROLE` is held by the server that has this role. Servers of different roles may share a data folder; two with
//!   one role may not, since both would write the same snapshot, read the same entries and expire the same peers.

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

/// Held by the server that uses the data folder.
const LOCK_FILE: &str = "lock";
/// The folder of the locks of each role.
const ROLE_LOCKS: &str = "locks";
/// The node's name, made up once.
const NAME_FILE: &str = "node";
/// Far longer than a process id.
const HOLDER_BYTES_MAX: u64 = 32;

/// A server's hold on its data folder.
#[derive(Debug)]
pub struct Node {
    process: ProcessName,
    /// Given back when the process ends, however it ends.
    lock: Option<File>,
    roles: Roles,
    /// Those of all roles, or none.
    role_locks: Vec<File>,
}

impl Node {
    /// Takes the data folder. Where a server of other roles holds it, this one goes by a name of its own, and leaves the
    /// other's unfinished work alone until that has been silent for long. Fails where a server has one of these roles.
    pub fn take(data: &Path, configured_name: Option<&str>, roles: &Roles) -> anyhow::Result<Node> {
        create_private_folder(data)?;
        let role_locks = match lock_roles(data, roles)? {
            RoleLocks::Ours(files) => files,
            RoleLocks::Held { role, holder } => bail!(
                "another server{holder} uses the data folder {} with the role {}: stop it first, or take its place with \
                 rollcall serve --take-over; or give this one another folder with --data",
                data.display(),
                role.name()
            ),
        };
        let lock = try_lock(&data.join(LOCK_FILE))?.ok();
        let name = name_of(data, configured_name)?;
        let name = if lock.is_some() {
            name
        } else {
            warn!(data = %data.display(), "another server, of other roles, uses the same data folder");
            format!("{name}-{}", std::process::id())
        };
        let process = ProcessName::new(&name, SystemClock.steady_ms());
        Ok(Node { process, lock, roles: roles.clone(), role_locks })
    }

    /// The next process of a node that still runs as the process `running`. It has the node's name from the beginning, and
    /// takes the data folder once the other has ended ([`Node::take_folder`]). Fails where the other has roles that this one
    /// lacks, which would end with it, and where a third server has one of ours.
    pub fn succeed(
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

    /// Takes the data folder, if no other server has it; says whether it is ours.
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

    /// Whether the data folder is ours.
    pub fn has_folder(&self) -> bool {
        self.lock.is_some() && !self.role_locks.is_empty()
    }

    /// How consumers of this process are named.
    pub fn process(&self) -> &ProcessName {
        &self.process
    }
}

/// Whether a server holds this data folder right now. Makes nothing.
pub fn is_taken(data: &Path) -> bool {
    // Shared, and given back at once: a server that starts in this very moment would at worst take another name.
    File::open(data.join(LOCK_FILE)).is_ok_and(|file| file.try_lock_shared().is_err())
}

/// Makes the folder where it is missing, for its owner alone: it holds every passkey. One that is there stays as it is.
pub fn create_private_folder(folder: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}

enum RoleLocks {
    Ours(Vec<File>),
    Held {
        role: Role,
        /// Its process, as far as it is known: for a text.
        holder: String,
    },
}

/// The locks of all roles, or which one another process has.
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
                "another server (process {holder}) uses the data folder {} with the role {}, and cannot be taken over from: \
                 stop it first",
                data.display(),
                role.name()
            );
        }
    }
    Ok(())
}

/// The process that holds a lock; none if the lock is free, or its holder is not known.
fn holder_of(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok()?;
    file.try_lock_shared().err()?;
    pid_in(&mut file)
}

/// The lock, or a word about the process that has it.
fn try_lock(path: &Path) -> anyhow::Result<Result<File, String>> {
    let explain = || format!("cannot write {}", path.display());
    // Not truncated: it may hold the process id of another.
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
            // For people only, so a full disk is no reason not to start.
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

/// The name in the data folder; made up if there is none.
fn name_in(data: &Path) -> anyhow::Result<String> {
    let path = data.join(NAME_FILE);
    match fs::read_to_string(&path) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
        _ => {}
    }
    let random = getrandom::u64().context("the system gives no random numbers")?;
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
    fn a_node_keeps_its_name_and_two_at_once_have_different_ones() {
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
        let mut next = Node::succeed(data.path(), None, &tracker, own_pid).unwrap();
        assert!(Node::succeed(data.path(), None, &both, own_pid).is_ok(), "a role may be added");
        let lacking = Node::succeed(data.path(), None, &ledger, own_pid).unwrap_err().to_string();
        assert!(lacking.contains("also has the role tracker"), "{lacking}");
        let third = Node::succeed(data.path(), None, &tracker, Some(1)).unwrap_err().to_string();
        assert!(third.contains("cannot be taken over from"), "{third}");
        assert_eq!(name(&before), name(&next));
        assert!(!next.take_folder(data.path()).unwrap());
        drop(before);
        assert!(next.take_folder(data.path()).unwrap() && next.has_folder() && is_taken(data.path()));
    }

    #[test]
    fn a_role_is_had_once_and_what_was_locked_before_the_conflict_is_given_back() {
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
