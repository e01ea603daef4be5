//! `rollcall serve`: logs, database, listeners; then signals until the end; then drain.

mod events;
mod startup_message;

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};
use tracker::accept_gate::AcceptGate;
use tracker::settings::LiveSettings;
use tracker::udp::ConnectionIds;
use tracker::{Running, ShutdownMode};

use super::CommandContext;
use crate::config::Config;
use crate::logging::{self, LogControl};
use crate::node::Node;
use crate::recorded_settings;
use crate::roles::{Role, Roles};
use crate::service_manager;
use crate::take_over::{InheritedState, Offer, Predecessor, ServerSockets};
use crate::wiring::background::Background;
use crate::wiring::server::{Frontend, OpenServer, RunningFrontend};
use crate::wiring::site::ServingSite;
use events::{Events, ServerEvent, Signals};
use startup_message::{RedisState, StartupMessage};

/// On top of what draining may take, for a machine that does much else, too.
const ENDING_SLACK: Duration = Duration::from_secs(10);

/// Whoever runs a server as a part of something else: it says when to stop, and is announced when the server serves.
pub struct Embedding {
    /// True once it is to stop.
    pub stop: watch::Receiver<bool>,
    /// ServerEvent when everything serves; dropped if it never does.
    pub ready: oneshot::Sender<()>,
}

/// Starts the server and serves until it is announced to end, or until another process has taken its place.
///
/// ServerEvent to stop before it serves, it leaves everything as it is: whoever served before serves on.
pub async fn run(context: CommandContext, roles: &Roles, take_over: bool) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    serve(context, (roles, take_over), signals, None).await
}

/// The same for a host: nothing is printed, and signals are the host's to hear.
pub async fn run_embedded(host: Embedding, context: CommandContext) -> anyhow::Result<()> {
    let signals = Signals::of_host(host.stop);
    serve(context, (&Roles::default(), false), signals, Some(host.ready)).await
}

async fn serve(
    context: CommandContext,
    (roles, take_over): (&Roles, bool),
    mut signals: Signals,
    host: Option<oneshot::Sender<()>>,
) -> anyhow::Result<()> {
    let CommandContext { config, data, output } = context;
    if roles.include(Role::Gateway) && !roles.include(Role::Site) {
        bail!("the role gateway needs the role site: people connect through its port");
    }
    let tracker = &config.tracker;
    if roles.include(Role::Tracker)
        && [&tracker.http_addr, &tracker.udp_addr, &tracker.https_addr].iter().all(|list| list.is_empty())
    {
        bail!(
            "tracker.http_addr, tracker.udp_addr and tracker.https_addr are all empty: give one an address, or leave the \
             role tracker out (--roles)"
        );
    }
    let log_control = logging::init(&config.log)?;
    raise_file_limit();
    let opened = tokio::select! {
        biased;
        () = signals.stop() => None,
        opened = OpenServer::open(&config, &data, roles, take_over) => Some(opened?),
    };
    let Some(OpenServer { mut node, mut predecessor, gate, frontend, mut backend }) = opened else {
        info!("announced to stop before it served");
        return Ok(());
    };
    let mut running_frontend = RunningFrontend::default();
    let started =
        begin(&mut running_frontend, frontend, &mut predecessor, &mut signals, (&config, roles)).await;
    if !matches!(started, Ok(true)) {
        // It may have served for a moment; what it heard is stored. The sockets are somebody else's.
        let mode = if predecessor.is_some() { ShutdownMode::HandOver } else { ShutdownMode::Drain };
        drop(predecessor);
        running_frontend.drain(mode).await;
        backend.stop(&config, false).await;
        info!("stopped before it took over");
        return started.map(drop);
    }
    // From here on nothing but being announced so ends it: nobody else serves.
    let RunningFrontend { running, mut site, mut inherited } = running_frontend;
    if let Some(site) = &mut site
        && let Err(error) = site.create_first_key(&data).await
    {
        let reason = crate::one_line(&error);
        warn!(reason, "the first key was not delivered; \"rollcall key create\" makes another");
    }
    let addresses = running.as_ref().map(|running| running.addresses().clone()).unwrap_or_default();
    let store = &backend.store;
    if let Err(error) = recorded_settings::write(&config, &addresses, &data) {
        let reason = crate::one_line(&error);
        warn!(
            reason,
            "the settings could not be recorded; commands have to be given the same settings as the server"
        );
    }
    let announced = match host {
        Some(ready) => ready.send(()).map_err(|()| anyhow::anyhow!("the host is gone")),
        None => {
            let redis = RedisState::probe(&config).await.unwrap_or_default();
            let (config, site, gate, data) = (&config, site.as_ref(), &*gate, &*data);
            StartupMessage { config, addresses, site, gate, store, data, redis }.print(output)
        }
    };
    if let Err(error) = announced {
        warn!(reason = crate::one_line(&error), "the greeting could not be printed");
    }
    info!(users = gate.user_count(), torrents = gate.torrent_count(), "ready");
    service_manager::notify_ready();

    let mut events = Events::new(signals, predecessor);
    let mut folder = DataFolder::default();
    let handed_over = loop {
        match events.next().await {
            ServerEvent::Reload => {
                reload(&config, running.as_ref(), &backend.background, &log_control);
                site.iter().for_each(ServingSite::reload);
            }
            ServerEvent::PredecessorEnded { after_another } => {
                backend.background.start_views();
                site.iter().for_each(|site| site.start_exclusive(after_another));
            }
            ServerEvent::TryDataFolder if folder.is_ours(&mut node, &data) => {
                let accept_gate = running.as_ref().map(|running| running.accept_gate().clone());
                let offer =
                    inherited.take().and_then(|inherited| make_offer(&config, &data, inherited, accept_gate));
                events.has_folder(offer);
            }
            ServerEvent::TryDataFolder => {}
            ServerEvent::Stop => break None,
            ServerEvent::HandedOver(handed_over) => break Some(handed_over),
        }
    };
    info!(handed_over = handed_over.is_some(), "draining");
    service_manager::notify_stopping();
    let handed_over = match (handed_over, events.offer) {
        (None, Some(offer)) => offer.withdraw().await,
        (handed_over, _) => handed_over,
    };
    let mode = if handed_over.is_some() { ShutdownMode::HandOver } else { ShutdownMode::Drain };
    RunningFrontend { running, site, inherited }.drain(mode).await;
    backend.stop(&config, handed_over.is_none()).await;
    info!("stopped");
    // In this order: whoever took over takes the folder as soon as it sees that we have ended.
    drop(node);
    drop(handed_over);
    Ok(())
}

