//! Users: entries of several nodes are merged, and written to the public keys (P3, P4, P16).

use std::time::Duration;

use domain::{Seconds, UnixTime};
use gateway::cluster::{EntryChange, EntryUpdate, GatewayMessage, InboxEvent, PublishOutcome, WatchReply};
use presence::remote::NodeEntry;
use presence::{AppState, Declaration, Declared, Status};
use testkit::eventually_async;

use crate::cluster::fixture::*;

on_both!(
    p3_the_public_keys_show_status_and_nodes_and_expire,
    p19_keys_of_a_silent_device_in_the_background_live_while_its_node_writes_them,
    p19_reaping_a_dead_node_restores_no_key,
    p19_a_user_that_leaves_one_node_and_stays_at_another_keeps_the_keys,
    p3_devices_at_two_nodes_are_merged_and_only_the_last_one_out_is_offline,
    p1_an_invisible_user_has_no_public_key_and_no_new_public_version,
    p3_a_refresh_moves_deadlines_and_notifies_no_node,
    p4_only_watching_nodes_are_notified,
    p4_watching_returns_the_record_or_that_it_is_unchanged,
    p3_a_declaration_ends_by_itself_and_is_believed_where_nothing_is_known,
    p16_a_thousand_users_are_one_batch,
    p15_a_redis_that_lost_everything_is_filled_by_a_refresh,
    versions_never_go_below_what_readers_have_seen,
    p1_a_declaration_that_redis_lost_is_published_again,
    p1_an_older_declaration_does_not_replace_a_newer_one,
    a_trimmed_inbox_reports_a_gap,
    an_inbox_forgets_what_was_read,
    malformed_values_count_as_absent,
    scripts_that_were_flushed_are_learnt_again,
);

async fn p3_the_public_keys_show_status_and_nodes_and_expire(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    let came = change(&a, put(7, &["phone"])).await;
    assert_eq!((came.from, came.to, came.arrived, came.left), (Status::Offline, Status::Online, true, false));
    let [presence, connection, heartbeat] = fixture.public(7).await;
    assert_eq!((presence.as_deref(), connection.as_deref()), (Some("online"), Some("gw-a")));
    let beat: u32 = heartbeat.unwrap().parse().unwrap();
    assert!(beat.abs_diff(now().0) <= 2, "{beat}");
    let keys = fixture.user_keys(7);
    for key in [&keys.presence, &keys.connection, &keys.heartbeat] {
        let left = fixture.ttl_ms(key).await;
        assert!((80_000..=90_000).contains(&left), "{key} {left}");
    }
    assert!(fixture.ttl_ms(&keys.record).await > 24 * 3600 * 1000);
    let left = came.record.entries[0].remaining.as_millis();
    assert!((80_000..=90_000).contains(&left), "{left}");
    // The entry of a device in the background is valid for half an hour (P8), its keys are not (P19).
    let record = change(&a, update(7, EntryChange::Put(in_background(now())))).await.record;
    assert!(record.entries[0].remaining.as_secs() > 1_790);
    for key in [&keys.presence, &keys.connection, &keys.heartbeat] {
        let left = fixture.ttl_ms(key).await;
        assert!((80_000..=90_000).contains(&left), "{key} {left}");
    }
    // Silence counts from the last activity on, whenever it is published.
    let old = NodeEntry { last_activity: UnixTime(now().0 - 60), ..part(&["phone"]) };
    change(&a, update(7, EntryChange::Put(old))).await;
    assert!((20_000..=30_000).contains(&fixture.ttl_ms(&keys.presence).await));
    let left = change(&a, drop_of(7)).await;
    assert_eq!((left.from, left.to, left.arrived, left.left), (Status::Online, Status::Offline, false, true));
    assert_eq!(fixture.public(7).await, [None, None, None]);
    assert!(left.record.last_seen.unwrap().0.abs_diff(now().0) <= 2);
    assert_eq!(publish(&a, drop_of(99)).await, PublishOutcome::Unknown);
}

/// The entry of a phone in the background, last active at that time.
fn in_background(last_activity: UnixTime) -> NodeEntry {
    let mut part = NodeEntry { last_activity, gone_in: Seconds(1800), ..part(&["phone"]) };
    part.devices[0].app = AppState::Background;
    part
}

