//! Background tasks: the queue into the journal, the views, maintenance.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use access::{Store, Whitelist};
use admin::audit::{Audit, Record, Subject};
use database::Database;
use domain::Seconds;
use journal::maintenance::{self, MaintenanceCounters, MaintenanceSettings};
use journal::{
    Consumer, ConsumerCounters, ConsumerSettings, Flusher, Journal, LeaderLease, Queue, View, keep_lease,
};
use keyspace::Redis;
use ledger::Ledger;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{error, warn};
use views::{Activity, Rebuild};

use super::periodic;
use super::redis_mirror::OpenRedisMirror;
use super::resolver::Resolver;
use super::risks::QueuedRisks;
use super::sites::{OpenSites, SitesCounters, SitesInputs};
use super::stores::{self, Opened, OpenedWriter, system_clock};
use crate::config::Config;
use crate::node::Node;
use crate::roles::{Role, Roles};

/// How long a consumer waits for new entries before it reads again.
const READ_WAIT: Duration = Duration::from_secs(1);
/// A consumer of another process that was idle for this long is dead; its entries are taken over.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);
/// Entries in a batch of the mirror.
const MIRROR_BATCH_MAX: u32 = 1000;
/// Entries in a batch of the site's tables.
const SITES_BATCH_MAX: u32 = 1000;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

pub struct Background {
    journal: Arc<dyn Journal>,
    queue: Arc<Queue>,
    flusher: Option<Flusher>,
    flushing: Option<JoinHandle<()>>,
    /// Started with the server.
    immediate: Vec<Task>,
    /// Started once no other process runs on this data folder: the views.
    deferred: Vec<Task>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    ledger_settings: watch::Sender<ConsumerSettings>,
    activity_settings: watch::Sender<ConsumerSettings>,
    mirror_settings: watch::Sender<ConsumerSettings>,
    sites_settings: watch::Sender<ConsumerSettings>,
    maintenance_settings: watch::Sender<MaintenanceSettings>,
    handles: Handles,
}

/// For the site and its metrics.
#[derive(Clone, Default)]
pub struct Handles {
    /// With the role ledger.
    pub ledger: Option<Arc<Ledger>>,
    /// With the role activity.
    pub activity: Option<Activity>,
    /// With the role mirror, whether or not this process holds the lease.
    pub mirror: Option<OpenRedisMirror>,
    /// With the role sites and a profile.
    pub sites: Option<SitesCounters>,
    /// By view.
    pub views: Vec<(&'static str, Arc<ConsumerCounters>)>,
    /// By purpose.
    pub redis: Vec<(&'static str, Redis)>,
    pub maintenance: Arc<MaintenanceCounters>,
}

/// Shared while the stores are opened.
struct OpenContext<'a> {
    config: &'a Config,
    node: &'a Node,
    journal: Arc<dyn Journal>,
    stopped: watch::Receiver<bool>,
    audit: Audit,
}

/// Opened before the stores.
pub struct ResolverContext {
    pub resolver: Resolver,
    /// Of the ledger.
    pub database: Database,
    /// Where the users and torrents of an existing site are copied to.
    pub store: Store,
    /// Creation of the database, in milliseconds since 1970. Views ignore entries before it.
    pub installed_ms: u64,
}

impl OpenContext<'_> {
    /// Records the creation of a consumer group in the audit trail (J10).
    fn record_group(&self, view: &'static str) -> impl Fn(&str) + Send + Sync + use<> {
        let (audit, node) = (self.audit.clone(), self.node.process().to_string());
        move |group| {
            let (audit, group) = (audit.clone(), Subject::new("group", group));
            let record =
                Record::ok("group.create", "rollcall", group).with("view", view).with("node", node.as_str());
            tokio::spawn(async move {
                if let Err(error) = audit.record(record).await {
                    error!(%error, view, "cannot record the new consumer group in the audit trail");
                }
            });
        }
    }
}

impl Background {
    /// Opens the stores of the roles. No task runs before [`Background::start`], so a start that fails later has no
    /// effects.
    pub async fn open(
        config: &Config,
        data: &Path,
        node: &Node,
        roles: &Roles,
        resolver_context: &ResolverContext,
    ) -> anyhow::Result<Background> {
        let Opened { store: journal, redis } = stores::open_journal(config, data).await?;
        let (stop, stopped) = watch::channel(false);
        let queue = Arc::new(Queue::new(config.journal.queue_max as usize));
        let flusher = Flusher::new(Arc::clone(&queue), Arc::clone(&journal), node.process().to_string());
        let settings = |settings| {
            watch::Sender::new(ConsumerSettings { not_before_ms: resolver_context.installed_ms, ..settings })
        };
        let mut background = Background {
            journal: Arc::clone(&journal),
            handles: Handles {
                redis: redis.map(|redis| ("journal", redis)).into_iter().collect(),
                ..Handles::default()
            },
            queue,
            flusher: Some(flusher),
            flushing: None,
            immediate: Vec::new(),
            deferred: Vec::new(),
            tasks: JoinSet::new(),
            stop,
            ledger_settings: settings(config.ledger_consumer()),
            activity_settings: settings(config.activity_consumer()),
            mirror_settings: settings(config.mirror_consumer()),
            sites_settings: settings(config.sites_consumer()),
            maintenance_settings: watch::Sender::new(config.maintenance()),
        };
        let audit = Audit::open(config.audit_settings(data), system_clock())?;
        let context = OpenContext { config, node, journal, stopped, audit };
        if roles.include(Role::Ledger) {
            background.open_ledger(&context, resolver_context).await?;
        }
        if roles.include(Role::Activity) {
            background.open_activity(&context)?;
        }
        if roles.include(Role::Mirror) {
            background.open_mirror(&context, &resolver_context.resolver)?;
        }
        if roles.include(Role::Sites) {
            background.open_sites(&context, resolver_context).await?;
        }
        background.add_maintenance(context);
        Ok(background)
    }

