//! The conformance suite on one Redis.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use journal::{Journal, RedisJournal};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use testkit::RedisServer;

use crate::conformance;

/// Unique names on a server that all tests share.
struct Names(BaseNames);

fn server() -> &'static RedisServer {
    static SERVER: OnceLock<RedisServer> = OnceLock::new();
    SERVER.get_or_init(RedisServer::start)
}

impl conformance::Fixture for Names {
    async fn fresh() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let stream = format!("test{}:traffic", COUNT.fetch_add(1, Ordering::Relaxed));
        let (dead, failed) = (format!("{stream}:dlq"), format!("{stream}:failed"));
        Names(BaseNames { stream, dead_letters: dead, failed, ..BaseNames::default() })
    }

    async fn open(&self) -> Arc<dyn Journal> {
        let redis = Redis::new(RedisSettings::from_url(&server().url()).unwrap()).unwrap();
        Arc::new(RedisJournal::new(redis, KeyNames::new(&self.0, Mode::Single).unwrap()))
    }
}

conformance_suite!(Names);