/// Keys expire because no node writes the entry, not because the device is silent.
async fn p19_keys_of_a_silent_device_in_the_background_live_while_its_node_writes_them(fixture: &Fixture) {
    let a = fixture.join_with("gw-a", short_keys()).await;
    let silent = update(7, EntryChange::Put(in_background(UnixTime(now().0 - 600))));
    change(&a, silent.clone()).await;
    let presence = fixture.user_keys(7).presence;
    until_gone(fixture, &presence).await;
    // The same entry again: nothing changed, and the key is set again.
    assert!(matches!(publish(&a, silent).await, PublishOutcome::Unchanged { .. }));
    assert_eq!(fixture.shown(7).await.0.as_deref(), Some("online"));
    assert!(fixture.ttl_ms(&presence).await <= 500);
}

/// Both nodes are killed; reaping one finds the entry of the other, which is valid for half an hour.
async fn p19_reaping_a_dead_node_restores_no_key(fixture: &Fixture) {
    let (a, b) =
        (fixture.join_with("gw-a", short_keys()).await, fixture.join_with("gw-b", short_keys()).await);
    change(&a, update(7, EntryChange::Put(in_background(now())))).await;
    change(&b, update(7, EntryChange::Put(in_background(now())))).await;
    until_gone(fixture, &fixture.user_keys(7).presence).await;
    a.leave().await.unwrap();
    // The only node left reaps.
    let record = reap_until(&b, 7).await.record;
    assert_eq!(record.entries.len(), 1, "the other entry is left");
    assert_eq!(fixture.public(7).await, [None, None, None]);
    b.leave().await.unwrap();
    let c = fixture.join_with("gw-c", short_keys()).await;
    assert_eq!(reap_until(&c, 7).await.to, Status::Pending);
    assert_eq!(fixture.public(7).await, [None, None, None]);
}

/// A node that removes its entry leaves the keys to the other node, with their expiry.
async fn p19_a_user_that_leaves_one_node_and_stays_at_another_keeps_the_keys(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    change(&b, update(7, EntryChange::Put(in_background(now())))).await;
    let hide = EntryUpdate { declaration: declared(Declared::Invisible), ..put(7, &["web"]) };
    change(&a, hide).await;
    assert_eq!(fixture.public(7).await, [None, None, None]);
    let shown_again = EntryUpdate { declaration: Some(None), ..drop_of(7) };
    assert_eq!(change(&a, shown_again).await.to, Status::Online);
    assert_eq!(fixture.shown(7).await, (Some("online".into()), Some("gw-b".into())));
    let left = fixture.ttl_ms(&fixture.user_keys(7).presence).await;
    assert!((80_000..=90_000).contains(&left), "{left}");
}

fn short_keys() -> gateway::cluster::ClusterSettings {
    gateway::cluster::ClusterSettings { keys_ttl: Duration::from_millis(500), ..settings() }
}

async fn until_gone(fixture: &Fixture, key: &str) {
    eventually_async(&format!("{key} to expire"), PATIENCE, async || {
        (fixture.ask::<u64>(&["EXISTS", key]).await == 0).then_some(())
    })
    .await;
}

async fn p3_devices_at_two_nodes_are_merged_and_only_the_last_one_out_is_offline(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let mut idle = part(&["web"]);
    idle.devices[0].online = false;
    assert_eq!(change(&b, update(7, EntryChange::Put(idle))).await.to, Status::Away);
    let both = change(&a, put(7, &["phone", "tablet"])).await;
    assert_eq!((both.from, both.to, both.arrived), (Status::Away, Status::Online, false));
    let nodes: Vec<&str> = both.record.entries.iter().map(|part| part.node.name()).collect();
    assert_eq!(nodes, ["gw-a", "gw-b"]);
    assert_eq!(fixture.shown(7).await, (Some("online".into()), Some("gw-a,gw-b".into())));
    let one = change(&a, drop_of(7)).await;
    assert_eq!((one.to, one.left), (Status::Away, false), "the other is still there");
    assert_eq!(fixture.shown(7).await, (Some("away".into()), Some("gw-b".into())));
    assert!(change(&b, drop_of(7)).await.left);
    assert_eq!(fixture.shown(7).await, (None, None));
}

