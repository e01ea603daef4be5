//! What holds with one gateway and with many.

use friends::PresenceEventKind;
use presence::{AppState, DeviceId, Status};
use serde_json::{Value, json};

use super::fixture::{Gateways, now, sees, until_shown};
use crate::hub::fixture::{Client, hello, user};
use gateway::hub::Hub;

pub async fn play_all(gateways: &Gateways) {
    arrivals_and_departures_are_seen(gateways).await;
    p4_a_connecting_user_gets_the_state_of_all_friends(gateways).await;
    a_reconnecting_user_gets_the_same_state(gateways).await;
    p2_devices_at_several_gateways_are_merged(gateways).await;
    a_declaration_is_visible_at_every_gateway(gateways).await;
    p1_an_invisible_user_looks_offline_at_every_gateway(gateways).await;
    a_temporary_declaration_ends_at_every_gateway(gateways).await;
    friends_are_added_and_removed(gateways).await;
    unrelated_users_are_tracked_and_privacy_is_kept(gateways).await;
    p8_heartbeats_over_http_are_seen(gateways).await;
    each_change_is_in_the_history_once(gateways).await;
    versions_never_go_back_for_a_user_that_changes_gateways(gateways).await;
    each_user_is_counted_once(gateways).await;
}

async fn arrivals_and_departures_are_seen(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    assert_eq!(watcher.sees(two), "offline");
    let other = gateways.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    other.close();
    sees(&mut watcher, two, "offline").await;
    let last_seen = watcher.shown(two)["last_seen"].as_u64().unwrap();
    assert!(last_seen + 30 > u64::from(now().0), "{last_seen}");
    let other = gateways.connect(2, two, "a").await;
    sees(&mut watcher, two, "online").await;
    other.drop_connection();
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn p4_a_connecting_user_gets_the_state_of_all_friends(gateways: &Gateways) {
    let [one, two, three, four] = gateways.users().await;
    let busy = gateways.connect(1, two, "a").await;
    busy.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    let online = gateways.connect(2, three, "a").await;
    let mut watched = gateways.connect(1, one, "b").await;
    sees(&mut watched, two, "busy").await;
    sees(&mut watched, three, "online").await;
    // By now all gateways know: the snapshot itself contains it.
    let mut watcher = gateways.connect(0, one, "a").await;
    assert_eq!((watcher.sees(two).as_str(), watcher.sees(three).as_str()), ("busy", "online"));
    assert_eq!((watcher.sees(four).as_str(), watcher.sees(one).as_str()), ("offline", "online"));
    assert_eq!(watcher.shown(two)["text"], "deep work");
    for client in [busy, online, watched, watcher] {
        client.close();
    }
}

async fn a_reconnecting_user_gets_the_same_state(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let other = gateways.connect(1, two, "a").await;
    let mut watcher = gateways.connect(0, one, "a").await;
    sees(&mut watcher, two, "online").await;
    for _ in 0..3 {
        // The known state of friends was dropped with their last watcher.
        watcher.close();
        watcher = gateways.connect(0, one, "a").await;
        assert_eq!(watcher.sees(two), "online");
    }
    other.close();
    watcher.close();
}

fn devices(shown: &Value) -> usize {
    shown["devices"].as_array().map_or(0, Vec::len)
}

async fn p2_devices_at_several_gateways_are_merged(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let mut desk = gateways.connect(1, two, "desk").await;
    let phone = gateways.connect(2, two, "phone").await;
    until_shown(&mut watcher, two, "both devices", |shown| devices(shown) == 2).await;
    until_shown(&mut desk, two, "one's own other device", |shown| devices(shown) == 2).await;
    phone.rpc("app.state", json!({"state": "inactive"})).await.unwrap();
    until_shown(&mut watcher, two, "one is away", |shown| shown["devices"][1]["status"] == "away").await;
    assert_eq!(watcher.sees(two), "online", "the best of them counts");
    desk.rpc("app.state", json!({"state": "inactive"})).await.unwrap();
    sees(&mut watcher, two, "away").await;
    desk.close();
    until_shown(&mut watcher, two, "one device is left", |shown| devices(shown) == 1).await;
    assert_eq!(watcher.sees(two), "away", "the last one out");
    phone.close();
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn a_declaration_is_visible_at_every_gateway(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let mut desk = gateways.connect(1, two, "desk").await;
    let phone = gateways.connect(2, two, "phone").await;
    until_shown(&mut desk, two, "both devices", |shown| devices(shown) == 2).await;
    phone.rpc("status.set", json!({"status": "busy", "text": "deep work"})).await.unwrap();
    sees(&mut watcher, two, "busy").await;
    sees(&mut desk, two, "busy").await;
    assert_eq!(watcher.shown(two)["text"], "deep work");
    // The device that declared it leaves; the declaration stays.
    phone.close();
    until_shown(&mut watcher, two, "one device is left", |shown| devices(shown) == 1).await;
    assert_eq!(watcher.sees(two), "busy");
    desk.rpc("status.clear", json!({})).await.unwrap();
    sees(&mut watcher, two, "online").await;
    desk.close();
    watcher.close();
}

async fn p1_an_invisible_user_looks_offline_at_every_gateway(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let mut desk = gateways.connect(1, two, "desk").await;
    sees(&mut watcher, two, "online").await;
    desk.set_status("invisible").await;
    sees(&mut watcher, two, "offline").await;
    watcher.received.clear();
    let version = watcher.shown(two)["version"].clone();
    let mut phone = gateways.connect(2, two, "phone").await;
    sees(&mut phone, two, "invisible").await;
    until_shown(&mut desk, two, "the other device", |shown| devices(shown) == 2).await;
    phone.close();
    until_shown(&mut desk, two, "the other device went", |shown| devices(shown) == 1).await;
    assert!(watcher.receives_nothing(), "a hidden user discloses nothing: {:?}", watcher.received);
    let mut later = gateways.connect(2, one, "b").await;
    assert_eq!((later.sees(two).as_str(), &later.shown(two)["version"]), ("offline", &version));
    desk.set_status("online").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut later, two, "online").await;
    for client in [desk, watcher, later] {
        client.close();
    }
}

async fn a_temporary_declaration_ends_at_every_gateway(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let desk = gateways.connect(1, two, "desk").await;
    let until = now().0 + 2;
    desk.rpc("status.set", json!({"status": "away", "until": until})).await.unwrap();
    sees(&mut watcher, two, "away").await;
    sees(&mut watcher, two, "online").await;
    assert!(now().0 >= until);
    desk.close();
    watcher.close();
}

async fn friends_are_added_and_removed(gateways: &Gateways) {
    let [one, two] = gateways.unrelated_users();
    let mut watcher = gateways.connect(0, one, "a").await;
    let other = gateways.connect(1, two, "a").await;
    assert_eq!(watcher.sees(two), "");
    gateways.friend_store.add_friends(&[(user(one), user(two))], now()).await.unwrap();
    sees(&mut watcher, two, "online").await;
    other.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    gateways.friend_store.remove_friends(&[(user(one), user(two))]).await.unwrap();
    sees(&mut watcher, two, "").await;
    other.close();
    watcher.close();
}

async fn unrelated_users_are_tracked_and_privacy_is_kept(gateways: &Gateways) {
    let [one, two] = gateways.unrelated_users();
    let other = gateways.connect(1, two, "a").await;
    other.rpc("privacy.set", json!({"status": "everyone"})).await.unwrap();
    let mut watcher = gateways.connect(0, one, "a").await;
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

async fn p8_heartbeats_over_http_are_seen(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let beat = async |hub: &Hub, app| {
        hub.http_heartbeat(user(two), presence::Hello { app, ..hello("phone") }).await.unwrap();
    };
    beat(gateways.hub(1), AppState::Foreground).await;
    sees(&mut watcher, two, "online").await;
    beat(gateways.hub(1), AppState::Inactive).await;
    sees(&mut watcher, two, "away").await;
    gateways.hub(1).http_goodbye(user(two), DeviceId::new("phone").unwrap());
    sees(&mut watcher, two, "offline").await;
    watcher.close();
}

async fn each_change_is_in_the_history_once(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let desk = gateways.connect(1, two, "desk").await;
    sees(&mut watcher, two, "online").await;
    let phone = gateways.connect(2, two, "phone").await;
    until_shown(&mut watcher, two, "both devices", |shown| devices(shown) == 2).await;
    phone.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    desk.close();
    until_shown(&mut watcher, two, "one device is left", |shown| devices(shown) == 1).await;
    phone.close();
    sees(&mut watcher, two, "offline").await;
    let transition = |from, to| PresenceEventKind::Transition { from, to };
    let expected = [
        PresenceEventKind::Arrived,
        transition(Status::Offline, Status::Online),
        transition(Status::Online, Status::Busy),
        transition(Status::Busy, Status::Offline),
        PresenceEventKind::Left,
    ];
    let mut found = Vec::new();
    // The watcher may receive it before it is queued to be written.
    for _ in 0..500 {
        gateways.flush_presence().await;
        let history = gateways.friend_store.history(user(two), None, 20).await.unwrap();
        found = history.iter().map(|one| format!("{:?}", one.event.kind)).collect();
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

async fn versions_never_go_back_for_a_user_that_changes_gateways(gateways: &Gateways) {
    let [one, two] = gateways.users().await;
    let desk = gateways.connect(1, two, "desk").await;
    let mut seen = 0;
    let statuses = ["busy", "away", "online", "busy", "away", "online"];
    for (place, status) in statuses.into_iter().enumerate() {
        let mut watcher: Client = gateways.connect(place, one, "a").await;
        let version = |watcher: &mut Client| watcher.shown(two)["version"].as_u64().unwrap();
        assert!(version(&mut watcher) >= seen, "{seen} is seen at place {place} no more");
        desk.set_status(status).await;
        sees(&mut watcher, two, status).await;
        seen = version(&mut watcher);
        watcher.close();
        gateways.settled().await;
    }
    desk.close();
}

async fn each_user_is_counted_once(gateways: &Gateways) {
    let count = || {
        let counts = gateways.places.iter().map(|place| place.hub.users.online_count());
        counts
            .map(|count| (count.tally.online(), count.tally.connections))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let [one, two, three] = gateways.users().await;
    let before = count();
    let clients = [
        gateways.connect(0, one, "a").await,
        gateways.connect(1, two, "a").await,
        gateways.connect(2, three, "a").await,
    ];
    assert_eq!(count(), (before.0 + 3, before.1 + 3), "who is watched elsewhere is not counted there");
    for client in clients {
        client.close();
    }
    assert_eq!(count(), before);
}
