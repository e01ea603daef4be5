//! Start of the hub (with the users that a crash left, or another process still serves), and shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::clock::Clock;
use friends::{ChangeFeed, FriendStore, FriendsError};
use keyspace::Redis;
use parking_lot::{Mutex, RwLock};
use presence::{PresenceTable, StoredPresence, WallTime};

use super::admin::Admin;
use super::connection_table::ConnectionTable;
use super::history::HistoryPruner;
use super::sampler::Sampler;
use super::shard::{Shard, ShardContext};
use super::tasks::Tasks;
use super::users::{IsDisabled, SHARDS, Users};
use super::{Hub, HubSettings};
use crate::cluster::ClusterStore;
use crate::cluster_sync::{ClusterSync, ShardSync, SyncContext};
use crate::commands::Commands;
use crate::counters::GatewayCounters;
use crate::gateway_messages::MessageSender;
use crate::leader_lease::LeaderLease;
use crate::presence_writer::PresenceWriter;
use crate::recent_events::RecentEvents;
use crate::rooms::Rooms;
use crate::rooms::sync::RoomSync;
use crate::torrent_counts::{TorrentCountQueue, TorrentCountReader, TorrentCountSource};
use crate::typing::Typing;
use crate::watch::{WaitingRequests, WatchRequests, WatchTask};

/// Users per read at the start.
const PAGE: u32 = 5_000;
/// Interval at which each shard is ticked.
const TICK: Duration = Duration::from_millis(250);
/// Spread over this many steps.
const TICK_STEPS: usize = 8;
/// Users that are checked in one step.
const USERS_AT_ONCE: usize = 1_000;
/// Poll interval of the change feed of friendships and privacy.
const FOLLOW: Duration = Duration::from_millis(200);
/// How often the last write is tried when the server stops.
const FINAL_WRITE_ATTEMPTS: u32 = 3;

pub struct HubParts {
    /// Where friendships, privacy and history are.
    pub friend_store: FriendStore,
    pub clock: Arc<dyn Clock>,
    pub settings: HubSettings,
    pub counters: Arc<GatewayCounters>,
    /// Seeding and leeching counts.
    pub torrent_counts: Arc<dyn TorrentCountSource>,
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

/// What the tasks take over when they are started.
pub(super) struct NotStarted {
    requests: WaitingRequests,
    follower: ChangeFeed,
    torrent_counts: Arc<dyn TorrentCountSource>,
    pruning: LeaderLease,
    redis: Option<Redis>,
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
        // Counters shared with an earlier hub keep showing that one.
        let _ = parts.counters.hub.following.set(follower.counters());
        let _ = parts.counters.hub.friends.set(Arc::clone(parts.friend_store.counters()));
        Ok(Arc::new(Hub::new(parts, follower)))
    }

    fn new(parts: HubParts, follower: ChangeFeed) -> Hub {
        let HubParts { friend_store, clock, settings, counters, is_disabled, store, seed, .. } = parts;
        let HubParts { torrent_counts, pruning, redis, .. } = parts;
        let now = WallTime(clock.now_ms());
        let sender =
            store.as_ref().map(|store| Arc::new(MessageSender::new(store.clone(), counters.clone())));
        let is_shared = store.is_some() && redis.is_some();
        let sync = store.map(|store| SyncContext::new(store, settings.sync, counters.clone(), now));
        let context = Arc::new(ShardContext {
            writer: PresenceWriter::new(friend_store.clone(), counters.clone()),
            counters: counters.clone(),
            table: RwLock::new(ConnectionTable::default()),
            torrent_counts: TorrentCountQueue::default(),
            epochs: AtomicU64::new(1),
            keeps_history: settings.limits.history_days > 0,
            platforms: Default::default(),
            recent_events: RecentEvents::default(),
        });
        let shard = |number: usize| {
            let roster = PresenceTable::new(settings.policy.clone(), now, seed ^ number as u64);
            let sync = sync.as_ref().map(|sync| Box::new(ShardSync::new(sync.clone())));
            Mutex::new(Shard::new(roster, context.clone(), sync))
        };
        let users = Arc::new(Users {
            shards: (0..SHARDS).map(shard).collect(),
            context,
            settings,
            rooms: Arc::new(Rooms::new(counters.clone(), is_shared)),
            typing: Arc::new(Typing::new(counters, sender.clone())),
            clock,
            is_disabled,
            is_stopping: AtomicBool::new(false),
        });
        let sync = sync.map(|context| ClusterSync::new(users.clone(), context));
        let (watch, requests) = WatchRequests::channel();
        let cluster = (sync.clone(), sender.clone());
        Hub {
            admin: Admin { users: users.clone(), friend_store: friend_store.clone(), sync: sync.clone() },
            commands: Commands::new(users.clone(), friend_store.clone(), watch.clone(), cluster),
            sampler: Arc::new(Sampler::new(users.clone(), seed)),
            users,
            friend_store,
            watch,
            sync,
            sender,
            tasks: Tasks::default(),
            not_started: Mutex::new(Some(NotStarted { requests, follower, torrent_counts, pruning, redis })),
        }
    }

