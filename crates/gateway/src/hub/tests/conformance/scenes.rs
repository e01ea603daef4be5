//! What is so with one gateway and with many.

use people::OccurrenceKind;
use presence::{AppState, DeviceId, Status};
use serde_json::{Value, json};

use super::super::rig::{Client, hello, user};
use super::stage::{Stage, now, sees, told};
use crate::hub::Hub;

pub async fn play_all(stage: &Stage) {
    who_comes_and_goes_is_seen(stage).await;
    p4_who_comes_gets_the_state_of_all_friends(stage).await;
    who_comes_back_gets_the_same_state(stage).await;
    p2_devices_at_several_places_add_up(stage).await;
    what_is_declared_holds_everywhere(stage).await;
    p1_who_hides_looks_offline_everywhere(stage).await;
    what_is_declared_for_a_while_ends_everywhere(stage).await;
    friends_are_added_and_removed(stage).await;
    strangers_are_tracked_and_privacy_is_kept(stage).await;
    p8_heartbeats_over_http_are_seen(stage).await;
    each_change_is_in_the_history_once(stage).await;
    versions_never_go_back_for_who_reconnects_elsewhere(stage).await;
    everybody_is_counted_once(stage).await;
}

async fn who_comes_and_goes_is_seen(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    assert_eq!(watcher.sees(two), "offline");
    let other = stage.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    other.close();
    sees(&mut watcher, two, "offline").await;
    let last_seen = watcher.told(two)["last_seen"].as_u64().unwrap();
    assert!(last_seen + 30 > u64::from(now().0), "{last_seen}");
    let other = stage.connect(2, two, "a").await;
    sees(&mut watcher, two, "online").await;
    other.drop_connection();
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn p4_who_comes_gets_the_state_of_all_friends(stage: &Stage) {
    let [one, two, three, four] = stage.circle().await;
    let busy = stage.connect(1, two, "a").await;
    busy.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    let online = stage.connect(2, three, "a").await;
    let mut watched = stage.connect(1, one, "b").await;
    sees(&mut watched, two, "busy").await;
    sees(&mut watched, three, "online").await;
    // By now everybody knows: the snapshot itself tells it.
    let mut watcher = stage.connect(0, one, "a").await;
    assert_eq!((watcher.sees(two).as_str(), watcher.sees(three).as_str()), ("busy", "online"));
    assert_eq!((watcher.sees(four).as_str(), watcher.sees(one).as_str()), ("offline", "online"));
    assert_eq!(watcher.told(two)["text"], "deep work");
    for client in [busy, online, watched, watcher] {
        client.close();
    }
}

async fn who_comes_back_gets_the_same_state(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let other = stage.connect(1, two, "a").await;
    let mut watcher = stage.connect(0, one, "a").await;
    sees(&mut watcher, two, "online").await;
    for _ in 0..3 {
        // What was known of friends here was forgotten with the last who watched them.
        watcher.close();
        watcher = stage.connect(0, one, "a").await;
        assert_eq!(watcher.sees(two), "online");
    }
    other.close();
    watcher.close();
}

fn devices(told: &Value) -> usize {
    told["devices"].as_array().map_or(0, Vec::len)
}

async fn p2_devices_at_several_places_add_up(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let mut desk = stage.connect(1, two, "desk").await;
    let phone = stage.connect(2, two, "phone").await;
    told(&mut watcher, two, "both devices", |told| devices(told) == 2).await;
    told(&mut desk, two, "one's own other device", |told| devices(told) == 2).await;
    phone.rpc("app.state", json!({"state": "inactive"})).await.unwrap();
    told(&mut watcher, two, "one is away", |told| told["devices"][1]["status"] == "away").await;
    assert_eq!(watcher.sees(two), "online", "the best of them counts");
    desk.rpc("app.state", json!({"state": "inactive"})).await.unwrap();
    sees(&mut watcher, two, "away").await;
    desk.close();
    told(&mut watcher, two, "one device is left", |told| devices(told) == 1).await;
    assert_eq!(watcher.sees(two), "away", "the last one out");
    phone.close();
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn what_is_declared_holds_everywhere(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let mut desk = stage.connect(1, two, "desk").await;
    let phone = stage.connect(2, two, "phone").await;
    told(&mut desk, two, "both devices", |told| devices(told) == 2).await;
    phone.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    sees(&mut watcher, two, "busy").await;
    sees(&mut desk, two, "busy").await;
    assert_eq!(watcher.told(two)["text"], "deep work");
    // Where it was said goes; what was said stays.
    phone.close();
    told(&mut watcher, two, "one device is left", |told| devices(told) == 1).await;
    assert_eq!(watcher.sees(two), "busy");
    desk.rpc("status.clear", json!({})).await.unwrap();
    sees(&mut watcher, two, "online").await;
    desk.close();
    watcher.close();
}

async fn p1_who_hides_looks_offline_everywhere(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let mut desk = stage.connect(1, two, "desk").await;
    sees(&mut watcher, two, "online").await;
    desk.set_status("invisible").await;
    sees(&mut watcher, two, "offline").await;
    watcher.heard.clear();
    let version = watcher.told(two)["version"].clone();
    let mut phone = stage.connect(2, two, "phone").await;
    sees(&mut phone, two, "invisible").await;
    told(&mut desk, two, "the other device", |told| devices(told) == 2).await;
    phone.close();
    told(&mut desk, two, "the other device went", |told| devices(told) == 1).await;
    assert!(watcher.hears_nothing(), "who hides gives nothing away: {:?}", watcher.heard);
    let mut later = stage.connect(2, one, "b").await;
    assert_eq!((later.sees(two).as_str(), &later.told(two)["version"]), ("offline", &version));
    desk.set_status("online").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut later, two, "online").await;
    for client in [desk, watcher, later] {
        client.close();
    }
}

async fn what_is_declared_for_a_while_ends_everywhere(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let desk = stage.connect(1, two, "desk").await;
    let until = now().0 + 2;
    desk.rpc("status.set", json!({"status": "away", "until": until})).await.unwrap();
    sees(&mut watcher, two, "away").await;
    sees(&mut watcher, two, "online").await;
    assert!(now().0 >= until);
    desk.close();
    watcher.close();
}

async fn friends_are_added_and_removed(stage: &Stage) {
    let [one, two] = stage.strangers();
    let mut watcher = stage.connect(0, one, "a").await;
    let other = stage.connect(1, two, "a").await;
    assert_eq!(watcher.sees(two), "");
    stage.people.add_friends(&[(user(one), user(two))], now()).await.unwrap();
    sees(&mut watcher, two, "online").await;
    other.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    stage.people.remove_friends(&[(user(one), user(two))]).await.unwrap();
    sees(&mut watcher, two, "").await;
    other.close();
    watcher.close();
}

async fn strangers_are_tracked_and_privacy_is_kept(stage: &Stage) {
    let [one, two] = stage.strangers();
    let other = stage.connect(1, two, "a").await;
    other.rpc("privacy.set", json!({"status": "everyone"})).await.unwrap();
    let mut watcher = stage.connect(0, one, "a").await;
    let tracked = watcher.rpc("track", json!({"users": [two.to_string()]})).await.unwrap();
    if tracked["users"][0]["status"] != "online" {
        sees(&mut watcher, two, "online").await;
    }
    other.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    other.rpc("privacy.set", json!({"status": "friends"})).await.unwrap();
    sees(&mut watcher, two, "offline").await;
    other.rpc("privacy.set", json!({"status": "everyone"})).await.unwrap();
    sees(&mut watcher, two, "busy").await;
    other.close();
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn p8_heartbeats_over_http_are_seen(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let beat = async |hub: &Hub, app| {
        hub.http_heartbeat(user(two), presence::Hello { app, ..hello("phone") }).await.unwrap();
    };
    beat(stage.hub(1), AppState::Foreground).await;
    sees(&mut watcher, two, "online").await;
    beat(stage.hub(1), AppState::Inactive).await;
    sees(&mut watcher, two, "away").await;
    stage.hub(1).http_goodbye(user(two), DeviceId::new("phone").unwrap());
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn each_change_is_in_the_history_once(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let desk = stage.connect(1, two, "desk").await;
    sees(&mut watcher, two, "online").await;
    let phone = stage.connect(2, two, "phone").await;
    told(&mut watcher, two, "both devices", |told| devices(told) == 2).await;
    phone.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    desk.close();
    told(&mut watcher, two, "one device is left", |told| devices(told) == 1).await;
    phone.close();
    sees(&mut watcher, two, "offline").await;
    let transition = |from, to| OccurrenceKind::Transition { from, to };
    let expected = [
        OccurrenceKind::Arrived,
        transition(Status::Offline, Status::Online),
        transition(Status::Online, Status::Busy),
        transition(Status::Busy, Status::Offline),
        OccurrenceKind::Left,
    ];
    let mut found = Vec::new();
    // The watcher may have heard of it before it was marked to be written.
    for _ in 0..500 {
        stage.write_down().await;
        let history = stage.people.history(user(two), None, 20).await.unwrap();
        found = history.iter().map(|one| format!("{:?}", one.occurrence.kind)).collect();
        if found.len() >= expected.len() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut expected: Vec<String> = expected.iter().map(|kind| format!("{kind:?}")).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    watcher.close();
}

async fn versions_never_go_back_for_who_reconnects_elsewhere(stage: &Stage) {
    let [one, two] = stage.circle().await;
    let desk = stage.connect(1, two, "desk").await;
    let mut seen = 0;
    let said = ["busy", "away", "online", "busy", "away", "online"];
    for (place, status) in said.into_iter().enumerate() {
        let mut watcher: Client = stage.connect(place, one, "a").await;
        let version = |watcher: &mut Client| watcher.told(two)["version"].as_u64().unwrap();
        assert!(version(&mut watcher) >= seen, "{seen} is seen at place {place} no more");
        desk.set_status(status).await;
        sees(&mut watcher, two, status).await;
        seen = version(&mut watcher);
        watcher.close();
        stage.settled().await;
    }
    desk.close();
}

async fn everybody_is_counted_once(stage: &Stage) {
    let count = || {
        let counts = stage.places.iter().map(|place| place.hub.online_count());
        counts
            .map(|count| (count.tally.here(), count.tally.connections))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let [one, two, three] = stage.circle().await;
    let before = count();
    let clients = [
        stage.connect(0, one, "a").await,
        stage.connect(1, two, "a").await,
        stage.connect(2, three, "a").await,
    ];
    assert_eq!(count(), (before.0 + 3, before.1 + 3), "who is watched elsewhere is not counted there");
    for client in clients {
        client.close();
    }
    assert_eq!(count(), before);
}
