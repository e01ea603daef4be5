//! Nodes: what becomes of people when one dies, leaves, sleeps or is cut off (P13, P15, P16).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "nodes/mending.rs"]
mod mending;
mod support;

use std::time::Duration;

use domain::{Seconds, UnixTime};
use keyspace::{Redis, RedisSettings, read_reply, scripts};
use mending::*;
use presence::Status;
use presence::elsewhere::Part;
use register::shards::{owner_of, shard_of};
use register::{Change, Heard, NodeName, Published, Register, RegisterSettings, Update};
use support::*;

on_both!(
    p15_people_of_a_killed_node_are_pending_then_gone_and_it_is_fenced,
    p15_a_part_elsewhere_ends_pending_and_keeps_people_here,
    p15_a_part_that_was_not_renewed_is_cleared_up_without_a_fence,
    p15_what_a_crash_left_half_done_is_found_by_the_owner,
    p15_a_node_that_has_just_come_declares_nobody_dead,
    p15_a_clock_of_redis_that_is_set_forward_kills_nobody,
    p13_a_step_is_bounded_and_two_owners_do_no_harm,
    p13_nodes_know_of_each_other,
    p15_who_comes_back_before_all_was_told_stays_among_what_is_due,
    p13_rubbish_among_what_is_due_stops_nobody,
    p15_a_goodbye_ends_the_pending_that_the_same_node_caused,
    p15_a_goodbye_just_after_a_rejoin_is_offline_and_never_pending,
    p15_what_a_node_cleared_up_and_could_not_say_is_said_by_another,
    p13_who_cannot_be_cleared_up_keeps_nobody_else_waiting,
    p13_who_is_elsewhere_too_is_not_noted_as_pending,
    p15_a_part_that_nothing_calls_due_is_found_by_whoever_asks,
    p15_a_part_that_nothing_calls_due_goes_when_another_node_writes,
);

/// Pending for long, so that nobody leaves while a test looks.
fn mortal() -> RegisterSettings {
    RegisterSettings { pending: Seconds(300), ..hasty() }
}

async fn members(rig: &Rig) -> Vec<String> {
    rig.ask(&["ZRANGE", "{p:nodes}:gone", "0", "-1"]).await
}

async fn due_count(rig: &Rig, node: &NodeName, id: u64) -> u64 {
    rig.ask(&["ZCARD", &rig.keys.due(shard_of(user(id)), node.as_str())]).await
}

async fn p15_people_of_a_killed_node_are_pending_then_gone_and_it_is_fenced(rig: &Rig) {
    // It renews no more: it is dead, or as good as that.
    let (a, b) = (rig.join_with("gw-a", hasty()).await, rig.join_with("gw-b", hasty()).await);
    let dead = a.node();
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    change(&a, put(7, &["phone"])).await;
    hear_record(&mut inbox).await;
    let pending = reap_until(&b, 7).await;
    assert_eq!((pending.from, pending.to, pending.left), (Status::Online, Status::Pending, false));
    assert!(pending.record.parts.is_empty() && pending.record.last_seen.is_some());
    assert_eq!(hear_record(&mut inbox).await.own_version, pending.record.own_version);
    assert_eq!(due_count(rig, &dead, 7).await, 0);
    // It wakes up, and may say nothing of whom it has lost.
    assert_eq!(publish(&a, put(7, &["phone"])).await, Published::Fenced);
    assert!(!a.renew("{}").await.unwrap().is_member);
    // What it writes of others is found and taken back.
    change(&a, put(8, &["phone"])).await;
    assert_eq!(reap_until(&b, 8).await.to, Status::Pending);
    let left = reap_until(&b, 7).await;
    assert_eq!((left.from, left.to, left.left), (Status::Pending, Status::Offline, true));
    assert_eq!(left.record.last_seen, pending.record.last_seen);
    assert_eq!(rig.public(7).await, [None, None, None]);
    a.rejoin().await.unwrap();
    assert!(a.node() != dead && a.node().name() == "gw-a");
    assert!(change(&a, put(7, &["phone"])).await.arrived);
    let counted = (a.counters().fenced.get(), a.counters().rejoins.get(), b.counters().reaped_pending.get());
    assert!(counted == (1, 1, 1) || counted == (1, 1, 2), "{counted:?}");
}

