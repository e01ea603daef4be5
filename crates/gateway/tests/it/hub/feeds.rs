//! Feeds of friends.

use std::sync::Arc;

use async_trait::async_trait;
use domain::UserId;
use friends::FriendsChange;
use presence::{Audience, CloseKind, Privacy, Status};
use serde_json::json;
use serde_json::value::RawValue;

use super::fixture::{Client, Fixture, START, hello, until, user};
use gateway::hub::{CommandError, ConnectRefusal, HubSettings, Identity};
use gateway::outbox::Outbox;
use gateway::settings::{ConnectionSettings, UserLimits};
use gateway::torrent_counts::{TorrentCount, TorrentCountError, TorrentCountSource};

#[tokio::test]
async fn p4_a_connecting_user_gets_all_friends_and_friends_get_every_change() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2), (1, 3)]).await;
    let mut one = fixture.connect(1, "a").await;
    assert_eq!(one.received[0]["type"], "snapshot");
    let first = &one.received[0]["users"][0];
    assert_eq!(
        (&first["id"], &first["self"], &first["status"]),
        (&json!("1"), &json!(true), &json!("online"))
    );
    assert_eq!(
        (one.sees(2).as_str(), one.sees(3).as_str(), one.sees(4).as_str()),
        ("offline", "offline", "")
    );

    let mut two = fixture.connect(2, "b").await;
    assert_eq!((one.sees(2).as_str(), two.sees(1).as_str()), ("online", "online"));
    let devices = json!([{"id": "b", "platform": "web", "state": "foreground", "status": "online"}]);
    assert_eq!(one.shown(2)["devices"], devices);
    two.rpc("status.set", json!({"status": "busy", "text": "lunch", "until": START.0 + 60})).await.unwrap();
    let shown = one.shown(2);
    assert_eq!(
        (&shown["status"], &shown["text"], &shown["until"]),
        (&json!("busy"), &json!("lunch"), &json!(START.0 + 60))
    );
    two.rpc("status.clear", json!(null)).await.unwrap();
    two.rpc("app.state", json!({"state": "inactive"})).await.unwrap();
    assert_eq!(one.sees(2), "away");
    assert_eq!(two.sees(2), "away");
    two.close();
    assert_eq!((one.sees(2).as_str(), &one.shown(2)["last_seen"]), ("offline", &json!(START.0)));
    one.close();
    assert_eq!(fixture.kept(), 0, "no entry is left");
}

#[tokio::test]
async fn friendships_made_and_ended_elsewhere_show_within_a_moment() {
    let fixture = Fixture::new().await;
    let (mut one, mut two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    assert_eq!((one.sees(2), two.sees(1)), (String::new(), String::new()));
    let elsewhere = fixture.elsewhere().await;
    elsewhere.add_friends(&[(user(1), user(2))], START).await.unwrap();
    until("both see each other", || one.sees(2) == "online" && two.sees(1) == "online").await;
    elsewhere.remove_friends(&[(user(1), user(2))]).await.unwrap();
    until("neither sees the other", || one.sees(2).is_empty() && two.sees(1).is_empty()).await;
    two.set_status("busy").await;
    assert!(one.receives_nothing());
}

#[tokio::test]
async fn when_anything_may_have_changed_everything_is_read_again() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let (mut one, two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    let three = fixture.connect(3, "c").await;
    one.rpc("track", json!({"users": [3]})).await.unwrap();
    fixture.friend_store.remove_friends(&[(user(1), user(2))]).await.unwrap();
    fixture.friend_store.add_friends(&[(user(1), user(3))], START).await.unwrap();
    fixture.hub.friends_changed(vec![FriendsChange::Everything]).await.unwrap();
    assert_eq!((one.sees(2).as_str(), one.sees(3).as_str()), ("", "online"));
    one.rpc("untrack", json!({"users": [3]})).await.unwrap();
    assert_eq!(one.sees(3), "online", "a friend stays in the feed");
    for client in [one, two, three] {
        client.close();
    }
    assert_eq!(fixture.kept(), 0);
}

#[tokio::test]
async fn own_devices_see_each_other_and_only_the_last_one_out_is_offline() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let mut friend = fixture.connect(2, "f").await;
    let (mut phone, page) = (fixture.connect(1, "phone").await, fixture.connect(1, "page").await);
    assert_eq!(phone.shown(1)["devices"].as_array().unwrap().len(), 2);
    page.drop_connection();
    assert_eq!(phone.shown(1)["devices"].as_array().unwrap().len(), 1);
    assert_eq!(friend.sees(1), "online");
    assert!(
        friend
            .received
            .iter()
            .all(|shown| shown["users"][0]["id"] != "1" || shown["users"][0]["status"] != "offline")
    );
}

