//! Listening: what expires and what is said is heard, and what may have been missed is told.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use keyspace::{Heard, Listener, Notifications, Redis, RedisSettings, Wanted, slot_of};
use testkit::{RedisCluster, RedisSentinel, RedisServer};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn handle(url: &str) -> Redis {
    Redis::new(RedisSettings::from_url(url).unwrap()).unwrap()
}

fn wanted() -> Wanted {
    Wanted { expiring: vec!["t:ptimeout:*".to_owned()], channels: vec!["t:ch:torrent".to_owned()] }
}

async fn next(listener: &mut Listener) -> Heard {
    tokio::time::timeout(PATIENCE, listener.next()).await.expect("nothing was heard")
}

/// Waits for this, whatever else is heard before.
async fn await_heard(listener: &mut Listener, expected: &Heard) {
    let waiting = async { while listener.next().await != *expected {} };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never heard: {expected:?}"));
}

/// Repeats an action until this is heard. Directly after a failover a connection may still be listening to the former
/// master, so that one message alone may be lost, which the listener reports as one more gap.
async fn await_repeated(listener: &mut Listener, expected: &Heard, act: impl Fn()) {
    let waiting = async {
        let mut repeat = tokio::time::interval(Duration::from_millis(500));
        loop {
            tokio::select! {
                _ = repeat.tick() => act(),
                heard = listener.next() => if heard == *expected { return },
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never heard: {expected:?}"));
}

fn expired(key: &str) -> Heard {
    Heard::Expired(key.to_owned())
}

fn said(payload: &str) -> Heard {
    Heard::Said { channel: "t:ch:torrent".to_owned(), payload: payload.to_owned() }
}

/// A key that lies on this master of a cluster of three.
fn key_on(master: usize) -> String {
    let on_it = |key: &String| usize::from(slot_of(key.as_bytes())) * 3 / 16384 == master;
    (0..).map(|number| format!("t:ptimeout:{number}:ab")).find(on_it).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_a_single_server_is_heard_also_after_it_was_gone() {
    let mut server = RedisServer::start();
    let mut listener = handle(&format!("{}/2", server.url())).listen(wanted());
    assert_eq!(next(&mut listener).await, Heard::Listening);
    assert_eq!(server.cli(&["CONFIG", "GET", "notify-keyspace-events"]), "notify-keyspace-events\nxK");
    // Of another key, of another database, and not by expiry.
    server.cli(&["-n", "2", "SET", "t:other", "1", "PX", "1"]);
    server.cli(&["-n", "1", "SET", "t:ptimeout:0", "1", "PX", "1"]);
    server.cli(&["-n", "2", "SET", "t:ptimeout:7:ab", "1"]);
    server.cli(&["-n", "2", "DEL", "t:ptimeout:7:ab"]);
    server.cli(&["-n", "2", "SET", "t:ptimeout:7:ab", "1", "PX", "20"]);
    assert_eq!(next(&mut listener).await, expired("t:ptimeout:7:ab"));
    server.cli(&["PUBLISH", "t:ch:torrent", "one"]);
    assert_eq!(next(&mut listener).await, said("one"));

    // The setting was not in its file, so that it is gone with the process, and set again.
    server.kill();
    assert_eq!(next(&mut listener).await, Heard::Gap);
    server.restart();
    assert_eq!(next(&mut listener).await, Heard::Listening);
    server.cli(&["-n", "2", "SET", "t:ptimeout:7:cd", "1", "PX", "20"]);
    assert_eq!(next(&mut listener).await, expired("t:ptimeout:7:cd"));
    let counters = listener.counters();
    assert_eq!(counters.expired.load(Ordering::Relaxed), 2);
    assert_eq!(counters.gaps.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_flags_of_others_stay_and_a_server_that_refuses_is_told_of() {
    let server = RedisServer::builder().directive("notify-keyspace-events Elg").start();
    let redis = handle(&server.url());
    let found = redis.ensure_expiry_notifications().await.unwrap();
    assert!(matches!(&found[..], [(_, Notifications::SetByUs { .. })]), "{found:?}");
    let flags = server.cli(&["CONFIG", "GET", "notify-keyspace-events"]);
    assert!("Elgx".chars().all(|flag| flags.lines().last().unwrap().contains(flag)), "{flags}");
    let found = redis.ensure_expiry_notifications().await.unwrap();
    assert_eq!(found[0].1, Notifications::AlreadyOn);

    let strict = RedisServer::builder().user("us", "pw", "~* &* +@all -config").start();
    let mut listener = handle(&strict.url()).listen(wanted());
    // Channels work all the same.
    assert_eq!(next(&mut listener).await, Heard::Listening);
    strict.cli(&["PUBLISH", "t:ch:torrent", "one"]);
    assert_eq!(next(&mut listener).await, said("one"));
    assert!(matches!(&listener.notifications()[..], [(_, Notifications::Refused { .. })]));
    assert_eq!(listener.counters().silent_servers.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_too_slow_loses_messages_and_is_told_so() {
    let server = RedisServer::start();
    let mut listener = handle(&server.url()).listen(wanted());
    assert_eq!(next(&mut listener).await, Heard::Listening);
    let counters = listener.counters();
    let script = "for i = 1, 20000 do redis.call('PUBLISH', 't:ch:torrent', i) end";
    server.cli(&["EVAL", script, "0"]);
    let waiting = async {
        while counters.said.load(Ordering::Relaxed) < 20_000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("all is taken in");
    let mut heard = 0;
    loop {
        match next(&mut listener).await {
            Heard::Said { .. } => heard += 1,
            other => break assert_eq!(other, Heard::Gap),
        }
    }
    assert_eq!(heard + counters.dropped.load(Ordering::Relaxed), 20_000);
    assert_eq!(next(&mut listener).await, Heard::Listening);
    server.cli(&["PUBLISH", "t:ch:torrent", "after"]);
    assert_eq!(next(&mut listener).await, said("after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_a_failover_by_sentinels_is_followed_though_the_old_master_lives() {
    let group = RedisSentinel::start();
    let url = format!("redis+sentinel://127.0.0.1:{}/{}", group.sentinel_port(), group.master_name());
    let mut listener = handle(&url).listen(wanted());
    assert_eq!(next(&mut listener).await, Heard::Listening);
    group.master().cli(&["SET", "t:ptimeout:1:ab", "1", "PX", "20"]);
    assert_eq!(next(&mut listener).await, expired("t:ptimeout:1:ab"));
    group.fail_over();
    await_heard(&mut listener, &Heard::Gap).await;
    await_heard(&mut listener, &Heard::Listening).await;
    await_repeated(&mut listener, &expired("t:ptimeout:1:cd"), || {
        group.master().cli(&["SET", "t:ptimeout:1:cd", "1", "PX", "20"]);
    })
    .await;
    await_repeated(&mut listener, &said("one"), || {
        group.master().cli(&["PUBLISH", "t:ch:torrent", "one"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_every_master_of_a_cluster_is_heard_also_after_a_failover() {
    let quick = RedisServer::builder().directive("repl-diskless-sync-delay 0");
    let mut cluster = RedisCluster::start_with(&quick, 1);
    let redis = handle(&format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port()));
    let told_all = async {
        // Gossip about who is whose replica takes a moment.
        while redis.ensure_expiry_notifications().await.unwrap().len() < 6 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told_all).await.expect("replicas are told as well");
    let mut listener = redis.listen(wanted());
    assert_eq!(next(&mut listener).await, Heard::Listening);
    for master in 0..3 {
        let key = key_on(master);
        cluster.cli(&["SET", &key, "1", "PX", "20"]);
        await_heard(&mut listener, &expired(&key)).await;
    }
    // A message published at any node is received once.
    for node in 0..6 {
        cluster.node(node).cli(&["PUBLISH", "t:ch:torrent", &node.to_string()]);
        await_heard(&mut listener, &said(&node.to_string())).await;
    }
    assert_eq!(listener.counters().said.load(Ordering::Relaxed), 6);

    cluster.node_mut(1).kill();
    await_heard(&mut listener, &Heard::Gap).await;
    // What is said while a master is missing is heard through the others, before all is whole again.
    await_repeated(&mut listener, &said("meanwhile"), || {
        cluster.node(0).cli(&["PUBLISH", "t:ch:torrent", "meanwhile"]);
    })
    .await;
    cluster.wait_master_of(&key_on(1));
    cluster.wait_ok();
    for master in 0..3 {
        let key = key_on(master);
        await_repeated(&mut listener, &expired(&key), || {
            cluster.cli(&["SET", &key, "1", "PX", "20"]);
        })
        .await;
    }
    await_repeated(&mut listener, &said("after"), || {
        cluster.node(0).cli(&["PUBLISH", "t:ch:torrent", "after"]);
    })
    .await;
    assert!(listener.counters().gaps.load(Ordering::Relaxed) >= 1);
}