async fn p15_a_part_elsewhere_ends_pending_and_keeps_people_here(rig: &Rig) {
    let (a, b) = (rig.join_with("gw-a", mortal()).await, rig.join_with("gw-b", mortal()).await);
    change(&a, put(7, &["phone"])).await;
    change(&a, put(8, &["phone"])).await;
    change(&b, put(8, &["web"])).await;
    a.leave().await.unwrap();
    assert_eq!(reap_until(&b, 7).await.to, Status::Pending);
    let keys = rig.person(7);
    let left = rig.ttl_ms(&keys.presence).await;
    assert!((80_000..=90_000).contains(&left), "{left}");
    assert_eq!(rig.shown(7).await, (Some("pending".into()), None));
    let still = read(&b, 8).await.unwrap();
    assert_eq!((still.parts.len(), still.pending), (1, None), "no false offline, not even pending");
    assert_eq!(rig.shown(8).await, (Some("online".into()), Some("gw-b".into())));
    let back = change(&b, put(7, &["phone"])).await;
    assert_eq!((back.from, back.to, back.arrived), (Status::Pending, Status::Online, false));
    assert_eq!(back.record.pending, None);
    // What is left among the pending finds nothing to do.
    let pending = rig.keys.due_pending(shard_of(user(7)));
    let _: u64 = rig.ask(&["ZADD", &pending, "XX", "1", "7"]).await;
    assert!(b.reap(100).await.unwrap().is_empty());
    assert_eq!(rig.ask::<Option<f64>>(&["ZSCORE", &pending, "7"]).await, None);
    assert_eq!(read(&b, 7).await.unwrap().parts.len(), 1);
}

async fn p15_a_part_that_was_not_renewed_is_cleared_up_without_a_fence(rig: &Rig) {
    let a = rig.join("gw-a").await;
    let silent = Part { last_sign: UnixTime(now().0 - 100), gone_in: Seconds(90), ..part(&["phone"]) };
    change(&a, update(7, Change::Put(silent))).await;
    assert_eq!(rig.public(7).await, [None, None, None], "nobody is shown for longer than their time");
    change(&a, put(8, &["phone"])).await;
    // Its score is old, though its part is not: it was renewed, and the set was not told.
    let due = rig.keys.due(shard_of(user(8)), a.node().as_str());
    let _: u64 = rig.ask(&["ZADD", &due, "XX", "5", "8"]).await;
    let found = a.reap(100).await.unwrap();
    assert_eq!((found.len(), found[0].0, found[0].1.to), (1, user(7), Status::Pending));
    let score: f64 = rig.ask(&["ZSCORE", &due, "8"]).await;
    assert!(score > 1e12, "it is due when its part is: {score}");
    assert_eq!(change(&a, put(7, &["phone"])).await.to, Status::Online);
    assert_eq!(a.counters().reaped_late.get(), 1);
}

/// Calls the script of `publish` alone, as a node does that dies right after.
async fn drop_and_die(rig: &Rig, register: &Register, id: u64) {
    let mut call = scripts::PRESENCE_PUBLISH.call(&rig.person(id).all());
    call.arg(register.node().as_str()).arg("drop").arg(0).arg("").arg(0).arg("").arg("").arg(0);
    call.arg("=").arg("").arg(0).arg(0).arg(0).arg(1000).arg(100_000).arg(1).arg(0).arg("").arg(0).arg(0);
    let reply: Vec<redis::Value> = read_reply(rig.redis.query(&call).await).unwrap();
    assert_eq!(reply[0], redis::Value::BulkString(b"changed".to_vec()));
}

