//! Nodes: the users of a node that dies, leaves, sleeps or loses its connection (P13, P15, P16).

mod repair;

use std::time::Duration;

use domain::{Seconds, UnixTime};
use gateway::cluster::shards::{owner_of, shard_of};
use gateway::cluster::{
    ClusterSettings, ClusterStore, EntryChange, EntryUpdate, InboxEvent, NodeName, PublishOutcome,
};
use keyspace::{Redis, RedisSettings, read_reply, scripts};
use presence::Status;
use presence::remote::NodeEntry;

use crate::cluster::fixture::*;
use repair::*;
use testkit::eventually_async;

on_both!(
    p15_users_of_a_killed_node_are_pending_then_offline_and_it_is_fenced,
    p15_an_entry_of_another_node_ends_pending_and_keeps_users_online,
    p15_an_entry_that_was_not_renewed_is_reaped_without_a_fence,
    p15_what_a_crash_left_half_done_is_found_by_the_owner,
    p15_a_node_that_has_just_joined_declares_no_other_dead,
    p15_a_clock_of_redis_that_is_set_forward_kills_no_node,
    p13_a_step_is_bounded_and_two_owners_do_no_harm,
    p13_nodes_know_of_each_other,
    p15_a_user_that_returns_before_all_were_notified_keeps_the_deadline,
    p13_malformed_members_of_a_deadline_set_stop_no_other,
    p15_a_goodbye_ends_the_pending_that_the_same_node_caused,
    p15_a_goodbye_just_after_a_rejoin_is_offline_and_never_pending,
    p15_a_reaped_user_is_notified_by_another_node_if_the_first_could_not,
    p13_a_user_that_cannot_be_reaped_delays_no_other,
    p13_a_user_with_another_entry_is_not_added_to_pending,
    p15_an_orphaned_entry_is_found_by_any_read,
    p15_an_entry_without_a_deadline_is_removed_when_another_node_writes,
);

/// Pending for long, so that no user leaves during a test.
fn mortal() -> ClusterSettings {
    ClusterSettings { pending: Seconds(300), ..hasty() }
}

async fn members(fixture: &Fixture) -> Vec<String> {
    fixture.ask(&["ZRANGE", "{p:nodes}:gone", "0", "-1"]).await
}

async fn due_count(fixture: &Fixture, node: &NodeName, id: u64) -> u64 {
    fixture.ask(&["ZCARD", &fixture.keys.due(shard_of(user(id)), node.as_str())]).await
}

async fn p15_users_of_a_killed_node_are_pending_then_offline_and_it_is_fenced(fixture: &Fixture) {
    // It does not renew any more: dead or suspended.
    let (a, b) = (fixture.join_with("gw-a", hasty()).await, fixture.join_with("gw-b", hasty()).await);
    let dead = a.node();
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    change(&a, put(7, &["phone"])).await;
    receive_record(&mut inbox).await;
    let pending = reap_until(&b, 7).await;
    assert_eq!((pending.from, pending.to, pending.left), (Status::Online, Status::Pending, false));
    assert!(pending.record.entries.is_empty() && pending.record.last_seen.is_some());
    assert_eq!(receive_record(&mut inbox).await.own_version, pending.record.own_version);
    assert_eq!(due_count(fixture, &dead, 7).await, 0);
    // It resumes, and may not publish the users that it has lost.
    assert_eq!(publish(&a, put(7, &["phone"])).await, PublishOutcome::Fenced);
    assert!(!a.renew("{}").await.unwrap().is_member);
    // Its other writes are found and undone.
    change(&a, put(8, &["phone"])).await;
    assert_eq!(reap_until(&b, 8).await.to, Status::Pending);
    let left = reap_until(&b, 7).await;
    assert_eq!((left.from, left.to, left.left), (Status::Pending, Status::Offline, true));
    assert_eq!(left.record.last_seen, pending.record.last_seen);
    assert_eq!(fixture.public(7).await, [None, None, None]);
    a.rejoin().await.unwrap();
    assert!(a.node() != dead && a.node().name() == "gw-a");
    assert!(change(&a, put(7, &["phone"])).await.arrived);
    let counted = (a.counters().fenced.get(), a.counters().rejoins.get(), b.counters().reaped_pending.get());
    assert!(counted == (1, 1, 1) || counted == (1, 1, 2), "{counted:?}");
}

