//! Other trackers under the same load: started by a command of the caller, on the server's core.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::clock::Stopwatch;
use simulate::announce::PasskeyIn;
use simulate::load::{HttpRequests, Peers, Schedule, keeps_alive, udp_answers};

use crate::process::{ServerProcess, free_address};
use crate::run::Run;
use crate::server::fill_database;
use crate::sockets::{Protocol, Target};

/// A tracker to compare with: `name=command`.
///
/// `{port}` in the command is the port on 127.0.0.1 for TCP, UDP or both; `{data}` is a folder of its own, with the
/// population's infohashes (`torrents.txt`), passkeys (`passkeys.txt`), and both in a database of Rollcall
/// (`rollcall.db`).
#[derive(Clone, Debug)]
pub struct PeerSpec {
    pub name: String,
    pub command: String,
}

impl std::str::FromStr for PeerSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerSpec, String> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() && command.contains("{port}") => {
                Ok(PeerSpec { name: name.to_owned(), command: command.to_owned() })
            }
            _ => Err("expected NAME=COMMAND with {port} in the command".to_owned()),
        }
    }
}

/// Timeout until it answers.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// From the first protocol that answers until the other one does not exist.
const SECOND_PROTOCOL_LIMIT: Duration = Duration::from_secs(2);

pub struct PeerTracker {
    pub process: ServerProcess,
    pub address: SocketAddr,
}

/// What a tracker that knows its users and torrents can load.
pub fn write_data(peers: &Peers, folder: &Path) -> anyhow::Result<()> {
    // It may change to a user without rights.
    std::fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let torrents = peers.torrents().map(|(_, info_hash)| format!("{info_hash}\n")).collect::<String>();
    let passkeys = peers.users().map(|(_, passkey)| format!("{passkey}\n")).collect::<String>();
    std::fs::write(folder.join("torrents.txt"), torrents).context("writing torrents.txt")?;
    std::fs::write(folder.join("passkeys.txt"), passkeys).context("writing passkeys.txt")?;
    fill_database(peers, &format!("sqlite:{}", folder.join("rollcall.db").display()))
}

impl PeerTracker {
    pub fn start(run: &Run<'_>, spec: &PeerSpec, folder: &Path) -> anyhow::Result<PeerTracker> {
        let address = free_address()?;
        let command = spec
            .command
            .replace("{port}", &address.port().to_string())
            .replace("{data}", &folder.display().to_string());
        // `exec`: the process that is ended later is the tracker, not its shell.
        let args = ["-c".to_owned(), format!("exec {command}")];
        let process =
            ServerProcess::start(run.cores.server, Path::new("sh"), &args, &folder.join("peer.log"))?;
        Ok(PeerTracker { process, address })
    }

    /// What it answers.
    pub fn targets(&mut self, peers: &Peers) -> anyhow::Result<Vec<Target>> {
        let (watch, mut first_at) = (Stopwatch::start(), None);
        let server = self.address;
        let mut request = Vec::new();
        HttpRequests::new(peers, &server.to_string(), PasskeyIn::Query)
            .write(Schedule::new(1, 0).next_announce(), &mut request);
        loop {
            self.process.must_run()?;
            let http = keeps_alive(server, &request);
            let http = http.map(|keep_alive| Target { server, protocol: Protocol::Http, keep_alive });
            let udp = udp_answers(server);
            let udp = udp.then_some(Target { server, protocol: Protocol::Udp, keep_alive: true });
            let found: Vec<Target> = http.into_iter().chain(udp).collect();
            if !found.is_empty() && first_at.is_none() {
                first_at = Some(watch.elapsed());
            }
            if found.len() == 2 || first_at.is_some_and(|at| watch.elapsed() > at + SECOND_PROTOCOL_LIMIT) {
                return Ok(found);
            }
            if watch.elapsed() > READY_LIMIT {
                bail!("{} answers neither TCP nor UDP within {READY_LIMIT:?}", self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_name_and_a_command_with_its_port() {
        let peer: PeerSpec = "opentracker=opentracker -p {port} -P {port} -x a=b".parse().unwrap();
        assert_eq!(peer.name, "opentracker");
        assert_eq!(peer.command, "opentracker -p {port} -P {port} -x a=b");
        assert!("opentracker".parse::<PeerSpec>().is_err());
        assert!("opentracker=opentracker -p 6969".parse::<PeerSpec>().is_err());
    }
}
