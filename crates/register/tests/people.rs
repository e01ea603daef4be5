//! People: parts of several nodes add up, and the public keys say so (P3, P4, P16).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use domain::{Seconds, UnixTime};
use presence::elsewhere::Part;
use presence::{AppState, Declaration, Declared, Status};
use register::{Change, Heard, Message, Published, Update, Watched};
use support::*;

on_both!(
    p3_the_public_keys_say_who_is_where_and_expire,
    p3_devices_at_two_nodes_add_up_and_only_the_last_one_out_is_offline,
    p1_who_hides_has_no_public_key_and_no_new_public_version,
    p3_a_refresh_moves_deadlines_and_tells_nobody,
    p4_only_who_is_interested_is_told,
    p4_watching_gives_what_is_known_and_says_when_nothing_is_new,
    p3_a_declaration_ends_by_itself_and_is_believed_where_nothing_is_known,
    p16_a_thousand_people_are_one_batch,
    p15_a_redis_that_lost_everything_is_filled_by_a_refresh,
    versions_never_go_below_what_readers_have_seen,
    p1_a_word_that_redis_lost_is_said_again,
    p1_an_older_word_does_not_replace_a_newer_one,
    an_inbox_that_was_cut_off_says_so,
    an_inbox_forgets_what_was_read,
    malformed_values_count_as_absent,
    scripts_that_were_flushed_are_learnt_again,
);

async fn p3_the_public_keys_say_who_is_where_and_expire(rig: &Rig) {
    let a = rig.join("gw-a").await;
    let came = change(&a, put(7, &["phone"])).await;
    assert_eq!((came.from, came.to, came.arrived, came.left), (Status::Offline, Status::Online, true, false));
    let [presence, connection, heartbeat] = rig.public(7).await;
    assert_eq!((presence.as_deref(), connection.as_deref()), (Some("online"), Some("gw-a")));
    let beat: u32 = heartbeat.unwrap().parse().unwrap();
    assert!(beat.abs_diff(now().0) <= 2, "{beat}");
    let keys = rig.person(7);
    for key in [&keys.presence, &keys.connection, &keys.heartbeat] {
        let left = rig.ttl_ms(key).await;
        assert!((80_000..=90_000).contains(&left), "{key} {left}");
    }
    assert!(rig.ttl_ms(&keys.record).await > 24 * 3600 * 1000);
    let left = came.record.parts[0].remaining.as_millis();
    assert!((80_000..=90_000).contains(&left), "{left}");
    // A device in the background is patient (P8).
    let mut patient = part(&["phone"]);
    patient.devices[0].app = AppState::Background;
    patient.gone_in = Seconds(1800);
    change(&a, update(7, Change::Put(patient))).await;
    assert!((1_790_000..=1_800_000).contains(&rig.ttl_ms(&keys.presence).await));
    // Silence counts from the last sign of life on, whenever it is published.
    let old = Part { last_sign: UnixTime(now().0 - 60), ..part(&["phone"]) };
    change(&a, update(7, Change::Put(old))).await;
    assert!((20_000..=30_000).contains(&rig.ttl_ms(&keys.presence).await));
    let left = change(&a, drop_of(7)).await;
    assert_eq!((left.from, left.to, left.arrived, left.left), (Status::Online, Status::Offline, false, true));
    assert_eq!(rig.public(7).await, [None, None, None]);
    assert!(left.record.last_seen.unwrap().0.abs_diff(now().0) <= 2);
    assert_eq!(publish(&a, drop_of(99)).await, Published::Unknown);
}

async fn p3_devices_at_two_nodes_add_up_and_only_the_last_one_out_is_offline(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let mut idle = part(&["web"]);
    idle.devices[0].online = false;
    assert_eq!(change(&b, update(7, Change::Put(idle))).await.to, Status::Away);
    let both = change(&a, put(7, &["phone", "tablet"])).await;
    assert_eq!((both.from, both.to, both.arrived), (Status::Away, Status::Online, false));
    let nodes: Vec<&str> = both.record.parts.iter().map(|part| part.node.name()).collect();
    assert_eq!(nodes, ["gw-a", "gw-b"]);
    assert_eq!(rig.shown(7).await, (Some("online".into()), Some("gw-a,gw-b".into())));
    let one = change(&a, drop_of(7)).await;
    assert_eq!((one.to, one.left), (Status::Away, false), "the other is still there");
    assert_eq!(rig.shown(7).await, (Some("away".into()), Some("gw-b".into())));
    assert!(change(&b, drop_of(7)).await.left);
    assert_eq!(rig.shown(7).await, (None, None));
}

