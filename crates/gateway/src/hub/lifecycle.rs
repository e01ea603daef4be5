//! Start of the hub (with the users that a crash left, or another process still serves), its tasks, and shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::cluster::ClusterStore;
use arc_swap::ArcSwap;
use domain::UserId;
use domain::clock::Clock;
use friends::{ChangeFeed, FriendStore, FriendsError};
use keyspace::Redis;
use parking_lot::{Mutex, RwLock};
use presence::{Input, Moment, StoredPresence};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::connection_table::ConnectionTable;
use super::sampler::Sampler;
use super::shard::{Shard, ShardContext};
use super::{Hub, HubSettings, SHARDS};
use crate::accounts::IsDisabled;
use crate::cluster_sync::{self, ClusterSync};
use crate::counters::GatewayCounters;
use crate::gateway_messages::MessageSender;
use crate::leader_lease::LeaderLease;
use crate::presence_writer::PresenceWriter;
use crate::recent_events::RecentEvents;
use crate::rooms::Rooms;
use crate::rooms::sync::RoomSync;
use crate::traffic::{self, TrafficCounts};
use crate::typing::Typing;
use crate::watch::{self as watching, Request};

/// Users per read at the start.
const PAGE: u32 = 5_000;
/// Interval at which each shard is ticked.
const TICK: Duration = Duration::from_millis(250);
/// Spread over this many steps.
const TICK_STEPS: usize = 8;
/// Poll interval of the change feed of friendships and privacy.
const FOLLOW: Duration = Duration::from_millis(200);
/// How often the history is shortened, and by how much in one step.
const PRUNE: Duration = Duration::from_secs(60);
const PRUNE_ROWS: u32 = 5_000;
/// How often the last write is tried when the server stops.
const FINAL_WRITE_ATTEMPTS: u32 = 3;
/// Time limit of leaving the cluster.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

struct Page {
    through: Option<UserId>,
    is_last: bool,
}

pub struct HubParts {
    /// Where friendships, privacy and history are.
    pub friend_store: FriendStore,
    pub clock: Arc<dyn Clock>,
    pub settings: HubSettings,
    pub counters: Arc<GatewayCounters>,
    /// Seeding and leeching counts.
    pub traffic: Arc<dyn TrafficCounts>,
    /// Which users the tracker has disabled.
    pub is_disabled: IsDisabled,
    /// None without a cluster.
    pub store: Option<Arc<ClusterStore>>,
    pub seed: u64,
    /// Held by the gateway that prunes the history.
    pub pruning: LeaderLease,
    /// The Redis of the cluster, for rooms.
    pub redis: Option<Redis>,
}