    fn add(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.deferred.push(Box::pin(task));
    }

    /// Removes old versions of the whitelist, which refreshes leave behind.
    pub fn add_whitelist_cleanup(&mut self, whitelist: Arc<dyn Whitelist>) {
        self.add(periodic::clean_up_periodically(whitelist, self.stop.subscribe()));
    }

    /// Starts the flusher and all added tasks. May be called again after more were added.
    pub fn start(&mut self) {
        if let Some(flusher) = self.flusher.take() {
            self.flushing = Some(tokio::spawn(flusher.run()));
        }
        for task in self.immediate.drain(..) {
            self.tasks.spawn(task);
        }
    }

    /// Starts the views. They take over entries that an earlier process of this node left pending, so that process
    /// must have ended.
    pub fn start_views(&mut self) {
        for task in self.deferred.drain(..) {
            self.tasks.spawn(task);
        }
    }

    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    /// Adds a task that ends when the receiver turns true.
    pub fn add_task<F>(&mut self, task: impl FnOnce(watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = task(self.stop.subscribe());
        self.immediate.push(Box::pin(task));
    }

    pub fn reload(&self, config: &Config) {
        // Group names and the creation time are fixed at the start.
        let keep_group = |sender: &watch::Sender<ConsumerSettings>, new: ConsumerSettings| {
            sender.send_modify(|old| {
                *old = ConsumerSettings { group: old.group.clone(), not_before_ms: old.not_before_ms, ..new };
            });
        };
        keep_group(&self.ledger_settings, config.ledger_consumer());
        keep_group(&self.activity_settings, config.activity_consumer());
        keep_group(&self.mirror_settings, config.mirror_consumer());
        keep_group(&self.sites_settings, config.sites_consumer());
        self.maintenance_settings.send_replace(config.maintenance());
    }

    /// Flushes the queue, then stops all tasks; each within `timeout`.
    pub async fn drain(mut self, timeout: Duration) {
        self.queue.close();
        if let Some(flushing) = &mut self.flushing
            && tokio::time::timeout(timeout, &mut *flushing).await.is_err()
        {
            flushing.abort();
            let lost = self.queue.abandon();
            error!(lost, "drain timeout: these announces were not stored and are not accounted for");
        }
        let _ = self.stop.send(true);
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(timeout, ending).await.is_err() {
            warn!("drain timeout: a view did not stop; its batch is applied again after the next start");
        }
    }

    async fn open_ledger(
        &mut self,
        context: &OpenContext<'_>,
        resolver_context: &ResolverContext,
    ) -> anyhow::Result<()> {
        let ResolverContext { resolver, database, .. } = resolver_context;
        let directory = Arc::new(resolver.clone());
        let risks = Arc::new(QueuedRisks::new(Arc::clone(&self.queue)));
        let ledger = Arc::new(stores::open_ledger(context.config, database.clone(), directory, risks).await?);
        let settings = self.ledger_settings.subscribe();
        let view = resolver.resolving(Arc::clone(&ledger) as Arc<dyn View>);
        self.add_consumer(context, view, None, settings);
        self.handles.ledger = Some(Arc::clone(&ledger));
        self.add(periodic::prune_periodically(ledger, context.stopped.clone()));
        Ok(())
    }

    fn open_activity(&mut self, context: &OpenContext<'_>) -> anyhow::Result<()> {
        let holder = context.node.process().to_string();
        let OpenedWriter { opened, lease } = stores::open_activity_writer(context.config, holder)?;
        let Opened { store: activity, redis } = opened;
        if redis.is_none() {
            // Once for what was applied before this start, and again for what a predecessor applies until it ends.
            let rebuild = Arc::new(tokio::sync::Mutex::new(Rebuild::of(activity.clone())));
            let (journal, stopped) = (&context.journal, &context.stopped);
            let catch_up =
                || periodic::rebuild_activity(Arc::clone(&rebuild), Arc::clone(journal), stopped.clone());
            self.immediate.push(Box::pin(catch_up()));
            self.add(catch_up());
        }
        let journal = redis.is_none().then(|| Arc::clone(&context.journal));
        self.handles.redis.extend(redis.map(|redis| ("activity", redis)));
        let settings = self.activity_settings.subscribe();
        self.add_consumer(context, Arc::new(activity.clone()), lease, settings);
        self.handles.activity = Some(activity.clone());
        self.add(periodic::sweep_periodically(activity, journal, context.stopped.clone()));
        Ok(())
    }

    fn open_mirror(&mut self, context: &OpenContext<'_>, resolver: &Resolver) -> anyhow::Result<()> {
        let Some(mirror) = OpenRedisMirror::open(context.config, context.node, &context.journal, resolver)?
        else {
            return Ok(());
        };
        let settings = self.mirror_settings.subscribe();
        let consumer = mirror
            .consumer(&context.journal, context.node, settings, context.stopped.clone())
            .on_group_created(context.record_group("mirror"));
        self.handles.redis.push(("mirror", mirror.redis.clone()));
        self.handles.views.push(("mirror", consumer.counters()));
        self.add(periodic::summarise_periodically("mirror", consumer.counters(), context.stopped.clone()));
        self.add(mirror.clone().sweep(consumer.recovered(), context.stopped.clone()));
        self.add(mirror.clone().listen(context.stopped.clone()));
        self.add(consumer.run());
        self.handles.mirror = Some(mirror);
        Ok(())
    }

    async fn open_sites(
        &mut self,
        context: &OpenContext<'_>,
        resolver_context: &ResolverContext,
    ) -> anyhow::Result<()> {
        let inputs = SitesInputs {
            config: context.config,
            journal: &context.journal,
            database: &resolver_context.database,
            ledger: self.handles.ledger.as_ref(),
            resolver: &resolver_context.resolver,
            store: &resolver_context.store,
        };
        let Some(sites) = OpenSites::open(inputs).await? else { return Ok(()) };
        self.handles.sites = Some(sites.counters());
        if let Some(view) = sites.view() {
            let settings = self.sites_settings.subscribe();
            self.add_consumer(context, resolver_context.resolver.resolving(view), None, settings);
        }
        self.add(sites.run(context.stopped.clone()));
        Ok(())
    }

    /// With a lease, the view has one writer.
    fn add_consumer(
        &mut self,
        context: &OpenContext<'_>,
        view: Arc<dyn View>,
        lease: Option<Arc<dyn LeaderLease>>,
        settings: watch::Receiver<ConsumerSettings>,
    ) {
        let name = view.name();
        let consumer = Consumer::new(
            Arc::clone(&context.journal),
            view,
            system_clock(),
            context.node.process().clone(),
            settings,
            context.stopped.clone(),
        )
        .on_group_created(context.record_group(name));
        let counters = consumer.counters();
        self.handles.views.push((name, Arc::clone(&counters)));
        self.add(periodic::summarise_periodically(name, Arc::clone(&counters), context.stopped.clone()));
        self.add(async move {
            let Some(lease) = lease else { return consumer.run().await };
            tokio::select! {
                () = consumer.run() => {}
                () = keep_lease(&*lease, name, &counters.fenced) => {}
            }
            lease.release().await;
        });
    }

    fn add_maintenance(&mut self, context: OpenContext<'_>) {
        let counters = Arc::clone(&self.handles.maintenance);
        let settings = self.maintenance_settings.subscribe();
        self.add(maintenance::run(context.journal, system_clock(), settings, counters, context.stopped));
    }
}

impl Config {
    fn ledger_consumer(&self) -> ConsumerSettings {
        let ledger = &self.ledger;
        self.consumer(ledger.group.as_str(), ledger.consumers, ledger.batch_max, true)
    }

