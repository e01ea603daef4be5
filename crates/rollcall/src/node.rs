//! This process among others: the data folder it holds, and its name.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use domain::clock::{Clock, SystemClock};
use journal::ProcessName;
use tracing::warn;

/// Held by the server that uses the data folder.
const LOCK_FILE: &str = "lock";
/// The node's name, made up once.
const NAME_FILE: &str = "node";

/// A server's hold on its data folder.
#[derive(Debug)]
pub struct Node {
    process: ProcessName,
    /// Given back when the process ends, however it ends.
    lock: Option<File>,
}

impl Node {
    /// Takes the data folder. Where another server holds it, this one goes by a name of its own, and leaves the
    /// other's unfinished work alone until that has been silent for long.
    pub fn take(data: &Path, configured_name: Option<&str>) -> anyhow::Result<Node> {
        fs::create_dir_all(data).with_context(|| format!("cannot make the folder {}", data.display()))?;
        let lock = try_lock(data)?;
        let name = name_of(data, configured_name)?;
        let name = if lock.is_some() {
            name
        } else {
            warn!(data = %data.display(), "another server uses the same data folder");
            format!("{name}-{}", std::process::id())
        };
        let process = ProcessName::new(&name, SystemClock.steady_ms());
        Ok(Node { process, lock })
    }

    /// The next process of a node that still runs. It has the node's name from the beginning, and takes the data
    /// folder once the other has ended ([`Node::take_folder`]).
    pub fn succeed(data: &Path, configured_name: Option<&str>) -> anyhow::Result<Node> {
        let process = ProcessName::new(&name_of(data, configured_name)?, SystemClock.steady_ms());
        Ok(Node { process, lock: None })
    }

    /// Takes the data folder, if nobody else has it; says whether it is ours.
    pub fn take_folder(&mut self, data: &Path) -> anyhow::Result<bool> {
        if self.lock.is_none() {
            self.lock = try_lock(data)?;
        }
        Ok(self.lock.is_some())
    }

    /// Whether the data folder is ours.
    pub fn has_folder(&self) -> bool {
        self.lock.is_some()
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

fn try_lock(data: &Path) -> anyhow::Result<Option<File>> {
    let path = data.join(LOCK_FILE);
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file.try_lock().is_ok().then_some(file))
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
        let first = Node::take(data.path(), None).unwrap();
        assert!(is_taken(data.path()));
        let second = Node::take(data.path(), None).unwrap();
        let name = |node: &Node| node.process().to_string().split('.').next().unwrap().to_owned();
        let first_name = name(&first);
        assert_ne!(first_name, name(&second));
        drop((first, second));
        assert!(!is_taken(data.path()));
        assert_eq!(name(&Node::take(data.path(), None).unwrap()), first_name);
        let named = Node::take(data.path(), Some("tracker-1")).unwrap();
        assert!(name(&named).starts_with("tracker-1"));
        drop(named);

        let before = Node::take(data.path(), None).unwrap();
        let mut next = Node::succeed(data.path(), None).unwrap();
        assert_eq!(name(&before), name(&next));
        assert!(!next.take_folder(data.path()).unwrap());
        drop(before);
        assert!(next.take_folder(data.path()).unwrap() && next.has_folder() && is_taken(data.path()));
    }
}