/// Why the hub cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The friends database cannot be used.
    #[error(transparent)]
    FriendStore(#[from] FriendsError),
    /// The user has the maximum number of devices.
    #[error(transparent)]
    Refused(#[from] presence::Refused),
    #[error("this user is disabled")]
    Disabled,
    /// The server stops, or the database does not answer in time.
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

    /// No task runs before [`Hub::begin`].
    pub async fn open(parts: HubParts) -> Result<Arc<Hub>, HubError> {
        let mut follower = parts.friend_store.change_feed(FOLLOW);
        follower.begin().await?;
        let (hub, requests) = Hub::new(parts);
        let counters = &hub.context.counters.hub;
        // Counters shared with an earlier hub keep showing that one.
        let _ = counters.following.set(follower.counters());
        let _ = counters.friends.set(Arc::clone(hub.friend_store.counters()));
        *hub.not_started.lock() = Some((requests, follower));
        Ok(hub)
    }

    /// Starts the tasks on this runtime.
    pub fn begin(self: &Arc<Self>) {
        let not_started = self.not_started.lock().take();
        if let Some((requests, follower)) = not_started {
            self.spawn_tasks(requests, follower);
        }
    }

    fn new(parts: HubParts) -> (Arc<Hub>, mpsc::Receiver<Request>) {
        let HubParts {
            friend_store,
            clock,
            settings,
            counters,
            traffic,
            is_disabled,
            seed,
            pruning,
            store,
            redis,
        } = parts;
        let now = Moment(clock.now_ms());
        let (requests, waiting) = mpsc::channel(watching::WAITING_MAX);
        let sender =
            store.as_ref().map(|store| Arc::new(MessageSender::new(store.clone(), counters.clone())));
        let is_shared = store.is_some() && redis.is_some();
        let sync = store.map(|store| ClusterSync::new(store, settings.sync, now));
        let shard = |number: usize| {
            let mut shard = Shard::new(settings.policy.clone(), now, seed ^ number as u64);
            shard.sync_state = sync.is_some().then(Box::default);
            Mutex::new(shard)
        };
        let shards = (0..SHARDS).map(shard).collect();
        let context = ShardContext {
            sender: sender.clone(),
            writer: PresenceWriter::new(friend_store.clone(), counters.clone()),
            counters: counters.clone(),
            table: RwLock::new(ConnectionTable::default()),
            traffic: traffic::TrafficQueue::default(),
            epochs: AtomicU64::new(1),
            history_days: AtomicU64::new(settings.limits.history_days.into()),
            platforms: Default::default(),
            sync,
            recent_events: RecentEvents::default(),
        };
        let hub = Hub {
            shards,
            context,
            friend_store,
            clock,
            settings: ArcSwap::from_pointee(settings),
            rooms: Rooms::new(counters.clone(), is_shared),
            typing: Typing::new(counters, sender),
            privacy_locks: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            sampler: Sampler::new(seed),
            pruning,
            redis,
            traffic,
            is_disabled,
            requests,
            not_started: Mutex::default(),
            stopping: AtomicBool::new(false),
            stop: watch::Sender::new(false),
            tasks: Mutex::default(),
        };
        (Arc::new(hub), waiting)
    }

    /// Restores users that were online before a restart, as pending (P11).
    pub async fn restore(&self) -> Result<(), HubError> {
        // With other gateways, the cluster store knows the pending users.
        if let Some(sync) = &self.context.sync
            && !self.was_alone(sync).await
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

    /// After the previous process has ended and written its last state: its users that have not reconnected here are
    /// pending, and their declarations are applied. Users may connect meanwhile.
    pub async fn catch_up(&self) -> Result<(), HubError> {
        if self.context.sync.is_some() {
            return Ok(());
        }
        // Local changes are newer: users still being written are left alone.
        self.flush_presence().await;
        let mut after = None;
        while let Some(page) = self.next_page(&mut after).await? {
            for remembered in page {
                let (now, user) = (self.now(), remembered.user);
                let after = self.shard(user).restore_after_handover(now, remembered, &self.context);
                self.finish(after);
            }
        }
        Ok(())
    }

    async fn next_page(&self, after: &mut Option<Page>) -> Result<Option<Vec<StoredPresence>>, HubError> {
        let behind = match after {
            None => None,
            Some(Page { is_last: true, .. }) => return Ok(None),
            Some(Page { through, .. }) => *through,
        };
        let page = self.friend_store.stored_online(behind, PAGE).await?;
        let through = page.last().map(|remembered| remembered.user);
        *after = Some(Page { through, is_last: page.len() < PAGE as usize });
        Ok(Some(page))
    }

    /// Writes now what would be written within a second.
    pub async fn flush_presence(&self) {
        if let Err(error) = self.context.writer.flush().await {
            tracing::warn!(%error, "cannot write presence to the database; retrying");
        }
    }

    fn spawn_tasks(self: &Arc<Self>, requests: mpsc::Receiver<Request>, follower: ChangeFeed) {
        let mut tasks = self.tasks.lock();
        self.spawn(&mut tasks, watching::run(self.clone(), requests));
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.follow(follower).await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.tick_loop().await });
        let (hub, stop) = (self.clone(), self.stop.subscribe());
        tasks.spawn(async move { hub.context.writer.run(stop).await });
        let (hub, stop) = (self.clone(), self.stop.subscribe());
        tasks.spawn(async move { hub.rooms.run(|| hub.settings.load().batch, stop).await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.poll_traffic().await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.sample_loop().await });
        let hub = self.clone();
        self.spawn(&mut tasks, async move { hub.prune_history_loop().await });
        if let (Some(store), Some(redis)) = (self.cluster_store(), self.redis.clone()) {
            let hub = self.clone();
            let epoch = Box::new(move || hub.context.next_epoch());
            let sync = RoomSync { redis, store: store.clone(), epoch };
            let (hub, stop) = (self.clone(), self.stop.subscribe());
            tasks.spawn(async move { hub.rooms.run_sync(sync, stop).await });
        }
        if let Some(sender) = self.context.sender.clone() {
            self.spawn(&mut tasks, async move { sender.run().await });
        }
        for task in cluster_sync::tasks(self) {
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

    /// Ticks all shards.
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
        let after = self.shards[shard].lock().tick(now, &self.context);
        self.finish(after);
    }

    async fn tick_loop(&self) {
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

    async fn follow(&self, mut follower: ChangeFeed) {
        loop {
            let changes = follower.next().await;
            if self.requests.send(Request::Changed { changes, reply: None }).await.is_err() {
                return;
            }
        }
    }

    /// The torrent counts of these users changed. Does not wait.
    pub fn traffic_changed(&self, users: &[UserId]) {
        let is_in_memory = |user: &UserId| self.shard(*user).users.contains_key(user);
        let users: Vec<UserId> = users.iter().copied().filter(is_in_memory).collect();
        if !users.is_empty() {
            self.context.counters.hub.traffic_dropped.add(self.context.traffic.add(users));
        }
    }

    async fn poll_traffic(&self) {
        let mut rotation = tokio::time::interval(traffic::ROTATION / SHARDS as u32);
        rotation.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_shard = 0;
        loop {
            tokio::select! {
                () = self.context.traffic.some() => {}
                _ = rotation.tick() => {
                    let users: Vec<UserId> = self.shards[next_shard].lock().users.keys().copied().collect();
                    next_shard = (next_shard + 1) % SHARDS;
                    for batch in users.chunks(traffic::BATCH_USERS_MAX) {
                        self.read_traffic(batch).await;
                        tokio::time::sleep(traffic::PAUSE).await;
                    }
                }
            }
            loop {
                let batch = self.context.traffic.take();
                if batch.is_empty() {
                    break;
                }
                self.read_traffic(&batch).await;
                tokio::time::sleep(traffic::PAUSE).await;
            }
        }
    }

    async fn read_traffic(&self, users: &[UserId]) {
        self.context.counters.hub.traffic_asked.add(users.len() as u64);
        match self.traffic.counts(users).await {
            Ok(counts) => {
                for count in counts {
                    let input = Input::Traffic { seeding: count.seeding, leeching: count.leeching };
                    self.apply_input(count.user, input);
                }
            }
            Err(error) => {
                self.context.counters.hub.traffic_failures.increment();
                tracing::debug!(%error, "cannot read seeding and leeching counts; they stay unchanged");
            }
        }
    }

    async fn prune_history_loop(&self) {
        loop {
            tokio::time::sleep(PRUNE).await;
            if !self.pruning.take().await {
                continue;
            }
            let days = self.context.history_days.load(Ordering::Relaxed);
            let before_ms = self.now().0.saturating_sub(days * 24 * 60 * 60 * 1_000);
            loop {
                match self.friend_store.prune_history(before_ms, PRUNE_ROWS).await {
                    Ok(pruned) if pruned >= PRUNE_ROWS.into() => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(%error, "cannot prune the presence history; retrying");
                        break;
                    }
                }
            }
        }
    }

    /// From now on no user can connect, and a closed connection does not mark its user offline. All online users will
    /// be pending after the restart (P11).
    pub fn prepare_shutdown(&self) {
        if self.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        self.rooms.prepare_shutdown();
        // In a cluster, presence is saved with the versions of the store. The local versions run ahead of them, and
        // would block later writes of other gateways.
        if self.context.sync.as_ref().is_some_and(|sync| !sync.is_unreachable()) {
            return;
        }
        let mut from = Some(0);
        while let Some(place) = from {
            let (page, next) = self.context.table.read().page(place, 4_096);
            for conn in page {
                // Under the lock, or this could take the place of something newer.
                let shard = self.shard(conn.user);
                if let Some(remembered) = shard.roster.stored_presence(conn.user) {
                    self.context.writer.remember(remembered);
                }
            }
            from = next;
        }
    }

    /// Publishes the last changes, then leaves the cluster: users that were online here are pending (P11), unless
    /// they have reconnected to another gateway.
    async fn leave_cluster(&self) {
        let Some(sync) = &self.context.sync else { return };
        self.final_flush(sync).await;
        match tokio::time::timeout(LEAVE_TIMEOUT, sync.store.leave()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot leave the cluster; other gateways will declare this one dead")
            }
            Err(_) => {
                tracing::warn!("leaving the cluster timed out; other gateways will declare this one dead")
            }
        }
    }

    /// Ends the tasks as a crash would.
    #[cfg(test)]
    pub(crate) async fn kill_for_test(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// Ends the tasks, and writes unsaved presence.
    pub async fn stop(&self) {
        self.prepare_shutdown();
        self.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
        self.leave_cluster().await;
        for attempt in 1..=FINAL_WRITE_ATTEMPTS {
            match self.context.writer.flush().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, attempt, "cannot write presence to the database at shutdown")
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