async fn p15_what_a_crash_left_half_done_is_found_by_the_owner(rig: &Rig) {
    let (a, b) = (rig.join_with("gw-a", mortal()).await, rig.join_with("gw-b", mortal()).await);
    let dead = a.node();
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    change(&a, put(7, &["phone"])).await;
    hear_record(&mut inbox).await;
    // It dropped somebody and died before it told anybody.
    drop_and_die(rig, &a, 7).await;
    // It noted that somebody is due and died before it wrote the record.
    let due = rig.keys.due(shard_of(user(9)), dead.as_str());
    let _: u64 = rig.ask(&["ZADD", &due, "1", "9"]).await;
    let waiting = async {
        while due_count(rig, &dead, 7).await + due_count(rig, &dead, 9).await > 0 {
            b.renew("{}").await.unwrap();
            assert_eq!(b.reap(100).await.unwrap(), []);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    let told = hear_record(&mut inbox).await;
    assert_eq!((told.user, told.parts.len()), (user(7), 0));
    assert_eq!(b.counters().retold.get(), 1);
    assert_eq!(read(&b, 9).await, None);
}

async fn p15_a_node_that_has_just_come_declares_nobody_dead(rig: &Rig) {
    let _a = rig.join_with("gw-a", mortal()).await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    let b = rig.join_with("gw-b", mortal()).await;
    let standing = b.renew("{}").await.unwrap();
    assert!(standing.was_alone && standing.is_member);
    assert_eq!(standing.nodes, [b.node()]);
    assert!(members(rig).await.is_empty(), "Redis may have been away for all");
    let waiting = async {
        while members(rig).await.is_empty() {
            b.renew("{}").await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

async fn p13_a_step_is_bounded_and_two_owners_do_no_harm(rig: &Rig) {
    let pending_soon = RegisterSettings { pending: Seconds(0), ..settings() };
    // The first does not hear of the second, and takes itself for the owner of everything.
    let first = rig.join_with("gw-a", pending_soon.clone()).await;
    let second = rig.join_with("gw-b", pending_soon).await;
    let nodes = [first.node(), second.node()];
    let of_second: Vec<u64> =
        (1..500).filter(|id| owner_of(shard_of(user(*id)), &nodes) == Some(&nodes[1])).take(60).collect();
    let coming: Vec<Update> = of_second.iter().map(|id| put(*id, &["phone"])).collect();
    assert!(second.publish(&coming).await.iter().all(Result::is_ok));
    let behind: Vec<Update> = of_second.iter().map(|id| update(*id, Change::Behind)).collect();
    assert!(second.publish(&behind).await.iter().all(Result::is_ok));
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

async fn p13_rubbish_among_what_is_due_stops_nobody(rig: &Rig) {
    let a = rig.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    let set = rig.keys.due(shard_of(user(7)), a.node().as_str());
    for member in ["", "0", "x", "99999999999999999999"] {
        let _: u64 = rig.ask(&["ZADD", &set, "-inf", member]).await;
    }
    let _: u64 = rig.ask(&["ZADD", &set, "1", "404"]).await;
    let _: String = rig.ask(&["SET", &rig.keys.due_pending(shard_of(user(7))), "x"]).await;
    assert!(a.reap(100).await.unwrap().is_empty());
    assert_eq!(a.counters().malformed.get(), 4);
    // Who may be pending cannot be noted there, so nobody is made pending without being found again.
    assert_eq!(rig.ask::<u64>(&["ZCARD", &set]).await, 2);
    let _: u64 = rig.ask(&["DEL", &rig.keys.due_pending(shard_of(user(7)))]).await;
    assert!(a.reap(100).await.unwrap().is_empty());
    assert_eq!(rig.ask::<Vec<String>>(&["ZRANGE", &set, "0", "-1"]).await, ["7"]);
}

async fn p15_who_comes_back_before_all_was_told_stays_among_what_is_due(rig: &Rig) {
    let a = rig.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    // Taking out what the first of them noted comes after the second has noted its own.
    let results = a.publish(&[drop_of(7), put(7, &["phone"])]).await;
    assert!(results.iter().all(|result| matches!(result, Ok(Published::Changed(_)))), "{results:?}");
    assert_eq!(due_count(rig, &a.node(), 7).await, 1);
    change(&a, drop_of(7)).await;
    assert_eq!(due_count(rig, &a.node(), 7).await, 0);
}

async fn p13_nodes_know_of_each_other(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
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
    assert_eq!(rig.ask::<u64>(&["HLEN", "{p:nodes}:info"]).await, 1);
    b.reap(10).await.unwrap();
    assert_eq!(b.counters().shards_owned.get(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_a_change_that_was_not_answered_is_reported_by_the_next_try() {
    let rig = Rig::single();
    let impatient =
        RedisSettings { response_timeout: Duration::from_millis(500), ..rig.redis.settings().clone() };
    let a = Register::join(Redis::new(impatient).unwrap(), "gw-a", settings()).await.unwrap();
    let b = rig.join("gw-b").await;
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    let Kind::Single(server) = &rig.kind else { panic!("one server") };
    // Redis knows the scripts by now, so what is sent while it sleeps is done when it wakes.
    change(&a, put(8, &["phone"])).await;
    server.freeze();
    let lost = a.publish(&[put(7, &["phone"])]).await;
    assert!(matches!(lost[0], Err(register::Trouble::Unanswered { .. })), "{lost:?}");
    server.thaw();
    let waiting = async {
        loop {
            match a.publish(&[put(7, &["phone"])]).await.remove(0) {
                Ok(Published::Changed(outcome)) => break outcome,
                Ok(other) => panic!("it was never reported: {other:?}"),
                Err(trouble) => assert!(trouble.is_retryable(), "{trouble}"),
            }
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert!(outcome.arrived && outcome.to == Status::Online);
    assert!(matches!(publish(&a, put(7, &["phone"])).await, Published::Unchanged { .. }), "once");
    loop {
        if let Heard::Record(record) = hear(&mut inbox).await {
            break assert_eq!(record.own_version, outcome.record.own_version);
        }
    }
}

/// As when a gateway stops: it gives up what it waits for, and says its last words.
#[tokio::test(flavor = "multi_thread")]
async fn p15_a_change_whose_caller_was_stopped_is_reported_by_the_next_try() {
    let rig = Rig::single();
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    change(&a, put(7, &["phone"])).await;
    let mut inbox = b.inbox();
    watch(&b, 7).await;
    let Kind::Single(server) = &rig.kind else { panic!("one server") };
    server.freeze();
    let going = [drop_of(7)];
    assert!(tokio::time::timeout(Duration::from_millis(200), a.publish(&going)).await.is_err());
    server.thaw();
    let outcome = change(&a, drop_of(7)).await;
    assert!(outcome.left && outcome.from == Status::Online, "{outcome:?}");
    assert_eq!(hear_record(&mut inbox).await.own_version, outcome.record.own_version);
    assert!(matches!(publish(&a, drop_of(7)).await, Published::Unchanged { .. }), "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_everything_comes_back_after_redis_was_started_again() {
    let mut rig = Rig::single();
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let mut inbox = b.inbox();
    change(&a, put(7, &["phone"])).await;
    let Kind::Single(server) = &mut rig.kind else { panic!("one server") };
    server.kill();
    assert!(a.publish(&[put(7, &["phone"])]).await[0].is_err());
    assert!(a.renew("{}").await.is_err() && a.counters().failures.get() >= 2);
    server.restart();
    let waiting = async {
        loop {
            let renewed = (a.renew("{}").await, b.renew("{}").await);
            if let (Ok(one), Ok(other)) = renewed {
                break assert!(one.is_member && other.is_member);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(hear(&mut inbox).await, Heard::Gap);
    watch(&b, 7).await;
    assert!(change(&a, put(7, &["phone"])).await.arrived);
    assert_eq!(hear_record(&mut inbox).await.parts.len(), 1);
}
