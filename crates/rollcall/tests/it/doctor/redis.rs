//! Redis: unreachable, suspended, without persistence, evicting, with ACLs, a cluster.

use testkit::ports::free_port;
use testkit::{Fsync, RedisCluster, RedisSentinel, RedisServer};

use crate::doctor::Installation;

fn installation(url: &str) -> Installation {
    Installation::new().set("redis.url", url)
}

fn durable() -> testkit::RedisBuilder {
    RedisServer::builder().append_only(Fsync::EverySecond)
}

#[test]
fn a_redis_as_it_should_be_is_well_and_gets_no_key() {
    let redis = durable().start();
    let report = installation(&redis.url()).doctor();
    report.is_well("redis");
    report.is_well("journal");
    report.has("redis", "ok", &["version 7.0", "we test with 7.0"]);
    report.has("redis", "ok", &["append-only file"]);
    report.has("redis", "ok", &["notify-keyspace-events"]);
    report.has("redis", "ok", &["clock", "agrees"]);
    report.has("redis", "ok", &["has all permissions"]);
    assert_eq!(redis.cli(&["DBSIZE"]), "0", "the doctor changes nothing");
}

#[test]
fn nothing_changes_in_a_redis_that_is_in_use() {
    let redis = durable().directive("enable-debug-command local").start();
    redis.cli(&["XADD", "tracker:traffic", "5-1", "a", "b"]);
    redis.cli(&["XGROUP", "CREATE", "tracker:traffic", "ztorrent", "0"]);
    redis.cli(&["SADD", "pt:passkeys", "0123456789abcdef"]);
    redis.cli(&["ZADD", "tracker:users:active", "1", "0123456789abcdef"]);
    let digest = redis.cli(&["DEBUG", "DIGEST"]);
    installation(&redis.url()).doctor();
    assert_eq!(redis.cli(&["DEBUG", "DIGEST"]), digest);
}

#[test]
fn an_unreachable_redis_or_a_missing_password_is_found() {
    let report = installation(&format!("redis://127.0.0.1:{}", free_port())).doctor();
    report.has_problem("redis", &["cannot be reached"], "redis-cli -h 127.0.0.1");
    let redis = durable().password("geheim").start();
    let report = installation(&format!("redis://:falsch@127.0.0.1:{}", redis.port())).doctor();
    report.has_problem("redis", &["password"], "PING");
    assert!(!report.json.to_string().contains("falsch"));
}

/// It must not hang with it.
#[test]
fn a_redis_that_does_not_answer_is_found() {
    let redis = durable().start();
    redis.freeze();
    let report = installation(&redis.url()).doctor();
    redis.thaw();
    assert_eq!(report.exit_code, 1);
    assert!(report.find("redis", "problem", &[]).is_some(), "{report:#?}");
}

#[test]
fn missing_persistence_is_found() {
    let forgetful = RedisServer::start();
    let report = installation(&forgetful.url()).doctor();
    report.has_problem("redis", &["has no persistence"], "CONFIG SET appendonly yes");
    let snapshots = RedisServer::builder().directive("save 3600 1").start();
    installation(&snapshots.url()).doctor().has_warning(
        "redis",
        &["snapshots only"],
        "CONFIG SET appendonly yes",
    );
    // The printed remedy works.
    let report = installation(&forgetful.url()).doctor();
    let mend = report.has("redis", "problem", &["has no persistence"])["mend"].as_str().unwrap().to_owned();
    let output = std::process::Command::new("sh").args(["-c", &mend]).output().unwrap();
    assert!(output.status.success(), "{mend}");
    testkit::eventually("the append-only file to be written", std::time::Duration::from_secs(30), || {
        installation(&forgetful.url()).doctor().find("redis", "problem", &[]).is_none().then_some(())
    });
}

