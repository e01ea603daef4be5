//! What a server is made of: opened and warmed up before anybody is served, and ended in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use access::redis_source::CopyQueue;
use access::{Change, Gate, Store};
use anyhow::Context;
use domain::UserId;
use domain::clock::SystemClock;
use gateway::Gateway;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{error, warn};
use tracker::secrets::Secrets;
use tracker::server::Prepared;
use tracker::traffic::TrafficSink;
use tracker::udp::ConnectionIds;
use tracker::{Ending, Eviction, Running, Tracker};

use crate::backends;
use crate::config::{Config, Name};
use crate::data_files::DataFiles;
use crate::directory::Resolver;
use crate::engine::{Engine, Known};
use crate::mirror_side;
use crate::node::Node;
use crate::replica_side::Replica;
use crate::roles::{Role, Roles};
use crate::site_keys_side::{self, Following};
use crate::site_side::{Lent, OpenSite, ServingSite};
use crate::steady_time;
use crate::take_over::{AllPorts, Goods, Predecessor};
use crate::verification::{self, VerifierTask};

/// Everything that is needed to serve, open and warm. Nobody is served yet, and whoever served before goes on.
pub(super) struct Opened {
    pub(super) node: Node,
    pub(super) predecessor: Option<Predecessor>,
    pub(super) gate: Arc<Gate>,
    pub(super) front: Front,
    pub(super) behind: Behind,
}

/// What will serve, as soon as it has sockets.
pub(super) struct Front {
    /// A tracker, and the connection ids it would give over UDP.
    pub(super) prepared: Option<(Prepared, ConnectionIds)>,
    pub(super) site: Option<OpenSite>,
    /// Sockets, where they are not those of a predecessor.
    pub(super) own_ports: Option<AllPorts>,
}

/// What serves.
#[derive(Default)]
pub(super) struct Serving {
    pub(super) running: Option<Running>,
    pub(super) site: Option<ServingSite>,
    /// Copies of the sockets for whoever takes over, until they are offered.
    pub(super) goods: Option<Goods>,
}

/// What runs behind the listeners.
pub(super) struct Behind {
    pub(super) store: Store,
    pub(super) engine: Engine,
    replica: Option<Replica>,
    verifier: Option<VerifierTask>,
    following: JoinHandle<()>,
    stop_following: oneshot::Sender<()>,
}

impl Opened {
    /// Opens everything. May be given up at any point.
    pub(super) async fn open(
        config: &Config,
        data: &Path,
        roles: &Roles,
        take_over: bool,
    ) -> anyhow::Result<Opened> {
        steady_time::resume(data, roles);
        let predecessor = match take_over {
            true => Predecessor::find(data).await?,
            false => None,
        };
        let name = config.journal.node_name.as_ref().map(Name::as_str);
        let node = match &predecessor {
            Some(running) => Node::succeed(data, name, roles, running.pid())?,
            None => Node::take(data, name, roles)?,
        };
        let files = DataFiles::check(config, data).await?;
        let url = config.database_url(data);
        let store = Store::open(&url).await?;
        crate::command::backup::refuse_empty_beside_populated(store.database(), &url, data).await?;
        let (gate, site_gate, prepared_verifier) = verification::gates(config, roles)?;
        let follower = Following::load(config, &store, &gate, site_gate.as_ref()).await?;
        let resolver = Resolver::new(&gate, follower.counters(), follower.reader());
        let known = Known { resolver, installed_ms: store.created_ms().await? };
        let mut engine = Engine::open(config, data, &node, roles, &known).await?;
        engine.keep_tidy(backends::open_whitelist(config, &store)?.store);
        let notes = site_keys_side::keep_copies(config, roles, &store, &gate, &mut engine)?;
        let prepared = match roles.include(Role::Tracker) {
            true => Some(prepare_tracker(config, &node, &gate, &engine)?),
            false => None,
        };
        let tracker = prepared.as_ref().map(|(prepared, _)| Arc::clone(prepared.tracker()));
        // Behind the tracker, which is named after the second of its start: the next one starts in a later second.
        steady_time::keep_recorded(data, roles, &mut engine);
        mirror_side::count_requests(config, tracker.as_ref(), &mut engine)?;
        // Ports of its own are taken before anything else happens, so that one which is taken leaves nothing half done.
        // Those of a predecessor are taken when everything is ready to serve.
        let own_ports = match &predecessor {
            Some(_) => None,
            None => Some(AllPorts::open(config, roles, Goods::default())?),
        };
        let replica = match &tracker {
            Some(tracker) => Some(Replica::warm_up(config, data, tracker, engine.journal()).await),
            None => None,
        };
        let site = match roles.include(Role::Site) && !config.site.addr.is_empty() {
            true => {
                let lent = Lent {
                    config,
                    data,
                    node: node.process(),
                    store: &store,
                    gate: &gate,
                    tracker: tracker.clone(),
                    certificate: prepared.as_ref().and_then(|(prepared, _)| prepared.certificate()).cloned(),
                    with_gateway: roles.include(Role::Gateway),
                    follower: follower.counters(),
                    redis_source: follower.figures(notes.as_ref()),
                };
                Some(OpenSite::open(lent, &mut engine).await?)
            }
            false => None,
        };
        let verifies = [Role::Tracker, Role::Ledger, Role::Mirror].iter().any(|role| roles.include(*role));
        let verifier = match verifies {
            true => {
                let turn_out = turn_out(&gate, tracker.clone(), notes.clone());
                Some(prepared_verifier.start(config, &store, &gate, turn_out).await?)
            }
            false => None,
        };
        let (stop_following, stopped) = oneshot::channel::<()>();
        let gateway = site.as_ref().and_then(OpenSite::gateway);
        let on_change = move |change| {
            notes.iter().for_each(|notes| notes.push(change));
            apply(change, tracker.as_deref(), gateway.as_deref());
        };
        let following = tokio::spawn(follower.run(on_change, stopped));
        files.remember().await;
        engine.begin_storing();
        let front = Front { prepared, site, own_ports };
        let behind = Behind { store, engine, replica, verifier, following, stop_following };
        Ok(Opened { node, predecessor, gate, front, behind })
    }
}

