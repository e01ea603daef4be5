//! An invisible user is offline to all other users, on every path.

use presence::{Audience, Declared, Privacy};
use serde_json::{Value, json};

use super::fixture::{Client, Fixture, START, hello, until, user};

#[tokio::test]
async fn p1_an_invisible_user_looks_offline_on_every_path() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let everyone = Privacy { status: Audience::Everyone, last_seen: Audience::Everyone, never: Vec::new() };
    fixture.friend_store.set_privacy(user(1), &everyone).await.unwrap();
    let mut friend = fixture.connect(2, "f").await;
    let mut unrelated = fixture.connect(3, "s").await;
    unrelated.rpc("track", json!({"users": [1]})).await.unwrap();
    let mut page = fixture.connect(1, "page").await;
    for client in [&page, &friend, &unrelated] {
        client.enter("room:x").await;
    }
    fixture.hub.flush_rooms();
    assert_eq!((friend.sees(1).as_str(), unrelated.sees(1).as_str()), ("online", "online"));

    fixture.pass(5);
    page.set_status("invisible").await;
    fixture.hub.flush_rooms();
    let frozen = friend.shown(1);
    assert_eq!(
        (&frozen["status"], &frozen["devices"], &frozen["last_seen"]),
        (&json!("offline"), &json!(null), &json!(START.0 + 5))
    );
    assert_eq!(unrelated.shown(1), frozen);
    assert_eq!(page.sees(1), "invisible");
    for (name, client) in [("friend", &mut friend), ("unrelated", &mut unrelated)] {
        let leaves =
            client.pushed().iter().filter(|push| push["push"]["leave"]["info"]["user"] == "1").count();
        assert_eq!(leaves, 1, "{name} is notified of the leave");
    }

    // Later actions are not visible to anyone.
    let mut phone = fixture.connect(1, "phone").await;
    assert_eq!(
        (phone.sees(1).as_str(), page.shown(1)["devices"].as_array().unwrap().len()),
        ("invisible", 2)
    );
    phone.enter("room:x").await;
    page.rpc("app.state", json!({"state": "inactive"})).await.unwrap();
    page.rpc("typing", json!({"to": "2", "on": true})).await.unwrap();
    page.rpc("typing", json!({"room": "x", "on": true})).await.unwrap();
    page.rpc("status.set", json!({"status": "invisible", "text": "secret"})).await.unwrap();
    fixture.hub.record_activity(page.conn);
    fixture.pass(3);
    fixture.hub.flush_rooms();
    assert!(friend.receives_nothing() && unrelated.receives_nothing());
    for client in [&friend, &unrelated] {
        let asked = client.rpc("status.get", json!({"users": [1]})).await.unwrap();
        assert_eq!(asked["users"][0], frozen);
        let tracked = client.rpc("track", json!({"users": [1]})).await.unwrap();
        assert_eq!(tracked["users"][0], frozen);
        assert!(!client.in_room("room:x").await.contains(&"1".to_owned()));
        let stats = client.hub.commands.presence_stats(client.conn, "room:x").await.unwrap();
        assert_eq!(stats.get(), r#"{"num_clients":2,"num_users":2}"#);
    }
    let mut late = fixture.connect(2, "late").await;
    assert_eq!(late.shown(1), frozen);
    assert_eq!(phone.in_room("room:x").await, ["1", "1", "2", "3"], "one sees oneself");

    // Disconnecting while invisible sends nothing either.
    friend.read();
    page.drop_connection();
    phone.close();
    fixture.hub.flush_rooms();
    assert!(friend.receives_nothing() && unrelated.receives_nothing());
    let mut back = Client::connect(&fixture.hub, 1, hello("page")).await.unwrap();
    assert_eq!((back.sees(1).as_str(), friend.receives_nothing()), ("invisible", true), "it is kept");
    back.rpc("status.clear", json!({})).await.unwrap();
    assert_eq!(friend.sees(1), "online");
}

#[tokio::test]
async fn a_user_that_connects_as_invisible_is_never_seen() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let mut friend = fixture.connect(2, "f").await;
    let hidden = presence::Hello { declared: Some(Declared::Invisible), ..hello("a") };
    let mut one = Client::connect(&fixture.hub, 1, hidden).await.unwrap();
    assert_eq!((one.sees(1).as_str(), friend.receives_nothing()), ("invisible", true));
    one.enter("room:x").await;
    friend.enter("room:x").await;
    fixture.hub.flush_rooms();
    assert_eq!(friend.in_room("room:x").await, ["2"]);
    one.close();
    assert!(friend.pushed().iter().all(|push| push["push"]["join"]["info"]["user"] == "2"));
    assert_eq!(friend.sees(1), "offline");
}

