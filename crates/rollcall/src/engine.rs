//! What runs behind the tracker: the queue into the journal, the views, and whoever looks after them.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::Whitelist;
use access::audit::{Audit, Record, Subject};
use domain::{LogThrottle, Seconds};
use journal::maintenance::{self, MaintenanceCounters, MaintenanceSettings};
use journal::{Consumer, ConsumerCounters, ConsumerSettings, Flusher, Journal, Queue, View};
use keyspace::Redis;
use ledger::Ledger;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{error, info, warn};
use views::{Activity, Rebuild};

use crate::backends::{self, Opened, system_clock};
use crate::config::Config;
use crate::data_files::{self, ACTIVITY_FILE};
use crate::directory::{QueuedRisks, Resolver};
use crate::mirror_side::MirrorSide;
use crate::node::Node;
use crate::roles::{Role, Roles};

/// How long a consumer waits for new entries before it asks again.
const READ_WAIT: Duration = Duration::from_secs(1);
/// A consumer of another process that was silent for this long is dead; its entries are taken over.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);
/// Entries in a batch of the mirror.
const MIRROR_BATCH_MAX: u32 = 1000;
/// How often the ledger forgets clients that have been gone for long.
const PRUNE_EVERY: Duration = Duration::from_secs(5);
/// How often the activity view looks for silent clients.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// How often old whitelists are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// How long others have the database to themselves between two steps of clearing one away.
const TIDY_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait before the lists are made from a journal that failed.
const REBUILD_PAUSE: Duration = Duration::from_secs(5);
/// How often the log tells what happened, if something did.
const SUMMARY_EVERY: Duration = Duration::from_secs(300);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What runs, and how to change and end it.
pub struct Engine {
    journal: Arc<dyn Journal>,
    queue: Arc<Queue>,
    flusher: Option<Flusher>,
    flushing: Option<JoinHandle<()>>,
    /// What runs as soon as anything is served.
    at_once: Vec<Task>,
    /// What runs once no other process does it on this data folder: the views.
    waiting: Vec<Task>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    ledger_settings: watch::Sender<ConsumerSettings>,
    activity_settings: watch::Sender<ConsumerSettings>,
    mirror_settings: watch::Sender<ConsumerSettings>,
    maintenance_settings: watch::Sender<MaintenanceSettings>,
    /// What others may look at.
    shown: Shown,
}

/// What runs in an engine, for the site and its metrics to look at.
#[derive(Clone, Default)]
pub struct Shown {
    /// The accounts, if this process keeps them.
    pub ledger: Option<Arc<Ledger>>,
    /// The lists, if this process keeps them.
    pub activity: Option<Activity>,
    /// The tracker's layout in Redis, if this process keeps it or stands by.
    pub mirror: Option<MirrorSide>,
    /// What each view has done.
    pub views: Vec<(&'static str, Arc<ConsumerCounters>)>,
    /// Connections to Redis, each with what it is used for.
    pub redis: Vec<(&'static str, Redis)>,
    /// What the maintenance of the journal has done.
    pub maintenance: Arc<MaintenanceCounters>,
}

/// Everything that is shared while the engine is put together.
struct Parts<'a> {
    config: &'a Config,
    data: &'a Path,
    node: &'a Node,
    journal: Arc<dyn Journal>,
    stopped: watch::Receiver<bool>,
    audit: Audit,
}

/// What is known before any store of a role is opened.
pub struct Known {
    /// Finds users and torrents.
    pub resolver: Resolver,
    /// When the database was made, in milliseconds since 1970.
    pub installed_ms: u64,
}

impl Parts<'_> {
    /// Records in the audit trail that a view's group was made (J10).
    fn record_group(&self, view: &'static str) -> impl Fn(&str) + Send + Sync + use<> {
        let (audit, node) = (self.audit.clone(), self.node.process().to_string());
        move |group| {
            let (audit, group) = (audit.clone(), Subject::new("group", group));
            let record =
                Record::ok("group.create", "rollcall", group).with("view", view).with("node", node.as_str());
            tokio::spawn(async move {
                if let Err(error) = audit.record(record).await {
                    error!(%error, view, "that the view's group was made could not be recorded in the audit trail");
                }
            });
        }
    }
}