impl Serving {
    /// Ends the listeners. The site first, since whoever uses it may ask about the tracker; but where another process
    /// serves already, nothing more is accepted here from this moment on.
    pub(super) async fn drain(self, ending: Ending) {
        let Serving { running, site, goods } = self;
        // A socket lives as long as its last copy.
        drop(goods);
        let tracker = |running: Running| tokio::task::spawn_blocking(move || running.drain(ending));
        let (early, late) = match ending {
            Ending::HandOver => (running.map(tracker), None),
            Ending::Drain => (None, running),
        };
        if let Some(site) = site {
            site.drain().await;
        }
        if let Some(draining) = early.or(late.map(tracker))
            && let Err(reason) = draining.await
        {
            error!(%reason, "draining failed; some announces may not have been answered");
        }
    }
}

impl Behind {
    /// Stores what was heard, and ends everything. The snapshot is for whoever serves next, unless somebody does already.
    pub(super) async fn end(self, config: &Config, writes_snapshot: bool) {
        // The follower ends as soon as its sender is gone.
        drop(self.stop_following);
        if let Some(verifier) = self.verifier {
            verifier.stop().await;
        }
        self.engine.drain(Duration::from_secs(config.tracker.drain_timeout_s.into())).await;
        if let Some(replica) = self.replica {
            replica.end(writes_snapshot).await;
        }
        let _ = self.following.await;
        self.store.close().await;
    }
}

/// A tracker without sockets, and the connection ids it would give over UDP.
fn prepare_tracker(
    config: &Config,
    node: &Node,
    gate: &Arc<Gate>,
    engine: &Engine,
) -> anyhow::Result<(Prepared, ConnectionIds)> {
    let settings = config.tracker_settings();
    for address in settings.http_addresses.iter().filter(|address| !address.ip().is_loopback()) {
        warn!(%address, "tracker.allow_plaintext: passkeys sent here can be read by whoever carries them");
    }
    let secrets = Secrets::draw().context("the system gives no random numbers")?;
    let tracker = Tracker::new(
        Arc::clone(gate),
        Arc::new(SystemClock),
        Arc::clone(engine.queue()) as Arc<dyn TrafficSink>,
        settings.live.clone(),
        &secrets,
    );
    let tracker = Arc::new(tracker.living_at(node.process().node()));
    Ok((Prepared::new(&settings, tracker)?, secrets.connection_ids()))
}

/// A user whose passkey is no longer verified leaves the swarms, and has no key any longer.
fn turn_out(
    gate: &Arc<Gate>,
    tracker: Option<Arc<Tracker>>,
    notes: Option<CopyQueue>,
) -> impl FnMut(UserId) + use<> {
    let gate = Arc::clone(gate);
    move |user| {
        if let Some(tracker) = &tracker {
            tracker.order_eviction(Eviction::User(user));
        }
        if let (Some(notes), Some(passkey)) = (&notes, gate.passkey_of(user)) {
            notes.push(Change::PasskeyChanged(passkey));
        }
    }
}

/// A user or torrent that is no longer allowed leaves the swarms at once, not when its peers would have expired; a
/// user is disconnected from the gateway as well.
fn apply(change: Change, tracker: Option<&Tracker>, gateway: Option<&Gateway>) {
    if let (Change::UserRemoved(user), Some(gateway)) = (change, gateway) {
        gateway.hub.disconnect_disabled(user);
    }
    let Some(tracker) = tracker else { return };
    match change {
        Change::UserRemoved(user) => tracker.order_eviction(Eviction::User(user)),
        Change::TorrentRemoved(info_hash) => tracker.order_eviction(Eviction::Torrent(info_hash)),
        Change::ClientsChanged => tracker.order_eviction(Eviction::ForbiddenClients),
        Change::PortsChanged => tracker.order_eviction(Eviction::BannedPorts),
        Change::UserAdmitted(_)
        | Change::TorrentAdmitted(_)
        | Change::PasskeyChanged(_)
        | Change::PasskeyPublished(_)
        | Change::InfoHashChanged(_) => {}
    }
}