#[tokio::test]
async fn never_acts_at_once_in_feeds_rooms_and_typing() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2), (1, 3)]).await;
    let (one, mut two, mut three) =
        (fixture.connect(1, "a").await, fixture.connect(2, "b").await, fixture.connect(3, "c").await);
    for client in [&one, &two, &three] {
        client.enter("room:x").await;
    }
    fixture.hub.flush_rooms();
    one.rpc("typing", json!({"to": "2", "on": true})).await.unwrap();
    two.pushed();
    three.pushed();
    one.rpc("privacy.set", json!({"never": ["2"]})).await.unwrap();
    let hidden = json!({"id": "1", "status": "offline", "version": 0});
    assert_eq!((two.shown(1), three.sees(1).as_str()), (hidden.clone(), "online"));
    let pushed = two.pushed();
    assert!(pushed.iter().any(|push| push["push"]["leave"]["info"]["user"] == "1"), "{pushed:?}");
    let is_end = |data: &Value| data["type"] == "typing" && data["from"] == "1" && data["on"] == false;
    assert!(pushed.iter().any(|push| is_end(&push["push"]["pub"]["data"])));
    assert_eq!(
        (two.in_room("room:x").await, three.in_room("room:x").await.len()),
        (vec!["2".into(), "3".into()], 3)
    );

    one.set_status("busy").await;
    one.rpc("typing", json!({"to": "2", "on": true})).await.unwrap();
    one.rpc("typing", json!({"room": "x", "on": true})).await.unwrap();
    assert!(two.receives_nothing());
    assert_eq!(three.sees(1), "busy");
    let asked = two.rpc("status.get", json!({"users": [1]})).await.unwrap();
    assert_eq!(asked["users"][0], hidden);
    // A second device of the same friend receives no more than the first.
    let mut late = fixture.connect(2, "late").await;
    assert_eq!(late.shown(1), hidden);
    let privacy = one.rpc("privacy.get", json!({})).await.unwrap();
    assert_eq!(privacy, json!({"status": "friends", "last_seen": "friends", "never": ["2"]}));
    one.rpc("privacy.set", json!({"never": []})).await.unwrap();
    assert_eq!((two.sees(1).as_str(), late.sees(1).as_str()), ("busy", "busy"));
    assert!(two.pushed().iter().any(|push| push["push"]["join"]["info"]["user"] == "1"));
}

#[tokio::test]
async fn privacy_chosen_elsewhere_acts_within_a_moment_and_last_seen_is_apart() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let (_one, mut two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    assert!(two.shown(1)["last_seen"].is_number());
    let elsewhere = fixture.elsewhere().await;
    let no_last_seen = Privacy { last_seen: Audience::Nobody, ..Privacy::default() };
    elsewhere.set_privacy(user(1), &no_last_seen).await.unwrap();
    until("no last-seen time", || two.shown(1)["last_seen"].is_null()).await;
    assert_eq!(two.sees(1), "online");
    let hidden = Privacy { status: Audience::Nobody, ..Privacy::default() };
    elsewhere.set_privacy(user(1), &hidden).await.unwrap();
    until("nothing visible", || two.shown(1) == json!({"id": "1", "status": "offline", "version": 0})).await;
}

#[tokio::test]
async fn an_invisible_user_that_reconnects_is_still_invisible() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let mut friend = fixture.connect(2, "f").await;
    let one = fixture.connect(1, "a").await;
    one.set_status("invisible").await;
    fixture.hub.http_heartbeat(user(1), hello("a")).await.unwrap();
    one.close();
    // The device was connected all the time, so its reconnect changes nothing of the user's own view.
    let one = fixture.connect(1, "a").await;
    friend.read();
    one.enter("room:x").await;
    one.rpc("typing", json!({"to": 2, "on": true})).await.unwrap();
    friend.enter("room:x").await;
    fixture.hub.flush_rooms();
    assert_eq!((friend.in_room("room:x").await, friend.sees(1).as_str()), (vec!["2".to_owned()], "offline"));
    assert!(friend.pushed().iter().all(|push| push["push"]["join"]["info"]["user"] == "2"));
}

#[tokio::test]
async fn a_time_that_waits_to_be_written_is_taken_back_when_it_may_no_longer_be_seen() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let (one, mut two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    one.set_status("busy").await;
    one.rpc("privacy.set", json!({"last_seen": "nobody"})).await.unwrap();
    let before = two.received.len();
    assert!(two.shown(1)["last_seen"].is_null());
    assert!(two.received[before..].iter().all(|message| message["users"][0].get("last_seen").is_none()));
}

#[tokio::test]
async fn what_two_devices_choose_at_once_is_both_kept() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.connect(1, "a").await, fixture.connect(1, "b").await);
    for round in 0..10 {
        let status = if round % 2 == 0 { "nobody" } else { "everyone" };
        let (first, second) = tokio::join!(
            one.rpc("privacy.set", json!({"never": [round + 2]})),
            other.rpc("privacy.set", json!({"status": status})),
        );
        assert!(first.is_ok() && second.is_ok());
        let chosen = fixture.friend_store.privacy(user(1)).await.unwrap();
        assert_eq!((chosen.status.name(), chosen.never), (status, vec![user(round + 2)]));
    }
}