impl Engine {
    /// Opens the stores of these roles. Nothing runs before [`Engine::begin_storing`]: should something else fail to start,
    /// nothing has happened.
    pub async fn open(
        config: &Config,
        data: &Path,
        node: &Node,
        roles: &Roles,
        known: &Known,
    ) -> anyhow::Result<Engine> {
        let Opened { store: journal, redis } = backends::open_journal(config, data).await?;
        let (stop, stopped) = watch::channel(false);
        let queue = Arc::new(Queue::new(config.journal.queue_max as usize));
        let flusher = Flusher::new(Arc::clone(&queue), Arc::clone(&journal), node.process().to_string());
        let settings =
            |settings| watch::Sender::new(ConsumerSettings { not_before_ms: known.installed_ms, ..settings });
        let mut engine = Engine {
            journal: Arc::clone(&journal),
            shown: Shown {
                redis: redis.map(|redis| ("journal", redis)).into_iter().collect(),
                ..Shown::default()
            },
            queue,
            flusher: Some(flusher),
            flushing: None,
            at_once: Vec::new(),
            waiting: Vec::new(),
            tasks: JoinSet::new(),
            stop,
            ledger_settings: settings(config.ledger_consumer()),
            activity_settings: settings(config.activity_consumer()),
            mirror_settings: settings(config.mirror_consumer()),
            maintenance_settings: watch::Sender::new(config.maintenance()),
        };
        let audit = Audit::open(config.audit_settings(data), system_clock())?;
        let parts = Parts { config, data, node, journal, stopped, audit };
        if roles.include(Role::Ledger) {
            engine.open_ledger(&parts, &known.resolver).await?;
        }
        if roles.include(Role::Activity) {
            engine.open_activity(&parts).await?;
        }
        if roles.include(Role::Mirror) {
            engine.open_mirror(&parts, &known.resolver)?;
        }
        engine.add_maintenance(parts);
        Ok(engine)
    }

    fn add(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.waiting.push(Box::pin(task));
    }

    /// Clears away, now and then, what refreshes of the whitelist left behind.
    pub fn keep_tidy(&mut self, whitelist: Arc<dyn Whitelist>) {
        self.add(tidy_now_and_then(whitelist, self.stop.subscribe()));
    }

    /// Begins to store what the tracker puts into the queue, and whatever else must run while something is served. To
    /// be called again when more was added.
    pub fn begin_storing(&mut self) {
        if let Some(flusher) = self.flusher.take() {
            self.flushing = Some(tokio::spawn(flusher.run()));
        }
        for task in self.at_once.drain(..) {
            self.tasks.spawn(task);
        }
    }

    /// Starts the views, and whoever looks after them. Their readers take over at once what an earlier life of this
    /// node left unfinished, so that one must have ended.
    pub fn begin_views(&mut self) {
        for task in self.waiting.drain(..) {
            self.tasks.spawn(task);
        }
    }

    /// Where the tracker puts its events.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The journal.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// What runs.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Lets something else run from the start until the end; it is told by the receiver.
    pub fn add_until_stopped<F>(&mut self, task: impl FnOnce(watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = task(self.stop.subscribe());
        self.at_once.push(Box::pin(task));
    }

    /// Takes over what may change while the server runs.
    pub fn reload(&self, config: &Config) {
        // The groups' names stay what they were at the start, and so does the age of the installation.
        let keep_group = |sender: &watch::Sender<ConsumerSettings>, new: ConsumerSettings| {
            sender.send_modify(|old| {
                *old = ConsumerSettings { group: old.group.clone(), not_before_ms: old.not_before_ms, ..new };
            });
        };
        keep_group(&self.ledger_settings, config.ledger_consumer());
        keep_group(&self.activity_settings, config.activity_consumer());
        keep_group(&self.mirror_settings, config.mirror_consumer());
        self.maintenance_settings.send_replace(config.maintenance());
    }

    /// Stores what is queued, then ends everything, all within a time.
    pub async fn drain(mut self, patience: Duration) {
        self.queue.close();
        if let Some(flushing) = &mut self.flushing
            && tokio::time::timeout(patience, &mut *flushing).await.is_err()
        {
            flushing.abort();
            let lost = self.queue.abandon();
            error!(
                lost,
                "the journal did not take everything in time; these announces are not accounted for"
            );
        }
        let _ = self.stop.send(true);
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, ending).await.is_err() {
            warn!("not every view ended in time; what it was doing is done again after the next start");
        }
    }

