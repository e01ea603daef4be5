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
use tracker::ending::Valve;
use tracker::secrets::Secrets;
use tracker::server::Prepared;
use tracker::settings::LiveSettings;
use tracker::traffic::TrafficSink;
use tracker::udp::ConnectionIds;
use tracker::{Addresses, Ending, Eviction, Running, Tracker};

use super::Desk;
use crate::backends;
use crate::config::{Config, Name};
use crate::engine::Engine;
use crate::logging::{self, LogControl};
use crate::mirror_side;
use crate::node::Node;
use crate::output::Output;
use crate::replica_side::Replica;
use crate::roles::{Role, Roles};
use crate::service_manager;
use crate::site_keys_side::{self, Following};
use crate::site_side::{Lent, OpenSite, ServingSite};
use crate::take_over::{AllPorts, Goods, HandedOver, Offer, Predecessor};
use crate::vouching;

/// On top of what draining may take, for a machine that does much else, too.
const ENDING_SLACK: Duration = Duration::from_secs(10);

/// Starts the server and serves until it is told to end, or until another process has taken its place.
pub async fn run(desk: Desk, roles: &Roles, take_over: bool) -> anyhow::Result<()> {
    let Desk { config, data, output } = desk;
    if roles.include(Role::Gateway) && !roles.include(Role::Site) {
        bail!("the role gateway needs the role site: people connect through its port");
    }
    let log_control = logging::init(&config.log)?;
    let signals = Signals::listen()?;
    let mut predecessor = match take_over {
        true => Predecessor::find(&data).await?,
        false => None,
    };
    let name = config.journal.node_name.as_ref().map(Name::as_str);
    let mut node = match &predecessor {
        Some(_) => Node::succeed(&data, name)?,
        None => Node::take(&data, name)?,
    };
    let store = Store::open(&config.database_url(&data)).await?;
    let (gate, unopened) = vouching::gate(&config)?;
    let gate = Arc::new(gate);
    let follower = Following::load(&config, &store, &gate).await?;
    let mut engine = Engine::open(&config, &data, &node, roles, &gate).await?;
    engine.keep_tidy(backends::open_whitelist(&config, &store)?.store);
    let notes = site_keys_side::keep_copies(&config, roles, &store, &gate, &mut engine)?;
    let prepared = match roles.include(Role::Tracker) {
        true => Some(prepare_tracker(&config, &gate, &engine)?),
        false => None,
    };
    let tracker = prepared.as_ref().map(|(prepared, _)| Arc::clone(prepared.tracker()));
    mirror_side::count_requests(&config, tracker.as_ref(), &mut engine)?;
    // Ports of its own are taken before anything else happens, so that one which is taken leaves nothing half done.
    // Those of a predecessor are taken when everything is ready to serve.
    let own_ports = match &predecessor {
        Some(_) => None,
        None => Some(AllPorts::open(&config, roles, Goods::default())?),
    };
    let replica = match &tracker {
        Some(tracker) => Some(Replica::warm_up(&config, &data, tracker, engine.journal()).await),
        None => None,
    };
    let site = match roles.include(Role::Site) && !config.site.addr.is_empty() {
        true => {
            let lent = Lent {
                config: &config,
                data: &data,
                store: &store,
                gate: &gate,
                tracker: tracker.clone(),
                certificate: prepared.as_ref().and_then(|(prepared, _)| prepared.certificate()).cloned(),
                with_gateway: roles.include(Role::Gateway),
                follower: follower.counters(),
                site_keys: follower.figures(notes.as_ref()),
            };
            Some(OpenSite::open(lent, &mut engine).await?)
        }
        false => None,
    };
    let office = match &tracker {
        Some(tracker) => Some(unopened.open(&config, &store, &gate, Arc::clone(tracker)).await?),
        None => None,
    };
    let (stop_following, stopped) = oneshot::channel::<()>();
    let on_change = move |change| {
        notes.iter().for_each(|notes| notes.note(change));
        apply(change, tracker.as_deref());
    };
    let following = tokio::spawn(follower.run(on_change, stopped));
    engine.begin_storing();

    let (ports, handed_ids) = match own_ports {
        Some(ports) => (ports, None),
        None => claim_ports(&mut predecessor, &config, roles).await?,
    };
    let ids = handed_ids.or(prepared.as_ref().map(|(_, ids)| *ids));
    let mut goods = Some(ports.copies(ids)?);
    let running = match (prepared, ports.tracker, ids) {
        (Some((prepared, _)), Some(ports), Some(ids)) => Some(prepared.start(ports, ids)?),
        _ => None,
    };
    let mut site = site.map(|site| site.serve(ports.site)).transpose()?;
    relieve(&mut predecessor, &mut node, &data).await?;
    let addresses = running.as_ref().map(|running| running.addresses().clone()).unwrap_or_default();
    if let Some(site) = &mut site {
        site.make_first_key().await?;
    }
    let scene =
        Scene { config: &config, addresses, site: site.as_ref(), gate: &gate, store: &store, data: &data };
    scene.greet(output)?;
    info!(users = gate.user_count(), torrents = gate.torrent_count(), "ready");
    service_manager::tell_ready();

    let mut events = Events { signals, predecessor, is_alone: false, offer: None };
    let handed_over = loop {
        match events.next().await {
            Told::Reload => {
                reload(&config, running.as_ref(), &engine, &log_control);
                site.iter().for_each(ServingSite::reload);
            }
            Told::Alone => {
                engine.begin_views();
                let valve = running.as_ref().map(|running| running.valve().clone());
                let goods = goods.take().filter(|_| holds_folder(&mut node, &data));
                events.offer = goods.and_then(|goods| make_offer(&config, &data, goods, valve));
            }
            Told::Stop => break None,
            Told::HandedOver(handed_over) => break Some(handed_over),
        }
    };
    info!(handed_over = handed_over.is_some(), "draining");
    service_manager::tell_stopping();
    // A socket lives as long as its last copy.
    drop(goods);
    let handed_over = match (handed_over, events.offer) {
        (None, Some(offer)) => offer.withdraw().await,
        (handed_over, _) => handed_over,
    };
    let ending = if handed_over.is_some() { Ending::HandOver } else { Ending::Drain };
    drain_servers(running, site, ending).await?;
    // The follower ends as soon as its sender is gone.
    drop(stop_following);
    if let Some(office) = office {
        office.close().await;
    }
    engine.drain(Duration::from_secs(config.tracker.drain_timeout_s.into())).await;
    if let Some(replica) = replica {
        replica.end(handed_over.is_none()).await;
    }
    let _ = following.await;
    store.close().await;
    info!("stopped");
    // In this order: whoever took over takes the folder as soon as it sees that we have ended.
    drop(node);
    drop(handed_over);
    Ok(())
}