    fn activity_consumer(&self) -> ConsumerSettings {
        let activity = &self.activity;
        self.consumer(views::activity::GROUP, activity.consumers, activity.batch_max, false)
    }

    /// Reads in order, so one batch at a time.
    fn mirror_consumer(&self) -> ConsumerSettings {
        self.consumer(views::redis_mirror::GROUP, 1, MIRROR_BATCH_MAX, false)
    }

    /// Entries are only staged, so one reader suffices.
    fn sites_consumer(&self) -> ConsumerSettings {
        self.consumer(sites::view::GROUP, 1, SITES_BATCH_MAX, false)
    }

    fn consumer(
        &self,
        group: &str,
        consumers: u32,
        batch_max: u32,
        handles_malformed: bool,
    ) -> ConsumerSettings {
        let journal = &self.journal;
        ConsumerSettings {
            group: group.to_owned(),
            consumers: consumers as usize,
            batch_max: batch_max as usize,
            entries_per_s_max: journal.entries_per_s_max,
            not_before_ms: 0,
            read_wait: READ_WAIT,
            dead_after: DEAD_AFTER,
            retry_max: journal.retry_max,
            retry_delay: Seconds(journal.retry_delay_s),
            handles_malformed,
        }
    }

    fn maintenance(&self) -> MaintenanceSettings {
        let journal = &self.journal;
        MaintenanceSettings {
            keep: Seconds(journal.keep_s),
            keep_risks: Seconds(journal.risk_keep_days.saturating_mul(24 * 60 * 60)),
            length_alarm: journal.length_alarm.into(),
        }
    }
}
