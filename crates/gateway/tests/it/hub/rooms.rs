//! Joins and leaves of rooms.

use std::sync::Arc;

use serde_json::Value;

use super::fixture::Fixture;
use gateway::hub::{CommandError, HubSettings};
use gateway::settings::UserLimits;
use gateway::torrent_counts::NoTorrentCounts;

fn room_messages(pushes: &[Value]) -> Vec<String> {
    let mut room_messages: Vec<String> = pushes
        .iter()
        .map(|push| {
            let push = &push["push"];
            assert_eq!(push["channel"], "room:x");
            let what = if push.get("join").is_some() { "join" } else { "leave" };
            format!("{what} {}", push[what]["info"]["user"].as_str().unwrap())
        })
        .collect();
    room_messages.sort_unstable();
    room_messages
}

#[tokio::test]
async fn joins_and_leaves_are_net_of_flicker() {
    // The window is ended by hand.
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let fixture = Fixture::with(settings, Arc::new(NoTorrentCounts)).await;
    let mut one = fixture.connect(1, "a").await;
    one.enter("room:x").await;
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["join 1"]);
    let two = fixture.connect(2, "b").await;
    two.enter("room:x").await;
    two.enter("room:x").await;
    // A user who joined and left within the window was never announced.
    let three = fixture.connect(3, "c").await;
    three.enter("room:x").await;
    three.close();
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["join 2"]);

    // A reconnect within the window is another connection, which joins before the first one leaves.
    let phone = fixture.connect(2, "phone").await;
    two.drop_connection();
    phone.enter("room:x").await;
    fixture.hub.flush_rooms();
    let pushed = one.pushed();
    assert!(pushed[0]["push"].get("join").is_some(), "{pushed:?}");
    assert_eq!(room_messages(&pushed), ["join 2", "leave 2"]);
    // A change of status is not announced, nor is a connection that leaves and re-enters within the window.
    phone.set_status("busy").await;
    phone.hub.commands.unsubscribe(phone.conn, "room:x").await.unwrap();
    phone.enter("room:x").await;
    fixture.hub.flush_rooms();
    assert!(one.pushed().is_empty());
    assert_eq!(one.in_room("room:x").await, ["1", "2"]);
    phone.close();
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["leave 2"]);
    assert_eq!(one.in_room("room:x").await, ["1"]);
    one.close();
    fixture.hub.flush_rooms();
    assert_eq!(fixture.counters.hub.rooms.get(), 0, "an empty room costs nothing");
}

/// As in Centrifuge: clients are connections, users are distinct.
#[tokio::test]
async fn each_connection_of_a_user_is_listed_counted_and_announced() {
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let fixture = Fixture::with(settings, Arc::new(NoTorrentCounts)).await;
    let mut one = fixture.connect(1, "a").await;
    one.enter("room:x").await;
    let (phone, page) = (fixture.connect(2, "phone").await, fixture.connect(2, "page").await);
    phone.enter("room:x").await;
    page.enter("room:x").await;
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["join 1", "join 2", "join 2"]);
    assert_eq!(one.in_room("room:x").await, ["1", "2", "2"]);
    let stats = fixture.hub.commands.presence_stats(one.conn, "room:x").await.unwrap();
    assert_eq!(stats.get(), r#"{"num_clients":3,"num_users":2}"#);
    page.close();
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["leave 2"]);
    assert_eq!(one.in_room("room:x").await, ["1", "2"]);
    // A user who becomes invisible leaves with all connections.
    let tablet = fixture.connect(2, "tablet").await;
    tablet.enter("room:x").await;
    fixture.hub.flush_rooms();
    tablet.set_status("invisible").await;
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["join 2", "leave 2", "leave 2"]);
    let stats = fixture.hub.commands.presence_stats(one.conn, "room:x").await.unwrap();
    assert_eq!(stats.get(), r#"{"num_clients":1,"num_users":1}"#);
}

#[tokio::test]
async fn replies_to_presence_agree_with_joins_and_leaves() {
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let fixture = Fixture::with(settings, Arc::new(NoTorrentCounts)).await;
    let mut one = fixture.connect(1, "a").await;
    one.enter("room:x").await;
    fixture.hub.flush_rooms();
    one.pushed();
    let two = fixture.connect(2, "b").await;
    two.enter("room:x").await;
    assert_eq!(one.in_room("room:x").await, ["1", "2"]);
    two.close();
    assert_eq!(one.in_room("room:x").await, ["1", "2"], "until the leave is announced");
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["leave 2"]);
    assert_eq!(one.in_room("room:x").await, ["1"]);
}

#[tokio::test]
async fn a_presence_reply_announces_nothing_before_the_window_ends() {
    let settings = HubSettings { batch: std::time::Duration::from_secs(3600), ..HubSettings::default() };
    let fixture = Fixture::with(settings, Arc::new(NoTorrentCounts)).await;
    let mut one = fixture.connect(1, "a").await;
    one.enter("room:x").await;
    let two = fixture.connect(2, "b").await;
    two.enter("room:x").await;
    assert_eq!(two.in_room("room:x").await, ["1", "2"]);
    let stats = fixture.hub.commands.presence_stats(two.conn, "room:x").await.unwrap();
    assert!(stats.get().contains(r#""num_users":2"#), "{stats}");
    assert!(one.pushed().is_empty());
    fixture.hub.flush_rooms();
    assert_eq!(room_messages(&one.pushed()), ["join 1", "join 2"]);
}

#[tokio::test]
async fn rooms_are_for_their_members_and_bounded() {
    let settings = HubSettings {
        limits: UserLimits { rooms_max: 2, ..UserLimits::default() },
        ..HubSettings::default()
    };
    let fixture = Fixture::with(settings, Arc::new(NoTorrentCounts)).await;
    let one = fixture.connect(1, "a").await;
    one.enter("room:x").await;
    one.enter("room:y").await;
    assert_eq!(fixture.hub.commands.subscribe(one.conn, "room:z").await, Err(CommandError::LimitExceeded));
    assert!(matches!(
        fixture.hub.commands.subscribe(one.conn, "feed:#2").await,
        Err(CommandError::BadRequest(_))
    ));
    let context = fixture.connect(2, "b").await;
    let refused = fixture.hub.commands.presence(context.conn, "room:x").await.map(drop);
    assert_eq!(refused, Err(CommandError::PermissionDenied));
    fixture.hub.commands.unsubscribe(one.conn, "room:y").await.unwrap();
    one.enter("room:z").await;
}
