//! `rollcall serve`: logs, database, listeners; then signals until the end; then drain.

mod events;
mod greeting;
mod parts;

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};
use tracker::ending::Valve;
use tracker::settings::LiveSettings;
use tracker::udp::ConnectionIds;
use tracker::{Ending, Running};

use super::Desk;
use crate::config::Config;
use crate::engine::Engine;
use crate::logging::{self, LogControl};
use crate::node::Node;
use crate::recorded_settings;
use crate::roles::{Role, Roles};
use crate::service_manager;
use crate::site_side::ServingSite;
use crate::take_over::{AllPorts, Goods, Offer, Predecessor};
use events::{Events, Signals, Told};
use greeting::{RedisState, Scene};
use parts::{Front, Opened, Serving};

/// On top of what draining may take, for a machine that does much else, too.
const ENDING_SLACK: Duration = Duration::from_secs(10);

/// Whoever runs a server as a part of something else: it says when to stop, and is told when the server serves.
pub struct Host {
    /// True once it is to stop.
    pub stop: watch::Receiver<bool>,
    /// Told when everything serves; dropped if it never does.
    pub ready: oneshot::Sender<()>,
}

/// Starts the server and serves until it is told to end, or until another process has taken its place.
///
/// Told to stop before it serves, it leaves everything as it is: whoever served before serves on.
pub async fn run(desk: Desk, roles: &Roles, take_over: bool) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    serve(desk, (roles, take_over), signals, None).await
}

/// The same for a host: nothing is printed, and signals are the host's to hear.
pub async fn run_for(host: Host, desk: Desk) -> anyhow::Result<()> {
    let signals = Signals::of_host(host.stop);
    serve(desk, (&Roles::default(), false), signals, Some(host.ready)).await
}

async fn serve(
    desk: Desk,
    (roles, take_over): (&Roles, bool),
    mut signals: Signals,
    host: Option<oneshot::Sender<()>>,
) -> anyhow::Result<()> {
    let Desk { config, data, output } = desk;
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
        opened = Opened::open(&config, &data, roles, take_over) => Some(opened?),
    };
    let Some(Opened { mut node, mut predecessor, gate, front, mut behind }) = opened else {
        info!("told to stop before it served");
        return Ok(());
    };
    let mut serving = Serving::default();
    let is_on = begin(&mut serving, front, &mut predecessor, &mut signals, (&config, roles)).await;
    if !matches!(is_on, Ok(true)) {
        // It may have served for a moment; what it heard is stored. The sockets are somebody else's.
        let ending = if predecessor.is_some() { Ending::HandOver } else { Ending::Drain };
        drop(predecessor);
        serving.drain(ending).await;
        behind.end(&config, false).await;
        info!("stopped before it took over");
        return is_on.map(drop);
    }
    // From here on nothing but being told so ends it: nobody else serves.
    let Serving { running, mut site, mut goods } = serving;
    if let Some(site) = &mut site
        && let Err(error) = site.make_first_key(&data).await
    {
        let reason = crate::one_line(&error);
        warn!(reason, "the first key was not delivered; \"rollcall key create\" makes another");
    }
    let addresses = running.as_ref().map(|running| running.addresses().clone()).unwrap_or_default();
    let store = &behind.store;
    if let Err(error) = recorded_settings::write(&config, &addresses, &data) {
        let reason = crate::one_line(&error);
        warn!(
            reason,
            "the settings could not be recorded; commands have to be given the same settings as the server"
        );
    }
    let told = match host {
        Some(ready) => ready.send(()).map_err(|()| anyhow::anyhow!("the host is gone")),
        None => {
            let redis = RedisState::ask(&config).await.unwrap_or_default();
            let (config, site, gate, data) = (&config, site.as_ref(), &*gate, &*data);
            Scene { config, addresses, site, gate, store, data, redis }.greet(output)
        }
    };
    if let Err(error) = told {
        warn!(reason = crate::one_line(&error), "the greeting could not be printed");
    }
    info!(users = gate.user_count(), torrents = gate.torrent_count(), "ready");
    service_manager::tell_ready();

    let mut events = Events::new(signals, predecessor);
    let mut folder = Folder::default();
    let handed_over = loop {
        match events.next().await {
            Told::Reload => {
                reload(&config, running.as_ref(), &behind.engine, &log_control);
                site.iter().for_each(ServingSite::reload);
            }
            Told::Alone { after_another } => {
                behind.engine.begin_views();
                site.iter().for_each(|site| site.begin_alone(after_another));
            }
            Told::TryFolder if folder.is_ours(&mut node, &data) => {
                let valve = running.as_ref().map(|running| running.valve().clone());
                let offer = goods.take().and_then(|goods| make_offer(&config, &data, goods, valve));
                events.has_folder(offer);
            }
            Told::TryFolder => {}
            Told::Stop => break None,
            Told::HandedOver(handed_over) => break Some(handed_over),
        }
    };
    info!(handed_over = handed_over.is_some(), "draining");
    service_manager::tell_stopping();
    let handed_over = match (handed_over, events.offer) {
        (None, Some(offer)) => offer.withdraw().await,
        (handed_over, _) => handed_over,
    };
    let ending = if handed_over.is_some() { Ending::HandOver } else { Ending::Drain };
    Serving { running, site, goods }.drain(ending).await;
    behind.end(&config, handed_over.is_none()).await;
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

/// Begins to serve, in the place of the predecessor if there is one. False if it was told to stop before that was done;
/// then, and if it failed, the predecessor goes on, and what serves already is to be drained.
async fn begin(
    serving: &mut Serving,
    front: Front,
    predecessor: &mut Option<Predecessor>,
    signals: &mut Signals,
    (config, roles): (&Config, &Roles),
) -> anyhow::Result<bool> {
    let Front { prepared, site, own_ports } = front;
    let claiming = async {
        if let Some(site) = &site {
            site.restore().await?;
        }
        match own_ports {
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
    serving.goods = Some(ports.copies(ids)?);
    if let (Some((prepared, _)), Some(ports), Some(ids)) = (prepared, ports.tracker, ids) {
        serving.running = Some(prepared.start(ports, ids)?);
    }
    serving.site = site.map(|site| site.serve(ports.site)).transpose()?;
    if signals.is_stop().await {
        return Ok(false);
    }
    relieve(predecessor).await?;
    Ok(true)
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
        if !running.has_ended().await {
            bail!("the running server does not hand over, and serves on: try again");
        }
        info!("the running server ended before it could be taken over from; starting as usual");
        *predecessor = None;
    }
    Ok((AllPorts::open(config, roles, Goods::default())?, None))
}

/// Tells the predecessor, if there is one, that its place is taken. One that is gone is none.
async fn relieve(predecessor: &mut Option<Predecessor>) -> anyhow::Result<()> {
    if let Some(running) = predecessor
        && !running.relieve().await
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
struct Folder {
    has_warned: bool,
}

impl Folder {
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

impl Config {
    /// How long this server may take to end: the site, announces, the journal and the views, one after the other.
    fn ends_within(&self) -> Duration {
        let seconds = 4 * u64::from(self.tracker.drain_timeout_s) + u64::from(self.site.request_timeout_s);
        Duration::from_secs(seconds) + ENDING_SLACK
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
