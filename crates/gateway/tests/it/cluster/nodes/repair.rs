//! What crashes, failovers and clocks leave behind is found and repaired.

use std::time::Duration;

use domain::{Seconds, UnixTime};
use gateway::cluster::shards::{owner_of, shard_of};
use gateway::cluster::{ClusterStore, EntryChange, NodeName, PublishOutcome};
use keyspace::{Redis, RedisSettings, read_reply, scripts};
use presence::Status;
use presence::remote::NodeEntry;
use testkit::{NetworkState, Proxy};

use super::{due_count, members, mortal};

use crate::cluster::fixture::*;

pub async fn p15_a_goodbye_ends_the_pending_that_the_same_node_caused(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let silent =
        NodeEntry { last_activity: UnixTime(now().0 - 92), gone_in: Seconds(90), ..part(&["phone"]) };
    let set = fixture.keys.due(shard_of(user(7)), a.node().as_str());
    change(&a, update(7, EntryChange::Put(silent))).await;
    assert!(fixture.ask::<Option<f64>>(&["ZSCORE", &set, "7"]).await.is_some());
    a.renew("{}").await.unwrap();
    let owner = if owner_of(shard_of(user(7)), &[a.node(), b.node()]) == Some(&a.node()) { &a } else { &b };
    assert_eq!(reap_until(owner, 7).await.to, Status::Pending);
    // Other nodes do not know that the node is silent.
    assert!(matches!(publish(&b, drop_of(7)).await, PublishOutcome::Unchanged { .. }));
    let left = change(&a, drop_of(7)).await;
    assert_eq!((left.from, left.to, left.left), (Status::Pending, Status::Offline, true));
    assert_eq!(fixture.public(7).await, [None, None, None]);
}

pub async fn p15_a_goodbye_just_after_a_rejoin_is_offline_and_never_pending(fixture: &Fixture) {
    let a = fixture.join_with("gw-a", mortal()).await;
    for id in [7, 8, 9] {
        change(&a, put(id, &["phone"])).await;
    }
    let before = a.node();
    a.rejoin().await.unwrap();
    let left = change(&a, drop_of(7)).await;
    assert_eq!((left.from, left.to, left.left), (Status::Online, Status::Offline, true));
    let stays = change(&a, put(8, &["phone"])).await;
    assert_eq!((stays.from, stays.to, stays.record.entries.len()), (Status::Online, Status::Online, 1));
    assert_eq!(stays.record.entries[0].node, a.node());
    // Only unpublished users are pending, and a goodbye ends that.
    assert_eq!(reap_until(&a, 9).await.to, Status::Pending);
    for id in [7, 8, 9] {
        assert_eq!(due_count(fixture, &before, id).await, 0);
    }
    assert_eq!(read(&a, 7).await.unwrap().pending, None);
    assert_eq!(read(&a, 8).await.unwrap().entries.len(), 1);
    assert!(change(&a, drop_of(9)).await.left);
}

/// An expired entry without a deadline, as a failover leaves it.
async fn leave_lost_part(fixture: &Fixture, id: u64) {
    let (sign, key) = (now().0 - 100, fixture.user_keys(id).record);
    let text = format!("-1 {}000 {sign} 90 - pf1phone", sign + 90);
    let _: u64 = fixture.ask(&["HSET", &key, "v", "3", "o", "4", "n:gw-x.1", &text]).await;
}

pub async fn p15_an_orphaned_entry_is_found_by_any_read(fixture: &Fixture) {
    let a = fixture.join_with("gw-a", mortal()).await;
    leave_lost_part(fixture, 7).await;
    leave_lost_part(fixture, 8).await;
    assert!(a.reap(100).await.unwrap().is_empty(), "it has no deadline");
    let found = read(&a, 7).await.unwrap();
    assert!(found.entries.is_empty() && found.pending.is_some(), "it shows no user as online: {found:?}");
    let same = a.watch(&[(user(8), 4)]).await.remove(0).unwrap();
    let node = NodeName::read("gw-x.1").unwrap();
    assert_eq!(same, gateway::cluster::WatchReply::Same { remaining: vec![(node, Duration::ZERO)] });
    let found = a.reap(100).await.unwrap();
    assert_eq!(found.len(), 2);
    for (who, pending) in found {
        let id = who.get();
        assert_eq!((pending.from, pending.to, pending.left), (Status::Online, Status::Pending, false));
        assert_eq!(pending.record.own_version, 5);
        // They leave in time: the deadline is stored.
        let set = fixture.keys.due_pending(shard_of(user(id)));
        let (score, at) = (fixture.ask::<f64>(&["ZSCORE", &set, &id.to_string()]).await, f64::from(now().0));
        assert!((score / 1000.0 - at - 300.0).abs() < 30.0, "{score}");
    }
    assert_eq!(a.counters().found_lost.get(), 2);
}