async fn p1_an_invisible_user_has_no_public_key_and_no_new_public_version(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    let busy = EntryUpdate { declaration: declared(Declared::Busy), ..put(7, &["phone"]) };
    let busy = change(&a, busy).await;
    assert_eq!((busy.to, fixture.shown(7).await.0.as_deref()), (Status::Busy, Some("busy")));
    let hide = EntryUpdate { declaration: declared(Declared::Invisible), ..put(7, &["phone"]) };
    let hidden = change(&a, hide).await;
    assert_eq!((hidden.to, hidden.left), (Status::Invisible, false));
    assert_eq!(hidden.record.public_version, busy.record.public_version + 1);
    assert!(hidden.record.hidden_since.is_some() && hidden.record.last_seen.is_some());
    assert_eq!(fixture.public(7).await, [None, None, None]);
    // Changes meanwhile are not public.
    let more = change(&a, put(7, &["phone", "web"])).await;
    assert_eq!(more.record.public_version, hidden.record.public_version);
    assert!(more.record.own_version > hidden.record.own_version);
    assert_eq!(fixture.public(7).await, [None, None, None]);
    // A hidden user whose node is behind is pending to no other user.
    let behind = change(&a, update(7, EntryChange::Abandon)).await;
    assert_eq!((behind.to, behind.left), (Status::Pending, false));
    assert_eq!(behind.record.public_version, hidden.record.public_version);
    assert_eq!(fixture.public(7).await, [None, None, None]);
    let back = EntryUpdate { declaration: Some(None), ..put(7, &["phone"]) };
    let back = change(&a, back).await;
    assert_eq!((back.to, back.record.hidden_since, back.record.pending), (Status::Online, None, None));
    assert_eq!(back.record.public_version, hidden.record.public_version + 1);
    assert_eq!(fixture.shown(7).await.0.as_deref(), Some("online"));
}

async fn p3_a_refresh_moves_deadlines_and_notifies_no_node(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let old = NodeEntry { last_activity: UnixTime(now().0 - 60), ..part(&["phone"]) };
    let came = change(&a, update(7, EntryChange::Put(old))).await;
    watch(&b, 7).await;
    let before = fixture.inbox_length(&b).await;
    let (public_version, own_version) = (came.record.public_version, came.record.own_version);
    assert_eq!(
        publish(&a, put(7, &["phone"])).await,
        PublishOutcome::Unchanged { public_version, own_version }
    );
    assert_eq!(fixture.inbox_length(&b).await, before);
    let left = fixture.ttl_ms(&fixture.user_keys(7).presence).await;
    assert!((80_000..=90_000).contains(&left), "{left}");
    assert_eq!((a.counters().changed.get(), a.counters().refreshed.get()), (1, 1));
}

async fn p4_only_watching_nodes_are_notified(fixture: &Fixture) {
    let (a, b, c) = (fixture.join("gw-a").await, fixture.join("gw-b").await, fixture.join("gw-c").await);
    let mut inbox = b.inbox();
    assert_eq!(watch(&b, 7).await, WatchReply::Unknown);
    // An expired watch is pruned, and gets no entry.
    let over = fixture.user_keys(7).watchers;
    let _: u64 = fixture.ask(&["ZADD", &over, "1", c.node().as_str()]).await;
    let came = change(&a, put(7, &["phone"])).await;
    let received = receive_record(&mut inbox).await;
    assert_eq!((received.own_version, received.entries.len()), (came.record.own_version, 1));
    assert_eq!(received.entries[0].entry, came.record.entries[0].entry);
    assert!(received.entries[0].remaining <= came.record.entries[0].remaining);
    assert_eq!(fixture.inbox_length(&c).await, 1, "its first entry");
    assert_eq!(fixture.ask::<u64>(&["ZCARD", &over]).await, 1);
    a.send(&b.node(), &[GatewayMessage::Typing { from: user(1), to: user(2), on: true }]).await.unwrap();
    assert_eq!(
        hear(&mut inbox).await,
        InboxEvent::Message(GatewayMessage::Typing { from: user(1), to: user(2), on: true })
    );
    let key = fixture.keys.inbox(b.node().as_str());
    let _: String = fixture.ask(&["XADD", &key, "*", "m", "9 message of a later version"]).await;
    assert!(change(&a, drop_of(7)).await.left);
    assert!(receive_record(&mut inbox).await.entries.is_empty());
    assert_eq!(b.counters().entries_unknown.get(), 1);
    // A node that left has no inbox, and none is created.
    let gone = c.node();
    c.leave().await.unwrap();
    a.send(&gone, &[GatewayMessage::Typing { from: user(1), to: user(2), on: true }]).await.unwrap();
    assert_eq!(a.counters().entries_undelivered.get(), 1);
    assert_eq!(fixture.inbox_length(&c).await, 0);
}