/// A tracker without sockets, and the connection ids it would give over UDP.
fn prepare_tracker(
    config: &Config,
    gate: &Arc<Gate>,
    engine: &Engine,
) -> anyhow::Result<(Prepared, ConnectionIds)> {
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
    Ok((Prepared::new(&settings, tracker)?, secrets.connection_ids()))
}

/// The sockets of the predecessor, and under which connection ids it gave; those of our own if it has ended meanwhile.
async fn claim_ports(
    predecessor: &mut Option<Predecessor>,
    config: &Config,
    roles: &Roles,
) -> anyhow::Result<(AllPorts, Option<ConnectionIds>)> {
    if let Some(running) = predecessor {
        if let Some(goods) = running.hand_over().await? {
            let ids = goods.ids;
            return Ok((AllPorts::open(config, roles, goods)?, ids));
        }
        info!("the running server ended before it could be taken over from; starting as usual");
        running.ended().await;
        *predecessor = None;
    }
    Ok((AllPorts::open(config, roles, Goods::default())?, None))
}

/// Tells the predecessor, if there is one, that its place is taken. One that is gone is none.
async fn relieve(predecessor: &mut Option<Predecessor>, node: &mut Node, data: &Path) -> anyhow::Result<()> {
    if let Some(running) = predecessor
        && !running.relieve().await?
    {
        if !node.take_folder(data)? {
            bail!("the running server did not let itself be relieved, and serves on: try again");
        }
        *predecessor = None;
    }
    Ok(())
}