async fn p15_an_entry_of_another_node_ends_pending_and_keeps_users_online(fixture: &Fixture) {
    let (a, b) = (fixture.join_with("gw-a", mortal()).await, fixture.join_with("gw-b", mortal()).await);
    change(&a, put(7, &["phone"])).await;
    change(&a, put(8, &["phone"])).await;
    change(&b, put(8, &["web"])).await;
    a.leave().await.unwrap();
    assert_eq!(reap_until(&b, 7).await.to, Status::Pending);
    assert_eq!(fixture.public(7).await, [None, None, None], "P19: pending is not online");
    let still = read(&b, 8).await.unwrap();
    assert_eq!((still.entries.len(), still.pending), (1, None), "no false offline, not even pending");
    assert_eq!(fixture.shown(8).await, (Some("online".into()), Some("gw-b".into())));
    let back = change(&b, put(7, &["phone"])).await;
    assert_eq!((back.from, back.to, back.arrived), (Status::Pending, Status::Online, false));
    assert_eq!(back.record.pending, None);
    // The rest of the pending set has no effect.
    let pending = fixture.keys.due_pending(shard_of(user(7)));
    let _: u64 = fixture.ask(&["ZADD", &pending, "XX", "1", "7"]).await;
    assert!(b.reap(100).await.unwrap().is_empty());
    assert_eq!(fixture.ask::<Option<f64>>(&["ZSCORE", &pending, "7"]).await, None);
    assert_eq!(read(&b, 7).await.unwrap().entries.len(), 1);
}

async fn p15_an_entry_that_was_not_renewed_is_reaped_without_a_fence(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    let silent =
        NodeEntry { last_activity: UnixTime(now().0 - 100), gone_in: Seconds(90), ..part(&["phone"]) };
    change(&a, update(7, EntryChange::Put(silent))).await;
    assert_eq!(fixture.public(7).await, [None, None, None], "an expired entry is not shown");
    change(&a, put(8, &["phone"])).await;
    // Its score is old although its entry is not: it was renewed, and the set was not updated.
    let due = fixture.keys.due(shard_of(user(8)), a.node().as_str());
    let _: u64 = fixture.ask(&["ZADD", &due, "XX", "5", "8"]).await;
    let found = a.reap(100).await.unwrap();
    assert_eq!((found.len(), found[0].0, found[0].1.to), (1, user(7), Status::Pending));
    let score: f64 = fixture.ask(&["ZSCORE", &due, "8"]).await;
    assert!(score > 1e12, "it is due with its entry: {score}");
    assert_eq!(change(&a, put(7, &["phone"])).await.to, Status::Online);
    assert_eq!(a.counters().reaped_late.get(), 1);
}

/// Calls the script of `publish` alone, as a node does that dies right after.
async fn drop_and_die(fixture: &Fixture, store: &ClusterStore, id: u64) {
    let mut call = scripts::PRESENCE_PUBLISH.call(&fixture.user_keys(id).all());
    call.arg(store.node().as_str()).arg("drop").arg(0).arg("").arg(0).arg("").arg("").arg(0);
    call.arg("=").arg("").arg(0).arg(0).arg(0).arg(1000).arg(100_000).arg(1).arg(0).arg("").arg(0).arg(0);
    let reply: Vec<redis::Value> = read_reply(fixture.redis.query(&call).await).unwrap();
    assert_eq!(reply[0], redis::Value::BulkString(b"changed".to_vec()));
}

async fn p15_what_a_crash_left_half_done_is_found_by_the_owner(fixture: &Fixture) {
    let (a, b) = (fixture.join_with("gw-a", mortal()).await, fixture.join_with("gw-b", mortal()).await);
    let dead = a.node();
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    change(&a, put(7, &["phone"])).await;
    receive_record(&mut inbox).await;
    // It removed a user and died before it notified a watcher.
    drop_and_die(fixture, &a, 7).await;
    // It added a user to the deadlines and died before it wrote the record.
    let due = fixture.keys.due(shard_of(user(9)), dead.as_str());
    let _: u64 = fixture.ask(&["ZADD", &due, "1", "9"]).await;
    eventually_async("the deadlines of the dead node to be removed", PATIENCE, async || {
        let due = due_count(fixture, &dead, 7).await + due_count(fixture, &dead, 9).await;
        if due > 0 {
            b.renew("{}").await.unwrap();
            assert_eq!(b.reap(100).await.unwrap(), []);
        }
        (due == 0).then_some(())
    })
    .await;
    let record = receive_record(&mut inbox).await;
    assert_eq!((record.user, record.entries.len()), (user(7), 0));
    assert_eq!(b.counters().renotified.get(), 1);
    assert_eq!(read(&b, 9).await, None);
}

