//! A server with a crowd before it: the gateway of the real binary, or the bare WebSocket server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::crowd::speech::{Speech, TokenKey};
use crate::crowd::{Crowd, CrowdPlan, Ending, Event, Member, friends};
use crate::error::LoadError;
use crate::process::{Cores, CpuTime, ServerProcess, free_address};

/// What tokens are signed with here.
const SECRET: &str = "a secret for benchmarks on loopback only";
/// Connections on their way at once: fewer than wait in a listener's queue, so that none has to knock twice.
const OPENING_MAX: usize = 256;
/// How long everybody may take to be connected.
const CONNECT_LIMIT: Duration = Duration::from_secs(180);

/// Which server.
#[derive(Clone, Debug)]
pub enum Side {
    /// The binary at this place, with these further settings (TOML, as lines of `[presence]`).
    Gateway {
        /// The program.
        binary: PathBuf,
        /// Lines of the section `[presence]`.
        presence: String,
    },
    /// The bare server, which this program at this place is when it is told to be.
    Bare(PathBuf),
}

/// What is measured, and what it is held against.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The gateway, or a bare server that stands in for it.
    pub gateway: Side,
    /// The bare server.
    pub bare: Side,
}

impl Side {
    /// Whether nothing but messages is spoken there.
    pub fn is_bare(&self) -> bool {
        matches!(self, Side::Bare(_))
    }
}

/// A running server and its crowd. The server ends with this.
pub struct Ground {
    /// The server.
    pub process: ServerProcess,
    /// Everybody who is connected to it.
    pub crowd: Crowd,
    /// Where its site is, with the metrics.
    pub address: SocketAddr,
    _folder: TempDir,
}

impl Ground {
    /// Starts a server on its core. `friends` are pairs of users.
    pub fn start(side: &Side, cores: Cores, friends: &[(u64, u64)]) -> Result<Ground, LoadError> {
        let folder = TempDir::with_prefix("loadgen-").map_err(LoadError::io("making a folder"))?;
        let address = free_address()?;
        let mut process = match side {
            Side::Gateway { binary, presence } => {
                friends::write(folder.path(), friends)?;
                start_gateway(binary, presence, address, folder.path(), cores)?
            }
            Side::Bare(program) => start_bare(program, address, folder.path(), cores)?,
        };
        process.wait_for_tcp(address)?;
        let speech = match side {
            Side::Gateway { .. } => Speech::Centrifuge(TokenKey::new(SECRET)),
            Side::Bare(_) => Speech::Plain,
        };
        let crowd = Crowd::new(CrowdPlan { server: address, speech, opening_max: OPENING_MAX })?;
        Ok(Ground { process, crowd, address, _folder: folder })
    }

    /// Lets the users from `first` on connect, and says what that took of the server's time.
    pub fn fill(&mut self, first: u64, count: u32) -> Result<CpuTime, LoadError> {
        let before = self.process.cpu_time()?;
        let wanted = self.crowd.up() + count as usize;
        for user in first..first + u64::from(count) {
            let member = self.crowd.join(user, 0);
            self.crowd.open(member);
        }
        let mut trouble: Option<Ending> = None;
        let is_full = self.crowd.turn_until(
            CONNECT_LIMIT,
            |crowd| crowd.up() >= wanted || crowd.on_their_way() == 0,
            &mut |_, event| note_trouble(event, &mut trouble),
        )?;
        if let Some(ending) = trouble {
            return Err(LoadError::NotAReply(format!("a connection ended while it was opened: {ending:?}")));
        }
        if !is_full {
            let in_flight = self.crowd.on_their_way();
            return Err(LoadError::Silent { silent_s: CONNECT_LIMIT.as_secs(), in_flight });
        }
        Ok(self.process.cpu_time()?.since(before))
    }

    /// Turns for so long, failing if anybody is disconnected meanwhile.
    pub fn hold(&mut self, length: Duration) -> Result<(), LoadError> {
        let mut trouble = None;
        self.crowd.turn_for(length, &mut |_, event| note_trouble(event, &mut trouble))?;
        none_lost(trouble)
    }

    /// Everybody says goodbye.
    pub fn empty(&mut self) {
        for member in self.crowd.members() {
            self.crowd.close(member, true);
        }
    }
}

/// Fails if somebody was disconnected.
pub fn none_lost(trouble: Option<Ending>) -> Result<(), LoadError> {
    match trouble {
        None => Ok(()),
        Some(ending) => Err(LoadError::NotAReply(format!("somebody was disconnected: {ending:?}"))),
    }
}

/// Keeps the first ending that nobody asked for.
pub fn note_trouble(event: Event<'_>, trouble: &mut Option<Ending>) {
    if let Event::Down(ending) = event {
        trouble.get_or_insert_with(|| ending.clone());
    }
}

/// The member who stands for the user at this position of [`Ground::fill`].
pub fn member_at(position: u32) -> Member {
    Member(position as usize)
}

fn start_gateway(
    binary: &Path,
    presence: &str,
    address: SocketAddr,
    data: &Path,
    cores: Cores,
) -> Result<ServerProcess, LoadError> {
    let config = data.join("bench.toml");
    std::fs::write(&config, settings(address, presence)).map_err(LoadError::io("writing the settings"))?;
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
) -> Result<ServerProcess, LoadError> {
    let args = ["floor-websocket", "--listen", &address.to_string()].map(str::to_owned);
    ServerProcess::start(cores.server, program, &args, &data.join("bare.log"))
}

/// The defaults, except where a crowd on one machine would meet a limit meant for strangers: the limits are checked all
/// the same, only never reached.
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
