//! The site beside the tracker: what it is given, and how it is started.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use access::audit::{Audit, Record, Subject};
use access::keys::{ApiKeys, FIRST_KEY_NAME, KeyRing};
use access::{FollowCounters, Gate, Passkeys, Sessions, Store};
use anyhow::Context;
use friends::FriendStore;
use gateway::Gateway;
use journal::ProcessName;
use keyspace::Redis;
use ledger::{Ledger, LogRisks};
use site::metrics::{
    Allocator, CertificateMetrics, ClusterMetrics, Metrics, MetricsSources, MirrorMetrics, PresenceMetrics,
    RedisSourceFigures, ViewSource,
};
use site::{
    Dependency, Health, OverviewCollector, OverviewSources, Parts, RunningSite, Site, SiteCounters,
    UnboundSite, ViewGroup,
};
use tokio::sync::watch;
use tracing::{error, warn};
use tracker::Tracker;
use tracker::http::tls::Certificate;
use views::{Activity, Indexes};

use crate::backends::{self, system_clock};
use crate::config::Config;
use crate::directory::Resolver;
use crate::engine::Engine;
use crate::first_key::FirstKey;
use crate::gateway_side::{self, Traffic};
use crate::readiness;

/// What the rest of the process lends to the site.
pub struct Lent<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The data folder.
    pub data: &'a Path,
    /// This process among others.
    pub node: &'a ProcessName,
    /// Users, torrents, clients.
    pub store: &'a Store,
    /// What the tracker goes by.
    pub gate: &'a Arc<Gate>,
    /// The tracker, if this process is one.
    pub tracker: Option<Arc<Tracker>>,
    /// The certificate of the tracker, if it has one.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether people may connect here.
    pub with_gateway: bool,
    /// How the gate follows the database.
    pub follower: Arc<FollowCounters>,
    /// What is done with the site's keys.
    pub redis_source: RedisSourceFigures,
}

/// A site whose parts are open, and that needs nothing but sockets.
pub struct OpenSite {
    unbound: UnboundSite,
    site: Arc<Site>,
}

/// A site that serves.
pub struct ServingSite {
    running: RunningSite,
    site: Arc<Site>,
    first_key: Option<FirstKey>,
}

impl OpenSite {
    /// Opens what only the site needs; what it looks after begins with the engine.
    pub async fn open(lent: Lent<'_>, engine: &mut Engine) -> anyhow::Result<OpenSite> {
        let settings = lent.config.site_settings();
        let unbound = UnboundSite::new(&settings)?;
        let clock = system_clock();
        let audit = Audit::open(lent.config.audit_settings(lent.data), system_clock())?;
        let ring =
            KeyRing::load(ApiKeys::on(lent.store), lent.config.site.tracker_api_key.reveal(), system_clock())
                .await?;
        let ring = Arc::new(ring);
        let followed = Arc::clone(&ring);
        engine.add_until_stopped(|stopped| async move { followed.follow(end_of(stopped)).await });
        let sessions = Arc::new(Sessions::on(lent.store));
        let swept = Arc::clone(&sessions);
        engine.add_until_stopped(|stopped| swept.keep_swept(system_clock(), end_of(stopped)));
        let kept = audit.clone();
        engine.add_until_stopped(|stopped| kept.keep_synced(end_of(stopped)));
        let ledger = ledger_of(&lent, engine).await?;
        let activity = match &engine.shown().activity {
            Some(activity) => activity.clone(),
            None => backends::open_activity(lent.config, lent.data).await?.store,
        };
        let people = backends::open_people(lent.config, lent.store).await?;
        let gateway = match lent.with_gateway {
            true => Some(open_gateway(&lent, engine, people.clone(), &activity).await?),
            false => None,
        };
        let whitelist = backends::open_whitelist(lent.config, lent.store)?;
        let passkeys = Passkeys::new(whitelist.store, lent.store.clone());
        let mut needed = readiness::dependencies(readiness::Needs {
            store: lent.store,
            journal: engine.journal(),
            queue: engine.queue(),
            views: &engine.shown().views,
            passkeys: &passkeys,
            activity: &activity,
            audit: &audit,
            redis: whitelist.redis.as_ref(),
        });
        let lease_s = lent.config.presence.lease_s;
        needed.extend(gateway.iter().filter_map(|gateway| register_dependency(gateway, lease_s)));
        let health = Arc::new(Health::new(needed, clock.now()));
        let asked = Arc::clone(&health);
        engine.add_until_stopped(|stopped| asked.run(system_clock(), stopped));
        let counters = Arc::new(SiteCounters::default());
        let redis = whitelist.redis.map(|redis| ("whitelist", redis));
        let mut metrics = metrics_of(&lent, engine, redis);
        metrics.add(audit.clone());
        metrics.add(Arc::clone(&health));
        metrics.add(Arc::clone(&sessions));
        let of_tracker = lent.certificate.iter().map(|shown| ("tracker", Arc::clone(shown)));
        let of_site = unbound.certificate().map(|shown| ("site", Arc::clone(shown)));
        metrics.add(CertificateMetrics(of_tracker.chain(of_site).collect()));
        if let Some(gateway) = &gateway {
            metrics.add(Arc::clone(&gateway.counters));
            metrics.add(people_figures(lent.config, gateway));
            if let Some(figures) = gateways_figures(gateway) {
                metrics.add(figures);
            }
        }
        let poller = Arc::clone(metrics.journal_poller());
        engine.add_until_stopped(|stopped| poller.run(stopped));
        let overview = OverviewCollector::new(OverviewSources {
            clock: Arc::clone(&clock),
            version: env!("CARGO_PKG_VERSION"),
            node: lent.node.node().to_owned(),
            gateway: gateway.clone(),
            tracker: lent.tracker.clone(),
            journal: Arc::clone(engine.journal()),
            views: view_groups(lent.config),
            journal_length_alarm: lent.config.journal.length_alarm.into(),
            health: Arc::clone(&health),
        });
        let collector = Arc::clone(&overview);
        engine.add_until_stopped(|stopped| collector.run(stopped));
        let parts = Parts {
            clock,
            store: lent.store.clone(),
            friends: people,
            gate: Arc::clone(lent.gate),
            passkeys,
            keys: ring,
            sessions,
            audit: Arc::new(audit),
            journal: Arc::clone(engine.journal()),
            views: view_groups(lent.config),
            ledger,
            activity,
            hit_and_run: lent.config.hit_and_run_policy(),
            gateway,
            tracker: lent.tracker,
            indexes: lent.config.layout()?.map(|(redis, names)| Indexes::new(redis, names)),
            health,
            metrics: Arc::new(metrics),
            overview,
            journal_length_alarm: lent.config.journal.length_alarm.into(),
        };
        let site = Site::new(parts, settings, counters);
        Ok(OpenSite { unbound, site })
    }