async fn p15_a_node_that_has_just_joined_declares_no_other_dead(fixture: &Fixture) {
    let _a = fixture.join_with("gw-a", mortal()).await;
    // Its lease expires.
    tokio::time::sleep(mortal().lease * 2).await;
    let b = fixture.join_with("gw-b", mortal()).await;
    let standing = b.renew("{}").await.unwrap();
    assert!(standing.was_alone && standing.is_member);
    assert_eq!(standing.nodes, [b.node()]);
    assert!(members(fixture).await.is_empty(), "Redis may have been away for all");
    eventually_async("the other node to be declared dead", PATIENCE, async || {
        b.renew("{}").await.unwrap();
        (!members(fixture).await.is_empty()).then_some(())
    })
    .await;
}

async fn p13_a_step_is_bounded_and_two_owners_do_no_harm(fixture: &Fixture) {
    let pending_soon = ClusterSettings { pending: Seconds(0), ..settings() };
    // The first does not know the second, and considers itself the owner of all shards.
    let first = fixture.join_with("gw-a", pending_soon.clone()).await;
    let second = fixture.join_with("gw-b", pending_soon).await;
    let nodes = [first.node(), second.node()];
    let of_second: Vec<u64> =
        (1..500).filter(|id| owner_of(shard_of(user(*id)), &nodes) == Some(&nodes[1])).take(60).collect();
    let coming: Vec<EntryUpdate> = of_second.iter().map(|id| put(*id, &["phone"])).collect();
    assert!(second.publish(&coming).await.iter().all(Result::is_ok));
    let behind: Vec<EntryUpdate> = of_second.iter().map(|id| update(*id, EntryChange::Abandon)).collect();
    assert!(second.publish(&behind).await.iter().all(Result::is_ok));
    // The deadlines, which are in milliseconds, have all passed then.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let some = second.reap(10).await.unwrap();
    assert_eq!(some.len(), 10);
    let mut left: Vec<u64> = some.iter().map(|(user, _)| user.get()).collect();
    for _ in 0..12 {
        let (one, other) = tokio::join!(first.reap(10), second.reap(10));
        let both = one.unwrap().into_iter().chain(other.unwrap());
        left.extend(both.inspect(|(_, outcome)| assert!(outcome.left)).map(|(user, _)| user.get()));
    }
    left.sort_unstable();
    assert_eq!(left, of_second, "each once");
}

async fn p13_malformed_members_of_a_deadline_set_stop_no_other(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    let set = fixture.keys.due(shard_of(user(7)), a.node().as_str());
    for member in ["", "0", "x", "99999999999999999999"] {
        let _: u64 = fixture.ask(&["ZADD", &set, "-inf", member]).await;
    }
    let _: u64 = fixture.ask(&["ZADD", &set, "1", "404"]).await;
    let _: String = fixture.ask(&["SET", &fixture.keys.due_pending(shard_of(user(7))), "x"]).await;
    assert!(a.reap(100).await.unwrap().is_empty());
    assert_eq!(a.counters().malformed.get(), 4);
    // The pending set is not writable: no user becomes pending without a deadline.
    assert_eq!(fixture.ask::<u64>(&["ZCARD", &set]).await, 2);
    let _: u64 = fixture.ask(&["DEL", &fixture.keys.due_pending(shard_of(user(7)))]).await;
    assert!(a.reap(100).await.unwrap().is_empty());
    assert_eq!(fixture.ask::<Vec<String>>(&["ZRANGE", &set, "0", "-1"]).await, ["7"]);
}

async fn p15_a_user_that_returns_before_all_were_notified_keeps_the_deadline(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    // The first removes its member after the second has added its own.
    let results = a.publish(&[drop_of(7), put(7, &["phone"])]).await;
    assert!(results.iter().all(|result| matches!(result, Ok(PublishOutcome::Changed(_)))), "{results:?}");
    assert_eq!(due_count(fixture, &a.node(), 7).await, 1);
    change(&a, drop_of(7)).await;
    assert_eq!(due_count(fixture, &a.node(), 7).await, 0);
}

