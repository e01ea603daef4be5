//! What the tests of the register share: a real Redis of either kind, nodes on it, parts of people.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;
use std::time::Duration;

use domain::clock::{Clock, Stopwatch, SystemClock};
use domain::{Seconds, UnixTime, UserId};
use keyspace::{PersonKeys, PresenceKeys, Redis, RedisSettings};
use presence::elsewhere::{Part, PartDevice};
use presence::{AppState, Declaration, Declared, DeviceId, Platform};
use redis::FromRedisValue;
use register::{
    Change, Heard, Inbox, Outcome, Published, Record, Register, RegisterSettings, Update, Watched,
};
use testkit::{RedisCluster, RedisServer};

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The same tests on one server and on a cluster.
#[macro_export]
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod single {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&$crate::support::Rig::single()).await;
            })+
        }
        mod cluster {
            // One after the other, since a cluster takes seconds to start.
            #[tokio::test(flavor = "multi_thread")]
            async fn p16_all_of_it_on_a_cluster() {
                let rig = $crate::support::Rig::cluster();
                $(
                    eprintln!("on a cluster: {}", stringify!($test));
                    rig.lose_all().await;
                    super::$test(&rig).await;
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
pub struct Rig {
    pub kind: Kind,
    pub redis: Redis,
    pub keys: PresenceKeys,
}

impl Rig {
    pub fn single() -> Rig {
        let server = RedisServer::start();
        let url = server.url();
        Rig::on(Kind::Single(Box::new(server)), &url)
    }

    pub fn cluster() -> Rig {
        let cluster = RedisCluster::start();
        let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
        Rig::on(Kind::Cluster(cluster), &url)
    }

    fn on(kind: Kind, url: &str) -> Rig {
        let redis = Redis::new(RedisSettings::from_url(url).unwrap()).unwrap();
        let keys = PresenceKeys::new(redis.mode());
        Rig { kind, redis, keys }
    }

    pub async fn join(&self, name: &str) -> Register {
        self.join_with(name, settings()).await
    }

    pub async fn join_with(&self, name: &str, settings: RegisterSettings) -> Register {
        let redis = Redis::new(self.redis.settings().clone()).unwrap();
        Register::join(redis, name, settings).await.unwrap()
    }

    /// Forgets everything, as a Redis does that is started again without its data.
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

    pub fn person(&self, id: u64) -> PersonKeys {
        self.keys.person(user(id))
    }

    /// presence, connection and heartbeat of somebody (P3).
    pub async fn public(&self, id: u64) -> [Option<String>; 3] {
        let keys = self.person(id);
        let mut found = [None, None, None];
        for (place, key) in [&keys.presence, &keys.connection, &keys.heartbeat].into_iter().enumerate() {
            found[place] = self.ask(&["GET", key]).await;
        }
        found
    }

    /// presence and connection of somebody.
    pub async fn shown(&self, id: u64) -> (Option<String>, Option<String>) {
        let [presence, connection, _] = self.public(id).await;
        (presence, connection)
    }

    pub async fn ttl_ms(&self, key: &str) -> i64 {
        self.ask(&["PTTL", key]).await
    }

    pub async fn inbox_length(&self, register: &Register) -> u64 {
        self.ask(&["XLEN", &self.keys.inbox(register.node().as_str())]).await
    }
}

/// A lease that nobody outlives, and short pendings.
pub fn settings() -> RegisterSettings {
    RegisterSettings {
        lease: Duration::from_secs(60),
        pending: Seconds(300),
        seed: 7,
        ..RegisterSettings::default()
    }
}

pub fn hasty() -> RegisterSettings {
    RegisterSettings { lease: Duration::from_millis(200), pending: Seconds(1), ..settings() }
}

pub fn user(id: u64) -> UserId {
    UserId::new(id).unwrap()
}

pub fn now() -> UnixTime {
    SystemClock.now()
}

pub fn device(id: &str) -> PartDevice {
    PartDevice {
        id: DeviceId::new(id).unwrap(),
        platform: Platform::Phone,
        app: AppState::Foreground,
        online: true,
        said: None,
    }
}

pub fn part(devices: &[&str]) -> Part {
    Part { devices: devices.iter().map(|id| device(id)).collect(), last_sign: now(), gone_in: Seconds(90) }
}

pub fn update(id: u64, change: Change) -> Update {
    Update {
        user: user(id),
        change,
        declaration: None,
        declared_ago: Duration::ZERO,
        believed: None,
        known: 0,
        floor: (0, 0),
        last_seen: None,
    }
}

pub fn put(id: u64, devices: &[&str]) -> Update {
    update(id, Change::Put(part(devices)))
}

pub fn drop_of(id: u64) -> Update {
    update(id, Change::Drop { last_alive: now() })
}

pub fn declared(status: Declared) -> Option<Option<Declaration>> {
    Some(Some(Declaration { status, text: None, until: None }))
}

pub async fn publish(register: &Register, update: Update) -> Published {
    register.publish(&[update]).await.remove(0).unwrap()
}

pub async fn change(register: &Register, update: Update) -> Outcome {
    match publish(register, update).await {
        Published::Changed(outcome) => *outcome,
        other => panic!("nothing changed: {other:?}"),
    }
}

pub async fn read(register: &Register, id: u64) -> Option<Record> {
    register.read(&[user(id)]).await.remove(0).unwrap()
}

pub async fn watch(register: &Register, id: u64) -> Watched {
    register.watch(&[(user(id), 0)]).await.remove(0).unwrap()
}

pub async fn hear(inbox: &mut Inbox) -> Heard {
    tokio::time::timeout(PATIENCE, inbox.next()).await.expect("nothing was heard")
}

pub async fn hear_record(inbox: &mut Inbox) -> Record {
    match hear(inbox).await {
        Heard::Record(record) => *record,
        other => panic!("no record: {other:?}"),
    }
}

/// Takes steps until somebody was cleared up; gives what came of it.
pub async fn reap_until(register: &Register, id: u64) -> Outcome {
    let since = Stopwatch::start();
    loop {
        register.renew("{}").await.unwrap();
        let found = register.reap(100).await.unwrap();
        if let Some((_, outcome)) = found.into_iter().find(|(who, _)| *who == user(id)) {
            return outcome;
        }
        assert!(since.elapsed() < PATIENCE, "{id} was not cleared up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Keeps a node's lease, until dropped.
pub fn keep_renewing(register: &Arc<Register>) -> tokio::task::JoinHandle<()> {
    let register = Arc::clone(register);
    tokio::spawn(async move {
        loop {
            register.renew("{}").await.ok();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}
