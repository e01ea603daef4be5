//! One gateway, or three that share a register, on one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::clock::{Clock, Stopwatch, SystemClock};
use domain::{Seconds, UnixTime, UserId};
use keyspace::Redis;
use keyspace::settings::RedisSettings;
use people::People;
use presence::Policy;
use register::{Register, RegisterSettings};
use testkit::{RedisCluster, RedisServer};

use super::super::rig::{Client, hello, open, until, user};
use crate::counters::GatewayCounters;
use crate::hub::{Hub, HubParts, HubSettings};
use crate::sharing::SharingSettings;
use crate::traffic::NoTraffic;

/// How long anything may take: a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long who was at a gateway that died has to come back, on this stage.
pub const PENDING: Seconds = Seconds(2);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Embedded,
    Single,
    Cluster,
}

/// Where the register is.
enum Where {
    Nowhere,
    Single(Box<RedisServer>),
    Cluster(RedisCluster),
}

pub struct Place {
    pub hub: Arc<Hub>,
    pub counters: Arc<GatewayCounters>,
}

pub struct Stage {
    pub places: Vec<Place>,
    pub people: People,
    policy: Policy,
    redis: Where,
    folder: tempfile::TempDir,
    next_user: AtomicU64,
    made: usize,
}

impl Stage {
    pub async fn new(kind: Kind) -> Stage {
        Stage::with(kind, Policy { pending: PENDING, ..Policy::default() }).await
    }

    pub async fn with(kind: Kind, policy: Policy) -> Stage {
        let start = move || match kind {
            Kind::Embedded => Where::Nowhere,
            Kind::Single => Where::Single(Box::new(RedisServer::start())),
            Kind::Cluster => Where::Cluster(RedisCluster::start()),
        };
        let redis = tokio::task::spawn_blocking(start).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let people = open(&folder).await;
        let next_user = AtomicU64::new(1);
        let mut stage = Stage { places: Vec::new(), people, policy, redis, folder, next_user, made: 0 };
        for _ in 0..if kind == Kind::Embedded { 1 } else { 3 } {
            stage.add_place().await;
        }
        stage
    }

    /// One more gateway.
    pub async fn add_place(&mut self) {
        let counters = Arc::new(GatewayCounters::default());
        self.made += 1;
        let hub = Hub::start(HubParts {
            people: open(&self.folder).await,
            clock: Arc::new(SystemClock),
            settings: HubSettings {
                policy: self.policy.clone(),
                sharing: SharingSettings {
                    renew: Duration::from_millis(200),
                    reap: Duration::from_millis(100),
                    refresh_active: Duration::from_secs(1),
                    ..SharingSettings::default()
                },
                ..HubSettings::default()
            },
            counters: counters.clone(),
            traffic: Arc::new(NoTraffic),
            is_disabled: Arc::new(|_| false),
            register: self.join().await,
            seed: self.made as u64,
            pruning: crate::turn::Turn::alone(),
            redis: None,
        });
        self.places.push(Place { hub: hub.await.unwrap(), counters });
    }

    async fn join(&self) -> Option<Arc<Register>> {
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
        let settings = RegisterSettings {
            lease: Duration::from_secs(1),
            pending: self.policy.pending,
            seed: self.made as u64,
            ..RegisterSettings::default()
        };
        let name = format!("gw-{}", self.made);
        Some(Arc::new(Register::join(redis, &name, settings).await.unwrap()))
    }

    /// The Redis of a stage that has one server.
    pub fn server(&mut self) -> &mut RedisServer {
        match &mut self.redis {
            Where::Single(server) => server,
            _ => panic!("a stage with one Redis"),
        }
    }

    /// So many people whom no other scene has, friends of the first one.
    pub async fn circle<const COUNT: usize>(&self) -> [u64; COUNT] {
        let first = self.next_user.fetch_add(COUNT as u64, Ordering::Relaxed);
        let all = std::array::from_fn(|place| first + place as u64);
        let pairs: Vec<(UserId, UserId)> = all[1..].iter().map(|other| (user(first), user(*other))).collect();
        self.people.add_friends(&pairs, now()).await.unwrap();
        all
    }

    /// So many people whom no other scene has, who do not know each other.
    pub fn strangers<const COUNT: usize>(&self) -> [u64; COUNT] {
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
    pub async fn write_down(&self) {
        for place in &self.places {
            place.hub.write_down().await;
        }
    }

    /// Everything that happened so far is told to all gateways that want to know.
    pub async fn settled(&self) {
        until("everything is published", || {
            self.places.iter().all(|place| place.hub.shards().all(|shard| shard.lock().marked() == 0))
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

/// Waits until somebody sees something of somebody.
pub async fn sees(client: &mut Client, number: u64, status: &str) {
    let waited = Stopwatch::start();
    while client.sees(number) != status {
        let told = client.told(number);
        assert!(waited.elapsed() < PATIENCE, "{number} is not seen as {status}, but as {told}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until what is told of somebody is so.
pub async fn told(client: &mut Client, number: u64, what: &str, is_so: impl Fn(&serde_json::Value) -> bool) {
    let waited = Stopwatch::start();
    loop {
        let told = client.told(number);
        if is_so(&told) {
            return;
        }
        assert!(waited.elapsed() < PATIENCE, "{what}: {told}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
