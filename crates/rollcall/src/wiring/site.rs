//! The site: its stores, readiness, metrics, overview and gateway.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use access::{FollowCounters, Gate, Passkeys, Store};
use admin::Sessions;
use admin::audit::{Audit, Record, Subject};
use admin::keys::{ApiKeys, FIRST_KEY_NAME, KeyRing};
use anyhow::Context;
use friends::FriendStore;
use gateway::Gateway;
use journal::ProcessName;
use keyspace::Redis;
use ledger::{Ledger, LogRisks};
use net::Certificate;
use site::metrics::{
    Allocator, CertificateMetrics, ClusterMetrics, Metrics, MetricsSources, PresenceMetrics,
    RedisMirrorMetrics, RedisSourceFigures, SitesMetrics, ViewSource,
};
use site::{
    Dependency, Health, OverviewCollector, OverviewSources, Parts, RunningSite, Site, SiteCounters,
    UnboundSite, ViewGroup,
};
use tokio::sync::watch;
use tracing::{error, warn};
use tracker::Tracker;
use views::{Activity, Indexes};

use super::background::Background;
use super::gateway::{self as gateway_wiring, ActivityTorrentCounts};
use super::periodic;
use super::readiness;
use super::resolver::Resolver;
use super::stores::{self, Opened, system_clock};
use crate::config::{Config, SiteWrite};
use crate::first_key::FirstKey;

pub struct SiteInputs<'a> {
    pub config: &'a Config,
    pub data: &'a Path,
    pub node: &'a ProcessName,
    pub store: &'a Store,
    pub gate: &'a Arc<Gate>,
    /// With the role tracker.
    pub tracker: Option<Arc<Tracker>>,
    /// Of the tracker.
    pub certificate: Option<Arc<Certificate>>,
    /// With the role gateway.
    pub with_gateway: bool,
    pub follower: Arc<FollowCounters>,
    pub site_keys: RedisSourceFigures,
}

/// A site without sockets.
pub struct OpenSite {
    unbound: UnboundSite,
    site: Arc<Site>,
}

pub struct ServingSite {
    running: RunningSite,
    site: Arc<Site>,
    first_key: Option<FirstKey>,
}