/// Most systems give a process fewer open files than it may have, for the sake of old programs.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "the limit on open files stays as it is");
    }
}

/// Begins to serve, in the place of the predecessor if there is one. False if it was announced to stop before that was done;
/// then, and if it failed, the predecessor goes on, and what serves already is to be drained.
async fn begin(
    running_frontend: &mut RunningFrontend,
    frontend: Frontend,
    predecessor: &mut Option<Predecessor>,
    signals: &mut Signals,
    (config, roles): (&Config, &Roles),
) -> anyhow::Result<bool> {
    let Frontend { prepared, site, own_sockets } = frontend;
    let claiming = async {
        if let Some(site) = &site {
            site.restore().await?;
        }
        match own_sockets {
            Some(ports) => Ok((ports, None)),
            None => claim_ports(predecessor, config, roles).await,
        }
    };
    let (ports, handed_ids) = tokio::select! {
        biased;
        () = signals.stop() => return Ok(false),
        claimed = claiming => claimed?,
    };
    let ids = handed_ids.or(prepared.as_ref().map(|(_, ids)| *ids));
    running_frontend.inherited = Some(ports.duplicates(ids)?);
    if let (Some((prepared, _)), Some(ports), Some(ids)) = (prepared, ports.tracker, ids) {
        running_frontend.running = Some(prepared.start(ports, ids)?);
    }
    running_frontend.site = site.map(|site| site.serve(ports.site)).transpose()?;
    if signals.is_stop().await {
        return Ok(false);
    }
    confirm(predecessor).await?;
    Ok(true)
}

/// The sockets of the predecessor, and under which connection ids it gave; those of our own if it has ended meanwhile.
async fn claim_ports(
    predecessor: &mut Option<Predecessor>,
    config: &Config,
    roles: &Roles,
) -> anyhow::Result<(ServerSockets, Option<ConnectionIds>)> {
    if let Some(running) = predecessor {
        if let Some(inherited) = running.hand_over().await? {
            let ids = inherited.ids;
            return Ok((ServerSockets::open(config, roles, inherited)?, ids));
        }
        if !running.has_ended().await {
            bail!("the running server does not hand over, and serves on: try again");
        }
        info!("the running server ended before it could be taken over from; starting as usual");
        *predecessor = None;
    }
    Ok((ServerSockets::open(config, roles, InheritedState::default())?, None))
}

/// Tells the predecessor, if there is one, that its place is taken. One that is gone is none.
async fn confirm(predecessor: &mut Option<Predecessor>) -> anyhow::Result<()> {
    if let Some(running) = predecessor
        && !running.confirm().await
    {
        if !running.has_ended().await {
            bail!("the running server did not let itself be relieved, and serves on: try again");
        }
        *predecessor = None;
    }
    Ok(())
}

/// Tries to hold the data folder, once the process before this one has ended.
#[derive(Default)]
struct DataFolder {
    has_warned: bool,
}

impl DataFolder {
    fn is_ours(&mut self, node: &mut Node, data: &Path) -> bool {
        let reason = match node.take_folder(data) {
            Ok(true) => return true,
            Ok(false) => "another server holds it".to_owned(),
            Err(error) => crate::one_line(&error),
        };
        if !self.has_warned {
            self.has_warned = true;
            warn!(
                reason,
                "the data folder cannot be taken; it is tried every second, and until then nobody can take over"
            );
        }
        false
    }
}

/// Offers to hand over to the next process.
fn make_offer(
    config: &Config,
    data: &Path,
    inherited: InheritedState,
    accept_gate: Option<AcceptGate>,
) -> Option<Offer> {
    Offer::open(data, inherited, accept_gate, config.exit_timeout())
        .inspect_err(|error| {
            warn!(
                reason = crate::one_line(error),
                "this server cannot be taken over from (serve --take-over)"
            );
        })
        .ok()
}

impl Config {
    /// How long this server may take to end: the site, announces, the journal and the views, one after the other.
    fn exit_timeout(&self) -> Duration {
        let seconds = 4 * u64::from(self.tracker.drain_timeout_s) + u64::from(self.site.request_timeout_s);
        Duration::from_secs(seconds) + ENDING_SLACK
    }
}

/// Takes over what can change; a configuration that is not valid changes nothing. What cannot change is announced each
/// time, as long as it differs from what the server was started with.
fn reload(
    started_with: &Config,
    running: Option<&Running>,
    background: &Background,
    log_control: &LogControl,
) {
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
    background.reload(&new);
    info!("configuration reloaded");
}