    /// Starts the tasks on this runtime.
    pub fn begin(&self) {
        let Some(NotStarted { requests, follower, torrent_counts, pruning, redis }) =
            self.not_started.lock().take()
        else {
            return;
        };
        let (users, friend_store, tasks) = (&self.users, &self.friend_store, &self.tasks);
        let watch =
            WatchTask { users: users.clone(), friend_store: friend_store.clone(), sync: self.sync.clone() };
        tasks.spawn(watch.run(requests));
        tasks.spawn(follow(self.watch.clone(), follower));
        tasks.spawn(tick_all(users.clone()));
        let writing = users.clone();
        tasks.spawn_until(|stop| async move { writing.context.writer.run(stop).await });
        let (rooms, batch) = (users.rooms.clone(), users.settings.batch);
        tasks.spawn_until(move |stop| async move { rooms.run(batch, stop).await });
        tasks.spawn(TorrentCountReader { users: users.clone(), source: torrent_counts }.run());
        let sampler = self.sampler.clone();
        tasks.spawn(async move { sampler.run().await });
        let pruner =
            HistoryPruner { users: users.clone(), friend_store: friend_store.clone(), lease: pruning };
        tasks.spawn(pruner.run());
        if let Some(sender) = self.sender.clone() {
            tasks.spawn(async move { sender.run().await });
        }
        if let Some(sync) = &self.sync {
            sync.tasks().into_iter().for_each(|task| tasks.spawn(task));
            if let Some(redis) = redis {
                let users = users.clone();
                let epochs = users.clone();
                let epoch = Box::new(move || epochs.context.next_epoch());
                let sync = RoomSync { redis, store: sync.store().clone(), epoch };
                tasks.spawn_until(|stop| async move { users.rooms.run_sync(sync, stop).await });
            }
        }
    }

    /// Restores users that were online before a restart, as pending (P11).
    pub async fn restore(&self) -> Result<(), HubError> {
        // With other gateways, the cluster store knows the pending users.
        if let Some(sync) = &self.sync
            && !sync.was_alone().await
        {
            return Ok(());
        }
        self.for_each_stored(|remembered| {
            let now = self.users.now();
            self.users.shard(remembered.user).roster.restore(now, remembered);
        })
        .await
    }

    /// After the previous process has ended and written its last state: its users that have not reconnected here are
    /// pending, and their declarations are applied. Users may connect meanwhile.
    pub async fn catch_up(&self) -> Result<(), HubError> {
        if self.sync.is_some() {
            return Ok(());
        }
        // Local changes are newer: users still being written are left alone.
        self.flush_presence().await;
        self.for_each_stored(|remembered| {
            self.users.change(remembered.user, |shard, now| shard.restore_after_handover(now, remembered));
        })
        .await
    }

    async fn for_each_stored(&self, act: impl Fn(StoredPresence)) -> Result<(), HubError> {
        let mut after = None;
        loop {
            let page = self.friend_store.stored_online(after, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            after = page.last().map(|remembered| remembered.user);
            page.into_iter().for_each(&act);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Writes now what would be written within a second.
    pub async fn flush_presence(&self) {
        if let Err(error) = self.users.context.writer.flush().await {
            tracing::warn!(%error, "cannot write presence to the database; retrying");
        }
    }

    /// Ticks all shards.
    pub fn tick(&self) {
        (0..SHARDS).for_each(|shard| {
            self.users.tick_shard(shard);
        });
        self.users.typing.expire(self.users.now());
    }

    /// From now on no user can connect, and a closed connection does not mark its user offline. All online users will
    /// be pending after the restart (P11).
    pub fn prepare_shutdown(&self) {
        let users = &self.users;
        if users.is_stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        users.rooms.prepare_shutdown();
        // In a cluster, presence is saved with the versions of the store. The local versions run ahead of them, and
        // would block later writes of other gateways.
        if self.sync.as_ref().is_some_and(|sync| !sync.is_unreachable()) {
            return;
        }
        users.for_each_connection(|conn| {
            // Under the lock, or this could take the place of something newer.
            let shard = users.shard(conn.user);
            if let Some(remembered) = shard.roster.stored_presence(conn.user) {
                users.context.writer.remember(remembered);
            }
        });
    }

    /// Ends the tasks, leaves the cluster, and writes unsaved presence.
    pub async fn stop(&self) {
        self.prepare_shutdown();
        self.tasks.stop().await;
        if let Some(sync) = &self.sync {
            sync.leave().await;
        }
        for attempt in 1..=FINAL_WRITE_ATTEMPTS {
            match self.users.context.writer.flush().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, attempt, "cannot write presence to the database at shutdown")
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn tick_all(users: Arc<Users>) {
    let mut steps = 1;
    loop {
        let mut count = 0;
        for step in 0..steps {
            tokio::time::sleep(TICK / steps as u32).await;
            count += (step..SHARDS).step_by(steps).map(|shard| users.tick_shard(shard)).sum::<usize>();
        }
        users.typing.expire(users.now());
        // With few users one wake-up does for all shards.
        steps = if count < USERS_AT_ONCE { 1 } else { TICK_STEPS };
    }
}

/// Passes changes of friendships and privacy on.
async fn follow(watch: WatchRequests, mut follower: ChangeFeed) {
    loop {
        let changes = follower.next().await;
        if watch.announce(changes).await.is_err() {
            return;
        }
    }
}
