//! Routing on a cluster, also while slots migrate and masters change.

use std::time::Duration;

use keyspace::{Redis, RedisError, RedisSettings, read_reply, scripts, slot_of};
use redis::{cmd, pipe};
use testkit::{RedisCluster, RedisServer, eventually, eventually_async};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn handle(cluster: &RedisCluster) -> Redis {
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    Redis::new(RedisSettings::from_url(&url).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_are_split_by_master_and_replies_are_in_order() {
    let cluster = RedisCluster::start();
    let redis = handle(&cluster);
    let mut writing = pipe();
    let mut reading = pipe();
    for number in 0..1000 {
        writing.cmd("SET").arg(format!("key{number}")).arg(number);
        reading.cmd("GET").arg(format!("key{number}"));
    }
    for reply in redis.pipeline(&writing).await {
        reply.unwrap();
    }
    let replies = redis.pipeline(&reading).await;
    let numbers: Vec<u64> = replies.into_iter().map(|reply| read_reply(reply).unwrap()).collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    assert_eq!(slot_of(b"key7").to_string(), cluster.cli(&["CLUSTER", "KEYSLOT", "key7"]));

    // Scripts that no node has loaded yet.
    let mut calls = pipe();
    for number in 0..20 {
        cluster.cli(&["XGROUP", "CREATE", &format!("s{number}"), "g", "0", "MKSTREAM"]);
        let mut call = scripts::DELETE_CONSUMER.call(&[&format!("s{number}")]);
        call.arg("g").arg("c");
        calls.add_command(call);
    }
    for reply in redis.pipeline(&calls).await {
        assert_eq!(read_reply::<u32>(reply).unwrap(), 1);
    }

    let mut transaction = pipe();
    transaction.cmd("SET").arg("{t}a").arg(1).cmd("INCR").arg("{t}a");
    let replies = redis.transaction(&transaction).await.unwrap();
    assert_eq!(read_reply::<u64>(replies.into_iter().nth(1).unwrap()).unwrap(), 2);
    transaction.cmd("SET").arg("elsewhere").arg(1);
    let error = redis.transaction(&transaction).await.unwrap_err();
    assert_eq!(error.code(), "CROSSSLOT");
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_while_a_slot_migrates() {
    let cluster = RedisCluster::start();
    let redis = handle(&cluster);
    redis.query::<()>(cmd("SET").arg("{m}1").arg(1)).await.unwrap();
    redis.query::<()>(cmd("SET").arg("{m}2").arg(2)).await.unwrap();
    let slot = slot_of(b"m");
    let from = usize::from(slot) * 3 / 16384;
    let (source, target) = (cluster.node(from), cluster.node((from + 1) % 3));
    let (source_id, target_id) = (source.cli(&["CLUSTER", "MYID"]), target.cli(&["CLUSTER", "MYID"]));
    let text = slot.to_string();
    target.cli(&["CLUSTER", "SETSLOT", &text, "IMPORTING", &source_id]);
    source.cli(&["CLUSTER", "SETSLOT", &text, "MIGRATING", &target_id]);
    source.cli(&["MIGRATE", "127.0.0.1", &target.port().to_string(), "{m}1", "0", "5000"]);

    // One key has moved, the other has not (ASK).
    let mut both = pipe();
    both.cmd("INCR").arg("{m}1").cmd("INCR").arg("{m}2");
    let sum = |replies: Vec<keyspace::Reply>| -> u64 {
        replies.into_iter().map(|reply| read_reply::<u64>(reply).unwrap()).sum()
    };
    assert_eq!(redis.query::<u64>(cmd("GET").arg("{m}1")).await.unwrap(), 1);
    assert_eq!(sum(redis.pipeline(&both).await), 2 + 3);

    source.cli(&["MIGRATE", "127.0.0.1", &target.port().to_string(), "{m}2", "0", "5000"]);
    for node in [target, source] {
        node.cli(&["CLUSTER", "SETSLOT", &text, "NODE", &target_id]);
    }
    // The slot has moved (MOVED).
    assert_eq!(sum(redis.pipeline(&both).await), 3 + 4);
    assert_eq!(redis.query::<u64>(cmd("GET").arg("{m}2")).await.unwrap(), 4);
    let replies = redis.transaction(&both).await.unwrap();
    assert_eq!(sum(replies), 4 + 5);
    let mut dedicated = redis.dedicated("{m}").await.unwrap();
    assert_eq!(dedicated.query::<u64>(cmd("GET").arg("{m}1")).await.unwrap(), 4);
}

/// Whether the first replica has acknowledged all writes of its master. (`WAIT` covers only writes of its own connection.)
fn is_replicated(info: &str) -> bool {
    let number = |name: &str| {
        let (_, rest) = info.split_once(name)?;
        rest.split(|character: char| !character.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let written = number("master_repl_offset:");
    written.is_some() && number(",offset=") >= written
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_master_fails_its_own_keys_until_its_replica_is_promoted() {
    let quick = RedisServer::builder().directive("repl-diskless-sync-delay 0");
    let mut cluster = RedisCluster::start_with(&quick, 1);
    let redis = handle(&cluster);
    // One key on each master.
    let keys: Vec<String> = (0..3).map(key_on_master).collect();
    let mut writing = pipe();
    keys.iter().for_each(|key| {
        writing.cmd("SET").arg(key).arg(7);
    });
    assert!(redis.pipeline(&writing).await.iter().all(Result::is_ok));
    for master in 0..3 {
        eventually("the replica to have the key", PATIENCE, || {
            is_replicated(&cluster.node(master).cli(&["INFO", "replication"])).then_some(())
        });
    }
    cluster.node_mut(1).kill();
    let replies = redis.pipeline(&writing).await;
    assert!(replies[0].is_ok() && replies[2].is_ok(), "{replies:?}");
    assert!(replies[1].as_ref().is_err_and(RedisError::is_retryable), "{replies:?}");

    let value = eventually_async("the replica to be promoted", PATIENCE, async || {
        let reply = redis.query::<u64>(cmd("GET").arg(&keys[1])).await;
        reply.inspect_err(|error| assert!(error.is_retryable(), "{error}")).ok()
    });
    assert_eq!(value.await, 7);
}

fn key_on_master(master: usize) -> String {
    let on_it = |key: &String| usize::from(slot_of(key.as_bytes())) * 3 / 16384 == master;
    (0..).map(|number| format!("k{number}")).find(on_it).unwrap()
}
