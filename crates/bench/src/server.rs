//! The tracker under test: the real binary with a real database.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use access::store::{NewTorrent, NewUser, Store};
use domain::clock::{Clock, SystemClock};

use crate::error::BenchError;
use crate::population::{self, Population};
use crate::process::{Cores, ServerProcess, free_address};

pub struct TrackerServer {
    pub process: ServerProcess,
    /// The same port for HTTP and UDP.
    pub address: SocketAddr,
}

/// Inserts every peer's user and every torrent before the tracker starts.
pub fn fill_database(population: &Population, data: &Path) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("starting a runtime for the database"))?;
    let created_at = SystemClock.now();
    let users = (0..population.peers()).map(move |peer| NewUser {
        id: Some(population::user_id(peer)),
        passkey: Some(population::passkey(peer)),
        created_at,
    });
    let torrents = (0..population.torrents()).map(move |torrent| NewTorrent {
        id: Some(population::torrent_id(torrent)),
        info_hash: population::info_hash(torrent),
        info_hash_v2: None,
        name: format!("bench {torrent}"),
        total_bytes: 1 << 30,
        created_at,
    });
    let url = format!("sqlite:{}", data.join("rollcall.db").display());
    let filled = runtime.block_on(async {
        let store = Store::open(&url).await?;
        store.add_users(users).await?;
        store.add_torrents(torrents).await?;
        store.close().await;
        Ok::<(), access::AccessError>(())
    });
    filled.map_err(|error| BenchError::Database(error.to_string()))
}

/// The path of the tracker's binary: beside this one.
pub fn binary_beside_this() -> Result<PathBuf, BenchError> {
    let this_program = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
    Ok(this_program.with_file_name("rollcall"))
}

/// Starts the tracker on its core and waits until it listens.
pub fn start(binary: &Path, data: &Path, cores: Cores) -> Result<TrackerServer, BenchError> {
    start_with(binary, data, cores, "")
}

/// With further sections of settings.
pub fn start_with(binary: &Path, data: &Path, cores: Cores, more: &str) -> Result<TrackerServer, BenchError> {
    let address = free_address()?;
    let config = data.join("bench.toml");
    let text = format!("{}\n{more}", settings(address));
    std::fs::write(&config, text).map_err(BenchError::io("writing the tracker's settings"))?;
    let args = ["serve", "--config", &config.display().to_string(), "--data", &data.display().to_string()]
        .map(str::to_owned);
    let mut process = ServerProcess::start(cores.server, binary, &args, &data.join("rollcall.log"))?;
    process.wait_for_tcp(address)?;
    process.wait_for_udp(address)?;
    Ok(TrackerServer { process, address })
}

/// The defaults, except for limits that a benchmark from one address would reach: these limits are checked, but never
/// reached. Peers announce again after seconds rather than half an hour, and must still receive peers.
fn settings(address: SocketAddr) -> String {
    format!(
        r#"[tracker]
http_addr = "{address}"
udp_addr = "{address}"
workers = 1
announce_interval_s = 1800
min_announce_interval_s = 0

[limits]
connections_per_address_max = 10000
requests_per_address_per_s = 10000000
announces_per_user_per_s = 10000000
announce_burst_per_user = 10000000

[log]
level = "warn"
"#
    )
}
