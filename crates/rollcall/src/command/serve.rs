//! `rollcall serve`: opens the server, serves until a signal or a take-over, then drains.

mod events;
mod startup_message;

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use net::{AcceptGate, ShutdownMode};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};
use tracker::settings::LiveSettings;
use tracker::{ConnectionIds, Running};

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

/// Added to the drain timeouts, for a busy machine.
const EXIT_SLACK: Duration = Duration::from_secs(10);

/// Controls a server that runs inside another program.
pub struct Embedding {
    /// True once the server is to stop.
    pub stop: watch::Receiver<bool>,
    /// Sent when the server serves; dropped if it never does.
    pub ready: oneshot::Sender<()>,
}

/// Serves until a stop signal, or until another process has taken over.
///
/// Stopped before it serves, it leaves a predecessor serving.
pub async fn run(context: CommandContext, roles: &Roles, take_over: bool) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    serve(context, (roles, take_over), signals, None).await
}

/// Prints nothing and handles no signals.
pub async fn run_embedded(embedding: Embedding, context: CommandContext) -> anyhow::Result<()> {
    let signals = Signals::embedded(embedding.stop);
    serve(context, (&Roles::default(), false), signals, Some(embedding.ready)).await
}

async fn serve(
    context: CommandContext,
    (roles, take_over): (&Roles, bool),
    mut signals: Signals,
    embedding: Option<oneshot::Sender<()>>,
) -> anyhow::Result<()> {
    let CommandContext { config, data, output } = context;
    if roles.include(Role::Gateway) && !roles.include(Role::Site) {
        bail!("the role gateway needs the role site: clients connect through its port");
    }
    let tracker = &config.tracker;
    if roles.include(Role::Tracker)
        && [&tracker.http_addr, &tracker.udp_addr, &tracker.https_addr].iter().all(|list| list.is_empty())
    {
        bail!(
            "tracker.http_addr, tracker.udp_addr and tracker.https_addr are all empty: set one of them, or omit the \
             role tracker (--roles)"
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
        info!("stop requested during startup");
        return Ok(());
    };
    let mut running_frontend = RunningFrontend::default();
    let started =
        start_serving(&mut running_frontend, frontend, &mut predecessor, &mut signals, (&config, roles))
            .await;
    if !matches!(started, Ok(true)) {
        // It may have served for a moment, so queued events are stored. With a predecessor the sockets are left open.
        let mode = if predecessor.is_some() { ShutdownMode::HandOver } else { ShutdownMode::Drain };
        drop(predecessor);
        running_frontend.drain(mode).await;
        backend.stop(&config, false).await;
        info!("stopped before the take-over");
        return started.map(drop);
    }
    // From here on only a stop signal or a take-over ends it: no other process serves.
    let RunningFrontend { running, mut site, mut successor_state } = running_frontend;
    if let Some(site) = &mut site
        && let Err(error) = site.create_first_key(&data).await
    {
        let reason = crate::one_line(&error);
        warn!(reason, "cannot deliver the first key; create one with \"rollcall key create\"");
    }
    let addresses = running.as_ref().map(|running| running.addresses().clone()).unwrap_or_default();
    let store = &backend.store;
    if let Err(error) = recorded_settings::write(&config, &addresses, &data) {
        let reason = crate::one_line(&error);
        warn!(
            reason,
            "cannot record the settings in the data folder; pass the server's settings to commands"
        );
    }
    let printed = match embedding {
        Some(ready) => ready.send(()).map_err(|()| anyhow::anyhow!("the embedding program has ended")),
        None => {
            let redis = RedisState::probe(&config).await.unwrap_or_default();
            let (config, site, gate, data) = (&config, site.as_ref(), &*gate, &*data);
            StartupMessage { config, addresses, site, gate, store, data, redis }.print(output)
        }
    };
    if let Err(error) = printed {
        warn!(reason = crate::one_line(&error), "cannot print the startup message");
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
                let offer = successor_state
                    .take()
                    .and_then(|successor_state| make_offer(&config, &data, successor_state, accept_gate));
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
    RunningFrontend { running, site, successor_state }.drain(mode).await;
    backend.stop(&config, handed_over.is_none()).await;
    info!("stopped");
    // In this order: the successor takes the data folder as soon as the channel is closed.
    drop(node);
    drop(handed_over);
    Ok(())
}

/// The soft limit is usually below what the process may have.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "cannot raise the limit on open files");
    }
}

/// Starts serving, instead of the predecessor if there is one. False if a stop was requested before that; then, and
/// on error, the predecessor continues, and what already serves must be drained.
async fn start_serving(
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
    running_frontend.successor_state = Some(ports.duplicates(ids)?);
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

/// The sockets of the predecessor and its connection ids; own sockets if it has ended meanwhile.
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
            bail!("the running server did not hand over its sockets and continues to serve: try again");
        }
        info!("the running server ended before the take-over; starting normally");
        *predecessor = None;
    }
    Ok((ServerSockets::open(config, roles, InheritedState::default())?, None))
}

/// Confirms the take-over. Clears `predecessor` if it has already ended.
async fn confirm(predecessor: &mut Option<Predecessor>) -> anyhow::Result<()> {
    if let Some(running) = predecessor
        && !running.confirm().await
    {
        if !running.has_ended().await {
            bail!("the running server did not confirm the take-over and continues to serve: try again");
        }
        *predecessor = None;
    }
    Ok(())
}

/// Acquires the data folder once the predecessor has ended; warns once.
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
                "cannot lock the data folder; retrying every second, and no take-over is possible until then"
            );
        }
        false
    }
}

fn make_offer(
    config: &Config,
    data: &Path,
    successor_state: InheritedState,
    accept_gate: Option<AcceptGate>,
) -> Option<Offer> {
    Offer::open(data, successor_state, accept_gate, config.exit_timeout())
        .inspect_err(|error| {
            warn!(reason = crate::one_line(error), "cannot offer a take-over (serve --take-over)");
        })
        .ok()
}

impl Config {
    /// Longest duration of a shutdown: site, announces, journal and views, one after the other.
    fn exit_timeout(&self) -> Duration {
        let seconds = 4 * u64::from(self.tracker.drain_timeout_s) + u64::from(self.site.request_timeout_s);
        Duration::from_secs(seconds) + EXIT_SLACK
    }
}

/// Applies what can change; an invalid configuration changes nothing. Keys that need a restart are logged each time,
/// as long as they differ.
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
            return error!(reason, "the configuration is invalid; keeping the current settings");
        }
    };
    for key in started_with.needs_restart(&new) {
        warn!(key, "this setting takes effect only after a restart");
    }
    if let Err(error) = log_control.set_filter(&new.log.level) {
        error!(reason = crate::one_line(&error), "cannot change log.level");
    }
    if let Some(running) = running {
        // Tracker and ledger use the same ceiling, and the ledger's is fixed at the start.
        running.reload(LiveSettings { ceiling: started_with.ceiling(), ..new.live_settings() });
    }
    background.reload(&new);
    info!("configuration reloaded");
}