    async fn open_ledger(&mut self, parts: &Parts<'_>, resolver: &Resolver) -> anyhow::Result<()> {
        let directory = Arc::new(resolver.clone());
        let risks = Arc::new(QueuedRisks::new(Arc::clone(&self.queue)));
        let ledger = Arc::new(backends::open_ledger(parts.config, parts.data, directory, risks).await?);
        let settings = self.ledger_settings.subscribe();
        self.add_consumer(parts, resolver.before(Arc::clone(&ledger) as Arc<dyn View>), settings);
        self.shown.ledger = Some(Arc::clone(&ledger));
        self.add(prune_now_and_then(ledger, parts.stopped.clone()));
        Ok(())
    }

    async fn open_activity(&mut self, parts: &Parts<'_>) -> anyhow::Result<()> {
        let is_new = data_files::is_new(&parts.data.join(ACTIVITY_FILE));
        let Opened { store: activity, redis } = backends::open_activity(parts.config, parts.data).await?;
        if is_new && redis.is_none() {
            self.add(rebuild_activity(activity.clone(), Arc::clone(&parts.journal), parts.stopped.clone()));
        }
        self.shown.redis.extend(redis.map(|redis| ("activity", redis)));
        let settings = self.activity_settings.subscribe();
        self.add_consumer(parts, Arc::new(activity.clone()), settings);
        self.shown.activity = Some(activity.clone());
        let every = SWEEP_INTERVAL;
        self.add(sweep_now_and_then(activity, every, parts.stopped.clone()));
        Ok(())
    }

    fn open_mirror(&mut self, parts: &Parts<'_>, resolver: &Resolver) -> anyhow::Result<()> {
        let Some(side) = MirrorSide::open(parts.config, parts.node, &parts.journal, resolver)? else {
            return Ok(());
        };
        let settings = self.mirror_settings.subscribe();
        let consumer = side
            .consumer(&parts.journal, parts.node, settings, parts.stopped.clone())
            .on_group_created(parts.record_group("mirror"));
        self.shown.redis.push(("mirror", side.redis.clone()));
        self.shown.views.push(("mirror", consumer.counters()));
        self.add(summarise_now_and_then("mirror", consumer.counters(), parts.stopped.clone()));
        self.add(side.clone().sweep(consumer.recovered(), parts.stopped.clone()));
        self.add(side.clone().listen(parts.stopped.clone()));
        self.add(consumer.run());
        self.shown.mirror = Some(side);
        Ok(())
    }

    fn add_consumer(
        &mut self,
        parts: &Parts<'_>,
        view: Arc<dyn View>,
        settings: watch::Receiver<ConsumerSettings>,
    ) {
        let name = view.name();
        let consumer = Consumer::new(
            Arc::clone(&parts.journal),
            view,
            system_clock(),
            parts.node.process().clone(),
            settings,
            parts.stopped.clone(),
        )
        .on_group_created(parts.record_group(name));
        self.shown.views.push((name, consumer.counters()));
        self.add(summarise_now_and_then(name, consumer.counters(), parts.stopped.clone()));
        self.add(consumer.run());
    }

    fn add_maintenance(&mut self, parts: Parts<'_>) {
        let counters = Arc::clone(&self.shown.maintenance);
        let settings = self.maintenance_settings.subscribe();
        self.add(maintenance::run(parts.journal, system_clock(), settings, counters, parts.stopped));
    }
}