    /// The gateway of this process, if it has one.
    pub fn gateway(&self) -> Option<Arc<Gateway>> {
        self.site.parts.gateway.clone()
    }

    /// Brings back those who were here, as far as it is written. To be called shortly before it serves.
    pub async fn restore(&self) -> anyhow::Result<()> {
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.hub.restore().await.context("cannot read who was here")?;
        }
        Ok(())
    }

    /// Begins to serve at these sockets.
    pub fn serve(self, listeners: Vec<TcpListener>) -> anyhow::Result<ServingSite> {
        let settings = self.site.settings.clone();
        let counters = Arc::clone(&self.site.counters);
        let app = site::app::router(&self.site);
        let running = self.unbound.serve(listeners, settings, app, counters)?;
        if !running.is_secure() {
            for address in running.addresses().iter().filter(|address| !address.ip().is_loopback()) {
                warn!(%address, "site.allow_plaintext: keys sent here can be read by whoever carries them");
            }
        }
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.begin();
        }
        Ok(ServingSite { running, site: self.site, first_key: None })
    }
}

impl ServingSite {
    /// Where it is, as people type it.
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

    /// How many gateways there are, this one among them; none if it is alone.
    pub fn gateways(&self) -> Option<u64> {
        let gateway = self.site.parts.gateway.as_ref()?;
        gateway.is_clustered().then(|| gateway.hub.nodes_alive())
    }

    /// Where people connect, if they may.
    pub fn people_urls(&self) -> Vec<String> {
        let urls = self.site.parts.gateway.iter().flat_map(|_| self.urls());
        // http becomes ws, https becomes wss.
        urls.map(|url| format!("{}/connection/websocket", url.replacen("http", "ws", 1))).collect()
    }

    /// Makes a key with all rights if there has never been any. To be called when nothing else can fail before the
    /// key is shown: it is made once, and shown or written to the data folder once.
    pub async fn make_first_key(&mut self, data: &Path) -> anyhow::Result<()> {
        let parts = &self.site.parts;
        let Some(key) = ApiKeys::on(&parts.store).first_key(parts.clock.now()).await? else {
            return Ok(());
        };
        let record = Record::ok("key.create", "rollcall", Subject::key(key.id)).with("name", FIRST_KEY_NAME);
        if let Err(error) = parts.audit.record(record).await {
            error!(%error, "the first key could not be recorded in the audit trail");
        }
        if let Err(error) = parts.keys.reload().await {
            warn!(%error, "the first key works a moment later");
        }
        self.first_key = Some(FirstKey::deliver(&key.text, data)?);
        Ok(())
    }

    /// The key that this start has made, if it is the first ever.
    pub fn first_key(&self) -> Option<&FirstKey> {
        self.first_key.as_ref()
    }

    /// No other process on this data folder serves people any more; whether one did until now.
    pub fn begin_alone(&self, after_another: bool) {
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.begin_alone(after_another);
        }
    }

    /// Reads the certificate again.
    pub fn reload(&self) {
        self.running.reload();
    }

    /// Sends people away, answers what is in flight, lets every change come to its end, and ends.
    pub async fn drain(self) {
        if let Some(gateway) = &self.site.parts.gateway {
            gateway.drain().await;
        }
        self.running.drain().await;
        let patience = self.site.settings.limits.request_timeout;
        if tokio::time::timeout(patience, self.site.wait_for_changes()).await.is_err() {
            error!("a change was still under way; it may have been made without a record in the audit trail");
        }
    }
}