async fn p1_who_hides_has_no_public_key_and_no_new_public_version(rig: &Rig) {
    let a = rig.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    let busy = Update { declaration: declared(Declared::Busy), ..put(7, &["phone"]) };
    let busy = change(&a, busy).await;
    assert_eq!((busy.to, rig.shown(7).await.0.as_deref()), (Status::Busy, Some("busy")));
    let hide = Update { declaration: declared(Declared::Invisible), ..put(7, &["phone"]) };
    let hidden = change(&a, hide).await;
    assert_eq!((hidden.to, hidden.left), (Status::Invisible, false));
    assert_eq!(hidden.record.public_version, busy.record.public_version + 1);
    assert!(hidden.record.hidden_since.is_some() && hidden.record.last_seen.is_some());
    assert_eq!(rig.public(7).await, [None, None, None]);
    // What happens meanwhile is nobody's business.
    let more = change(&a, put(7, &["phone", "web"])).await;
    assert_eq!(more.record.public_version, hidden.record.public_version);
    assert!(more.record.own_version > hidden.record.own_version);
    assert_eq!(rig.public(7).await, [None, None, None]);
    // A hidden person whose node fell behind is pending to nobody else.
    let behind = change(&a, update(7, Change::Behind)).await;
    assert_eq!((behind.to, behind.left), (Status::Pending, false));
    assert_eq!(behind.record.public_version, hidden.record.public_version);
    assert_eq!(rig.public(7).await, [None, None, None]);
    let back = Update { declaration: Some(None), ..put(7, &["phone"]) };
    let back = change(&a, back).await;
    assert_eq!((back.to, back.record.hidden_since, back.record.pending), (Status::Online, None, None));
    assert_eq!(back.record.public_version, hidden.record.public_version + 1);
    assert_eq!(rig.shown(7).await.0.as_deref(), Some("online"));
}

async fn p3_a_refresh_moves_deadlines_and_tells_nobody(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let old = Part { last_sign: UnixTime(now().0 - 60), ..part(&["phone"]) };
    let came = change(&a, update(7, Change::Put(old))).await;
    watch(&b, 7).await;
    let before = rig.inbox_length(&b).await;
    let (public_version, own_version) = (came.record.public_version, came.record.own_version);
    assert_eq!(publish(&a, put(7, &["phone"])).await, Published::Unchanged { public_version, own_version });
    assert_eq!(rig.inbox_length(&b).await, before);
    let left = rig.ttl_ms(&rig.person(7).presence).await;
    assert!((80_000..=90_000).contains(&left), "{left}");
    assert_eq!((a.counters().changed.get(), a.counters().refreshed.get()), (1, 1));
}

async fn p4_only_who_is_interested_is_told(rig: &Rig) {
    let (a, b, c) = (rig.join("gw-a").await, rig.join("gw-b").await, rig.join("gw-c").await);
    let mut inbox = b.inbox();
    assert_eq!(watch(&b, 7).await, Watched::Unknown);
    // Interest that is over is pruned, and costs no entry.
    let over = rig.person(7).watchers;
    let _: u64 = rig.ask(&["ZADD", &over, "1", c.node().as_str()]).await;
    let came = change(&a, put(7, &["phone"])).await;
    let heard = hear_record(&mut inbox).await;
    assert_eq!((heard.own_version, heard.parts.len()), (came.record.own_version, 1));
    assert_eq!(heard.parts[0].part, came.record.parts[0].part);
    assert!(heard.parts[0].remaining <= came.record.parts[0].remaining);
    assert_eq!(rig.inbox_length(&c).await, 1, "the entry it began with");
    assert_eq!(rig.ask::<u64>(&["ZCARD", &over]).await, 1);
    a.send(&b.node(), &[Message::Typing { from: user(1), to: user(2), on: true }]).await.unwrap();
    assert_eq!(
        hear(&mut inbox).await,
        Heard::Message(Message::Typing { from: user(1), to: user(2), on: true })
    );
    let key = rig.keys.inbox(b.node().as_str());
    let _: String = rig.ask(&["XADD", &key, "*", "m", "9 news from tomorrow"]).await;
    assert!(change(&a, drop_of(7)).await.left);
    assert!(hear_record(&mut inbox).await.parts.is_empty());
    assert_eq!(b.counters().entries_unknown.get(), 1);
    // Who left has no inbox, and it is not made again.
    let gone = c.node();
    c.leave().await.unwrap();
    a.send(&gone, &[Message::Typing { from: user(1), to: user(2), on: true }]).await.unwrap();
    assert_eq!(a.counters().entries_undelivered.get(), 1);
    assert_eq!(rig.inbox_length(&c).await, 0);
}

