//! `rollcall serve`: logs, database, listeners; then signals until the end; then drain.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use access::{Change, Gate, Store};
use anyhow::{Context, bail};
use domain::clock::SystemClock;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::{error, info, warn};
use tracker::secrets::Secrets;
use tracker::settings::LiveSettings;
use tracker::traffic::TrafficSink;
use tracker::{Addresses, Eviction, Running, Tracker, server};

use super::Desk;
use crate::backends;
use crate::config::{Config, Name};
use crate::engine::Engine;
use crate::logging::{self, LogControl};
use crate::node::Node;
use crate::output::Output;
use crate::roles::{Role, Roles};
use crate::service_manager;
use crate::site_side::{Lent, OpenSite, ServingSite};
use crate::vouching;

/// Starts the server and serves until it is told to end.
pub async fn run(desk: Desk, roles: &Roles) -> anyhow::Result<()> {
    let Desk { config, data, output } = desk;
    if roles.include(Role::Gateway) && !roles.include(Role::Site) {
        bail!("the role gateway needs the role site: people connect through its port");
    }
    let log_control = logging::init(&config.log)?;
    let mut signals = Signals::listen()?;
    let node = Node::take(&data, config.journal.node_name.as_ref().map(Name::as_str))?;
    let store = Store::open(&config.database_url(&data)).await?;
    let (gate, unopened) = vouching::gate(&config)?;
    let gate = Arc::new(gate);
    let follower = access::load(store.clone(), Arc::clone(&gate))
        .await?
        .poll_every(Duration::from_millis(config.access.poll_interval_ms.into()));
    let mut engine = Engine::open(&config, &data, &node, roles, &gate).await?;
    engine.keep_tidy(backends::open_whitelist(&config, &store)?.store);
    let running = match roles.include(Role::Tracker) {
        true => Some(start_tracker(&config, &gate, &engine)?),
        false => None,
    };
    let site = match roles.include(Role::Site) && !config.site.addr.is_empty() {
        true => {
            let tracker = running.as_ref().map(|running| Arc::clone(running.tracker()));
            let lent = Lent {
                config: &config,
                data: &data,
                store: &store,
                gate: &gate,
                tracker,
                certificate: running.as_ref().and_then(Running::certificate).cloned(),
                with_gateway: roles.include(Role::Gateway),
                follower: follower.counters(),
            };
            Some(OpenSite::open(lent, &mut engine).await?)
        }
        false => None,
    };
    engine.begin();
    let office = match &running {
        Some(running) => Some(unopened.open(&config, &store, &gate, Arc::clone(running.tracker())).await?),
        None => None,
    };
    let tracker = running.as_ref().map(|running| Arc::clone(running.tracker()));
    let (stop_following, stopped) = oneshot::channel::<()>();
    let following = tokio::spawn(follower.run(move |change| apply(change, tracker.as_deref()), stopped));
    let addresses = running.as_ref().map(|running| running.addresses().clone()).unwrap_or_default();
    let mut site = site.map(OpenSite::serve);
    if let Some(site) = &mut site {
        site.make_first_key().await?;
    }
    let scene =
        Scene { config: &config, addresses, site: site.as_ref(), gate: &gate, store: &store, data: &data };
    scene.greet(output)?;
    info!(users = gate.user_count(), torrents = gate.torrent_count(), "ready");
    service_manager::tell_ready();

    while signals.next().await == Told::Reload {
        reload(&config, running.as_ref(), &engine, &log_control);
        site.iter().for_each(ServingSite::reload);
    }
    info!("draining");
    service_manager::tell_stopping();
    if let Some(site) = site {
        site.drain().await;
    }
    // The follower ends as soon as its sender is gone.
    drop(stop_following);
    if let Some(running) = running {
        tokio::task::spawn_blocking(move || running.drain()).await.context("draining failed")?;
    }
    if let Some(office) = office {
        office.close().await;
    }
    engine.drain(Duration::from_secs(config.tracker.drain_timeout_s.into())).await;
    let _ = following.await;
    store.close().await;
    info!("stopped");
    Ok(())
}

fn start_tracker(config: &Config, gate: &Arc<Gate>, engine: &Engine) -> anyhow::Result<Running> {
    let settings = config.tracker_settings();
    for address in settings.http_addresses.iter().filter(|address| !address.ip().is_loopback()) {
        warn!(%address, "tracker.allow_plaintext: passkeys sent here can be read by whoever carries them");
    }
    let secrets = Secrets::draw().context("the system gives no random numbers")?;
    let tracker = Arc::new(Tracker::new(
        Arc::clone(gate),
        Arc::new(SystemClock),
        Arc::clone(engine.queue()) as Arc<dyn TrafficSink>,
        settings.live.clone(),
        &secrets,
    ));
    Ok(server::start(&settings, tracker, &secrets)?)
}