async fn p13_nodes_know_of_each_other(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let standing = a.renew(r#"{"here":3}"#).await.unwrap();
    assert!(standing.was_alone && !b.renew("{}").await.unwrap().was_alone);
    assert_eq!(standing.nodes, [a.node(), b.node()]);
    assert_eq!(b.infos().await.unwrap(), [(a.node(), r#"{"here":3}"#.into()), (b.node(), "{}".into())]);
    a.reap(10).await.unwrap();
    b.reap(10).await.unwrap();
    assert_eq!(a.counters().shards_owned.get() + b.counters().shards_owned.get(), 64);
    a.leave().await.unwrap();
    assert!(!a.renew("{}").await.unwrap().is_member);
    assert_eq!(b.renew("{}").await.unwrap().nodes, [b.node()]);
    assert_eq!(fixture.ask::<u64>(&["HLEN", "{p:nodes}:info"]).await, 1);
    b.reap(10).await.unwrap();
    assert_eq!(b.counters().shards_owned.get(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_a_change_that_was_not_answered_is_reported_by_the_next_try() {
    let fixture = Fixture::single();
    let impatient =
        RedisSettings { response_timeout: Duration::from_millis(500), ..fixture.redis.settings().clone() };
    let a = ClusterStore::join(Redis::new(impatient).unwrap(), "gw-a", settings()).await.unwrap();
    let b = fixture.join("gw-b").await;
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    let Kind::Single(server) = &fixture.kind else { panic!("one server") };
    // Redis has the scripts by now: commands sent while it is stopped run when it continues.
    change(&a, put(8, &["phone"])).await;
    server.freeze();
    let lost = a.publish(&[put(7, &["phone"])]).await;
    assert!(matches!(lost[0], Err(gateway::cluster::RedisError::Unanswered { .. })), "{lost:?}");
    server.thaw();
    let waiting = async {
        loop {
            match a.publish(&[put(7, &["phone"])]).await.remove(0) {
                Ok(PublishOutcome::Changed(outcome)) => break outcome,
                Ok(other) => panic!("it was never reported: {other:?}"),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert!(outcome.arrived && outcome.to == Status::Online);
    assert!(matches!(publish(&a, put(7, &["phone"])).await, PublishOutcome::Unchanged { .. }), "once");
    loop {
        if let InboxEvent::Record(record) = hear(&mut inbox).await {
            break assert_eq!(record.own_version, outcome.record.own_version);
        }
    }
}

/// Like a gateway that stops: pending calls are dropped, then it leaves.
#[tokio::test(flavor = "multi_thread")]
async fn p15_a_change_whose_caller_was_stopped_is_reported_by_the_next_try() {
    let fixture = Fixture::single();
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    change(&a, put(7, &["phone"])).await;
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    let Kind::Single(server) = &fixture.kind else { panic!("one server") };
    server.freeze();
    let going = [drop_of(7)];
    assert!(tokio::time::timeout(Duration::from_millis(200), a.publish(&going)).await.is_err());
    server.thaw();
    let outcome = change(&a, drop_of(7)).await;
    assert!(outcome.left && outcome.from == Status::Online, "{outcome:?}");
    assert_eq!(receive_record(&mut inbox).await.own_version, outcome.record.own_version);
    assert!(matches!(publish(&a, drop_of(7)).await, PublishOutcome::Unchanged { .. }), "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_everything_comes_back_after_redis_was_started_again() {
    let mut fixture = Fixture::single();
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let mut inbox = b.inbox();
    change(&a, put(7, &["phone"])).await;
    let Kind::Single(server) = &mut fixture.kind else { panic!("one server") };
    server.kill();
    assert!(a.publish(&[put(7, &["phone"])]).await[0].is_err());
    assert!(a.renew("{}").await.is_err() && a.counters().failures.get() >= 2);
    server.restart();
    let (one, other) = eventually_async("both to renew again", PATIENCE, async || {
        a.renew("{}").await.ok().zip(b.renew("{}").await.ok())
    })
    .await;
    assert!(one.is_member && other.is_member);
    assert_eq!(hear(&mut inbox).await, InboxEvent::Gap);
    watch(&b, 7).await;
    assert!(change(&a, put(7, &["phone"])).await.arrived);
    assert_eq!(receive_record(&mut inbox).await.entries.len(), 1);
}
