//! Comings and goings in rooms.

use std::sync::Arc;

use serde_json::Value;

use super::rig::Rig;
use crate::hub::{CommandError, HubSettings};
use crate::settings::PeopleSettings;
use crate::traffic::NoTraffic;

fn told(pushes: &[Value]) -> Vec<String> {
    let mut told: Vec<String> = pushes
        .iter()
        .map(|push| {
            let push = &push["push"];
            assert_eq!(push["channel"], "room:x");
            let what = if push.get("join").is_some() { "join" } else { "leave" };
            format!("{what} {}", push[what]["info"]["user"].as_str().unwrap())
        })
        .collect();
    told.sort_unstable();
    told
}

#[tokio::test]
async fn comings_and_goings_are_told_net_of_flicker() {
    // The window is ended by hand.
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let rig = Rig::with(settings, Arc::new(NoTraffic)).await;
    let mut one = rig.connect(1, "a").await;
    one.enter("room:x").await;
    rig.hub.rooms.tell();
    assert_eq!(told(&one.pushed()), ["join 1"]);
    let two = rig.connect(2, "b").await;
    two.enter("room:x").await;
    two.enter("room:x").await;
    // Who came and went within the window was never there.
    let three = rig.connect(3, "c").await;
    three.enter("room:x").await;
    three.close();
    rig.hub.rooms.tell();
    assert_eq!(told(&one.pushed()), ["join 2"]);

    // A reconnect within the window, a second device, and an update are nothing.
    let phone = rig.connect(2, "phone").await;
    two.drop_connection();
    phone.enter("room:x").await;
    phone.set_status("busy").await;
    rig.hub.rooms.tell();
    assert!(one.pushed().is_empty());
    assert_eq!(one.in_room("room:x").await, ["1", "2"]);
    let page = rig.connect(2, "page").await;
    page.enter("room:x").await;
    phone.hub.unsubscribe(phone.conn, "room:x").await.unwrap();
    rig.hub.rooms.tell();
    assert!(one.pushed().is_empty());
    page.close();
    rig.hub.rooms.tell();
    assert_eq!(told(&one.pushed()), ["leave 2"]);
    assert_eq!(one.in_room("room:x").await, ["1"]);
    one.close();
    rig.hub.rooms.tell();
    assert_eq!(rig.counters.hub.rooms.get(), 0, "an empty room costs nothing");
}

#[tokio::test]
async fn what_presence_answers_agrees_with_what_is_told() {
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let rig = Rig::with(settings, Arc::new(NoTraffic)).await;
    let mut one = rig.connect(1, "a").await;
    one.enter("room:x").await;
    rig.hub.rooms.tell();
    one.pushed();
    let two = rig.connect(2, "b").await;
    two.enter("room:x").await;
    assert_eq!(one.in_room("room:x").await, ["1", "2"]);
    two.close();
    assert_eq!(one.in_room("room:x").await, ["1", "2"], "until it is told that they left");
    rig.hub.rooms.tell();
    assert_eq!(told(&one.pushed()), ["leave 2"]);
    assert_eq!(one.in_room("room:x").await, ["1"]);
}

#[tokio::test]
async fn whoever_asks_who_is_in_a_room_has_nobody_told_before_the_window_ends() {
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let rig = Rig::with(settings, Arc::new(NoTraffic)).await;
    let mut one = rig.connect(1, "a").await;
    one.enter("room:x").await;
    let two = rig.connect(2, "b").await;
    two.enter("room:x").await;
    assert_eq!(two.in_room("room:x").await, ["1", "2"]);
    let stats = rig.hub.presence_stats(two.conn, "room:x").await.unwrap();
    assert!(stats.get().contains(r#""num_users":2"#), "{stats}");
    assert!(one.pushed().is_empty());
    rig.hub.rooms.tell();
    assert_eq!(told(&one.pushed()), ["join 1", "join 2"]);
}

#[tokio::test]
async fn rooms_are_for_who_is_in_them_and_bounded() {
    let settings = HubSettings {
        people: PeopleSettings { rooms_max: 2, ..PeopleSettings::default() },
        ..HubSettings::default()
    };
    let rig = Rig::with(settings, Arc::new(NoTraffic)).await;
    let one = rig.connect(1, "a").await;
    one.enter("room:x").await;
    one.enter("room:y").await;
    assert_eq!(rig.hub.subscribe(one.conn, "room:z").await, Err(CommandError::LimitExceeded));
    assert!(matches!(rig.hub.subscribe(one.conn, "feed:#2").await, Err(CommandError::BadRequest(_))));
    let outside = rig.connect(2, "b").await;
    let refused = rig.hub.presence(outside.conn, "room:x").await.map(drop);
    assert_eq!(refused, Err(CommandError::PermissionDenied));
    rig.hub.unsubscribe(one.conn, "room:y").await.unwrap();
    one.enter("room:z").await;
}
