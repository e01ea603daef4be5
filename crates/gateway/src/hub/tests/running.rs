//! Restarts, storms, heartbeats over HTTP, the history and the sample.

use std::sync::Arc;
use std::time::Duration;

use people::OccurrenceKind;
use presence::{AppState, Declared, DeviceId, Status};
use serde_json::json;

use super::rig::{Client, Rig, START, hello, until, user};
use crate::hub::{HubSettings, Refusal};
use crate::traffic::NoTraffic;

#[tokio::test]
async fn p11_after_a_restart_who_was_here_is_pending_and_comes_back_without_having_gone() {
    let before = Rig::new().await;
    before.befriend(&[(1, 2), (1, 3), (1, 4)]).await;
    for number in 1..=3 {
        before.connect(number, "a").await;
    }
    let hidden = before.connect(4, "a").await;
    hidden.set_status("invisible").await;
    before.pass(10);
    before.hub.stop().await;

    let rig = before.again().await;
    let mut one = rig.connect(1, "a").await;
    assert_eq!(
        (one.sees(1).as_str(), one.sees(2).as_str(), one.sees(3).as_str()),
        ("online", "pending", "pending")
    );
    assert_eq!(one.sees(4), "offline", "who hid is still hidden");
    one.heard.clear();
    let mut back = rig.connect(2, "a").await;
    assert_eq!((one.sees(2).as_str(), back.sees(1).as_str()), ("online", "online"));
    assert_eq!(one.heard.len(), 1, "nothing in between");
    for _ in 0..13 {
        rig.hub.heard(one.conn);
        rig.pass(23);
    }
    assert_eq!(one.sees(3), "pending");
    rig.pass(2);
    assert_eq!((one.sees(3).as_str(), &one.told(3)["last_seen"]), ("offline", &json!(START.0)));
}

/// A process that takes another's place begins while that one still has everybody: what the other writes at its end counts
/// for who has not come over yet, and their friends hear of it.
#[tokio::test]
async fn p11_what_another_process_writes_at_its_end_is_read_and_told() {
    let before = Rig::new().await;
    before.befriend(&[(1, 2), (1, 3), (1, 4)]).await;
    before.hub.write_down().await;
    before.pass(10);
    let rig = before.again().await;
    let two = before.connect(2, "a").await;
    two.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    before.connect(3, "a").await;
    before.connect(4, "a").await;
    before.pass(1);
    before.hub.write_down().await;
    // Both come over before the other has ended, and one leaves again; the last that it writes is older.
    let mut one = rig.connect(1, "a").await;
    let mut three = rig.connect(3, "a").await;
    rig.connect(4, "a").await.close();
    assert_eq!((one.sees(2).as_str(), one.sees(3).as_str()), ("offline", "online"));
    before.hub.stop().await;

    rig.hub.catch_up().await.unwrap();
    assert_eq!((one.sees(2).as_str(), one.sees(3).as_str()), ("pending", "online"));
    assert_eq!((one.sees(4).as_str(), three.sees(3).as_str()), ("offline", "online"));
    rig.connect(2, "a").await;
    assert_eq!((one.sees(2).as_str(), one.told(2)["text"].as_str()), ("busy", Some("deep work")));
}