/// Whether the data folder is ours, now that the process before this one has ended.
fn holds_folder(node: &mut Node, data: &Path) -> bool {
    match node.take_folder(data) {
        Ok(is_ours) => is_ours,
        Err(error) => {
            warn!(reason = crate::one_line(&error), "the data folder cannot be taken");
            false
        }
    }
}

/// Offers to hand over to the next process.
fn make_offer(config: &Config, data: &Path, goods: Goods, valve: Option<Valve>) -> Option<Offer> {
    Offer::open(data, goods, valve, config.ends_within())
        .inspect_err(|error| {
            warn!(
                reason = crate::one_line(error),
                "this server cannot be taken over from (serve --take-over)"
            );
        })
        .ok()
}

/// Ends the listeners. The site first, since whoever uses it may ask about the tracker; but where another process serves
/// already, nothing more is accepted here from this moment on.
async fn drain_servers(
    running: Option<Running>,
    site: Option<ServingSite>,
    ending: Ending,
) -> anyhow::Result<()> {
    let tracker = |running: Running| tokio::task::spawn_blocking(move || running.drain(ending));
    let (early, late) = match ending {
        Ending::HandOver => (running.map(tracker), None),
        Ending::Drain => (None, running),
    };
    if let Some(site) = site {
        site.drain().await;
    }
    if let Some(draining) = early.or(late.map(tracker)) {
        draining.await.context("draining failed")?;
    }
    Ok(())
}

impl Config {
    /// How long this server may take to end: the site, announces, the journal and the views, one after the other.
    fn ends_within(&self) -> Duration {
        let seconds = 4 * u64::from(self.tracker.drain_timeout_s) + u64::from(self.site.request_timeout_s);
        Duration::from_secs(seconds) + ENDING_SLACK
    }
}

/// Whoever is no longer allowed leaves the swarms at once, not when they would have expired.
fn apply(change: Change, tracker: Option<&Tracker>) {
    let Some(tracker) = tracker else { return };
    match change {
        Change::UserRemoved(user) => tracker.order_eviction(Eviction::User(user)),
        Change::TorrentRemoved(info_hash) => tracker.order_eviction(Eviction::Torrent(info_hash)),
        Change::ClientsChanged => tracker.order_eviction(Eviction::ForbiddenClients),
        Change::PortsChanged => tracker.order_eviction(Eviction::BannedPorts),
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

/// What a server that serves can be told.
#[derive(Debug)]
enum Told {
    /// By SIGHUP.
    Reload,
    /// By SIGTERM or Ctrl-C.
    Stop,
    /// The process whose place this one took has ended, or there was none. Told once.
    Alone,
    /// Another process serves in our place.
    HandedOver(HandedOver),
}

/// Where it is told that.
struct Events {
    signals: Signals,
    predecessor: Option<Predecessor>,
    is_alone: bool,
    offer: Option<Offer>,
}

impl Events {
    async fn next(&mut self) -> Told {
        let alone = async {
            match (&mut self.predecessor, self.is_alone) {
                (_, true) => std::future::pending().await,
                (Some(predecessor), false) => predecessor.ended().await,
                (None, false) => {}
            }
        };
        let handed_over = async {
            match &mut self.offer {
                Some(offer) => offer.taken().await,
                None => std::future::pending().await,
            }
        };
        let told = tokio::select! {
            told = self.signals.next() => told,
            () = alone => Told::Alone,
            handed_over = handed_over => Told::HandedOver(handed_over),
        };
        if let Told::Alone = told {
            self.is_alone = true;
            self.predecessor = None;
        }
        told
    }
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