async fn p4_watching_returns_the_record_or_that_it_is_unchanged(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let came = change(&a, put(7, &["phone"])).await.record;
    let WatchReply::Record(record) = watch(&b, 7).await else { panic!("there is a record") };
    assert_eq!((record.own_version, &record.entries[0].entry), (came.own_version, &came.entries[0].entry));
    let again = b.watch(&[(user(7), record.own_version), (user(8), 5)]).await;
    let Ok(WatchReply::Same { remaining }) = &again[0] else { panic!("{again:?}") };
    assert_eq!((remaining.len(), &remaining[0].0), (1, &a.node()));
    assert!((80_000..=90_000).contains(&remaining[0].1.as_millis()), "{remaining:?}");
    assert_eq!(again[1], Ok(WatchReply::Unknown));
    // Each entry has its own validity.
    let c = fixture.join("gw-c").await;
    let old = NodeEntry { last_activity: UnixTime(now().0 - 60), ..part(&["web"]) };
    let both = change(&c, update(7, EntryChange::Put(old))).await.record;
    let Ok(WatchReply::Same { mut remaining }) = b.watch(&[(user(7), both.own_version)]).await.remove(0)
    else {
        panic!("nothing is new")
    };
    remaining.sort();
    let left: Vec<(&str, u64)> =
        remaining.iter().map(|(node, left)| (node.name(), left.as_secs() / 31)).collect();
    assert_eq!(left, [("gw-a", 2), ("gw-c", 0)]);
    let record = change(&c, drop_of(7)).await.record;
    let own = a.watch(&[(user(7), record.own_version)]).await.remove(0).unwrap();
    assert_eq!(own, WatchReply::Same { remaining: Vec::new() }, "the own entry is no change");
    let left = fixture.ttl_ms(&fixture.user_keys(7).watchers).await;
    assert!((290_000..=300_000).contains(&left), "{left}");
}

async fn p3_a_declaration_ends_by_itself_and_is_believed_where_nothing_is_known(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    let declared = Declaration { status: Declared::Busy, text: Some("in ☕ %s\n".into()), until: None };
    let local_declaration = EntryUpdate { local_declaration: Some(declared.clone()), ..put(7, &["phone"]) };
    let came = change(&a, local_declaration.clone()).await;
    assert_eq!((came.to, came.record.declaration), (Status::Busy, Some(declared)));
    let taken_back = EntryUpdate { declaration: Some(None), ..local_declaration.clone() };
    assert_eq!(change(&a, taken_back).await.to, Status::Online);
    // There is a record, so `local_declaration` is ignored.
    assert!(matches!(publish(&a, local_declaration).await, PublishOutcome::Unchanged { .. }));
    let over = Declaration { status: Declared::Away, text: None, until: Some(UnixTime(now().0 + 2)) };
    let over = EntryUpdate { declaration: Some(Some(over)), ..put(7, &["phone"]) };
    assert_eq!(change(&a, over).await.to, Status::Away);
    let ended = eventually_async("the declaration to end", PATIENCE, async || {
        match publish(&a, put(7, &["phone"])).await {
            PublishOutcome::Changed(outcome) => Some(outcome),
            _ => None,
        }
    })
    .await;
    assert_eq!((ended.to, ended.record.declaration), (Status::Online, None));
}

async fn p16_a_thousand_users_are_one_batch(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let all: Vec<EntryUpdate> = (1..=1500).map(|id| put(id, &["phone"])).collect();
    for _ in 0..2 {
        assert!(a.publish(&all).await.iter().all(Result::is_ok));
    }
    assert_eq!((a.counters().changed.get(), a.counters().refreshed.get()), (1500, 1500));
    let users: Vec<_> = (1..=1500).map(user).collect();
    let records = b.read(&users).await;
    assert!(records.iter().all(|record| record.as_ref().unwrap().as_ref().unwrap().entries.len() == 1));
    // Two batches: new users need a second step on a cluster; the refresh is one step.
    let steps = a.counters().pipeline_seconds.snapshot().count();
    assert!(steps <= 6, "{steps} pipelines");
}