async fn p4_watching_gives_what_is_known_and_says_when_nothing_is_new(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let came = change(&a, put(7, &["phone"])).await.record;
    let Watched::Record(record) = watch(&b, 7).await else { panic!("there is a record") };
    assert_eq!((record.own_version, &record.parts[0].part), (came.own_version, &came.parts[0].part));
    let again = b.watch(&[(user(7), record.own_version), (user(8), 5)]).await;
    let Ok(Watched::Same { remaining }) = &again[0] else { panic!("{again:?}") };
    assert_eq!((remaining.len(), &remaining[0].0), (1, &a.node()));
    assert!((80_000..=90_000).contains(&remaining[0].1.as_millis()), "{remaining:?}");
    assert_eq!(again[1], Ok(Watched::Unknown));
    // Each part has its own time: one that is nearly over does not shorten that of another.
    let c = rig.join("gw-c").await;
    let old = Part { last_sign: UnixTime(now().0 - 60), ..part(&["web"]) };
    let both = change(&c, update(7, Change::Put(old))).await.record;
    let Ok(Watched::Same { mut remaining }) = b.watch(&[(user(7), both.own_version)]).await.remove(0) else {
        panic!("nothing is new")
    };
    remaining.sort();
    let left: Vec<(&str, u64)> =
        remaining.iter().map(|(node, left)| (node.name(), left.as_secs() / 31)).collect();
    assert_eq!(left, [("gw-a", 2), ("gw-c", 0)]);
    let record = change(&c, drop_of(7)).await.record;
    let own = a.watch(&[(user(7), record.own_version)]).await.remove(0).unwrap();
    assert_eq!(own, Watched::Same { remaining: Vec::new() }, "the own part is no news");
    let left = rig.ttl_ms(&rig.person(7).watchers).await;
    assert!((290_000..=300_000).contains(&left), "{left}");
}

