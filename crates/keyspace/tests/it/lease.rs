//! Leases.

use std::time::Duration;

use keyspace::{Lease, Redis, RedisSettings};
use testkit::{RedisServer, eventually_async};

fn lease(server: &RedisServer, holder: &str, length: Duration) -> Lease {
    let redis = Redis::new(RedisSettings::from_url(&server.url()).unwrap()).unwrap();
    Lease::new(redis, "t:m:lease".to_owned(), holder.to_owned(), length)
}

#[tokio::test]
async fn one_process_holds_a_lease_until_release_or_expiry() {
    let server = RedisServer::start();
    let long = Duration::from_secs(60);
    let (first, second) = (lease(&server, "a", long), lease(&server, "b", long));
    assert!(!first.is_held());
    assert!(first.take().await.unwrap() && first.is_held());
    assert!(!second.take().await.unwrap() && !second.is_held());
    assert!(first.take().await.unwrap(), "renewed");
    second.release().await.unwrap();
    assert!(first.take().await.unwrap(), "another holder's release changes nothing");
    first.release().await.unwrap();
    assert!(!first.is_held());
    assert!(second.take().await.unwrap());
    // The lease of a dead process expires.
    server.cli(&["PEXPIRE", "t:m:lease", "1"]);
    eventually_async("the lease to expire", Duration::from_secs(30), async || {
        first.take().await.unwrap().then_some(())
    })
    .await;
    assert!(!second.take().await.unwrap(), "held by another process");
    assert!(!second.is_held());
}

#[tokio::test]
async fn a_holder_considers_the_lease_lost_before_it_expires() {
    let server = RedisServer::start();
    let lease = lease(&server, "a", Duration::from_millis(300));
    assert!(lease.take().await.unwrap());
    eventually_async("the lease to be considered lost", Duration::from_secs(30), async || {
        (!lease.is_held()).then_some(())
    })
    .await;
    // In Redis it may or may not have expired, depending on the load.
    assert!(!lease.is_held());
}
