//! Expired keys and messages are received, and gaps are reported.

use std::sync::atomic::Ordering;
use std::time::Duration;

use keyspace::{ExpiryNotifications, PubSubEvent, Redis, RedisSettings, Subscriber, Subscriptions, slot_of};
use testkit::{RedisCluster, RedisSentinel, RedisServer, eventually_async};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn handle(url: &str) -> Redis {
    Redis::new(RedisSettings::from_url(url).unwrap()).unwrap()
}

fn subscriptions() -> Subscriptions {
    Subscriptions { expired_keys: vec!["t:ptimeout:*".to_owned()], channels: vec!["t:ch:torrent".to_owned()] }
}

async fn next(subscriber: &mut Subscriber) -> PubSubEvent {
    tokio::time::timeout(PATIENCE, subscriber.next()).await.expect("no event")
}

/// Waits for this event, ignoring others.
async fn await_event(subscriber: &mut Subscriber, expected: &PubSubEvent) {
    let waiting = async { while subscriber.next().await != *expected {} };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not received: {expected:?}"));
}

/// Repeats an action until this event. Directly after a failover a connection may still be subscribed to the former
/// master, so a single message may be lost, which the subscriber reports as another gap.
async fn await_repeated(subscriber: &mut Subscriber, expected: &PubSubEvent, act: impl Fn()) {
    let waiting = async {
        let mut repeat = tokio::time::interval(Duration::from_millis(500));
        loop {
            tokio::select! {
                _ = repeat.tick() => act(),
                event = subscriber.next() => if event == *expected { return },
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not received: {expected:?}"));
}

fn expired(key: &str) -> PubSubEvent {
    PubSubEvent::Expired(key.to_owned())
}

fn message(payload: &str) -> PubSubEvent {
    PubSubEvent::Message { channel: "t:ch:torrent".to_owned(), payload: payload.to_owned() }
}

/// A key in a slot of this master of a cluster of three.
fn key_on(master: usize) -> String {
    let on_it = |key: &String| usize::from(slot_of(key.as_bytes())) * 3 / 16384 == master;
    (0..).map(|number| format!("t:ptimeout:{number}:ab")).find(on_it).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_events_of_a_single_server_are_received_after_a_restart() {
    let mut server = RedisServer::start();
    let mut subscriber = handle(&format!("{}/2", server.url())).subscribe(subscriptions());
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    assert_eq!(server.cli(&["CONFIG", "GET", "notify-keyspace-events"]), "notify-keyspace-events\nxK");
    // Another key, another database, and not by expiry.
    server.cli(&["-n", "2", "SET", "t:other", "1", "PX", "1"]);
    server.cli(&["-n", "1", "SET", "t:ptimeout:0", "1", "PX", "1"]);
    server.cli(&["-n", "2", "SET", "t:ptimeout:7:ab", "1"]);
    server.cli(&["-n", "2", "DEL", "t:ptimeout:7:ab"]);
    server.cli(&["-n", "2", "SET", "t:ptimeout:7:ab", "1", "PX", "20"]);
    assert_eq!(next(&mut subscriber).await, expired("t:ptimeout:7:ab"));
    server.cli(&["PUBLISH", "t:ch:torrent", "one"]);
    assert_eq!(next(&mut subscriber).await, message("one"));

    // The restart loses the setting, which is not in the file; the subscriber sets it again.
    server.kill();
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Gap);
    server.restart();
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    server.cli(&["-n", "2", "SET", "t:ptimeout:7:cd", "1", "PX", "20"]);
    assert_eq!(next(&mut subscriber).await, expired("t:ptimeout:7:cd"));
    let counters = subscriber.counters();
    assert_eq!(counters.expired.load(Ordering::Relaxed), 2);
    assert_eq!(counters.gaps.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_existing_flags_are_kept_and_a_refusal_is_reported() {
    let server = RedisServer::builder().directive("notify-keyspace-events Elg").start();
    let redis = handle(&server.url());
    let found = redis.ensure_expiry_notifications().await.unwrap();
    assert!(matches!(&found[..], [(_, ExpiryNotifications::Enabled { .. })]), "{found:?}");
    let flags = server.cli(&["CONFIG", "GET", "notify-keyspace-events"]);
    assert!("Elgx".chars().all(|flag| flags.lines().last().unwrap().contains(flag)), "{flags}");
    let found = redis.ensure_expiry_notifications().await.unwrap();
    assert_eq!(found[0].1, ExpiryNotifications::AlreadyEnabled);

    let strict = RedisServer::builder().user("us", "pw", "~* &* +@all -config").start();
    let mut subscriber = handle(&strict.url()).subscribe(subscriptions());
    // Channels work nevertheless.
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    strict.cli(&["PUBLISH", "t:ch:torrent", "one"]);
    assert_eq!(next(&mut subscriber).await, message("one"));
    assert!(matches!(&subscriber.notifications()[..], [(_, ExpiryNotifications::Refused { .. })]));
    assert_eq!(subscriber.counters().notifications_off.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_owner_loses_messages_and_gets_a_gap() {
    let server = RedisServer::start();
    let mut subscriber = handle(&server.url()).subscribe(subscriptions());
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    let counters = subscriber.counters();
    let script = "for i = 1, 20000 do redis.call('PUBLISH', 't:ch:torrent', i) end";
    server.cli(&["EVAL", script, "0"]);
    eventually_async("all messages to be received", PATIENCE, async || {
        (counters.messages.load(Ordering::Relaxed) >= 20_000).then_some(())
    })
    .await;
    let mut received = 0;
    loop {
        match next(&mut subscriber).await {
            PubSubEvent::Message { .. } => received += 1,
            other => break assert_eq!(other, PubSubEvent::Gap),
        }
    }
    assert_eq!(received + counters.dropped.load(Ordering::Relaxed), 20_000);
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    server.cli(&["PUBLISH", "t:ch:torrent", "after"]);
    assert_eq!(next(&mut subscriber).await, message("after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_a_sentinel_failover_is_followed_while_the_old_master_is_alive() {
    let group = RedisSentinel::start();
    let url = format!("redis+sentinel://127.0.0.1:{}/{}", group.sentinel_port(), group.master_name());
    let mut subscriber = handle(&url).subscribe(subscriptions());
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    group.master().cli(&["SET", "t:ptimeout:1:ab", "1", "PX", "20"]);
    assert_eq!(next(&mut subscriber).await, expired("t:ptimeout:1:ab"));
    group.fail_over();
    await_event(&mut subscriber, &PubSubEvent::Gap).await;
    await_event(&mut subscriber, &PubSubEvent::Subscribed).await;
    await_repeated(&mut subscriber, &expired("t:ptimeout:1:cd"), || {
        group.master().cli(&["SET", "t:ptimeout:1:cd", "1", "PX", "20"]);
    })
    .await;
    await_repeated(&mut subscriber, &message("one"), || {
        group.master().cli(&["PUBLISH", "t:ch:torrent", "one"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_events_of_every_cluster_master_are_received_after_a_failover() {
    let quick = RedisServer::builder().directive("repl-diskless-sync-delay 0");
    let mut cluster = RedisCluster::start_with(&quick, 1);
    let redis = handle(&format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port()));
    // Replicas are known only after some gossip.
    eventually_async("notifications to be enabled on all nodes", PATIENCE, async || {
        (redis.ensure_expiry_notifications().await.unwrap().len() >= 6).then_some(())
    })
    .await;
    let mut subscriber = redis.subscribe(subscriptions());
    assert_eq!(next(&mut subscriber).await, PubSubEvent::Subscribed);
    for master in 0..3 {
        let key = key_on(master);
        cluster.cli(&["SET", &key, "1", "PX", "20"]);
        await_event(&mut subscriber, &expired(&key)).await;
    }
    // A message published at any node is received once.
    for node in 0..6 {
        cluster.node(node).cli(&["PUBLISH", "t:ch:torrent", &node.to_string()]);
        await_event(&mut subscriber, &message(&node.to_string())).await;
    }
    assert_eq!(subscriber.counters().messages.load(Ordering::Relaxed), 6);

    cluster.node_mut(1).kill();
    await_event(&mut subscriber, &PubSubEvent::Gap).await;
    // While a master is missing, messages are received through the others.
    await_repeated(&mut subscriber, &message("meanwhile"), || {
        cluster.node(0).cli(&["PUBLISH", "t:ch:torrent", "meanwhile"]);
    })
    .await;
    cluster.wait_master_of(&key_on(1));
    cluster.wait_ok();
    for master in 0..3 {
        let key = key_on(master);
        await_repeated(&mut subscriber, &expired(&key), || {
            cluster.cli(&["SET", &key, "1", "PX", "20"]);
        })
        .await;
    }
    await_repeated(&mut subscriber, &message("after"), || {
        cluster.node(0).cli(&["PUBLISH", "t:ch:torrent", "after"]);
    })
    .await;
    assert!(subscriber.counters().gaps.load(Ordering::Relaxed) >= 1);
}
