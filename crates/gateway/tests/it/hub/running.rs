//! Restarts, storms, heartbeats over HTTP, the history and the sample.

use std::sync::Arc;
use std::time::Duration;

use friends::PresenceEventKind;
use presence::{AppState, Declared, DeviceId, Status};
use serde_json::json;

use super::fixture::{Client, Fixture, START, hello, until, user};
use gateway::hub::{ConnectRefusal, HubSettings};
use gateway::torrent_counts::NoTorrentCounts;

#[tokio::test]
async fn p11_after_a_restart_online_users_are_pending_and_return_without_having_left() {
    let before = Fixture::new().await;
    before.befriend(&[(1, 2), (1, 3), (1, 4)]).await;
    for number in 1..=3 {
        before.connect(number, "a").await;
    }
    let hidden = before.connect(4, "a").await;
    hidden.set_status("invisible").await;
    before.pass(10);
    before.hub.stop().await;

    let fixture = before.again().await;
    let mut one = fixture.connect(1, "a").await;
    assert_eq!(
        (one.sees(1).as_str(), one.sees(2).as_str(), one.sees(3).as_str()),
        ("online", "pending", "pending")
    );
    assert_eq!(one.sees(4), "offline", "who hid is still hidden");
    one.received.clear();
    let mut back = fixture.connect(2, "a").await;
    assert_eq!((one.sees(2).as_str(), back.sees(1).as_str()), ("online", "online"));
    assert_eq!(one.received.len(), 1, "nothing in between");
    for _ in 0..13 {
        fixture.hub.record_activity(one.conn);
        fixture.pass(23);
    }
    assert_eq!(one.sees(3), "pending");
    fixture.pass(2);
    assert_eq!((one.sees(3).as_str(), &one.shown(3)["last_seen"]), ("offline", &json!(START.0)));
}

/// A process that replaces another begins while that one still serves all users: the state that the other writes at
/// its end applies to users that have not moved yet, and their friends receive it.
#[tokio::test]
async fn p11_what_another_process_writes_at_its_end_is_read_and_sent() {
    let before = Fixture::new().await;
    before.befriend(&[(1, 2), (1, 3), (1, 4)]).await;
    before.hub.flush_presence().await;
    before.pass(10);
    let fixture = before.again().await;
    let two = before.connect(2, "a").await;
    two.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    before.connect(3, "a").await;
    before.connect(4, "a").await;
    before.pass(1);
    before.hub.flush_presence().await;
    // Both come over before the other has ended, and one leaves again; the last that it writes is older.
    let mut one = fixture.connect(1, "a").await;
    let mut three = fixture.connect(3, "a").await;
    fixture.connect(4, "a").await.close();
    assert_eq!((one.sees(2).as_str(), one.sees(3).as_str()), ("offline", "online"));
    before.hub.stop().await;

    fixture.hub.catch_up().await.unwrap();
    assert_eq!((one.sees(2).as_str(), one.sees(3).as_str()), ("pending", "online"));
    assert_eq!((one.sees(4).as_str(), three.sees(3).as_str()), ("offline", "online"));
    fixture.connect(2, "a").await;
    assert_eq!((one.sees(2).as_str(), one.shown(2)["text"].as_str()), ("busy", Some("deep work")));
}