/// The gateway, told by the lists of this process when somebody's torrents change.
async fn open_gateway(
    lent: &Lent<'_>,
    engine: &Engine,
    people: FriendStore,
    activity: &Activity,
) -> anyhow::Result<Arc<Gateway>> {
    let traffic = Traffic { gate: Arc::clone(lent.gate), activity: activity.clone() };
    let gateway = gateway_side::open((lent.config, lent.data), lent.node, people, traffic).await?;
    if let Some(kept_here) = &engine.shown().activity {
        let (hub, gate) = (Arc::clone(&gateway.hub), Arc::clone(lent.gate));
        kept_here.on_change(move |passkeys| {
            let users: Vec<_> = passkeys.iter().filter_map(|passkey| gate.user_of(passkey)).collect();
            hub.traffic_changed(&users);
        });
    }
    Ok(gateway)
}

fn people_figures(config: &Config, gateway: &Arc<Gateway>) -> PresenceMetrics {
    let hub = Arc::clone(&gateway.hub);
    PresenceMetrics {
        count: Arc::new(move || hub.online_count()),
        connections_max: config.gateway.connections_max as usize,
    }
}

/// What makes the gateway one of many, if it is.
fn gateways_figures(gateway: &Arc<Gateway>) -> Option<ClusterMetrics> {
    let hub = Arc::clone(&gateway.hub);
    Some(ClusterMetrics {
        cluster: hub.cluster_counters()?,
        gateway: Arc::clone(&gateway.counters),
        since_contact_s: Arc::new(move || hub.since_contact_s().unwrap_or(0)),
    })
}

/// Whether the register answers: a gateway that is out of contact shows people to those at the same gateway only.
fn register_dependency(gateway: &Arc<Gateway>, lease_s: u32) -> Option<Dependency> {
    gateway.hub.since_contact_s()?;
    let hub = Arc::clone(&gateway.hub);
    let register = Dependency::new("register", move || {
        let since_s = hub.since_contact_s().unwrap_or(0);
        async move {
            match since_s <= u64::from(lease_s) {
                true => Ok(()),
                false => Err(format!(
                    "Redis has not answered for {since_s} s: people at other gateways are not seen here, nor those here there"
                )),
            }
        }
    });
    Some(register.depends_on("redis"))
}

/// Ready once everything is to end.
async fn end_of(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// The accounts: those of this process, or opened to be read.
async fn ledger_of(lent: &Lent<'_>, engine: &Engine) -> anyhow::Result<Arc<Ledger>> {
    if let Some(ledger) = &engine.shown().ledger {
        return Ok(Arc::clone(ledger));
    }
    let directory = Arc::new(Resolver::new(lent.gate, Arc::clone(&lent.follower), None));
    let ledger = backends::open_ledger(lent.config, lent.data, directory, Arc::new(LogRisks)).await;
    Ok(Arc::new(ledger.context("cannot open the accounts for the site")?))
}

fn view_groups(config: &Config) -> Vec<ViewGroup> {
    let mut groups = vec![("ledger", config.ledger.group.as_str()), ("activity", views::activity::GROUP)];
    if config.has_layout() {
        groups.push(("mirror", views::mirror::GROUP));
    }
    let dead_after = crate::engine::DEAD_AFTER;
    let groups = groups.into_iter();
    groups.map(|(view, group)| ViewGroup { view, group: group.to_owned(), dead_after }).collect()
}

fn metrics_of(lent: &Lent<'_>, engine: &Engine, redis: Option<(&'static str, Redis)>) -> Metrics {
    let shown = engine.shown();
    let group_of = |view: &str| {
        let known = view_groups(lent.config).into_iter().find(|known| known.view == view);
        known.map(|known| known.group).unwrap_or_default()
    };
    let views = shown.views.iter().map(|(view, counters)| ViewSource {
        view,
        group: group_of(view),
        counters: Arc::clone(counters),
    });
    let mut metrics = Metrics::new(MetricsSources {
        version: env!("CARGO_PKG_VERSION"),
        clock: system_clock(),
        tracker: lent.tracker.clone(),
        queue: Arc::clone(engine.queue()),
        journal: Arc::clone(engine.journal()),
        maintenance: Arc::clone(&shown.maintenance),
        views: views.collect(),
        ledger: shown.ledger.clone(),
        activity: shown.activity.clone(),
        gate: Arc::clone(lent.gate),
        follower: Some(Arc::clone(&lent.follower)),
        databases: vec![("access", lent.store.database().clone())],
        redis: shown.redis.iter().cloned().chain(redis).collect(),
    });
    metrics.add(Allocator);
    metrics.add(lent.redis_source.clone());
    if let Some(side) = &shown.mirror {
        metrics
            .add(MirrorMetrics { mirror: Arc::clone(&side.mirror), listening: Arc::clone(&side.listening) });
    }
    metrics
}
