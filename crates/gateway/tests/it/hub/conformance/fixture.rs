//! One gateway, or three that share a store, on one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::clock::{Clock, Stopwatch, SystemClock};
use domain::{Seconds, UnixTime, UserId};
use friends::FriendStore;
use gateway::cluster::{ClusterSettings, ClusterStore};
use keyspace::Redis;
use keyspace::settings::RedisSettings;
use presence::Policy;
use testkit::{RedisCluster, RedisServer};

use crate::hub::fixture::{Client, hello, open, until, user};
use gateway::cluster_sync::SyncSettings;
use gateway::counters::GatewayCounters;
use gateway::hub::{Hub, HubParts, HubSettings};
use gateway::torrent_counts::NoTorrentCounts;

/// How long anything may take: a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long users of a dead gateway can reconnect, in these tests.
pub const PENDING: Seconds = Seconds(2);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Embedded,
    Single,
    Cluster,
}

/// Where the store is.
enum Where {
    Nowhere,
    Single(Box<RedisServer>),
    Cluster(RedisCluster),
}

pub struct Place {
    pub hub: Arc<Hub>,
    pub counters: Arc<GatewayCounters>,
    /// None without a cluster.
    pub store: Option<Arc<ClusterStore>>,
}

pub struct Gateways {
    pub places: Vec<Place>,
    pub friend_store: FriendStore,
    policy: Policy,
    redis: Where,
    folder: tempfile::TempDir,
    next_user: AtomicU64,
    made: usize,
}

impl Gateways {
    pub async fn new(kind: Kind) -> Gateways {
        Gateways::with(kind, Policy { pending: PENDING, ..Policy::default() }).await
    }

    pub async fn with(kind: Kind, policy: Policy) -> Gateways {
        let start = move || match kind {
            Kind::Embedded => Where::Nowhere,
            Kind::Single => Where::Single(Box::new(RedisServer::start())),
            Kind::Cluster => Where::Cluster(RedisCluster::start()),
        };
        let redis = tokio::task::spawn_blocking(start).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let friend_store = open(&folder).await;
        let next_user = AtomicU64::new(1);
        let mut gateways =
            Gateways { places: Vec::new(), friend_store, policy, redis, folder, next_user, made: 0 };
        for _ in 0..if kind == Kind::Embedded { 1 } else { 3 } {
            gateways.add_place().await;
        }
        gateways
    }

    /// One more gateway.
    pub async fn add_place(&mut self) {
        let counters = Arc::new(GatewayCounters::default());
        self.made += 1;
        let store = self.join().await;
        let hub = Hub::start(HubParts {
            friend_store: open(&self.folder).await,
            clock: Arc::new(SystemClock),
            settings: HubSettings {
                policy: self.policy.clone(),
                sync: SyncSettings {
                    renew: Duration::from_millis(200),
                    reap: Duration::from_millis(100),
                    refresh_active: Duration::from_secs(1),
                    ..SyncSettings::default()
                },
                ..HubSettings::default()
            },
            counters: counters.clone(),
            torrent_counts: Arc::new(NoTorrentCounts),
            is_disabled: Arc::new(|_| false),
            store: store.clone(),
            seed: self.made as u64,
            pruning: gateway::leader_lease::LeaderLease::always_held(),
            redis: None,
        });
        self.places.push(Place { hub: hub.await.unwrap(), counters, store });
    }

    async fn join(&self) -> Option<Arc<ClusterStore>> {
        let url = match &self.redis {
            Where::Nowhere => return None,
            Where::Single(server) => server.url(),
            Where::Cluster(cluster) => {
                format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port())
            }
        };
        let mut settings = RedisSettings::from_url(&url).unwrap();
        settings.response_timeout = Duration::from_secs(2);
        let redis = Redis::connect(settings).await.unwrap();
        let settings = ClusterSettings {
            lease: Duration::from_secs(1),
            pending: self.policy.pending,
            seed: self.made as u64,
            ..ClusterSettings::default()
        };
        let name = format!("gw-{}", self.made);
        Some(Arc::new(ClusterStore::join(redis, &name, settings).await.unwrap()))
    }

    /// The Redis of a gateways that has one server.
    pub fn server(&mut self) -> &mut RedisServer {
        match &mut self.redis {
            Where::Single(server) => server,
            _ => panic!("a gateways with one Redis"),
        }
    }

    /// Users that no other scenario uses, friends of the first one.
    pub async fn users<const COUNT: usize>(&self) -> [u64; COUNT] {
        let first = self.next_user.fetch_add(COUNT as u64, Ordering::Relaxed);
        let all = std::array::from_fn(|place| first + place as u64);
        let pairs: Vec<(UserId, UserId)> = all[1..].iter().map(|other| (user(first), user(*other))).collect();
        self.friend_store.add_friends(&pairs, now()).await.unwrap();
        all
    }

    /// Users that no other scenario uses, without friendships.
    pub fn unrelated_users<const COUNT: usize>(&self) -> [u64; COUNT] {
        let first = self.next_user.fetch_add(COUNT as u64, Ordering::Relaxed);
        std::array::from_fn(|place| first + place as u64)
    }

    /// The gateway at a place.
    pub fn hub(&self, place: usize) -> &Arc<Hub> {
        &self.places[place % self.places.len()].hub
    }

    pub async fn connect(&self, place: usize, number: u64, device: &str) -> Client {
        Client::connect(self.hub(place), number, hello(device)).await.unwrap()
    }

    /// Everything is in the database.
    pub async fn flush_presence(&self) {
        for place in &self.places {
            place.hub.flush_presence().await;
        }
    }

    /// Waits until all changes so far have reached all gateways that watch.
    pub async fn settled(&self) {
        until("everything is published", || {
            self.places.iter().all(|place| place.hub.sizes().unpublished == 0)
        })
        .await;
    }

    pub async fn end(self) {
        for place in &self.places {
            place.hub.stop().await;
        }
        // Servers are stopped by blocking calls.
        tokio::task::spawn_blocking(move || drop(self)).await.unwrap();
    }
}

pub fn now() -> UnixTime {
    SystemClock.now()
}

/// Waits until a client sees this status of a user.
pub async fn sees(client: &mut Client, number: u64, status: &str) {
    let waited = Stopwatch::start();
    while client.sees(number) != status {
        let shown = client.shown(number);
        assert!(waited.elapsed() < PATIENCE, "{number} is not seen as {status}, but as {shown}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a client's feed shows this of a user.
pub async fn until_shown(
    client: &mut Client,
    number: u64,
    what: &str,
    is_so: impl Fn(&serde_json::Value) -> bool,
) {
    let waited = Stopwatch::start();
    loop {
        let shown = client.shown(number);
        if is_so(&shown) {
            return;
        }
        assert!(waited.elapsed() < PATIENCE, "{what}: {shown}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
