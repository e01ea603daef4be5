//! The account of a server that refuses to run as root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::process::missing;

/// An account of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account `name` if we are root, else `None`.
    pub(crate) fn instead_of_root(name: &str) -> Option<Account> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let accounts = std::fs::read_to_string("/etc/passwd").expect("the list of accounts can be read");
        let account = accounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            match fields.as_slice() {
                [found, _, uid, gid, ..] if *found == name => {
                    Some(Account { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
                }
                _ => None,
            }
        });
        Some(account.unwrap_or_else(|| panic!("{}", missing(&format!("the account {name}")))))
    }

    /// Lets a program run as this account.
    pub(crate) fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    pub(crate) fn own(self, folder: &Path) {
        chown(folder, Some(self.uid), Some(self.gid)).expect("root may give away a folder");
    }
}