async fn p15_a_redis_that_lost_everything_is_filled_by_a_refresh(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let mut inbox = b.inbox();
    let declared = Declaration { status: Declared::Busy, text: None, until: None };
    let all = EntryUpdate {
        local_declaration: Some(declared.clone()),
        version_floor: (41, 42),
        ..put(7, &["phone"])
    };
    let came = change(&a, all.clone()).await;
    fixture.lose_all().await;
    assert!(a.renew("{}").await.unwrap().is_member && b.renew("{}").await.unwrap().is_member);
    assert_eq!(hear(&mut inbox).await, InboxEvent::Gap);
    watch(&b, 7).await;
    let again = change(&a, all).await;
    assert_eq!((again.to, again.arrived), (Status::Busy, true));
    assert_eq!(again.record.own_version, came.record.own_version);
    assert_eq!(fixture.shown(7).await, (Some("busy".into()), Some("gw-a".into())));
    assert_eq!(receive_record(&mut inbox).await.declaration, Some(declared));
}

async fn versions_never_go_below_what_readers_have_seen(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    let seen = EntryUpdate { version_floor: (1_800_000_000_000, 1_800_000_000_007), ..put(7, &["phone"]) };
    let record = change(&a, seen).await.record;
    // Readers may have seen the same version with other content.
    assert_eq!((record.public_version, record.own_version), (1_800_000_000_001, 1_800_000_000_008));
    let record = change(&a, put(7, &["phone", "web"])).await.record;
    assert_eq!((record.public_version, record.own_version), (1_800_000_000_002, 1_800_000_000_009));
    // A failover lost writes that readers have seen: the next refresh raises the version.
    let floor = (1_800_000_000_050, 1_800_000_000_060);
    let refresh = EntryUpdate { version_floor: floor, ..put(7, &["phone", "web"]) };
    let expected = PublishOutcome::Unchanged { public_version: floor.0, own_version: floor.1 };
    assert_eq!(publish(&a, refresh).await, expected);
    assert_eq!(read(&a, 7).await.unwrap().own_version, floor.1);
    let absurd = EntryUpdate { version_floor: (u64::MAX, u64::MAX), ..put(7, &["phone"]) };
    assert_eq!(change(&a, absurd).await.record.own_version, 999_999_999_999_999);
}

async fn p1_a_declaration_that_redis_lost_is_published_again(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    let key = fixture.user_keys(7).record;
    change(&a, put(7, &["phone"])).await;
    let before: Vec<String> = fixture.ask(&["HGETALL", &key]).await;
    let hide = EntryUpdate { declaration: declared(Declared::Invisible), ..put(7, &["phone"]) };
    let hidden = change(&a, hide).await.record;
    // A failover to a server without the change.
    let _: u64 = fixture.ask(&["DEL", &key]).await;
    let mut words = vec!["HSET", &key];
    words.extend(before.iter().map(String::as_str));
    let _: u64 = fixture.ask(&words).await;
    let refresh = EntryUpdate {
        local_declaration: hidden.declaration.clone(),
        known_version: hidden.own_version,
        version_floor: (hidden.public_version, hidden.own_version),
        ..put(7, &["phone"])
    };
    let again = change(&a, refresh.clone()).await;
    assert_eq!((again.to, &again.record.declaration), (Status::Invisible, &hidden.declaration));
    assert!(again.record.own_version > hidden.own_version, "others take it in");
    assert_eq!(fixture.public(7).await, [None, None, None]);
    assert!(matches!(publish(&a, refresh).await, PublishOutcome::Unchanged { .. }));
}

async fn p1_an_older_declaration_does_not_replace_a_newer_one(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    change(&a, put(7, &["phone"])).await;
    let hide = EntryUpdate { declaration: declared(Declared::Invisible), ..put(7, &["web"]) };
    let hidden = change(&b, hide).await.record;
    let long_ago = std::time::Duration::from_secs(60);
    for old in [declared(Declared::Busy), Some(None)] {
        let old = EntryUpdate { declaration: old, declared_ago: long_ago, ..put(7, &["phone"]) };
        let refused = change(&a, old).await;
        assert_eq!((refused.to, &refused.record.declaration), (Status::Invisible, &hidden.declaration));
        assert!(refused.record.own_version > hidden.own_version, "the writer gets the current record");
    }
    assert_eq!(fixture.public(7).await, [None, None, None]);
    let newer = EntryUpdate { declaration: Some(None), ..put(7, &["phone"]) };
    assert_eq!(change(&a, newer).await.to, Status::Online);
}

