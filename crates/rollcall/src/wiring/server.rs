//! The whole server: everything is opened and restored before anything is served, and stopped in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use access::{Gate, Store};
use net::ShutdownMode;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::error;
use tracker::{ConnectionIds, Prepared, Running};

use super::background::{Background, ResolverContext};
use super::gate::{self, GateFollowers};
use super::redis_mirror;
use super::resolver::Resolver;
use super::site::{OpenSite, ServingSite, SiteInputs};
use super::stores;
use super::swarms::SwarmTasks;
use super::tracker as tracker_wiring;
use super::verification::{self, VerificationTask};
use crate::config::{Config, Name};
use crate::data_files::DataFiles;
use crate::node::Node;
use crate::roles::{Role, Roles};
use crate::steady_time;
use crate::take_over::{InheritedState, Predecessor, ServerSockets};

/// A server that is open and restored, but does not serve yet. A predecessor still serves.
pub(crate) struct OpenServer {
    pub(crate) node: Node,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) frontend: Frontend,
    pub(crate) backend: Backend,
}

/// What serves requests, still without sockets.
pub(crate) struct Frontend {
    /// With the UDP connection ids that it would issue.
    pub(crate) prepared: Option<(Prepared, ConnectionIds)>,
    pub(crate) site: Option<OpenSite>,
    /// None if the sockets come from a predecessor.
    pub(crate) own_sockets: Option<ServerSockets>,
}

#[derive(Default)]
pub(crate) struct RunningFrontend {
    pub(crate) running: Option<Running>,
    pub(crate) site: Option<ServingSite>,
    /// Duplicates of the sockets for a successor, until they are offered.
    pub(crate) successor_state: Option<InheritedState>,
}

/// What runs behind the listeners.
pub(crate) struct Backend {
    pub(crate) store: Store,
    pub(crate) background: Background,
    swarm_tasks: Option<SwarmTasks>,
    verification: Option<VerificationTask>,
    follower_task: JoinHandle<()>,
    stop_follower: oneshot::Sender<()>,
}

impl OpenServer {
    /// Cancel-safe.
    pub(crate) async fn open(
        config: &Config,
        data: &Path,
        roles: &Roles,
        take_over: bool,
    ) -> anyhow::Result<OpenServer> {
        steady_time::resume(data, roles);
        let predecessor = match take_over {
            true => Predecessor::find(data).await?,
            false => None,
        };
        let name = config.journal.node_name.as_ref().map(Name::as_str);
        let node = match &predecessor {
            Some(running) => Node::for_take_over(data, name, roles, running.pid())?,
            None => Node::take(data, name, roles)?,
        };
        let files = DataFiles::check(config, data).await?;
        let url = config.database_url(data);
        let store = Store::open(&url).await?;
        crate::command::backup::refuse_empty_beside_populated(store.database(), &url, data).await?;
        let (gate, site_gate, pending_verification) = verification::open_gates(config, roles)?;
        let follower = GateFollowers::load(config, &store, &gate, site_gate.as_ref()).await?;
        let resolver = Resolver::new(&gate, follower.counters(), follower.reader());
        let database = stores::ledger_database(config, data, &store).await?;
        let installed_ms = store.created_ms().await?;
        let resolver_context = ResolverContext { resolver, database, store: store.clone(), installed_ms };
        let mut background = Background::open(config, data, &node, roles, &resolver_context).await?;
        background.add_whitelist_cleanup(stores::open_whitelist(config, &store)?.store);
        let copy_notes = gate::add_redis_copier(config, roles, &store, &gate, &mut background)?;
        let prepared = match roles.include(Role::Tracker) {
            true => Some(tracker_wiring::prepare(config, &node, &gate, &background)?),
            false => None,
        };
        let tracker = prepared.as_ref().map(|(prepared, _)| Arc::clone(prepared.tracker()));
        // After the tracker, whose node id contains the second of its start: the next process starts in a later
        // second.
        steady_time::add_recorder(data, roles, &mut background);
        redis_mirror::add_request_counter(config, tracker.as_ref(), &mut background)?;
        // Own ports are bound before anything has effects, so that a taken port leaves nothing half done. Those of a
        // predecessor are requested when everything is ready to serve.
        let own_sockets = match &predecessor {
            Some(_) => None,
            None => Some(ServerSockets::open(config, roles, InheritedState::default())?),
        };
        let swarm_tasks = match &tracker {
            Some(tracker) => Some(SwarmTasks::restore(config, data, tracker, background.journal()).await),
            None => None,
        };
        let site = match roles.include(Role::Site) && !config.site.addr.is_empty() {
            true => {
                let inputs = SiteInputs {
                    config,
                    data,
                    node: node.process(),
                    store: &store,
                    gate: &gate,
                    tracker: tracker.clone(),
                    certificate: prepared.as_ref().and_then(|(prepared, _)| prepared.certificate()).cloned(),
                    with_gateway: roles.include(Role::Gateway),
                    follower: follower.counters(),
                    site_keys: follower.figures(copy_notes.as_ref()),
                };
                Some(OpenSite::open(inputs, &mut background).await?)
            }
            false => None,
        };
        let needs_verification =
            [Role::Tracker, Role::Ledger, Role::Mirror, Role::Sites].iter().any(|role| roles.include(*role));
        let verification = match needs_verification {
            true => {
                let evict = tracker_wiring::evict(&gate, tracker.clone(), copy_notes.clone());
                Some(pending_verification.start(config, &store, &gate, evict).await?)
            }
            false => None,
        };
        let (stop_follower, stopped) = oneshot::channel::<()>();
        let gateway = site.as_ref().and_then(OpenSite::gateway);
        let on_change = move |change| {
            copy_notes.iter().for_each(|copy_notes| copy_notes.push(change));
            tracker_wiring::apply(change, tracker.as_deref(), gateway.as_deref());
        };
        let follower_task = tokio::spawn(follower.run(on_change, stopped));
        files.record().await;
        background.start();
        let frontend = Frontend { prepared, site, own_sockets };
        let backend = Backend { store, background, swarm_tasks, verification, follower_task, stop_follower };
        Ok(OpenServer { node, predecessor, gate, frontend, backend })
    }
}

impl RunningFrontend {
    /// The site drains first, because its requests may need the tracker. After a hand-over the tracker stops
    /// accepting immediately.
    pub(crate) async fn drain(self, mode: ShutdownMode) {
        let RunningFrontend { running, site, successor_state } = self;
        // A socket lives as long as its last duplicate.
        drop(successor_state);
        let tracker = |running: Running| tokio::task::spawn_blocking(move || running.drain(mode));
        let (early, late) = match mode {
            ShutdownMode::HandOver => (running.map(tracker), None),
            ShutdownMode::Drain => (None, running),
        };
        if let Some(site) = site {
            site.drain().await;
        }
        if let Some(draining) = early.or(late.map(tracker))
            && let Err(reason) = draining.await
        {
            error!(%reason, "drain failed; some announces may not have been answered");
        }
    }
}

impl Backend {
    /// Stores what is queued and stops everything. No snapshot is written if another process serves already.
    pub(crate) async fn stop(self, config: &Config, writes_snapshot: bool) {
        // The follower stops when its sender is dropped.
        drop(self.stop_follower);
        if let Some(verification) = self.verification {
            verification.stop().await;
        }
        self.background.drain(Duration::from_secs(config.tracker.drain_timeout_s.into())).await;
        if let Some(swarm_tasks) = self.swarm_tasks {
            swarm_tasks.stop(writes_snapshot).await;
        }
        let _ = self.follower_task.await;
        self.store.close().await;
    }
}
