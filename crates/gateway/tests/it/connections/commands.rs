//! Commands and their answers, as published SDKs send and read them.

use gateway::RoomAccess;
use serde_json::json;

use domain::Seconds;

use crate::connections::fixture::{Fixture, now, token, token_until};

#[tokio::test]
async fn the_answer_to_connect_has_what_sdks_need_and_the_snapshot_follows() {
    let fixture = Fixture::start().await;
    let mut client = fixture.open().await;
    let data = json!({"device": "d1", "platform": "phone", "app_state": "background", "more": true});
    client.send(&json!({"connect": {"token": token(7), "data": data, "name": "js"}, "id": 1})).await;
    let reply = client.next().await;
    let connect = &reply["connect"];
    assert_eq!((&reply["id"], &connect["ping"], &connect["pong"]), (&json!(1), &json!(25), &json!(true)));
    assert!(connect["client"].as_str().unwrap().len() >= 8 && connect["version"].is_string());
    assert_eq!(connect["expires"], true);
    assert!((3590..=3600).contains(&connect["ttl"].as_u64().unwrap()));
    assert!(connect["subs"]["feed:#7"].is_object());
    let snapshot = client.next().await;
    assert_eq!(snapshot["push"]["channel"], "feed:#7");
    let me = &snapshot["push"]["pub"]["data"]["users"][0];
    assert_eq!((&me["id"], &me["self"]), (&json!("7"), &json!(true)));
    assert_eq!(me["devices"][0]["platform"], "phone");
}

#[tokio::test]
async fn connect_data_is_validated() {
    let fixture = Fixture::start().await;
    let mut client = fixture.open().await;
    client.send(&json!({"id": 1, "connect": {"token": token(1), "data": {"platform": "fridge"}}})).await;
    let error = &client.next().await["error"];
    assert_eq!(error["code"], 107);
    assert!(error["message"].as_str().unwrap().contains("phone, computer or web"), "{error}");
    assert_eq!(fixture.connections(), 0);
    // The connection stays open for another attempt.
    client.send(&json!({"id": 2, "connect": {"token": token(1), "data": {"platform": "web"}}})).await;
    assert!(client.next().await["connect"]["client"].is_string());
}

#[tokio::test]
async fn several_commands_in_one_frame_are_answered_in_their_order() {
    let fixture = Fixture::start().await;
    let mut client = fixture.open().await;
    let commands = [
        json!({"connect": {"token": token(1)}, "id": 1}),
        json!({"subscribe": {"channel": "room:lobby"}, "id": 2}),
        json!({}),
        json!({"presence_stats": {"channel": "room:lobby"}, "id": 3}),
        json!({"rpc": {"method": "no.such", "data": {}}, "id": 4}),
        json!({"publish": {"channel": "room:lobby", "data": 1}, "id": 5}),
        json!({"history": {"channel": "room:lobby"}, "id": 6}),
        json!({"dance": {}, "id": 7}),
        json!({"send": {"data": 1}}),
        json!({"unsubscribe": {"channel": "room:lobby"}, "id": 8}),
        json!({"rpc": {"method": "devices.list"}, "id": 9}),
    ];
    let text: Vec<String> = commands.iter().map(ToString::to_string).collect();
    client.say(text.join("\n")).await;
    assert!(client.reply(1).await["connect"].is_object());
    assert!(client.reply(2).await["subscribe"].is_object());
    let stats = client.reply(3).await;
    assert_eq!(stats["presence_stats"], json!({"num_clients": 1, "num_users": 1}));
    for (id, code) in [(4, 104), (5, 103), (6, 108), (7, 104)] {
        assert_eq!(client.reply(id).await["error"]["code"], code);
    }
    assert!(client.reply(8).await["unsubscribe"].is_object());
    assert!(client.reply(9).await["rpc"]["data"].is_object());
}

#[tokio::test]
async fn where_rooms_take_a_token_only_the_right_one_opens() {
    let fixture = Fixture::with(|settings| settings.limits.room_access = RoomAccess::Token).await;
    let mut client = fixture.member(1).await;
    let later = now() + Seconds(60);
    let cases = [
        (String::new(), 103),
        (token(1), 103),
        (token_until(2, later, Some("room:a")), 103),
        (token_until(1, later, Some("room:b")), 103),
        (token_until(1, now() - Seconds(60), Some("room:a")), 109),
    ];
    for (id, (token, code)) in (10..).zip(cases) {
        client.send(&json!({"id": id, "subscribe": {"channel": "room:a", "token": token}})).await;
        assert_eq!(client.reply(id).await["error"]["code"], code);
    }
    let good = token_until(1, later, Some("room:a"));
    client.send(&json!({"id": 20, "subscribe": {"channel": "room:a", "token": good}})).await;
    assert!(client.reply(20).await["subscribe"].is_object());
    client.send(&json!({"id": 21, "sub_refresh": {"channel": "room:a", "token": good}})).await;
    assert!(client.reply(21).await["sub_refresh"].is_object());
}