impl OpenSite {
    /// Opens the stores of the site and adds its tasks to `background`.
    pub async fn open(inputs: SiteInputs<'_>, background: &mut Background) -> anyhow::Result<OpenSite> {
        let settings = inputs.config.site_settings();
        let unbound = UnboundSite::new(&settings)?;
        let clock = system_clock();
        let audit = Audit::open(inputs.config.audit_settings(inputs.data), system_clock())?;
        let ring = KeyRing::load(
            ApiKeys::on(inputs.store.database()),
            inputs.config.site.tracker_api_key.reveal(),
            system_clock(),
        )
        .await?;
        let ring = Arc::new(ring);
        let followed = Arc::clone(&ring);
        background.add_task(|stopped| async move { followed.follow(until_stopped(stopped)).await });
        let sessions = Arc::new(Sessions::on(inputs.store.database()));
        let swept = Arc::clone(&sessions);
        background.add_task(|stopped| swept.keep_swept(system_clock(), until_stopped(stopped)));
        let ledger = ledger_of(&inputs, background).await?;
        let activity = match &background.handles().activity {
            Some(activity) => activity.clone(),
            None => open_activity_copy(&inputs, background)?,
        };
        let friends = stores::open_friends(inputs.config, inputs.store).await?;
        let gateway = match inputs.with_gateway {
            true => Some(open_gateway(&inputs, background, friends.clone(), &activity).await?),
            false => None,
        };
        let whitelist = stores::open_whitelist(inputs.config, inputs.store)?;
        let passkeys = Passkeys::new(whitelist.store, inputs.store.clone());
        let mut needed = readiness::dependencies(readiness::ReadinessInputs {
            store: inputs.store,
            journal: background.journal(),
            queue: background.queue(),
            views: &background.handles().views,
            passkeys: &passkeys,
            activity: &activity,
            audit: &audit,
            redis: whitelist.redis.as_ref(),
        });
        let lease_s = inputs.config.presence.lease_s;
        needed.extend(gateway.iter().filter_map(|gateway| cluster_dependency(gateway, lease_s)));
        let health = Arc::new(Health::new(needed, clock.now()));
        let checked = Arc::clone(&health);
        background.add_task(|stopped| checked.run(system_clock(), stopped));
        let counters = Arc::new(SiteCounters::default());
        let redis = whitelist.redis.map(|redis| ("whitelist", redis));
        let mut metrics = metrics_of(&inputs, background, redis);
        metrics.add(audit.clone());
        metrics.add(Arc::clone(&health));
        metrics.add(Arc::clone(&sessions));
        let tracker_certificate =
            inputs.certificate.iter().map(|certificate| ("tracker", Arc::clone(certificate)));
        let site_certificate = unbound.certificate().map(|certificate| ("site", Arc::clone(certificate)));
        metrics.add(CertificateMetrics(tracker_certificate.chain(site_certificate).collect()));
        if let Some(gateway) = &gateway {
            metrics.add(Arc::clone(&gateway.counters));
            metrics.add(presence_figures(inputs.config, gateway));
            if let Some(figures) = gateways_figures(gateway) {
                metrics.add(figures);
            }
        }
        let poller = Arc::clone(metrics.journal_poller());
        background.add_task(|stopped| poller.run(stopped));
        let overview = OverviewCollector::new(OverviewSources {
            clock: Arc::clone(&clock),
            version: env!("CARGO_PKG_VERSION"),
            node: inputs.node.node().to_owned(),
            gateway: gateway.clone(),
            tracker: inputs.tracker.clone(),
            journal: Arc::clone(background.journal()),
            views: view_groups(inputs.config),
            journal_length_alarm: inputs.config.journal.length_alarm.into(),
            health: Arc::clone(&health),
        });
        let collector = Arc::clone(&overview);
        background.add_task(|stopped| collector.run(stopped));
        let parts = Parts {
            clock,
            store: inputs.store.clone(),
            friends,
            gate: Arc::clone(inputs.gate),
            passkeys,
            keys: ring,
            sessions,
            audit: Arc::new(audit),
            journal: Arc::clone(background.journal()),
            views: view_groups(inputs.config),
            ledger,
            activity,
            hit_and_run: inputs.config.hit_and_run_policy(),
            gateway,
            tracker: inputs.tracker,
            indexes: inputs.config.mirror_redis()?.map(|(redis, names)| Indexes::new(redis, names)),
            health,
            metrics: Arc::new(metrics),
            overview,
            journal_length_alarm: inputs.config.journal.length_alarm.into(),
        };
        let site = Site::new(parts, settings, counters);
        Ok(OpenSite { unbound, site })
    }

    pub fn gateway(&self) -> Option<Arc<Gateway>> {
        self.site.parts.gateway.clone()
    }

    /// Restores stored presence. To be called shortly before serving.
    pub async fn restore(&self) -> anyhow::Result<()> {
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.hub.restore().await.context("cannot restore presence from the database")?;
        }
        Ok(())
    }

    pub fn serve(self, listeners: Vec<TcpListener>) -> anyhow::Result<ServingSite> {
        let settings = self.site.settings.clone();
        let counters = Arc::clone(&self.site.counters);
        let app = site::app::router(&self.site);
        let running = self.unbound.serve(listeners, settings, app, counters)?;
        if !running.is_secure() {
            for address in running.addresses().iter().filter(|address| !address.ip().is_loopback()) {
                warn!(%address, "site.allow_plaintext: API keys are sent unencrypted to this address");
            }
        }
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.begin();
        }
        Ok(ServingSite { running, site: self.site, first_key: None })
    }
}

