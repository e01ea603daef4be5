//! `rollcall serve`: logs, database, listeners; then signals until the end; then drain.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use access::{Change, Gate, Store};
use anyhow::Context;
use domain::clock::SystemClock;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::{error, info, warn};
use tracker::pipeline::Secrets;
use tracker::traffic::LogSink;
use tracker::{Addresses, Eviction, Running, Tracker, server};

use crate::config::Config;
use crate::logging::{self, LogControl};
use crate::output::Output;

/// Starts the server and serves until it is told to end.
pub async fn run(config: Config, data: PathBuf, output: Output) -> anyhow::Result<()> {
    let log_control = logging::init(&config.log)?;
    let mut signals = Signals::listen()?;
    let store = Store::open(&config.database_url(&data)).await?;
    let gate = Arc::new(Gate::default());
    let follower = access::load(store.clone(), Arc::clone(&gate))
        .await?
        .poll_every(Duration::from_millis(config.access.poll_interval_ms.into()));
    let running = start_tracker(&config, &gate)?;
    let tracker = Arc::clone(running.tracker());
    let (stop_following, stopped) = oneshot::channel::<()>();
    let following = tokio::spawn(follower.run(move |change| apply(change, &tracker), stopped));
    greet(&running, &gate, &store, &data, output)?;
    info!(users = gate.user_count(), torrents = gate.torrent_count(), "ready");

    while signals.next().await == Told::Reload {
        reload(&config, &running, &log_control);
    }
    info!("draining");
    // The follower ends as soon as its sender is gone.
    drop(stop_following);
    tokio::task::spawn_blocking(move || running.drain()).await.context("draining failed")?;
    let _ = following.await;
    store.close().await;
    info!("stopped");
    Ok(())
}

fn start_tracker(config: &Config, gate: &Arc<Gate>) -> anyhow::Result<Running> {
    let settings = config.tracker_settings();
    let secrets = Secrets::draw().context("the system gives no random numbers")?;
    let tracker = Arc::new(Tracker::new(
        Arc::clone(gate),
        Arc::new(SystemClock),
        Arc::new(LogSink),
        settings.live.clone(),
        &secrets,
    ));
    Ok(server::start(&settings, tracker, &secrets)?)
}

/// Whoever is no longer allowed leaves the swarms at once, not when they would have expired.
fn apply(change: Change, tracker: &Tracker) {
    match change {
        Change::UserRemoved(user) => tracker.order_eviction(Eviction::User(user)),
        Change::TorrentRemoved(info_hash) => tracker.order_eviction(Eviction::Torrent(info_hash)),
        Change::ClientsChanged => tracker.order_eviction(Eviction::ForbiddenClients),
        Change::UserAdmitted(_) | Change::TorrentAdmitted(_) => {}
    }
}

/// Takes over what can change; a configuration that is not valid changes nothing. What cannot change is told each
/// time, as long as it differs from what the server was started with.
fn reload(started_with: &Config, running: &Running, log_control: &LogControl) {
    let new = match started_with.reload() {
        Ok(new) => new,
        Err(error) => {
            let reason = crate::one_line(&error.into());
            return error!(reason, "the configuration is not valid; everything stays as it was");
        }
    };
    for key in started_with.needs_restart(&new) {
        warn!(key, "this setting takes effect only after a restart");
    }
    if let Err(error) = log_control.set_filter(&new.log.level) {
        error!(reason = crate::one_line(&error), "log.level stays as it was");
    }
    running.reload(new.live_settings());
    info!("configuration reloaded");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Reload,
    Stop,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hang_up.recv() => Told::Reload,
        }
    }
}

/// Says where everything is, and what to do next.
fn greet(running: &Running, gate: &Gate, store: &Store, data: &Path, output: Output) -> anyhow::Result<()> {
    let addresses = running.addresses();
    let texts = |list: &[SocketAddr]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "http": texts(&addresses.http),
        "https": texts(&addresses.https),
        "udp": texts(&addresses.udp),
        "database": store.shown(),
        "users": gate.user_count(),
        "torrents": gate.torrent_count(),
    });
    output.show(&json, &greeting(addresses, gate, store, data))?;
    Ok(())
}

/// How clients name a listener: nobody can dial "every address".
fn host_of(address: &SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("<this machine>:{}", address.port()),
        false => address.to_string(),
    }
}

fn greeting(addresses: &Addresses, gate: &Gate, store: &Store, data: &Path) -> String {
    let mut text = format!("\nRollcall {} is up.\n\n", env!("CARGO_PKG_VERSION"));
    for (scheme, list) in [("https", &addresses.https), ("http", &addresses.http), ("udp", &addresses.udp)] {
        let mut hosts: Vec<String> = list.iter().map(host_of).collect();
        // IPv4 and IPv6 on every address are one host.
        hosts.dedup();
        for host in hosts {
            let _ = writeln!(text, "  announce  {scheme}://{host}/announce/<passkey>");
        }
    }
    let (users, torrents) = (gate.user_count(), gate.torrent_count());
    let _ = writeln!(text, "  database  {}  (users: {users}, torrents: {torrents})\n", store.shown());
    if users == 0 || torrents == 0 {
        let program = std::env::args().next().unwrap_or_else(|| "rollcall".to_owned());
        let program = match data == Path::new("./data") {
            true => program,
            false => format!("{program} --data {}", data.display()),
        };
        let _ = writeln!(
            text,
            "Next, in another terminal:\n  \
             {program} user add --id 1\n  \
             {program} torrent add FILE.torrent\n  \
             {program} torrent announce-url --user 1\n\n\
             Changes take effect within a second. Ctrl-C stops the server.\n"
        );
    }
    text
}
