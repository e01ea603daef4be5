//! A lease: one of many at a time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use keyspace::{Lease, Redis, RedisSettings};
use testkit::RedisServer;

fn lease(server: &RedisServer, holder: &str, length: Duration) -> Lease {
    let redis = Redis::new(RedisSettings::from_url(&server.url()).unwrap()).unwrap();
    Lease::new(redis, "t:m:lease".to_owned(), holder.to_owned(), length)
}

#[tokio::test]
async fn one_holds_it_until_it_is_given_back_or_runs_out() {
    let server = RedisServer::start();
    let long = Duration::from_secs(60);
    let (first, second) = (lease(&server, "a", long), lease(&server, "b", long));
    assert!(!first.is_held());
    assert!(first.take().await.unwrap() && first.is_held());
    assert!(!second.take().await.unwrap() && !second.is_held());
    assert!(first.take().await.unwrap(), "renewed");
    second.release().await.unwrap();
    assert!(first.take().await.unwrap(), "nobody gives back what is another's");
    first.release().await.unwrap();
    assert!(!first.is_held());
    assert!(second.take().await.unwrap());
    // Whoever dies loses it: Redis lets go by itself.
    server.cli(&["PEXPIRE", "t:m:lease", "1"]);
    let waiting = async {
        while !first.take().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
    assert!(!second.take().await.unwrap(), "it learns that it is another's");
    assert!(!second.is_held());
}

#[tokio::test]
async fn a_holder_stops_before_redis_lets_go() {
    let server = RedisServer::start();
    let lease = lease(&server, "a", Duration::from_millis(300));
    assert!(lease.take().await.unwrap());
    let waiting = async {
        while lease.is_held() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
    // Redis may have let go by now on a busy machine; the holder has in any case.
    assert!(!lease.is_held());
}