pub async fn p15_a_reaped_user_is_notified_by_another_node_if_the_first_could_not(fixture: &Fixture) {
    let (a, b) = (fixture.join_with("gw-a", mortal()).await, fixture.join_with("gw-b", mortal()).await);
    let dead = a.node();
    change(&a, put(7, &["phone"])).await;
    a.leave().await.unwrap();
    b.renew("{}").await.unwrap();
    // A third node has done it a moment ago.
    let mut call = scripts::PRESENCE_REAP.call(&fixture.user_keys(7).all());
    call.arg(dead.as_str()).arg("gone").arg(300_000).arg(100_000).arg(100_000).arg("gw-c.1").arg(0);
    let _: Vec<redis::Value> = read_reply(fixture.redis.query(&call).await).unwrap();
    assert_eq!(b.reap(100).await.unwrap(), [], "it may be about to notify");
    assert_eq!(due_count(fixture, &dead, 7).await, 1);
    // Long ago, and watchers were not notified.
    let (key, long_ago) = (fixture.user_keys(7).record, format!("gw-c.1 gone:{dead} online 1 1"));
    assert!(fixture.ask::<String>(&["HGET", &key, "r"]).await.starts_with(&long_ago[..long_ago.len() - 1]));
    let _: u64 = fixture.ask(&["HSET", &key, "r", &long_ago]).await;
    let reaped = b.reap(100).await.unwrap();
    assert_eq!((reaped.len(), reaped[0].1.from, reaped[0].1.to), (1, Status::Online, Status::Pending));
    assert_eq!(due_count(fixture, &dead, 7).await, 0);
    // Once: watchers were notified.
    let due = fixture.keys.due(shard_of(user(7)), dead.as_str());
    let _: u64 = fixture.ask(&["ZADD", &due, "1", "7"]).await;
    assert_eq!(b.reap(100).await.unwrap(), []);
    assert_eq!(due_count(fixture, &dead, 7).await, 0);
}

pub async fn p13_a_user_that_cannot_be_reaped_delays_no_other(fixture: &Fixture) {
    let a = fixture.join_with("gw-a", mortal()).await;
    let shard = shard_of(user(7));
    let others: Vec<u64> = (8..).filter(|id| shard_of(user(*id)) == shard).take(70).collect();
    let silent =
        NodeEntry { last_activity: UnixTime(now().0 - 100), gone_in: Seconds(90), ..part(&["phone"]) };
    change(&a, update(7, EntryChange::Put(silent))).await;
    let due = fixture.keys.due(shard, a.node().as_str());
    for id in others {
        let _: String = fixture.ask(&["SET", &fixture.user_keys(id).record, "x"]).await;
        let _: u64 = fixture.ask(&["ZADD", &due, "1", &id.to_string()]).await;
    }
    let mut found = Vec::new();
    for _ in 0..6 {
        found.extend(a.reap(100).await.unwrap());
    }
    assert_eq!((found.len(), found[0].0), (1, user(7)));
    assert_eq!(fixture.ask::<u64>(&["ZCARD", &due]).await, 70, "they are retried");
    assert_eq!(fixture.ask::<u64>(&["ZCOUNT", &due, "-inf", "1"]).await, 0);
}

pub async fn p13_a_user_with_another_entry_is_not_added_to_pending(fixture: &Fixture) {
    let (a, b) = (fixture.join_with("gw-a", mortal()).await, fixture.join_with("gw-b", mortal()).await);
    for id in 1..=40 {
        change(&a, put(id, &["phone"])).await;
    }
    change(&b, put(7, &["web"])).await;
    a.leave().await.unwrap();
    b.renew("{}").await.unwrap();
    let mut count = b.reap(30).await.unwrap().len();
    assert!(b.has_more() && count == 30, "{count}");
    count += b.reap(30).await.unwrap().len();
    assert!(!b.has_more() && count == 40, "{count}");
    let noted = async |id: u64| {
        let set = fixture.keys.due_pending(shard_of(user(id)));
        fixture.ask::<Option<f64>>(&["ZSCORE", &set, &id.to_string()]).await
    };
    assert_eq!(noted(7).await, None);
    // A pending user that is found again leaves at the same time.
    let until = noted(8).await.unwrap() - 100_000.0;
    let _: u64 = fixture.ask(&["HSET", &fixture.user_keys(8).record, "q", &until.to_string()]).await;
    let due = fixture.keys.due(shard_of(user(8)), b.node().as_str());
    let _: u64 = fixture.ask(&["ZADD", &due, "1", "8"]).await;
    assert_eq!(b.reap(30).await.unwrap(), []);
    assert!((noted(8).await.unwrap() - until).abs() < 30_000.0, "{until}");
}