#[test]
fn eviction_and_full_memory_are_found() {
    let evicting = durable().directive("maxmemory 64mb").directive("maxmemory-policy allkeys-lru").start();
    let report = installation(&evicting.url()).doctor();
    report.has_problem("redis", &["allkeys-lru", "lose entries"], "maxmemory-policy noeviction");
    let unbounded = durable().directive("maxmemory-policy allkeys-lru").start();
    installation(&unbounded.url()).doctor().has_warning("redis", &["allkeys-lru"], "noeviction");
    let full = durable().memory_bytes_max(512 << 10).start();
    installation(&full.url()).doctor().has_problem("redis", &["% of its maxmemory"], "maxmemory BYTES");
}

#[test]
fn missing_redis_permissions_are_listed() {
    let rules = "~* &* +@all -xadd -xreadgroup -eval";
    let redis = durable().user("site", "geheim", rules).start();
    let report = installation(&redis.url()).doctor();
    report.has_problem("redis", &["XADD", "XREADGROUP", "EVAL"], "+xadd");
    let elsewhere = durable().user("site", "geheim", "~other:* &* +@all").start();
    let report = installation(&elsewhere.url()).doctor();
    report.has_problem("redis", &["pt:passkeys"], "~tracker:* ~t:* ~pt:*");
}

#[test]
fn a_replica_is_no_place_to_write() {
    let master = durable().start();
    let replica = durable().directive(&format!("replicaof 127.0.0.1 {}", master.port())).start();
    installation(&replica.url()).doctor().has_problem("redis", &["is a slave"], "master");
}

#[test]
fn every_master_of_a_cluster_is_looked_at_and_missing_slots_are_found() {
    let cluster = RedisCluster::start_with(&durable(), 0);
    let ports: Vec<u16> = (0..3).map(|index| cluster.node(index).port()).collect();
    let url = format!("redis+cluster://127.0.0.1:{}", ports[1]);
    let report = installation(&url).doctor();
    report.has("redis", "ok", &["3 masters serve all 16384 slots"]);
    report.has_warning("redis", &["without a replica"], "add-node");
    for port in &ports {
        report.has("redis", "ok", &[&port.to_string(), "append-only file"]);
    }
    assert!(report.find("redis", "problem", &[]).is_none(), "{report:#?}");
    cluster.node(2).cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    installation(&url).doctor().has_warning("redis", &[&ports[2].to_string(), "allkeys-lru"], "noeviction");
    let single = installation(&format!("redis://127.0.0.1:{}", ports[0])).doctor();
    single.has_problem("redis", &["a node of a cluster"], "redis+cluster://");
    for index in 0..3 {
        let _ = cluster.node(index).try_cli(&["CLUSTER", "DELSLOTS", "0"]);
    }
    let report = installation(&url).doctor();
    report.has_problem("redis", &["the cluster is incomplete"], "--cluster fix");
}

#[test]
fn the_master_behind_sentinels_is_looked_at() {
    let sentinels = RedisSentinel::start();
    let url = format!("redis+sentinel://127.0.0.1:{}/{}", sentinels.sentinel_port(), sentinels.master_name());
    let report = installation(&url).doctor();
    report.has("redis", "ok", &["redis+sentinel://", "version 7.0"]);
    report.has("redis", "ok", &["has all permissions"]);
    assert!(report.find("redis", "problem", &["is a"]).is_none(), "{report:#?}");
}

#[test]
fn m6_missing_expiry_notifications_of_redis_are_found() {
    let redis = durable().directive("notify-keyspace-events Kx").start();
    installation(&redis.url()).doctor().has("redis", "ok", &["notify-keyspace-events is \"xK\""]);
    let redis = durable().user("us", "pw", "~* &* +@all -config|set").start();
    let report = installation(&redis.url()).doctor();
    report.has("redis", "warning", &["notify-keyspace-events", "may not change it"]);
    let report = installation(&redis.url()).set("mirror.enabled", "false").doctor();
    report.has("redis", "ok", &["notify-keyspace-events is \"\""]);
}