/// Sleeps; true if it is the end.
async fn sleep_or_stop(length: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stopped| *stopped) => true,
        () = tokio::time::sleep(length) => false,
    }
}

async fn prune_now_and_then(ledger: Arc<Ledger>, mut stopped: watch::Receiver<bool>) {
    while !sleep_or_stop(PRUNE_EVERY, &mut stopped).await {
        if let Err(reason) = ledger.prune(system_clock().now()).await {
            warn!(%reason, "clients that left long ago could not be forgotten");
        }
    }
}

async fn tidy_now_and_then(whitelist: Arc<dyn Whitelist>, mut stopped: watch::Receiver<bool>) {
    let (mut has_more, log) = (false, LogThrottle::new());
    // With a pause between steps, so that nobody waits for the database because of it.
    while !sleep_or_stop(if has_more { TIDY_PAUSE } else { TIDY_EVERY }, &mut stopped).await {
        has_more = whitelist.tidy().await.unwrap_or_else(|reason| {
            if let Some(left_out) = log.admit(system_clock().now()) {
                warn!(%reason, lines_left_out = left_out, "an old whitelist could not be cleared away");
            }
            false
        });
    }
}

/// Applies what the journal holds to lists that are new, or were set aside or deleted. Beside the view itself: entries
/// may be applied in any order and more than once.
async fn rebuild_activity(activity: Activity, journal: Arc<dyn Journal>, mut stopped: watch::Receiver<bool>) {
    let (mut rebuild, log) = (Rebuild::of(activity), LogThrottle::new());
    loop {
        match rebuild.step(&*journal).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(reason) => {
                if let Some(left_out) = log.admit(system_clock().now()) {
                    warn!(
                        %reason,
                        lines_left_out = left_out,
                        "the lists of who seeds and who leeches wait to be made from the journal"
                    );
                }
                if sleep_or_stop(REBUILD_PAUSE, &mut stopped).await {
                    return;
                }
            }
        }
        if *stopped.borrow() {
            return;
        }
    }
    if rebuild.entries() > 0 {
        info!(
            entries = rebuild.entries(),
            "the lists of who seeds and who leeches were made from the journal"
        );
    }
}

async fn sweep_now_and_then(activity: Activity, every: Duration, mut stopped: watch::Receiver<bool>) {
    let log = LogThrottle::new();
    while !sleep_or_stop(every, &mut stopped).await {
        if let Err(reason) = activity.sweep().await
            && let Some(left_out) = log.admit(system_clock().now())
        {
            warn!(%reason, lines_left_out = left_out, "silent clients could not be looked for");
        }
    }
}

/// One line that says what a view has done, if it has done something.
async fn summarise_now_and_then(
    view: &'static str,
    counters: Arc<ConsumerCounters>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut told = 0;
    loop {
        let is_end = sleep_or_stop(SUMMARY_EVERY, &mut stopped).await;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let applied = count(&counters.applied);
        let (buried, failed) = (count(&counters.moved_to_dead_letters), count(&counters.failed));
        if applied + buried + failed != told {
            told = applied + buried + failed;
            info!(
                view,
                applied,
                buried,
                skipped = count(&counters.skipped),
                revived = count(&counters.restored),
                failed,
                taken_over = count(&counters.taken_over),
                waits = count(&counters.transient_failures),
                "since start"
            );
        }
        if is_end {
            return;
        }
    }
}

impl Config {
    /// How the ledger reads the journal.
    fn ledger_consumer(&self) -> ConsumerSettings {
        let ledger = &self.ledger;
        self.consumer(ledger.group.as_str(), ledger.consumers, ledger.batch_max, true)
    }

    /// How the lists read the journal.
    fn activity_consumer(&self) -> ConsumerSettings {
        let activity = &self.activity;
        self.consumer(views::activity::GROUP, activity.consumers, activity.batch_max, false)
    }

    /// How the layout reads the journal: in order, so one batch at a time.
    fn mirror_consumer(&self) -> ConsumerSettings {
        self.consumer(views::mirror::GROUP, 1, MIRROR_BATCH_MAX, false)
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
