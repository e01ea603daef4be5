//! A real Redis, single or cluster, nodes on it, and entries of users.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::{Seconds, UnixTime, UserId};
use gateway::cluster::{
    ClusterSettings, ClusterStore, EntryChange, EntryUpdate, Inbox, InboxEvent, PublishOutcome, Record,
    RecordChange, WatchReply,
};
use keyspace::{PresenceKeys, Redis, RedisSettings, UserPresenceKeys};
use presence::remote::{NodeDevice, NodeEntry};
use presence::{AppState, Declaration, Declared, DeviceId, Platform};
use redis::FromRedisValue;
use testkit::{RedisCluster, RedisServer, eventually_async};

/// Longer than any step takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The same tests on one server and on a cluster.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod single {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&crate::cluster::fixture::Fixture::single()).await;
            })+
        }
        mod cluster {
            // One after the other, since a cluster takes seconds to start.
            #[tokio::test(flavor = "multi_thread")]
            async fn p16_all_of_it_on_a_cluster() {
                let fixture = crate::cluster::fixture::Fixture::cluster();
                $(
                    eprintln!("on a cluster: {}", stringify!($test));
                    fixture.lose_all().await;
                    super::$test(&fixture).await;
                )+
            }
        }
    };
}

pub enum Kind {
    Single(Box<RedisServer>),
    Cluster(RedisCluster),
}

/// A Redis of its own.
pub struct Fixture {
    pub kind: Kind,
    pub redis: Redis,
    pub keys: PresenceKeys,
}

impl Fixture {
    pub fn single() -> Fixture {
        let server = RedisServer::start();
        let url = server.url();
        Fixture::on(Kind::Single(Box::new(server)), &url)
    }

    pub fn cluster() -> Fixture {
        let cluster = RedisCluster::start();
        let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
        Fixture::on(Kind::Cluster(cluster), &url)
    }

    fn on(kind: Kind, url: &str) -> Fixture {
        let redis = Redis::new(RedisSettings::from_url(url).unwrap()).unwrap();
        let keys = PresenceKeys::new(redis.mode());
        Fixture { kind, redis, keys }
    }

    pub async fn join(&self, name: &str) -> ClusterStore {
        self.join_with(name, settings()).await
    }

    pub async fn join_with(&self, name: &str, settings: ClusterSettings) -> ClusterStore {
        let redis = Redis::new(self.redis.settings().clone()).unwrap();
        ClusterStore::join(redis, name, settings).await.unwrap()
    }

    /// Deletes everything, like a restart of Redis without its data.
    pub async fn lose_all(&self) {
        match &self.kind {
            Kind::Single(server) => drop(server.cli(&["FLUSHALL"])),
            Kind::Cluster(cluster) => {
                (0..cluster.len()).for_each(|node| drop(cluster.node(node).cli(&["FLUSHALL"])));
            }
        }
    }

    pub async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        self.redis.query(&command).await.unwrap()
    }

    pub fn user_keys(&self, id: u64) -> UserPresenceKeys {
        self.keys.user(user(id))
    }

    /// The keys presence, connection and heartbeat of a user (P3).
    pub async fn public(&self, id: u64) -> [Option<String>; 3] {
        let keys = self.user_keys(id);
        let mut found = [None, None, None];
        for (place, key) in [&keys.presence, &keys.connection, &keys.heartbeat].into_iter().enumerate() {
            found[place] = self.ask(&["GET", key]).await;
        }
        found
    }

    /// The keys presence and connection of a user.
    pub async fn shown(&self, id: u64) -> (Option<String>, Option<String>) {
        let [presence, connection, _] = self.public(id).await;
        (presence, connection)
    }

    pub async fn ttl_ms(&self, key: &str) -> i64 {
        self.ask(&["PTTL", key]).await
    }

    pub async fn inbox_length(&self, store: &ClusterStore) -> u64 {
        self.ask(&["XLEN", &self.keys.inbox(store.node().as_str())]).await
    }
}

/// A lease longer than any test, and short pending periods.
pub fn settings() -> ClusterSettings {
    ClusterSettings {
        lease: Duration::from_secs(60),
        pending: Seconds(300),
        seed: 7,
        ..ClusterSettings::default()
    }
}

pub fn hasty() -> ClusterSettings {
    ClusterSettings { lease: Duration::from_millis(200), pending: Seconds(1), ..settings() }
}

pub fn user(id: u64) -> UserId {
    UserId::new(id).unwrap()
}

pub fn now() -> UnixTime {
    SystemClock.now()
}

pub fn device(id: &str) -> NodeDevice {
    NodeDevice {
        id: DeviceId::new(id).unwrap(),
        platform: Platform::Phone,
        app: AppState::Foreground,
        online: true,
        declared: None,
    }
}

pub fn part(devices: &[&str]) -> NodeEntry {
    NodeEntry {
        devices: devices.iter().map(|id| device(id)).collect(),
        last_activity: now(),
        gone_in: Seconds(90),
    }
}

pub fn update(id: u64, change: EntryChange) -> EntryUpdate {
    EntryUpdate {
        user: user(id),
        change,
        declaration: None,
        declared_ago: Duration::ZERO,
        local_declaration: None,
        known_version: 0,
        version_floor: (0, 0),
        last_seen: None,
    }
}

pub fn put(id: u64, devices: &[&str]) -> EntryUpdate {
    update(id, EntryChange::Put(part(devices)))
}

pub fn drop_of(id: u64) -> EntryUpdate {
    update(id, EntryChange::Remove { last_alive: now() })
}

pub fn declared(status: Declared) -> Option<Option<Declaration>> {
    Some(Some(Declaration { status, text: None, until: None }))
}

pub async fn publish(store: &ClusterStore, update: EntryUpdate) -> PublishOutcome {
    store.publish(&[update]).await.remove(0).unwrap()
}

pub async fn change(store: &ClusterStore, update: EntryUpdate) -> RecordChange {
    match publish(store, update).await {
        PublishOutcome::Changed(outcome) => *outcome,
        other => panic!("nothing changed: {other:?}"),
    }
}

pub async fn read(store: &ClusterStore, id: u64) -> Option<Record> {
    store.read(&[user(id)]).await.remove(0).unwrap()
}

pub async fn watch(store: &ClusterStore, id: u64) -> WatchReply {
    store.watch(&[(user(id), 0)]).await.remove(0).unwrap()
}

pub async fn hear(inbox: &mut Inbox) -> InboxEvent {
    tokio::time::timeout(PATIENCE, inbox.next()).await.expect("no message")
}

pub async fn receive_record(inbox: &mut Inbox) -> Record {
    match hear(inbox).await {
        InboxEvent::Record(record) => *record,
        other => panic!("no record: {other:?}"),
    }
}

/// Reaps until a user was reaped; returns the changes.
pub async fn reap_until(store: &ClusterStore, id: u64) -> RecordChange {
    eventually_async("the user to be reaped", PATIENCE, async || {
        store.renew("{}").await.unwrap();
        let found = store.reap(100).await.unwrap();
        found.into_iter().find(|(reaped, _)| *reaped == user(id)).map(|(_, outcome)| outcome)
    })
    .await
}