async fn a_trimmed_inbox_reports_a_gap(fixture: &Fixture) {
    let b = fixture.join("gw-b").await;
    let key = fixture.keys.inbox(b.node().as_str());
    let a =
        fixture.join_with("gw-a", gateway::cluster::ClusterSettings { inbox_max: 10, ..settings() }).await;
    let message = GatewayMessage::Typing { from: user(1), to: user(2), on: true };
    // No reader, and whole nodes of a stream (a hundred entries) are trimmed.
    a.send(&b.node(), &vec![message.clone(); 500]).await.unwrap();
    assert!(fixture.ask::<u64>(&["XLEN", &key]).await < 500);
    let mut inbox = b.inbox();
    assert_eq!(hear(&mut inbox).await, InboxEvent::Gap);
    assert_eq!(hear(&mut inbox).await, InboxEvent::Message(message));
    assert_eq!(b.counters().gaps.get(), 1);
    // So does one after a rejoin.
    b.rejoin().await.unwrap();
    while hear(&mut inbox).await != InboxEvent::Gap {}
    a.send(&b.node(), &[GatewayMessage::Typing { from: user(9), to: user(2), on: true }]).await.unwrap();
    assert_eq!(
        hear(&mut inbox).await,
        InboxEvent::Message(GatewayMessage::Typing { from: user(9), to: user(2), on: true })
    );
}

async fn an_inbox_forgets_what_was_read(fixture: &Fixture) {
    let (a, b) = (fixture.join("gw-a").await, fixture.join("gw-b").await);
    let mut inbox = b.inbox();
    let message = |id| GatewayMessage::Typing { from: user(id), to: user(2), on: true };
    let messages: Vec<GatewayMessage> = (1..=2500).map(message).collect();
    a.send(&b.node(), &messages).await.unwrap();
    for expected in messages {
        assert_eq!(hear(&mut inbox).await, InboxEvent::Message(expected), "each once, in order");
    }
    assert_eq!(b.counters().gaps.get(), 0);
    let key = fixture.keys.inbox(b.node().as_str());
    eventually_async("the inbox to be trimmed", PATIENCE, async || {
        (fixture.ask::<u64>(&["XLEN", &key]).await <= 1200).then_some(())
    })
    .await;
}

async fn malformed_values_count_as_absent(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    let keys = fixture.user_keys(7);
    for (field, value) in [
        ("n:gw-x.1", "rubbish"),
        ("n:gw-y.1", "b1 99999999999999999999 1 1 - pf1a"),
        ("d", "\u{1}"),
        ("q", "nan"),
        ("o", "1e300"),
        ("x:gw-z.1", "inf"),
        ("what", "ever"),
    ] {
        let _: u64 = fixture.ask(&["HSET", &keys.record, field, value]).await;
    }
    let record = read(&a, 7).await.unwrap();
    assert_eq!((record.entries.len(), record.declaration, record.pending), (1, None, None));
    assert!(a.counters().malformed.get() >= 4);
    let mended = change(&a, put(7, &["web"])).await;
    assert_eq!((mended.to, mended.record.entries.len()), (Status::Online, 1));
    let fields: Vec<String> = fixture.ask(&["HKEYS", &keys.record]).await;
    assert!(!fields.contains(&"n:gw-x.1".to_owned()) && !fields.contains(&"n:gw-y.1".to_owned()));
    // Another type: an error, without effect on other users.
    let _: u64 = fixture.ask(&["DEL", &keys.record]).await;
    let _: String = fixture.ask(&["SET", &keys.record, "x"]).await;
    let results = a.publish(&[put(7, &["phone"]), put(8, &["phone"])]).await;
    assert!(results[0].is_err() && results[1].is_ok(), "{results:?}");
}

async fn scripts_that_were_flushed_are_learnt_again(fixture: &Fixture) {
    let a = fixture.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    match &fixture.kind {
        Kind::Single(server) => drop(server.cli(&["SCRIPT", "FLUSH"])),
        Kind::Cluster(cluster) => {
            (0..3).for_each(|node| drop(cluster.node(node).cli(&["SCRIPT", "FLUSH"])));
        }
    }
    assert!(change(&a, drop_of(7)).await.left);
    let shard = gateway::cluster::shards::shard_of(user(7));
    let due = fixture.keys.due(shard, a.node().as_str());
    assert_eq!(fixture.ask::<u64>(&["ZCARD", &due]).await, 0, "an absent user has no deadline");
}