#[tokio::test]
async fn p11_a_crash_leaves_the_same() {
    let before = Rig::new().await;
    before.befriend(&[(1, 2)]).await;
    let busy = before.connect(2, "a").await;
    busy.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    let people = before.elsewhere().await;
    let mut is_written = false;
    for _ in 0..500 {
        let here = people.here(None, 10).await.unwrap();
        is_written = here.iter().any(|remembered| remembered.declaration.is_some());
        if is_written {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_written);
    // The first hub is not stopped: nothing more is written, as if it had been killed.
    let rig = before.again().await;
    let mut one = rig.connect(1, "a").await;
    assert_eq!(one.sees(2), "pending");
    let mut back = rig.connect(2, "a").await;
    assert_eq!((one.sees(2).as_str(), one.told(2)["text"].as_str()), ("busy", Some("deep work")));
    assert_eq!(back.sees(2), "busy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p13_a_storm_of_reconnects_costs_few_queries_and_friends_hear_net_changes() {
    const PEOPLE: u64 = 500;
    let rig = Arc::new(Rig::new().await);
    let pairs: Vec<(u64, u64)> = (2..=PEOPLE).map(|number| (1, number)).collect();
    rig.befriend(&pairs).await;
    let mut one = rig.connect(1, "a").await;
    let connect_all = async || {
        let tasks: Vec<_> = (2..=PEOPLE)
            .map(|number| {
                let rig = rig.clone();
                tokio::spawn(async move { rig.connect(number, "a").await })
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
    one.heard.clear();
    let loads = rig.counters.hub.loads.get();
    for client in clients {
        client.drop_connection();
    }
    let clients = connect_all().await;
    let queries = rig.counters.hub.loads.get() - loads;
    assert!(queries <= PEOPLE / 4, "{queries} readings for {PEOPLE} people");
    one.read();
    let told: usize = one.heard.iter().map(|message| message["users"].as_array().unwrap().len()).sum();
    assert_eq!(told, PEOPLE as usize - 1, "of each person one change, however often they came and went");
    assert!(one.users.values().all(|told| told["status"] == "online"));
    for client in clients {
        client.close();
    }
    one.close();
    assert_eq!(rig.kept(), 0);
}

#[tokio::test]
async fn p8_heartbeats_over_http_keep_somebody_here_without_a_connection() {
    let rig = Rig::new().await;
    rig.befriend(&[(1, 2)]).await;
    let mut one = rig.connect(1, "a").await;
    let background = presence::Hello { app: AppState::Background, ..hello("phone") };
    rig.hub.http_heartbeat(user(2), background.clone()).await.unwrap();
    assert_eq!(one.sees(2), "online");
    for _ in 0..12 {
        rig.hub.heard(one.conn);
        rig.pass(25);
    }
    rig.pass(1);
    assert_eq!(one.sees(2), "away");
    rig.hub.http_heartbeat(user(2), background).await.unwrap();
    assert_eq!(one.sees(2), "online");
    assert_eq!(rig.hub.devices(user(2)).len(), 1);
    rig.hub.http_goodbye(user(2), DeviceId::new("phone").unwrap());
    assert_eq!(one.sees(2), "offline");
    assert_eq!(rig.counters.hub.http_heartbeats.get(), 2);
}

#[tokio::test]
async fn the_history_is_kept_in_order() {
    let rig = Rig::new().await;
    let one = rig.connect(1, "a").await;
    one.set_status("busy").await;
    one.close();
    rig.hub.stop().await;
    let history = rig.hub.history(user(1), None, 10).await.unwrap();
    let kinds: Vec<OccurrenceKind> = history.iter().rev().map(|one| one.occurrence.kind).collect();
    let transition = |from, to| OccurrenceKind::Transition { from, to };
    let mut expected = vec![
        OccurrenceKind::Arrived,
        transition(Status::Offline, Status::Online),
        transition(Status::Online, Status::Busy),
        transition(Status::Busy, Status::Offline),
        OccurrenceKind::Left,
    ];
    // Coming and the first status are one moment, as are going and the last.
    let place = |kind: &OccurrenceKind| kinds.iter().position(|found| found == kind);
    assert!(
        place(&OccurrenceKind::Arrived) < place(&expected[2])
            && place(&expected[2]) < place(&OccurrenceKind::Left)
    );
    let key = |kind: &OccurrenceKind| format!("{kind:?}");
    let mut found = kinds.clone();
    found.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(found, expected);
    let whys: Vec<_> = history.iter().map(|one| (one.occurrence.cause, &one.occurrence.device)).collect();
    let device = presence::DeviceId::new("a");
    assert!(whys.iter().all(|(cause, by)| cause.is_some() && **by == device), "{whys:?}");
}

#[tokio::test]
async fn p14_a_sample_finds_those_who_are_only_seemingly_here() {
    let mut settings = HubSettings::default();
    settings.people.sample_one_in = 1;
    settings.policy.probe = domain::Seconds(1);
    let rig = Rig::with(settings, Arc::new(NoTraffic)).await;
    let mut clients = Vec::new();
    for number in 1..=4 {
        clients.push(rig.connect(number, "a").await);
    }
    let hub = rig.hub.clone();
    let sample = tokio::spawn(async move { hub.sample().await });
    until("everybody was asked", || {
        let mut bytes = Vec::new();
        clients[0].outbox.take(&mut bytes, false);
        bytes.first() == Some(&0x89)
    })
    .await;
    for client in &clients[..3] {
        rig.hub.probe_answered(client.conn);
    }
    sample.await.unwrap();
    let counters = &rig.counters.hub;
    assert_eq!(counters.sampled.get(), 4);
    assert_eq!((counters.sampled_silent.get(), counters.falsely_online.get()), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_written_waits_and_who_cannot_be_read_is_told_to_come_back() {
    let rig = Rig::new().await;
    rig.befriend(&[(1, 2)]).await;
    let raw = rig.raw().await;
    let run = async |sql: &'static str| sqlx::query(sql).execute(&raw).await.unwrap();
    run("ALTER TABLE people_presence RENAME TO elsewhere").await;
    assert_eq!(Client::connect(&rig.hub, 1, hello("a")).await.err(), Some(Refusal::Unavailable));
    assert_eq!(rig.counters.hub.load_failures.get(), 1);
    run("ALTER TABLE elsewhere RENAME TO people_presence").await;
    let one = rig.connect(1, "a").await;
    run("ALTER TABLE people_presence RENAME TO elsewhere").await;
    one.set_status("busy").await;
    until("a write failed", || rig.counters.hub.keeper_failures.get() > 0).await;
    assert!(rig.counters.hub.keeper_waiting.get() > 0);
    run("ALTER TABLE elsewhere RENAME TO people_presence").await;
    until("everything is written", || rig.counters.hub.keeper_waiting.get() == 0).await;
    let here = rig.people.here(None, 10).await.unwrap();
    assert_eq!((here.len(), here[0].declaration.as_ref().map(|said| said.status)), (1, Some(Declared::Busy)));
}