/// Whoever is no longer allowed leaves the swarms at once, not when they would have expired.
fn apply(change: Change, tracker: Option<&Tracker>) {
    let Some(tracker) = tracker else { return };
    match change {
        Change::UserRemoved(user) => tracker.order_eviction(Eviction::User(user)),
        Change::TorrentRemoved(info_hash) => tracker.order_eviction(Eviction::Torrent(info_hash)),
        Change::ClientsChanged => tracker.order_eviction(Eviction::ForbiddenClients),
        Change::UserAdmitted(_)
        | Change::TorrentAdmitted(_)
        | Change::PasskeyChanged(_)
        | Change::NameChanged(_) => {}
    }
}

/// Takes over what can change; a configuration that is not valid changes nothing. What cannot change is told each
/// time, as long as it differs from what the server was started with.
fn reload(started_with: &Config, running: Option<&Running>, engine: &Engine, log_control: &LogControl) {
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
    if let Some(running) = running {
        // Tracker and ledger judge by the same ceiling, which the ledger keeps from its start.
        running.reload(LiveSettings { ceiling: started_with.ceiling(), ..new.live_settings() });
    }
    engine.reload(&new);
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

/// What a greeting tells of.
struct Scene<'a> {
    config: &'a Config,
    addresses: Addresses,
    site: Option<&'a ServingSite>,
    gate: &'a Gate,
    store: &'a Store,
    data: &'a Path,
}

/// How clients name a listener: nobody can dial "every address".
fn host_of(address: &SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("<this machine>:{}", address.port()),
        false => address.to_string(),
    }
}

impl Scene<'_> {
    /// Says where everything is, and what to do next.
    fn greet(&self, output: Output) -> anyhow::Result<()> {
        let texts = |list: &[SocketAddr]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let json = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "http": texts(&self.addresses.http),
            "https": texts(&self.addresses.https),
            "udp": texts(&self.addresses.udp),
            "site": self.site.map(ServingSite::urls).unwrap_or_default(),
            "people": self.site.map(ServingSite::people_urls).unwrap_or_default(),
            "first_key": self.site.and_then(ServingSite::first_key),
            "database": self.store.shown(),
            "journal": self.journal(),
            "users": self.gate.user_count(),
            "torrents": self.gate.torrent_count(),
        });
        output.show(&json, &self.greeting())?;
        Ok(())
    }

    /// Where the journal is.
    fn journal(&self) -> String {
        match self.config.redis_settings() {
            Ok(Some(settings)) => format!("{} in {settings}", self.config.journal.stream_key.as_str()),
            _ => self.data.join("journal.db").display().to_string(),
        }
    }

    fn greeting(&self) -> String {
        let mut text = format!("\nRollcall {} is up.\n\n", env!("CARGO_PKG_VERSION"));
        let Addresses { http, https, udp } = &self.addresses;
        for (scheme, list) in [("https", https), ("http", http), ("udp", udp)] {
            let mut hosts: Vec<String> = list.iter().map(host_of).collect();
            // IPv4 and IPv6 on every address are one host.
            hosts.dedup();
            for host in hosts {
                let _ = writeln!(text, "  announce  {scheme}://{host}/announce/<passkey>");
            }
        }
        for url in self.site.iter().flat_map(|site| site.urls()) {
            let _ = writeln!(text, "  site      {url}/docs");
        }
        for url in self.site.iter().flat_map(|site| site.people_urls()) {
            let _ = writeln!(text, "  people    {url}");
        }
        let (users, torrents) = (self.gate.user_count(), self.gate.torrent_count());
        let _ = writeln!(text, "  journal   {}", self.journal());
        let _ =
            writeln!(text, "  database  {}  (users: {users}, torrents: {torrents})\n", self.store.shown());
        if let Some(key) = self.site.and_then(ServingSite::first_key) {
            let _ = writeln!(
                text,
                "A key with all rights, shown only this once (rollcall key create makes others):"
            );
            let _ = writeln!(text, "  {key}\n");
        }
        if users == 0 || torrents == 0 {
            text.push_str(&self.next_steps());
        }
        text
    }

    fn next_steps(&self) -> String {
        let program = std::env::args().next().unwrap_or_else(|| "rollcall".to_owned());
        let program = match self.data == Path::new("./data") {
            true => program,
            false => format!("{program} --data {}", self.data.display()),
        };
        format!(
            "Next, in another terminal:\n  \
             {program} user add --id 1\n  \
             {program} torrent add FILE.torrent\n  \
             {program} torrent announce-url --user 1\n  \
             {program} user show 1\n  \
             {program} friend add 1 2\n  \
             {program} token 1\n\n\
             Changes take effect within a second. Ctrl-C stops the server.\n\n"
        )
    }
}