impl ServingSite {
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.running.is_secure() { "https" } else { "http" };
        let url = |address: &SocketAddr| match address.ip().is_unspecified() {
            true => format!("{scheme}://<this machine>:{}", address.port()),
            false => format!("{scheme}://{address}"),
        };
        let mut urls: Vec<String> = self.running.addresses().iter().map(url).collect();
        urls.dedup();
        urls
    }

    /// Gateways in the cluster, this one included; none without a cluster.
    pub fn gateways(&self) -> Option<u64> {
        let gateway = self.site.parts.gateway.as_ref()?;
        gateway.is_clustered().then(|| gateway.hub.admin.nodes_alive())
    }

    /// URLs for WebSocket clients; empty without a gateway.
    pub fn websocket_urls(&self) -> Vec<String> {
        let urls = self.site.parts.gateway.iter().flat_map(|_| self.urls());
        // http becomes ws, https becomes wss.
        urls.map(|url| format!("{}/connection/websocket", url.replacen("http", "ws", 1))).collect()
    }

    /// Creates an admin key if there has never been any key. It is shown or written to the data folder once, so call
    /// this when nothing else can fail before that.
    pub async fn create_first_key(&mut self, data: &Path) -> anyhow::Result<()> {
        let parts = &self.site.parts;
        let Some(key) = ApiKeys::on(parts.store.database()).first_key(parts.clock.now()).await? else {
            return Ok(());
        };
        let record = Record::ok("key.create", "rollcall", Subject::key(key.id)).with("name", FIRST_KEY_NAME);
        if let Err(error) = parts.audit.record(record).await {
            error!(%error, "cannot record the first key in the audit trail");
        }
        if let Err(error) = parts.keys.reload().await {
            warn!(%error, "cannot reload the API keys; the first key works a moment later");
        }
        self.first_key = Some(FirstKey::deliver(&key.text, data)?);
        Ok(())
    }

    /// Set if this start created it.
    pub fn first_key(&self) -> Option<&FirstKey> {
        self.first_key.as_ref()
    }

    /// Starts what only one process on the data folder may run. `after_another`: a predecessor served until now.
    pub fn start_exclusive(&self, after_another: bool) {
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.begin_alone(after_another);
        }
    }

    pub fn reload(&self) {
        self.running.reload();
    }

    /// Disconnects WebSocket clients, answers requests in flight, waits for running changes, then stops.
    pub async fn drain(self) {
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.drain().await;
        }
        self.running.drain().await;
        let limit = self.site.settings.limits.request_timeout;
        if tokio::time::timeout(limit, self.site.wait_for_changes()).await.is_err() {
            error!("drain timeout: a change was still running; it may not be in the audit trail");
        }
    }
}

/// The lists of another process: in Redis, or followed in the journal of this data folder.
fn open_activity_copy(inputs: &SiteInputs<'_>, background: &mut Background) -> anyhow::Result<Activity> {
    let Opened { store: activity, redis } = stores::open_activity(inputs.config)?;
    if redis.is_none() {
        let (followed, journal) = (activity.clone(), Arc::clone(background.journal()));
        background.add_task(|stopped| periodic::follow_activity(followed, journal, stopped));
    }
    Ok(activity)
}

/// With the role activity, the gateway is notified when a user's torrents change.
async fn open_gateway(
    inputs: &SiteInputs<'_>,
    background: &Background,
    friends: FriendStore,
    activity: &Activity,
) -> anyhow::Result<Arc<Gateway>> {
    let torrent_counts = ActivityTorrentCounts { gate: Arc::clone(inputs.gate), activity: activity.clone() };
    let gateway =
        gateway_wiring::open((inputs.config, inputs.data), inputs.node, friends, torrent_counts).await?;
    if let Some(local_activity) = &background.handles().activity {
        let (hub, gate) = (Arc::clone(&gateway.hub), Arc::clone(inputs.gate));
        local_activity.on_change(move |passkeys| {
            let users: Vec<_> = passkeys.iter().filter_map(|passkey| gate.user_of(passkey)).collect();
            hub.users.torrents_changed(&users);
        });
    }
    Ok(gateway)
}

fn presence_figures(config: &Config, gateway: &Arc<Gateway>) -> PresenceMetrics {
    let hub = Arc::clone(&gateway.hub);
    PresenceMetrics {
        count: Arc::new(move || hub.users.online_count()),
        connections_max: config.gateway.connections_max as usize,
    }
}