async fn p3_a_declaration_ends_by_itself_and_is_believed_where_nothing_is_known(rig: &Rig) {
    let a = rig.join("gw-a").await;
    let said = Declaration { status: Declared::Busy, text: Some("in ☕ %s\n".into()), until: None };
    let believed = Update { believed: Some(said.clone()), ..put(7, &["phone"]) };
    let came = change(&a, believed.clone()).await;
    assert_eq!((came.to, came.record.declaration), (Status::Busy, Some(said)));
    let taken_back = Update { declaration: Some(None), ..believed.clone() };
    assert_eq!(change(&a, taken_back).await.to, Status::Online);
    // There is a record, so what is believed does not count.
    assert!(matches!(publish(&a, believed).await, Published::Unchanged { .. }));
    let over = Declaration { status: Declared::Away, text: None, until: Some(UnixTime(now().0 + 2)) };
    let over = Update { declaration: Some(Some(over)), ..put(7, &["phone"]) };
    assert_eq!(change(&a, over).await.to, Status::Away);
    let waiting = async {
        loop {
            if let Published::Changed(outcome) = publish(&a, put(7, &["phone"])).await {
                break outcome;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!((ended.to, ended.record.declaration), (Status::Online, None));
}

async fn p16_a_thousand_people_are_one_batch(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let everybody: Vec<Update> = (1..=1500).map(|id| put(id, &["phone"])).collect();
    for _ in 0..2 {
        assert!(a.publish(&everybody).await.iter().all(Result::is_ok));
    }
    assert_eq!((a.counters().changed.get(), a.counters().refreshed.get()), (1500, 1500));
    let users: Vec<_> = (1..=1500).map(user).collect();
    let records = b.read(&users).await;
    assert!(records.iter().all(|record| record.as_ref().unwrap().as_ref().unwrap().parts.len() == 1));
    // Two batches: what is new, a second step on a cluster; the refresh, one step.
    let steps = a.counters().pipeline_seconds.snapshot().count();
    assert!(steps <= 6, "{steps} pipelines");
}

async fn p15_a_redis_that_lost_everything_is_filled_by_a_refresh(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let mut inbox = b.inbox();
    let said = Declaration { status: Declared::Busy, text: None, until: None };
    let all = Update { believed: Some(said.clone()), floor: (41, 42), ..put(7, &["phone"]) };
    let came = change(&a, all.clone()).await;
    rig.lose_all().await;
    assert!(a.renew("{}").await.unwrap().is_member && b.renew("{}").await.unwrap().is_member);
    assert_eq!(hear(&mut inbox).await, Heard::Gap);
    watch(&b, 7).await;
    let again = change(&a, all).await;
    assert_eq!((again.to, again.arrived), (Status::Busy, true));
    assert_eq!(again.record.own_version, came.record.own_version);
    assert_eq!(rig.shown(7).await, (Some("busy".into()), Some("gw-a".into())));
    assert_eq!(hear_record(&mut inbox).await.declaration, Some(said));
}

async fn versions_never_go_below_what_readers_have_seen(rig: &Rig) {
    let a = rig.join("gw-a").await;
    let seen = Update { floor: (1_800_000_000_000, 1_800_000_000_007), ..put(7, &["phone"]) };
    let record = change(&a, seen).await.record;
    // Whoever has seen the same number has seen something else.
    assert_eq!((record.public_version, record.own_version), (1_800_000_000_001, 1_800_000_000_008));
    let record = change(&a, put(7, &["phone", "web"])).await.record;
    assert_eq!((record.public_version, record.own_version), (1_800_000_000_002, 1_800_000_000_009));
    // A failover lost writes that readers have seen: the next refresh makes up for them.
    let floor = (1_800_000_000_050, 1_800_000_000_060);
    let refresh = Update { floor, ..put(7, &["phone", "web"]) };
    let expected = Published::Unchanged { public_version: floor.0, own_version: floor.1 };
    assert_eq!(publish(&a, refresh).await, expected);
    assert_eq!(read(&a, 7).await.unwrap().own_version, floor.1);
    let absurd = Update { floor: (u64::MAX, u64::MAX), ..put(7, &["phone"]) };
    assert_eq!(change(&a, absurd).await.record.own_version, 999_999_999_999_999);
}

async fn p1_a_word_that_redis_lost_is_said_again(rig: &Rig) {
    let a = rig.join("gw-a").await;
    let key = rig.person(7).record;
    change(&a, put(7, &["phone"])).await;
    let before: Vec<String> = rig.ask(&["HGETALL", &key]).await;
    let hide = Update { declaration: declared(Declared::Invisible), ..put(7, &["phone"]) };
    let hidden = change(&a, hide).await.record;
    // A failover to a server that had not heard of it.
    let _: u64 = rig.ask(&["DEL", &key]).await;
    let mut words = vec!["HSET", &key];
    words.extend(before.iter().map(String::as_str));
    let _: u64 = rig.ask(&words).await;
    let refresh = Update {
        believed: hidden.declaration.clone(),
        known: hidden.own_version,
        floor: (hidden.public_version, hidden.own_version),
        ..put(7, &["phone"])
    };
    let again = change(&a, refresh.clone()).await;
    assert_eq!((again.to, &again.record.declaration), (Status::Invisible, &hidden.declaration));
    assert!(again.record.own_version > hidden.own_version, "others take it in");
    assert_eq!(rig.public(7).await, [None, None, None]);
    assert!(matches!(publish(&a, refresh).await, Published::Unchanged { .. }));
}

async fn p1_an_older_word_does_not_replace_a_newer_one(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    change(&a, put(7, &["phone"])).await;
    let hide = Update { declaration: declared(Declared::Invisible), ..put(7, &["web"]) };
    let hidden = change(&b, hide).await.record;
    let long_ago = std::time::Duration::from_secs(60);
    for old in [declared(Declared::Busy), Some(None)] {
        let old = Update { declaration: old, declared_ago: long_ago, ..put(7, &["phone"]) };
        let refused = change(&a, old).await;
        assert_eq!((refused.to, &refused.record.declaration), (Status::Invisible, &hidden.declaration));
        assert!(refused.record.own_version > hidden.own_version, "who said it learns what counts");
    }
    assert_eq!(rig.public(7).await, [None, None, None]);
    let newer = Update { declaration: Some(None), ..put(7, &["phone"]) };
    assert_eq!(change(&a, newer).await.to, Status::Online);
}

async fn an_inbox_that_was_cut_off_says_so(rig: &Rig) {
    let b = rig.join("gw-b").await;
    let key = rig.keys.inbox(b.node().as_str());
    let a = rig.join_with("gw-a", register::RegisterSettings { inbox_max: 10, ..settings() }).await;
    let message = Message::Typing { from: user(1), to: user(2), on: true };
    // Nobody reads, and whole nodes of a stream (a hundred entries) are cut off.
    a.send(&b.node(), &vec![message.clone(); 500]).await.unwrap();
    assert!(rig.ask::<u64>(&["XLEN", &key]).await < 500);
    let mut inbox = b.inbox();
    assert_eq!(hear(&mut inbox).await, Heard::Gap);
    assert_eq!(hear(&mut inbox).await, Heard::Message(message));
    assert_eq!(b.counters().gaps.get(), 1);
    // One that follows rejoining says so too.
    b.rejoin().await.unwrap();
    while hear(&mut inbox).await != Heard::Gap {}
    a.send(&b.node(), &[Message::Typing { from: user(9), to: user(2), on: true }]).await.unwrap();
    assert_eq!(
        hear(&mut inbox).await,
        Heard::Message(Message::Typing { from: user(9), to: user(2), on: true })
    );
}

async fn an_inbox_forgets_what_was_read(rig: &Rig) {
    let (a, b) = (rig.join("gw-a").await, rig.join("gw-b").await);
    let mut inbox = b.inbox();
    let message = |id| Message::Typing { from: user(id), to: user(2), on: true };
    let messages: Vec<Message> = (1..=2500).map(message).collect();
    a.send(&b.node(), &messages).await.unwrap();
    for expected in messages {
        assert_eq!(hear(&mut inbox).await, Heard::Message(expected), "each once, in order");
    }
    assert_eq!(b.counters().gaps.get(), 0);
    let key = rig.keys.inbox(b.node().as_str());
    let waiting = async {
        while rig.ask::<u64>(&["XLEN", &key]).await > 1200 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

async fn malformed_values_count_as_absent(rig: &Rig) {
    let a = rig.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    let keys = rig.person(7);
    for (field, value) in [
        ("n:gw-x.1", "rubbish"),
        ("n:gw-y.1", "b1 99999999999999999999 1 1 - pf1a"),
        ("d", "\u{1}"),
        ("q", "nan"),
        ("o", "1e300"),
        ("x:gw-z.1", "inf"),
        ("what", "ever"),
    ] {
        let _: u64 = rig.ask(&["HSET", &keys.record, field, value]).await;
    }
    let record = read(&a, 7).await.unwrap();
    assert_eq!((record.parts.len(), record.declaration, record.pending), (1, None, None));
    assert!(a.counters().malformed.get() >= 4);
    let mended = change(&a, put(7, &["web"])).await;
    assert_eq!((mended.to, mended.record.parts.len()), (Status::Online, 1));
    let fields: Vec<String> = rig.ask(&["HKEYS", &keys.record]).await;
    assert!(!fields.contains(&"n:gw-x.1".to_owned()) && !fields.contains(&"n:gw-y.1".to_owned()));
    // Something else altogether: an error that says so, and nobody else suffers.
    let _: u64 = rig.ask(&["DEL", &keys.record]).await;
    let _: String = rig.ask(&["SET", &keys.record, "x"]).await;
    let results = a.publish(&[put(7, &["phone"]), put(8, &["phone"])]).await;
    assert!(results[0].is_err() && results[1].is_ok(), "{results:?}");
}

async fn scripts_that_were_flushed_are_learnt_again(rig: &Rig) {
    let a = rig.join("gw-a").await;
    change(&a, put(7, &["phone"])).await;
    match &rig.kind {
        Kind::Single(server) => drop(server.cli(&["SCRIPT", "FLUSH"])),
        Kind::Cluster(cluster) => {
            (0..3).for_each(|node| drop(cluster.node(node).cli(&["SCRIPT", "FLUSH"])));
        }
    }
    assert!(change(&a, drop_of(7)).await.left);
    let shard = register::shards::shard_of(user(7));
    let due = rig.keys.due(shard, a.node().as_str());
    assert_eq!(rig.ask::<u64>(&["ZCARD", &due]).await, 0, "who is not here is not due");
}
