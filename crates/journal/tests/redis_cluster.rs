//! The journal on a cluster of three masters: the duties of every journal.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use journal::{Journal, RedisJournal};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use testkit::RedisCluster;

#[macro_use]
mod conformance;

/// Names of its own, and so a slot of its own, on a cluster that all tests share.
struct Names(BaseNames);

fn cluster() -> &'static RedisCluster {
    static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
    CLUSTER.get_or_init(RedisCluster::start)
}

impl conformance::Fixture for Names {
    async fn fresh() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let stream = format!("test{}:traffic", COUNT.fetch_add(1, Ordering::Relaxed));
        let (dead, failed) = (format!("{stream}:dlq"), format!("{stream}:failed"));
        Names(BaseNames { stream, dead, failed })
    }

    async fn open(&self) -> Arc<dyn Journal> {
        // One node is enough to find the others.
        let url = format!("redis+cluster://127.0.0.1:{}", cluster().node(0).port());
        let redis = Redis::new(RedisSettings::from_url(&url).unwrap()).unwrap();
        Arc::new(RedisJournal::new(redis, KeyNames::new(&self.0, Mode::Cluster).unwrap()))
    }
}

conformance_suite!(Names);