/// None without a cluster.
fn gateways_figures(gateway: &Arc<Gateway>) -> Option<ClusterMetrics> {
    let hub = Arc::clone(&gateway.hub);
    Some(ClusterMetrics {
        cluster: hub.admin.cluster_counters()?,
        gateway: Arc::clone(&gateway.counters),
        since_contact_s: Arc::new(move || hub.admin.since_contact_s().unwrap_or(0)),
    })
}

/// Without contact to Redis, presence is local to this gateway.
fn cluster_dependency(gateway: &Arc<Gateway>, lease_s: u32) -> Option<Dependency> {
    gateway.hub.admin.since_contact_s()?;
    let hub = Arc::clone(&gateway.hub);
    let cluster = Dependency::new("presence_cluster", move || {
        let since_s = hub.admin.since_contact_s().unwrap_or(0);
        async move {
            match since_s <= u64::from(lease_s) {
                true => Ok(()),
                false => Err(format!(
                    "Redis has not answered for {since_s} s: presence is local to this gateway until it returns"
                )),
            }
        }
    });
    Some(cluster.depends_on("redis"))
}

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// The ledger of this process, or one opened for reading.
async fn ledger_of(inputs: &SiteInputs<'_>, background: &Background) -> anyhow::Result<Arc<Ledger>> {
    if let Some(ledger) = &background.handles().ledger {
        return Ok(Arc::clone(ledger));
    }
    let directory = Arc::new(Resolver::new(inputs.gate, Arc::clone(&inputs.follower), None));
    let database = stores::ledger_database(inputs.config, inputs.data, inputs.store).await?;
    let ledger = stores::open_ledger(inputs.config, database, directory, Arc::new(LogRisks)).await;
    Ok(Arc::new(ledger.context("cannot open the ledger for the site")?))
}

fn view_groups(config: &Config) -> Vec<ViewGroup> {
    let mut groups = vec![("ledger", config.ledger.group.as_str()), ("activity", views::activity::GROUP)];
    if config.has_mirror() {
        groups.push(("mirror", views::redis_mirror::GROUP));
    }
    if config.site_tables().is_some() && config.sites.write == SiteWrite::On {
        groups.push(("sites", sites::view::GROUP));
    }
    let dead_after = crate::wiring::background::DEAD_AFTER;
    let groups = groups.into_iter();
    groups.map(|(view, group)| ViewGroup { view, group: group.to_owned(), dead_after }).collect()
}

fn metrics_of(
    inputs: &SiteInputs<'_>,
    background: &Background,
    redis: Option<(&'static str, Redis)>,
) -> Metrics {
    let handles = background.handles();
    let group_of = |view: &str| {
        let known = view_groups(inputs.config).into_iter().find(|known| known.view == view);
        known.map(|known| known.group).unwrap_or_default()
    };
    let views = handles.views.iter().map(|(view, counters)| ViewSource {
        view,
        group: group_of(view),
        counters: Arc::clone(counters),
    });
    let mut metrics = Metrics::new(MetricsSources {
        version: env!("CARGO_PKG_VERSION"),
        clock: system_clock(),
        tracker: inputs.tracker.clone(),
        queue: Arc::clone(background.queue()),
        journal: Arc::clone(background.journal()),
        maintenance: Arc::clone(&handles.maintenance),
        views: views.collect(),
        ledger: handles.ledger.clone(),
        activity: handles.activity.clone(),
        gate: Arc::clone(inputs.gate),
        follower: Some(Arc::clone(&inputs.follower)),
        databases: vec![("access", inputs.store.database().clone())],
        redis: handles.redis.iter().cloned().chain(redis).collect(),
    });
    metrics.add(Allocator);
    metrics.add(inputs.site_keys.clone());
    if let Some(sites) = &handles.sites {
        metrics.add(SitesMetrics { reader: Arc::clone(&sites.reader), writer: sites.writer.clone() });
    }
    if let Some(side) = &handles.mirror {
        metrics.add(RedisMirrorMetrics {
            mirror: Arc::clone(&side.mirror),
            listening: Arc::clone(&side.listening),
        });
    }
    metrics
}
