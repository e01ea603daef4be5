//! A separate whitelist for each test, on each kind of storage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use access::{RedisWhitelist, Refresh, SqlWhitelist, Whitelist};
use domain::Passkey;
use keyspace::{BaseNames, KeyNames, Redis, RedisSettings};
use testkit::{RedisCluster, RedisServer};

use crate::fixture::{Fixture, OpenStore};

/// The storage, removed with the test.
pub enum Place {
    Sql(Fixture),
    Redis(Box<RedisServer>),
    /// Shared by the cases, each with its own key.
    Cluster(Arc<RedisCluster>, String),
}

impl Place {
    pub fn sqlite() -> Self {
        Place::Sql(Fixture::sqlite())
    }

    pub fn postgres() -> Self {
        Place::Sql(Fixture::postgres())
    }

    pub fn mariadb() -> Self {
        Place::Sql(Fixture::mariadb())
    }

    pub fn redis() -> Self {
        Place::Redis(Box::new(RedisServer::start()))
    }

    pub fn on(cluster: &Arc<RedisCluster>) -> Self {
        static CASES: AtomicU32 = AtomicU32::new(0);
        let case = CASES.fetch_add(1, Ordering::Relaxed);
        Place::Cluster(Arc::clone(cluster), format!("pt:passkeys{case}"))
    }

    /// As another process opens it.
    pub async fn open(&self) -> Arc<dyn Whitelist> {
        self.open_with_idle_max(Duration::from_secs(600)).await
    }

    /// With another limit for idle refreshes.
    pub async fn open_with_idle_max(&self, idle_max: Duration) -> Arc<dyn Whitelist> {
        match self {
            Place::Sql(fixture) => Arc::new(SqlWhitelist::new(fixture.store().await).idle_max(idle_max)),
            Place::Redis(server) => Arc::new(on_redis(&server.url(), "pt:passkeys").idle_max(idle_max)),
            Place::Cluster(cluster, key) => {
                let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
                Arc::new(on_redis(&url, key).idle_max(idle_max))
            }
        }
    }

    /// Stored passkeys, in all sets.
    pub async fn stored(&self) -> u64 {
        match self {
            Place::Sql(fixture) => {
                let rows = fixture.raw().await.count("whitelist_passkeys").await;
                rows.unsigned_abs()
            }
            Place::Redis(server) => members(|args| server.cli(args), "pt:passkeys"),
            Place::Cluster(cluster, key) => {
                (0..3).map(|node| members(|args| cluster.node(node).cli(args), key)).sum()
            }
        }
    }

    /// A short limit for idle refreshes. SQL counts in whole seconds.
    pub fn short_idle_max(&self) -> Duration {
        match self {
            Place::Sql(_) => Duration::ZERO,
            _ => Duration::from_millis(20),
        }
    }
}

/// Members of the whitelist under this key, and of its other sets.
fn members(cli: impl Fn(&[&str]) -> String, key: &str) -> u64 {
    let mut count = 0;
    for pattern in [key.to_owned(), format!("{key}:*"), format!("{{{key}}}:*")] {
        for found in cli(&["KEYS", &pattern]).lines() {
            if cli(&["TYPE", found]) == "set" {
                count += cli(&["SCARD", found]).parse::<u64>().unwrap();
            }
        }
    }
    count
}

pub fn on_redis(url: &str, key: &str) -> RedisWhitelist {
    let redis = Redis::new(RedisSettings::from_url(url).unwrap()).unwrap();
    let base = BaseNames { whitelist: key.to_owned(), ..BaseNames::default() };
    let names = KeyNames::new(&base, redis.mode()).unwrap();
    RedisWhitelist::new(redis, names)
}

/// Passkeys of several lengths.
pub fn passkey(number: u64) -> Passkey {
    match number % 3 {
        0 => format!("{number:08x}"),
        1 => format!("{number:032x}"),
        _ => format!("{number:064x}"),
    }
    .parse()
    .unwrap()
}

pub fn passkeys(numbers: std::ops::Range<u64>) -> Vec<Passkey> {
    numbers.map(passkey).collect()
}

/// Builds a set in batches.
pub async fn build(whitelist: &dyn Whitelist, passkeys: &[Passkey], batch: usize) -> Box<dyn Refresh> {
    let mut refresh = whitelist.begin_refresh().await.unwrap();
    for part in passkeys.chunks(batch) {
        refresh.add(part).await.unwrap();
    }
    refresh
}

pub async fn tidy(whitelist: &dyn Whitelist) {
    while whitelist.tidy().await.unwrap() {}
}
