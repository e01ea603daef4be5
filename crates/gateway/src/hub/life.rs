//! The life of the hub: starting with whom a crash left behind, or another process still has, the tasks, and the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::UserId;
use domain::clock::Clock;
use keyspace::Redis;
use parking_lot::{Mutex, RwLock};
use people::{Follower, People, PeopleError};
use presence::{Input, Moment, Remembered};
use register::Register;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::sampler::Sampler;
use super::shard::{Outside, Shard};
use super::table::ConnTable;
use super::{Hub, HubSettings, SHARDS};
use crate::accounts::IsDisabled;
use crate::between::Relay;
use crate::counters::GatewayCounters;
use crate::keeper::Keeper;
use crate::occurrences::Occurrences;
use crate::rooms::Rooms;
use crate::rooms::shared::Sharing as RoomSharing;
use crate::sharing::{self, Sharing};
use crate::traffic::{self, TrafficCounts};
use crate::turn::Turn;
use crate::typing::Typing;
use crate::watch::{self as watching, Request};

/// People read at once at the start.
const PAGE: u32 = 5_000;
/// Every shard is looked at this often.
const TICK: Duration = Duration::from_millis(250);
/// Spread over this many steps.
const TICK_STEPS: usize = 8;
/// How often changes of friendships and privacy by other processes are looked for.
const FOLLOW: Duration = Duration::from_millis(200);
/// How often the history is shortened, and by how much in one step.
const PRUNE: Duration = Duration::from_secs(60);
const PRUNE_ROWS: u32 = 5_000;
/// How often the last write is tried when the server stops.
const LAST_WRITES: u32 = 3;
/// How long it may take to leave the register.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// How far people were read.
struct Page {
    through: Option<UserId>,
    is_last: bool,
}

/// What a hub is made of.
pub struct HubParts {
    /// Where friendships, privacy and history are.
    pub people: People,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// What can be set.
    pub settings: HubSettings,
    /// What is counted.
    pub counters: Arc<GatewayCounters>,
    /// Who knows what people's torrent clients do.
    pub traffic: Arc<dyn TrafficCounts>,
    /// Which users the tracker has disabled.
    pub is_disabled: IsDisabled,
    /// Where gateways share who is here, if there are several.
    pub register: Option<Arc<Register>>,
    /// Spreads pings and samples.
    pub seed: u64,
    /// Whose turn it is to shorten the history.
    pub pruning: Turn,
    /// Where the register is, for what is shared beside it.
    pub redis: Option<Redis>,
}