pub async fn p15_an_entry_without_a_deadline_is_removed_when_another_node_writes(fixture: &Fixture) {
    let a = fixture.join_with("gw-a", mortal()).await;
    leave_lost_part(fixture, 7).await;
    let came = change(&a, put(7, &["web"])).await;
    assert_eq!((came.record.entries.len(), came.arrived), (1, false), "no departure was published");
    assert_eq!(fixture.shown(7).await, (Some("online".into()), Some("gw-a".into())));
    let left = change(&a, drop_of(7)).await;
    assert_eq!((left.to, left.left), (Status::Offline, true));
}

pub async fn p15_a_clock_of_redis_that_is_set_forward_kills_no_node(fixture: &Fixture) {
    let a = fixture.join_with("gw-a", mortal()).await;
    let b = fixture.join_with("gw-b", mortal()).await;
    let since = domain::clock::Stopwatch::start();
    while since.elapsed() < mortal().lease * 2 {
        assert!(a.renew("{}").await.unwrap().is_member && b.renew("{}").await.unwrap().is_member);
        // As if an hour had passed since.
        let _: u64 = fixture.ask(&["ZADD", "{p:nodes}", "XX", "1", a.node().as_str()]).await;
        assert!(b.renew("{}").await.unwrap().is_member);
        assert_eq!(members(fixture).await, Vec::<String>::new(), "it renewed a moment ago");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(a.renew("{}").await.unwrap().is_member);
}

/// Seed 85709 of the random history of many gateways: Redis was killed while the users of a frozen gateway were being
/// reaped, and returned without data. Users that could not be reaped were put off, in a deadline set of a node that no
/// list mentioned any more: it stayed for two days.
#[tokio::test(flavor = "multi_thread")]
async fn p15_a_failed_reap_creates_no_deadline_set_that_redis_has_lost() {
    let fixture = Fixture::single();
    let Kind::Single(server) = &fixture.kind else { unreachable!("one server") };
    let proxy = Proxy::start(([127, 0, 0, 1], server.port()).into());
    let slow = Redis::new(RedisSettings::from_url(&format!("redis://{}", proxy.address())).unwrap()).unwrap();
    let a = fixture.join_with("gw-a", mortal()).await;
    let b = ClusterStore::join(slow, "gw-b", mortal()).await.unwrap();
    let shard = shard_of(user(7));
    let (due, pending) = (fixture.keys.due(shard, a.node().as_str()), fixture.keys.due_pending(shard));
    change(&a, put(7, &["phone"])).await;
    a.leave().await.unwrap();
    b.renew("{}").await.unwrap();
    assert_eq!(fixture.ask::<u64>(&["EXISTS", &due]).await, 1);
    proxy.set(NetworkState::Slow(Duration::from_millis(200)));
    let reaping = tokio::spawn(async move { b.reap(100).await });
    // The user was found, and is reaped next. Another value in place of the record makes that fail.
    while fixture.ask::<Option<f64>>(&["ZSCORE", &pending, "7"]).await.is_none() && !reaping.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let _: String = fixture.ask(&["FLUSHALL"]).await;
    let _: String = fixture.ask(&["SET", &fixture.user_keys(7).record, "x"]).await;
    assert_eq!(reaping.await.unwrap().unwrap(), []);
    assert_eq!(fixture.ask::<u64>(&["EXISTS", &due]).await, 0);
}

/// Likewise for a gateway that was publishing under its former name.
#[tokio::test(flavor = "multi_thread")]
async fn p15_what_is_written_under_a_former_name_is_reaped_although_redis_lost_the_list_of_dead_nodes() {
    let fixture = Fixture::single();
    let a = fixture.join_with("gw-a", mortal()).await;
    let former = a.node();
    change(&a, put(7, &["phone"])).await;
    let shard = shard_of(user(7));
    a.rejoin().await.unwrap();
    fixture.lose_all().await;
    a.renew("{}").await.unwrap();
    // It was on its way when the gateway rejoined.
    let due = fixture.keys.due(shard, former.as_str());
    let _: u64 = fixture.ask(&["ZADD", &due, "1", "7"]).await;
    a.reap(100).await.unwrap();
    assert_eq!(fixture.ask::<u64>(&["EXISTS", &due]).await, 1, "nothing mentions the former name");
    a.declare_dead(&former).await;
    a.renew("{}").await.unwrap();
    a.reap(100).await.unwrap();
    assert_eq!(fixture.ask::<u64>(&["EXISTS", &due]).await, 0);
}
