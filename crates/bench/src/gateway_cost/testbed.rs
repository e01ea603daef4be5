//! A server with its clients: the gateway of the real binary, or the bare WebSocket server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::BenchError;
use crate::process::{Cores, CpuTime, ServerProcess, free_address};
use crate::websocket_clients::protocol::{Protocol, TokenKey};
use crate::websocket_clients::{
    ClientId, CloseReason, Event, WebSocketClients, WebSocketClientsPlan, friends,
};

/// The token secret.
const SECRET: &str = "a secret for benchmarks on loopback only";
/// Connections being opened at once: fewer than a listener's queue holds, so that none is retried.
const OPENING_MAX: usize = 256;
/// Timeout until all are connected.
const CONNECT_LIMIT: Duration = Duration::from_secs(180);

#[derive(Clone, Debug)]
pub enum Side {
    /// The binary, with further settings (TOML lines of `[presence]`).
    Gateway {
        binary: PathBuf,
        /// Lines of the section `[presence]`.
        presence: String,
    },
    /// The bare server, as a subcommand of this program at this path.
    Bare(PathBuf),
}

/// What is measured, and what it is compared with.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The gateway, or a bare server in its place.
    pub gateway: Side,
    pub bare: Side,
}

impl Side {
    /// Whether it speaks no protocol on top of WebSocket.
    pub fn is_bare(&self) -> bool {
        matches!(self, Side::Bare(_))
    }
}

/// A running server and its clients. The server ends when this is dropped.
pub struct Testbed {
    pub process: ServerProcess,
    pub clients: WebSocketClients,
    /// The site's address, which has the metrics.
    pub address: SocketAddr,
    _folder: TempDir,
}

impl Testbed {
    /// Starts a server on its core. `friends` are pairs of users.
    pub fn start(side: &Side, cores: Cores, friends: &[(u64, u64)]) -> Result<Testbed, BenchError> {
        let folder = TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
        let address = free_address()?;
        let mut process = match side {
            Side::Gateway { binary, presence } => {
                friends::write(folder.path(), friends)?;
                start_gateway(binary, presence, address, folder.path(), cores)?
            }
            Side::Bare(program) => start_bare(program, address, folder.path(), cores)?,
        };
        process.wait_for_tcp(address)?;
        let protocol = match side {
            Side::Gateway { .. } => Protocol::Centrifuge(TokenKey::new(SECRET)),
            Side::Bare(_) => Protocol::Plain,
        };
        let clients = WebSocketClients::new(WebSocketClientsPlan {
            server: address,
            protocol,
            opening_max: OPENING_MAX,
        })?;
        Ok(Testbed { process, clients, address, _folder: folder })
    }

    /// Connects `count` users from `first` on. Returns the server's processor time.
    pub fn fill(&mut self, first: u64, count: u32) -> Result<CpuTime, BenchError> {
        let before = self.process.cpu_time()?;
        let wanted = self.clients.up() + count as usize;
        for user in first..first + u64::from(count) {
            let member = self.clients.join(user, 0);
            self.clients.open(member);
        }
        let mut disconnect: Option<CloseReason> = None;
        let is_full = self.clients.poll_until(
            CONNECT_LIMIT,
            |clients| clients.up() >= wanted || clients.opening() == 0,
            &mut |_, event| note_disconnect(event, &mut disconnect),
        )?;
        if let Some(ending) = disconnect {
            return Err(BenchError::NotAReply(format!("a connection ended while it was opened: {ending:?}")));
        }
        if !is_full {
            let in_flight = self.clients.opening();
            return Err(BenchError::Timeout { waited_s: CONNECT_LIMIT.as_secs(), in_flight });
        }
        Ok(self.process.cpu_time()?.since(before))
    }

    /// Polls for this long; an unexpected disconnect is an error.
    pub fn hold(&mut self, length: Duration) -> Result<(), BenchError> {
        let mut disconnect = None;
        self.clients.poll_for(length, &mut |_, event| note_disconnect(event, &mut disconnect))?;
        fail_if_disconnected(disconnect)
    }

    /// Closes all connections.
    pub fn empty(&mut self) {
        for member in self.clients.members() {
            self.clients.close(member, true);
        }
    }
}

/// Fails after an unexpected disconnect.
pub fn fail_if_disconnected(disconnect: Option<CloseReason>) -> Result<(), BenchError> {
    match disconnect {
        None => Ok(()),
        Some(ending) => Err(BenchError::NotAReply(format!("a client was disconnected: {ending:?}"))),
    }
}

/// Keeps the first unexpected ending.
pub fn note_disconnect(event: Event<'_>, disconnect: &mut Option<CloseReason>) {
    if let Event::Down(ending) = event {
        disconnect.get_or_insert_with(|| ending.clone());
    }
}

/// The client of the user at this position of [`Testbed::fill`].
pub fn client_at(position: u32) -> ClientId {
    ClientId(position as usize)
}

fn start_gateway(
    binary: &Path,
    presence: &str,
    address: SocketAddr,
    data: &Path,
    cores: Cores,
) -> Result<ServerProcess, BenchError> {
    let config = data.join("bench.toml");
    std::fs::write(&config, settings(address, presence)).map_err(BenchError::io("writing the settings"))?;
    let args = [
        "serve",
        "--config",
        &config.display().to_string(),
        "--data",
        &data.display().to_string(),
        "--roles",
        "gateway,site",
    ]
    .map(str::to_owned);
    ServerProcess::start(cores.server, binary, &args, &data.join("rollcall.log"))
}

fn start_bare(
    program: &Path,
    address: SocketAddr,
    data: &Path,
    cores: Cores,
) -> Result<ServerProcess, BenchError> {
    let args = ["baseline-websocket", "--listen", &address.to_string()].map(str::to_owned);
    ServerProcess::start(cores.server, program, &args, &data.join("bare.log"))
}

/// The defaults, except for limits that many clients on one machine would reach: these limits are checked, but never
/// reached.
fn settings(address: SocketAddr, presence: &str) -> String {
    format!(
        r#"[site]
addr = "{address}"
connections_max = 100000
requests_per_address_per_s = 0
metrics_open = true

[gateway]
token_hmac_secret = "{SECRET}"
commands_per_s = 100000

[presence]
{presence}

[log]
level = "warn"
"#
    )
}