/// Why the hub cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The database of people cannot be used.
    #[error(transparent)]
    People(#[from] PeopleError),
    /// The person has as many devices as they may.
    #[error(transparent)]
    Refused(#[from] presence::Refused),
    /// The tracker has disabled the person.
    #[error("this user is disabled")]
    Disabled,
    /// The server stops, or the database cannot be asked in time.
    #[error("presence is not available right now: try again later")]
    Unavailable,
}

impl Hub {
    /// Opens, restores and begins, one after the other. It lives until [`Hub::stop`].
    pub async fn start(parts: HubParts) -> Result<Arc<Hub>, HubError> {
        let hub = Hub::open(parts).await?;
        hub.restore().await?;
        hub.begin();
        Ok(hub)
    }

    /// Opens what it needs. Nothing happens by itself before [`Hub::begin`].
    pub async fn open(parts: HubParts) -> Result<Arc<Hub>, HubError> {
        let mut follower = parts.people.follow(FOLLOW);
        follower.begin().await?;
        let (hub, requests) = Hub::new(parts);
        let shown = &hub.outside.counters.hub;
        // Whoever gave the counters to another hub before sees that one.
        let _ = shown.following.set(follower.counters());
        let _ = shown.people.set(Arc::clone(hub.people.counters()));
        *hub.unbegun.lock() = Some((requests, follower));
        Ok(hub)
    }

    /// Starts the tasks on this runtime.
    pub fn begin(self: &Arc<Self>) {
        let unbegun = self.unbegun.lock().take();
        if let Some((requests, follower)) = unbegun {
            self.spawn_tasks(requests, follower);
        }
    }

    fn new(parts: HubParts) -> (Arc<Hub>, mpsc::Receiver<Request>) {
        let HubParts {
            people,
            clock,
            settings,
            counters,
            traffic,
            is_disabled,
            seed,
            pruning,
            register,
            redis,
        } = parts;
        let now = Moment(clock.now_ms());
        let (requests, waiting) = mpsc::channel(watching::WAITING_MAX);
        let relay =
            register.as_ref().map(|register| Arc::new(Relay::new(register.clone(), counters.clone())));
        let is_shared = register.is_some() && redis.is_some();
        let sharing = register.map(|register| Sharing::new(register, settings.sharing, now));
        let shard = |number: usize| {
            let mut shard = Shard::new(settings.policy.clone(), now, seed ^ number as u64);
            shard.book = sharing.is_some().then(Box::default);
            Mutex::new(shard)
        };
        let shards = (0..SHARDS).map(shard).collect();
        let outside = Outside {
            relay: relay.clone(),
            keeper: Keeper::new(people.clone(), counters.clone()),
            counters: counters.clone(),
            table: RwLock::new(ConnTable::default()),
            traffic: traffic::Waiting::default(),
            epochs: AtomicU64::new(1),
            history_days: AtomicU64::new(settings.people.history_days.into()),
            platforms: Default::default(),
            sharing,
            occurrences: Occurrences::default(),
        };
        let hub = Hub {
            shards,
            outside,
            people,
            clock,
            settings: ArcSwap::from_pointee(settings),
            rooms: Rooms::new(counters.clone(), is_shared),
            typing: Typing::new(counters, relay),
            choosing: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            sampler: Sampler::new(seed),
            pruning,
            redis,
            traffic,
            is_disabled,
            requests,
            unbegun: Mutex::default(),
            stopping: AtomicBool::new(false),
            stop: watch::Sender::new(false),
            tasks: Mutex::default(),
        };
        (Arc::new(hub), waiting)
    }

    /// Brings back those who were here before a restart, as pending (P11).
    pub async fn restore(&self) -> Result<(), HubError> {
        // Where there are other gateways, the register knows who is pending.
        if let Some(sharing) = &self.outside.sharing
            && !self.was_alone(sharing).await
        {
            return Ok(());
        }
        let mut after = None;
        while let Some(page) = self.next_page(&mut after).await? {
            for remembered in page {
                let now = self.now();
                self.shard(remembered.user).roster.restore(now, remembered);
            }
        }
        Ok(())
    }

    /// Once the process before this one has ended, and everything it knew is written: those who were there and have not
    /// come here yet are pending, and what they declared there holds. People may come and go meanwhile.
    pub async fn catch_up(&self) -> Result<(), HubError> {
        if self.outside.sharing.is_some() {
            return Ok(());
        }
        // What happened here is newer: what is still being written then tells who is left alone.
        self.write_down().await;
        let mut after = None;
        while let Some(page) = self.next_page(&mut after).await? {
            for remembered in page {
                let (now, user) = (self.now(), remembered.user);
                let after = self.shard(user).bring_back(now, remembered, &self.outside);
                self.finish(after);
            }
        }
        Ok(())
    }

    async fn next_page(&self, after: &mut Option<Page>) -> Result<Option<Vec<Remembered>>, HubError> {
        let behind = match after {
            None => None,
            Some(Page { is_last: true, .. }) => return Ok(None),
            Some(Page { through, .. }) => *through,
        };
        let page = self.people.here(behind, PAGE).await?;
        let through = page.last().map(|remembered| remembered.user);
        *after = Some(Page { through, is_last: page.len() < PAGE as usize });
        Ok(Some(page))
    }

    /// Writes down now what would be written within a second.
    pub async fn write_down(&self) {
        if let Err(error) = self.outside.keeper.flush().await {
            tracing::warn!(%error, "presence cannot be written down; it is tried again");
        }
    }

    fn spawn_tasks(self: &Arc<Self>, requests: mpsc::Receiver<Request>, follower: Follower) {
        let mut tasks = self.tasks.lock();
        self.spawn(&mut tasks, watching::run(self.clone(), requests));
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.follow(follower).await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.tick_in_turn().await });
        let (hub, stop) = (self.clone(), self.stop.subscribe());
        tasks.spawn(async move { hub.outside.keeper.run(stop).await });
        let (hub, stop) = (self.clone(), self.stop.subscribe());
        tasks.spawn(async move { hub.rooms.run(|| hub.settings.load().batch, stop).await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.keep_asking_for_traffic().await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.keep_sampling().await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.keep_pruning().await });
        if let (Some(register), Some(redis)) = (self.register(), self.redis.clone()) {
            let hub = self.clone();
            let epoch = Box::new(move || hub.outside.next_epoch());
            let sharing = RoomSharing { redis, register: register.clone(), epoch };
            let (hub, stop) = (self.clone(), self.stop.subscribe());
            tasks.spawn(async move { hub.rooms.run_sharing(sharing, stop).await });
        }
        if let Some(relay) = self.outside.relay.clone() {
            self.spawn(&mut tasks, async move { relay.run().await });
        }
        for task in sharing::tasks(self) {
            self.spawn(&mut tasks, task);
        }
    }

    /// A task that may be dropped at any point where it waits.
    fn spawn(&self, tasks: &mut JoinSet<()>, task: impl Future<Output = ()> + Send + 'static) {
        let mut stop = self.stop.subscribe();
        tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        });
    }

    /// Does what is due by now.
    pub fn tick(&self) {
        for shard in 0..SHARDS {
            self.tick_shard(shard);
        }
        self.typing.expire(self.now());
    }

    fn tick_shard(&self, shard: usize) {
        if self.is_stopping() {
            return;
        }
        let now = self.now();
        let after = self.shards[shard].lock().tick(now, &self.outside);
        self.finish(after);
    }

    async fn tick_in_turn(&self) {
        let mut interval = tokio::time::interval(TICK / TICK_STEPS as u32);
        interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            for step in 0..TICK_STEPS {
                interval.tick().await;
                for shard in (step..SHARDS).step_by(TICK_STEPS) {
                    self.tick_shard(shard);
                }
            }
            self.typing.expire(self.now());
        }
    }

    async fn follow(&self, mut follower: Follower) {
        loop {
            let changes = follower.next().await;
            if self.requests.send(Request::Changed { changes, reply: None }).await.is_err() {
                return;
            }
        }
    }

    /// The torrent clients of these people did something. Never waits.
    pub fn traffic_changed(&self, users: &[UserId]) {
        let is_in_memory = |user: &UserId| self.shard(*user).people.contains_key(user);
        let users: Vec<UserId> = users.iter().copied().filter(is_in_memory).collect();
        if !users.is_empty() {
            self.outside.counters.hub.traffic_dropped.add(self.outside.traffic.add(users));
        }
    }

    async fn keep_asking_for_traffic(&self) {
        let mut rotation = tokio::time::interval(traffic::ROTATION / SHARDS as u32);
        rotation.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_shard = 0;
        loop {
            tokio::select! {
                () = self.outside.traffic.some() => {}
                _ = rotation.tick() => {
                    let users: Vec<UserId> = self.shards[next_shard].lock().people.keys().copied().collect();
                    next_shard = (next_shard + 1) % SHARDS;
                    for batch in users.chunks(traffic::BATCH_USERS_MAX) {
                        self.ask_for_traffic(batch).await;
                        tokio::time::sleep(traffic::PAUSE).await;
                    }
                }
            }
            loop {
                let batch = self.outside.traffic.take();
                if batch.is_empty() {
                    break;
                }
                self.ask_for_traffic(&batch).await;
                tokio::time::sleep(traffic::PAUSE).await;
            }
        }
    }

    async fn ask_for_traffic(&self, users: &[UserId]) {
        self.outside.counters.hub.traffic_asked.add(users.len() as u64);
        match self.traffic.counts(users).await {
            Ok(counts) => {
                for count in counts {
                    let input = Input::Traffic { seeding: count.seeding, leeching: count.leeching };
                    self.tell(count.user, input);
                }
            }
            Err(error) => {
                self.outside.counters.hub.traffic_failures.increment();
                tracing::debug!(%error, "figures beside statuses stay as they are");
            }
        }
    }

    async fn keep_pruning(&self) {
        loop {
            tokio::time::sleep(PRUNE).await;
            if !self.pruning.take().await {
                continue;
            }
            let days = self.outside.history_days.load(Ordering::Relaxed);
            let before_ms = self.now().0.saturating_sub(days * 24 * 60 * 60 * 1_000);
            loop {
                match self.people.prune_history(before_ms, PRUNE_ROWS).await {
                    Ok(pruned) if pruned >= PRUNE_ROWS.into() => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(%error, "the history of presence cannot be shortened; it is tried again");
                        break;
                    }
                }
            }
        }
    }

    /// From now on nobody can come, and a connection that ends is nobody's going. Everybody who is here will be pending
    /// after the restart (P11).
    pub fn begin_to_stop(&self) {
        if self.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        self.rooms.begin_to_stop();
        // What the register says is written with its versions as it says it. Those of the roster run ahead of them, and
        // would keep out what others write when this gateway is gone.
        if self.outside.sharing.as_ref().is_some_and(|sharing| !sharing.is_away()) {
            return;
        }
        let mut from = Some(0);
        while let Some(place) = from {
            let (page, next) = self.outside.table.read().page(place, 4_096);
            for conn in page {
                // Under the lock, or this could take the place of something newer.
                let shard = self.shard(conn.user);
                if let Some(remembered) = shard.roster.remembered(conn.user) {
                    self.outside.keeper.remember(remembered);
                }
            }
            from = next;
        }
    }

    /// The last changes are told, and then that this gateway goes: who was here is pending (P11), unless they came to
    /// another one already.
    async fn leave_register(&self) {
        let Some(sharing) = &self.outside.sharing else { return };
        self.flush_last(sharing).await;
        match tokio::time::timeout(LEAVE_MAX, sharing.register.leave()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "other gateways could not be told that this one goes"),
            Err(_) => tracing::warn!("other gateways could not be told in time that this one goes"),
        }
    }

    /// Ends the tasks as a crash would.
    #[cfg(test)]
    pub(crate) async fn kill_for_test(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// Ends the tasks and writes down what is not written yet.
    pub async fn stop(&self) {
        self.begin_to_stop();
        self.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
        self.leave_register().await;
        for attempt in 1..=LAST_WRITES {
            match self.outside.keeper.flush().await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, attempt, "presence could not be written down"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