#[tokio::test]
async fn unrelated_users_are_tracked_as_far_as_they_may_be_seen() {
    let settings = HubSettings {
        limits: UserLimits { tracked_max: 3, ..UserLimits::default() },
        ..HubSettings::default()
    };
    let fixture = Fixture::with(settings, Arc::new(gateway::torrent_counts::NoTorrentCounts)).await;
    let open = Privacy { status: Audience::Everyone, ..Privacy::default() };
    fixture.friend_store.set_privacy(user(3), &open).await.unwrap();
    let (mut one, _shy, mut open) =
        (fixture.connect(1, "a").await, fixture.connect(2, "b").await, fixture.connect(3, "c").await);
    let tracked = one.rpc("track", json!({"users": ["2", 3]})).await.unwrap();
    assert_eq!(tracked["users"].as_array().unwrap().len(), 1);
    assert_eq!((&tracked["users"][0]["id"], &tracked["users"][0]["status"]), (&json!("3"), &json!("online")));
    assert!(tracked["users"][0].get("last_seen").is_none(), "only friends see that");
    open.set_status("busy").await;
    assert_eq!((one.sees(3).as_str(), one.sees(2).as_str()), ("busy", ""));
    // A user who changes privacy becomes visible, or invisible, from then on.
    fixture.friend_store.set_privacy(user(3), &Privacy::default()).await.unwrap();
    let privacy = open.rpc("privacy.set", json!({"status": "nobody"})).await.unwrap();
    assert_eq!((&privacy["status"], &privacy["last_seen"]), (&json!("nobody"), &json!("friends")));
    assert_eq!(one.shown(3), json!({"id": "3", "status": "offline", "version": 0}));
    open.rpc("privacy.set", json!({"status": "everyone"})).await.unwrap();
    assert_eq!(one.sees(3), "busy");

    // More than allowed is refused as a whole.
    let refused = one.rpc("track", json!({"users": [4, 5]})).await;
    assert_eq!(refused, Err(CommandError::LimitExceeded));
    let million: Vec<String> = (1..=1_000_000).map(|number: u32| number.to_string()).collect();
    let million = RawValue::from_string(format!(r#"{{"users":[{}]}}"#, million.join(","))).unwrap();
    let refused = fixture.hub.commands.rpc(one.conn, "track", &*million).await.map(drop);
    assert_eq!(refused, Err(CommandError::LimitExceeded));
    one.rpc("untrack", json!({"users": [2, 3]})).await.unwrap();
    assert_eq!(one.sees(3), "");
    one.rpc("track", json!({"users": [4, 5, 6]})).await.unwrap();
    open.set_status("away").await;
    assert_eq!((one.sees(3).as_str(), open.sees(3).as_str()), ("", "away"));
    one.close();
    assert_eq!(fixture.kept(), 2, "those two who are still connected");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let fixture = Fixture::new().await;
    let mut one = fixture.connect(1, "a").await;
    let bad =
        |error: Result<serde_json::Value, CommandError>| matches!(error, Err(CommandError::BadRequest(_)));
    assert_eq!(one.rpc("dance", json!({})).await, Err(CommandError::MethodNotFound));
    assert!(bad(one.rpc("status.set", json!({"status": "offline"})).await));
    assert!(bad(one.rpc("status.set", json!({"status": "busy", "mood": 1})).await));
    assert!(bad(one.rpc("app.state", json!({"state": "asleep"})).await));
    assert!(bad(one.rpc("privacy.set", json!({"never": [1]})).await));
    assert!(bad(one.rpc("privacy.set", json!({"status": "all"})).await));
    assert!(bad(one.rpc("typing", json!({"on": true})).await));
    assert!(bad(one.rpc("devices.sign_out", json!({"device": ""})).await));
    assert_eq!(one.rpc("devices.sign_out", json!({"device": "b"})).await, Err(CommandError::NotAvailable));
    let long = "x".repeat(257);
    let limited = one.rpc("status.set", json!({"status": "busy", "text": long})).await;
    assert_eq!(limited, Err(CommandError::LimitExceeded));
    let many: Vec<u64> = (1..=1001).collect();
    assert_eq!(one.rpc("status.get", json!({ "users": many })).await, Err(CommandError::LimitExceeded));
    assert!(one.receives_nothing());
}

#[tokio::test]
async fn a_device_can_be_signed_out_and_a_user_disconnected() {
    let fixture = Fixture::new().await;
    let (mut phone, page) = (fixture.connect(1, "phone").await, fixture.connect(1, "page").await);
    let devices = phone.rpc("devices.list", json!({})).await.unwrap();
    assert_eq!(devices["devices"][1]["id"], "phone");
    assert_eq!(
        (&devices["devices"][0]["current"], &devices["devices"][1]["current"]),
        (&json!(false), &json!(true))
    );
    phone.rpc("devices.sign_out", json!({"device": "page"})).await.unwrap();
    assert!(page.outbox.is_closing() && !phone.outbox.is_closing());
    page.close();
    assert_eq!(phone.shown(1)["devices"].as_array().unwrap().len(), 1);
    assert_eq!(fixture.hub.admin.disconnect(user(1), None, true).await.unwrap(), 1);
    assert!(phone.outbox.is_closing());
    assert_eq!(fixture.hub.admin.disconnect(user(9), None, false).await.unwrap(), 0);
}

#[tokio::test]
async fn statuses_can_be_read_also_of_offline_users() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2), (1, 4)]).await;
    let (one, two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    fixture.connect(4, "d").await.close();
    let answer = one.rpc("status.get", json!({"users": ["1", "2", 3, 4]})).await.unwrap();
    let status: Vec<&str> =
        answer["users"].as_array().unwrap().iter().map(|shown| shown["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["online", "online", "offline", "offline"]);
    assert_eq!(answer["users"][2], json!({"id": "3", "status": "offline", "version": 0}));
    assert_eq!(answer["users"][3]["last_seen"], START.0);
    two.close();
    let views = fixture.hub.admin.status(&[user(2), user(9), user(1)]).await.unwrap();
    let visibility: Vec<(u64, Status)> = views.iter().map(|view| (view.user.get(), view.status)).collect();
    assert_eq!(visibility, [(2, Status::Offline), (9, Status::Offline), (1, Status::Online)]);
    let count = fixture.hub.users.online_count();
    assert_eq!((count.tally.online(), count.connections), (1, [0, 0, 1]));
}

#[tokio::test]
async fn a_cancelled_connect_leaves_nothing() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let mut friend = fixture.connect(2, "f").await;
    for _ in 0..20 {
        let outbox = Outbox::new(&ConnectionSettings::default(), fixture.counters.clone());
        let identity = Identity { user: user(1), expires_at: None, info: None };
        let connect = fixture.hub.connect(identity, hello("a"), outbox);
        // Long enough for the request, mostly too short for the reply.
        let _ = tokio::time::timeout(std::time::Duration::from_micros(300), connect).await.map(|welcome| {
            fixture.hub.closed(welcome.unwrap().conn, CloseKind::Dropped);
        });
    }
    // The task takes requests in order: once this one is answered, those before it are done.
    fixture.connect(3, "x").await.close();
    until("user 1 is gone", || fixture.hub.users.devices(user(1)).is_empty()).await;
    fixture.pass(70);
    assert_eq!(friend.sees(1), "offline");
    friend.close();
    assert_eq!(fixture.kept(), 0);
}

#[tokio::test]
async fn devices_are_bounded_and_a_refused_one_leaves_nothing() {
    let mut settings = HubSettings::default();
    settings.policy.devices_max = 1;
    let fixture = Fixture::with(settings, Arc::new(gateway::torrent_counts::NoTorrentCounts)).await;
    let one = fixture.connect(1, "a").await;
    let refused = Client::connect(&fixture.hub, 1, hello("b")).await;
    assert_eq!(refused.err(), Some(ConnectRefusal::TooManyDevices));
    assert_eq!(fixture.hub.sizes().connections, 1);
    one.close();
    assert_eq!(fixture.kept(), 0);
}

struct Figures;

#[async_trait]
impl TorrentCountSource for Figures {
    async fn counts(&self, users: &[UserId]) -> Result<Vec<TorrentCount>, TorrentCountError> {
        Ok(users
            .iter()
            .map(|user| TorrentCount { user: *user, seeding: user.get() as u32, leeching: 1 })
            .collect())
    }
}

#[tokio::test]
async fn friends_see_the_torrent_activity_of_a_user() {
    let fixture = Fixture::with(HubSettings::default(), Arc::new(Figures)).await;
    fixture.befriend(&[(1, 2)]).await;
    let (mut one, _two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    until("figures arrive", || one.shown(2)["seeding"] == 2 && one.shown(2)["leeching"] == 1).await;
    let asked = fixture.counters.hub.torrent_counts_requested.get();
    fixture.hub.users.torrents_changed(&[user(2), user(99)]);
    until("a notice is a question", || fixture.counters.hub.torrent_counts_requested.get() > asked).await;
}

#[tokio::test]
async fn a_user_with_http_sessions_only_can_be_read() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let unrelated = fixture.connect(3, "c").await;
    fixture.hub.http_heartbeat(user(2), hello("phone")).await.unwrap();
    let one = fixture.connect(1, "a").await;
    let shown = one.rpc("status.get", json!({"users": [2]})).await.unwrap();
    assert_eq!(shown["users"][0]["status"], "online");
    one.close();
    // Not watched now.
    let everyone = Privacy { status: Audience::Everyone, ..Privacy::default() };
    fixture.friend_store.set_privacy(user(2), &everyone).await.unwrap();
    let shown = unrelated.rpc("status.get", json!({"users": [2]})).await.unwrap();
    assert_eq!(shown["users"][0]["status"], "online", "{shown}");
}

#[tokio::test]
async fn a_user_untracked_and_tracked_again_at_once_stays_in_the_feed() {
    let fixture = Fixture::new().await;
    let everyone = Privacy { status: Audience::Everyone, ..Privacy::default() };
    fixture.friend_store.set_privacy(user(2), &everyone).await.unwrap();
    let (mut one, _two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    one.rpc("track", json!({"users": [2]})).await.unwrap();
    one.rpc("untrack", json!({"users": [2]})).await.unwrap();
    one.rpc("track", json!({"users": [2]})).await.unwrap();
    assert_eq!(one.sees(2), "online");
}

#[tokio::test]
async fn many_requests_to_track_at_once_are_all_answered() {
    let fixture = Fixture::new().await;
    let one = fixture.connect(1, "a").await;
    let asks = (2..=90).map(|number| one.rpc("track", json!({"users": [number]})));
    for shown in futures_util::future::join_all(asks).await {
        assert!(shown.is_ok(), "{shown:?}");
    }
}