#[tokio::test]
async fn p11_a_crash_leaves_the_same() {
    let before = Fixture::new().await;
    before.befriend(&[(1, 2)]).await;
    let busy = before.connect(2, "a").await;
    busy.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    let friend_store = before.elsewhere().await;
    let mut is_written = false;
    for _ in 0..500 {
        let here = friend_store.stored_online(None, 10).await.unwrap();
        is_written = here.iter().any(|remembered| remembered.declaration.is_some());
        if is_written {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_written);
    // The first hub is not stopped: nothing more is written, as if it had been killed.
    let fixture = before.again().await;
    let mut one = fixture.connect(1, "a").await;
    assert_eq!(one.sees(2), "pending");
    let mut back = fixture.connect(2, "a").await;
    assert_eq!((one.sees(2).as_str(), one.shown(2)["text"].as_str()), ("busy", Some("deep work")));
    assert_eq!(back.sees(2), "busy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p13_a_storm_of_reconnects_costs_few_queries_and_friends_get_net_changes() {
    const USERS: u64 = 500;
    let fixture = Arc::new(Fixture::new().await);
    let pairs: Vec<(u64, u64)> = (2..=USERS).map(|number| (1, number)).collect();
    fixture.befriend(&pairs).await;
    let mut one = fixture.connect(1, "a").await;
    let connect_all = async || {
        let tasks: Vec<_> = (2..=USERS)
            .map(|number| {
                let fixture = fixture.clone();
                tokio::spawn(async move { fixture.connect(number, "a").await })
            })
            .collect();
        let mut clients = Vec::new();
        for task in tasks {
            clients.push(task.await.unwrap());
        }
        clients
    };
    let clients = connect_all().await;
    one.read();
    one.received.clear();
    let loads = fixture.counters.hub.loads.get();
    for client in clients {
        client.drop_connection();
    }
    let clients = connect_all().await;
    let queries = fixture.counters.hub.loads.get() - loads;
    assert!(queries <= USERS / 4, "{queries} queries for {USERS} users");
    one.read();
    let shown: usize = one.received.iter().map(|message| message["users"].as_array().unwrap().len()).sum();
    assert_eq!(shown, USERS as usize - 1, "one change per user, however often they reconnected");
    assert!(one.users.values().all(|shown| shown["status"] == "online"));
    for client in clients {
        client.close();
    }
    one.close();
    assert_eq!(fixture.kept(), 0);
}

#[tokio::test]
async fn p8_heartbeats_over_http_keep_a_user_online_without_a_connection() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let mut one = fixture.connect(1, "a").await;
    let background = presence::Hello { app: AppState::Background, ..hello("phone") };
    fixture.hub.http_heartbeat(user(2), background.clone()).await.unwrap();
    assert_eq!(one.sees(2), "online");
    for _ in 0..12 {
        fixture.hub.record_activity(one.conn);
        fixture.pass(25);
    }
    fixture.pass(1);
    assert_eq!(one.sees(2), "away");
    fixture.hub.http_heartbeat(user(2), background).await.unwrap();
    assert_eq!(one.sees(2), "online");
    assert_eq!(fixture.hub.users.devices(user(2)).len(), 1);
    fixture.hub.http_goodbye(user(2), DeviceId::new("phone").unwrap());
    assert_eq!(one.sees(2), "offline");
    assert_eq!(fixture.counters.hub.http_heartbeats.get(), 2);
}

#[tokio::test]
async fn the_history_is_kept_in_order() {
    let fixture = Fixture::new().await;
    let one = fixture.connect(1, "a").await;
    one.set_status("busy").await;
    one.close();
    fixture.hub.stop().await;
    let history = fixture.hub.admin.history(user(1), None, 10).await.unwrap();
    let kinds: Vec<PresenceEventKind> = history.iter().rev().map(|one| one.event.kind).collect();
    let transition = |from, to| PresenceEventKind::Transition { from, to };
    let mut expected = vec![
        PresenceEventKind::Arrived,
        transition(Status::Offline, Status::Online),
        transition(Status::Online, Status::Busy),
        transition(Status::Busy, Status::Offline),
        PresenceEventKind::Left,
    ];
    // Coming and the first status are one moment, as are going and the last.
    let place = |kind: &PresenceEventKind| kinds.iter().position(|found| found == kind);
    assert!(
        place(&PresenceEventKind::Arrived) < place(&expected[2])
            && place(&expected[2]) < place(&PresenceEventKind::Left)
    );
    let key = |kind: &PresenceEventKind| format!("{kind:?}");
    let mut found = kinds.clone();
    found.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(found, expected);
    let whys: Vec<_> = history.iter().map(|one| (one.event.cause, &one.event.device)).collect();
    let device = presence::DeviceId::new("a");
    assert!(whys.iter().all(|(cause, by)| cause.is_some() && **by == device), "{whys:?}");
}

#[tokio::test]
async fn p14_a_sample_finds_dead_connections() {
    let mut settings = HubSettings::default();
    settings.limits.sample_one_in = 1;
    settings.policy.probe = domain::Seconds(1);
    let fixture = Fixture::with(settings, Arc::new(NoTorrentCounts)).await;
    let mut clients = Vec::new();
    for number in 1..=4 {
        clients.push(fixture.connect(number, "a").await);
    }
    let hub = fixture.hub.clone();
    let sample = tokio::spawn(async move { hub.sample().await });
    until("all users were read", || {
        let mut bytes = Vec::new();
        clients[0].outbox.take(&mut bytes, false);
        bytes.first() == Some(&0x89)
    })
    .await;
    for client in &clients[..3] {
        fixture.hub.probe_answered(client.conn);
    }
    sample.await.unwrap();
    let counters = &fixture.counters.hub;
    assert_eq!(counters.sampled.get(), 4);
    assert_eq!((counters.sampled_silent.get(), counters.falsely_online.get()), (1, 1));
}

#[tokio::test]
async fn failed_writes_wait_and_failed_reads_are_refused_as_temporary() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let run = async |sql: &'static str| fixture.database().execute(sql, &[]).await.unwrap();
    run("ALTER TABLE people_presence RENAME TO elsewhere").await;
    assert_eq!(Client::connect(&fixture.hub, 1, hello("a")).await.err(), Some(ConnectRefusal::Unavailable));
    assert_eq!(fixture.counters.hub.load_failures.get(), 1);
    run("ALTER TABLE elsewhere RENAME TO people_presence").await;
    let one = fixture.connect(1, "a").await;
    run("ALTER TABLE people_presence RENAME TO elsewhere").await;
    one.set_status("busy").await;
    until("a write failed", || fixture.counters.hub.writer_failures.get() > 0).await;
    assert!(fixture.counters.hub.writer_waiting.get() > 0);
    run("ALTER TABLE elsewhere RENAME TO people_presence").await;
    until("everything is written", || fixture.counters.hub.writer_waiting.get() == 0).await;
    let here = fixture.friend_store.stored_online(None, 10).await.unwrap();
    assert_eq!(
        (here.len(), here[0].declaration.as_ref().map(|declaration| declaration.status)),
        (1, Some(Declared::Busy))
    );
}
