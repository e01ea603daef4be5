//! The npm package `centrifuge` and the PyPI package `centrifuge-python`, as they are: one suite, both run it.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::presence_clients::agent::{Agent, Kind, now};
use crate::presence_clients::fixture::{SECRET, arrive, identity, people, server, until_remembered, url};

const ROOM: &str = "room:lobby";

macro_rules! suite {
    ($($name:ident => $kind:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn p4_a_snapshot_of_friends_then_their_changes() {
                super::a_snapshot_of_friends_then_their_changes($kind);
            }

            #[test]
            fn p2_commands_by_rpc() {
                super::commands_by_rpc($kind);
            }

            #[test]
            fn rooms_report_members_joins_and_leaves() {
                super::rooms($kind);
            }

            #[test]
            fn a_token_is_refreshed_without_a_reconnect_and_replaced_when_it_has_expired() {
                super::tokens($kind);
            }

            #[test]
            fn p11_a_restart_is_no_flicker_and_clients_come_back() {
                super::restart($kind);
            }

            #[test]
            fn a_disconnected_client_does_not_reconnect() {
                super::sent_away($kind);
            }
        }
    )*};
}

suite! {
    javascript => Kind::JavaScriptSdk;
    python => Kind::PythonSdk;
}

/// The first message of a feed.
#[track_caller]
fn snapshot(agent: &mut Agent) -> Vec<Value> {
    agent.wait_for("a snapshot", |event| {
        let data = &event.said["data"];
        (data["type"] == "snapshot").then(|| data["users"].as_array().unwrap().clone())
    })
}

fn a_snapshot_of_friends_then_their_changes(kind: Kind) {
    let server = server().start();
    people(&server, &[1, 2, 3], &[(1, 2)]);
    let mut one = arrive(kind, &server, "1", "laptop");
    let first = snapshot(&mut one);
    assert_eq!(first.len(), 2, "the user and one friend only: {first:?}");
    assert_eq!((&first[0]["id"], &first[0]["self"]), (&json!("1"), &json!(true)));
    assert_eq!(first[0]["status"], "online");
    assert_eq!((&first[1]["id"], &first[1]["status"]), (&json!("2"), &json!("offline")));

    assert!(first.iter().all(|user| user["at_ms"].is_null()), "a snapshot is no change: {first:?}");
    let before_ms = SystemClock.now_ms();
    let mut two = arrive(kind, &server, "2", "phone-7");
    let shown = one.wait_status("2", "online").user;
    // P18: each change has its time.
    let at_ms = shown["at_ms"].as_u64().unwrap();
    assert!((before_ms..=SystemClock.now_ms()).contains(&at_ms), "{shown}");
    let device = &shown["devices"][0];
    assert_eq!((&device["id"], &device["platform"]), (&json!("phone-7"), &json!("computer")));
    assert_eq!((&device["state"], &device["status"]), (&json!("foreground"), &json!("online")));
    let version = shown["version"].as_u64().unwrap();

    let mut three = arrive(kind, &server, "3", "other");
    assert_eq!(snapshot(&mut three).len(), 1, "without friends only the user is listed");

    two.rpc("status.set", json!({"status": "busy", "text": "on a call"}));
    let shown = one.wait_status("2", "busy").user;
    assert_eq!(shown["text"], "on a call");
    assert!(shown["version"].as_u64().unwrap() > version, "{shown}");
    two.rpc("status.set", json!({"status": "invisible"}));
    let shown = one.wait_status("2", "offline").user;
    assert!(shown["devices"].as_array().is_none_or(Vec::is_empty), "nothing gives them away: {shown}");
    two.wait_shown("oneself to be invisible", "2", |me| me["status"] == "invisible");
    two.rpc("status.clear", json!({}));
    one.wait_status("2", "online");

    let left_at = now();
    two.ask("disconnect", json!({}));
    let shown = one.wait_status("2", "offline");
    // P5: a closed connection is noticed at once.
    assert!(shown.at - left_at < Duration::from_secs(1), "{shown:?}");
    assert!(shown.user["last_seen"].as_u64().is_some(), "{shown:?}");
    one.ask("disconnect", json!({}));
    assert!(
        one.drain().iter().all(|event| !event.said.to_string().contains("\"3\"")),
        "nothing of strangers"
    );
}

fn commands_by_rpc(kind: Kind) {
    let server = server().start();
    people(&server, &[1, 2, 3], &[(1, 2)]);
    let mut one = arrive(kind, &server, "1", "laptop");
    let mut two = arrive(kind, &server, "2", "phone");

    let got = one.rpc("status.get", json!({"users": ["2", "3"]}));
    let of_two = got["users"].as_array().unwrap().iter().find(|user| user["id"] == "2").unwrap().clone();
    assert_eq!(of_two["status"], "online");
    let devices = one.rpc("devices.list", json!({}));
    assert_eq!(devices["devices"][0]["id"], "laptop", "{devices}");

    one.rpc("typing", json!({"to": "2", "on": true}));
    let typing = two.wait_for("typing", |event| {
        (event.said["data"]["type"] == "typing").then(|| event.said["data"].clone())
    });
    assert_eq!((&typing["from"], &typing["on"]), (&json!("1"), &json!(true)));

    two.rpc("app.state", json!({"state": "background"}));
    one.wait_shown("a device in the background", "2", |two| two["devices"][0]["state"] == "background");

    // A user visible to everyone can be tracked by a non-friend, and no longer once the setting changes.
    let mut three = arrive(kind, &server, "3", "other");
    assert_eq!(three.rpc("track", json!({"users": ["1"]})), json!({"users": []}));
    one.rpc("privacy.set", json!({"status": "everyone"}));
    assert_eq!(one.rpc("privacy.get", json!({}))["status"], "everyone");
    let tracked = three.rpc("track", json!({"users": ["1"]}));
    assert_eq!((&tracked["users"][0]["id"], &tracked["users"][0]["status"]), (&json!("1"), &json!("online")));
    one.rpc("privacy.set", json!({"status": "nobody"}));
    two.wait_status("1", "offline");

    for (method, data, code) in [
        ("no.such.thing", json!({}), 104),
        ("status.set", json!({"status": "asleep"}), 107),
        ("status.set", json!({"status": "busy", "text": "x".repeat(5000)}), 106),
        ("app.state", json!({"state": "underwater"}), 107),
        ("track", json!({"users": ["x"]}), 107),
    ] {
        let refusal = one.try_ask("rpc", json!({"method": method, "data": data})).unwrap_err();
        assert_eq!(refusal.code, code, "{method}: {refusal:?}");
    }
}

fn rooms(kind: Kind) {
    let server = server().start();
    people(&server, &[1, 2], &[]);
    let mut one = arrive(kind, &server, "1", "laptop");
    let mut two = arrive(kind, &server, "2", "phone");
    one.ask("subscribe", json!({"channel": ROOM}));
    two.ask("subscribe", json!({"channel": ROOM}));
    let is_of_two = |event: &crate::presence_clients::agent::Event, name: &str| {
        event.said["event"] == name && event.said["user"] == "2" && event.said["channel"] == ROOM
    };
    one.wait_for("the other to come", |event| is_of_two(event, "join").then_some(()));
    let members = one.ask("presence", json!({"channel": ROOM}));
    let mut users: Vec<&str> =
        members.as_array().unwrap().iter().map(|member| member["user"].as_str().unwrap()).collect();
    users.sort_unstable();
    assert_eq!(users, ["1", "2"]);
    assert_eq!(one.ask("presence_stats", json!({"channel": ROOM})), json!({"clients": 2, "users": 2}));
    // Clients are connections, users are distinct.
    let mut tablet = arrive(kind, &server, "2", "tablet");
    tablet.ask("subscribe", json!({"channel": ROOM}));
    one.wait_for("the second connection to come", |event| is_of_two(event, "join").then_some(()));
    assert_eq!(one.ask("presence", json!({"channel": ROOM})).as_array().unwrap().len(), 3);
    assert_eq!(one.ask("presence_stats", json!({"channel": ROOM})), json!({"clients": 3, "users": 2}));
    tablet.ask("disconnect", json!({}));
    one.wait_for("the second connection to go", |event| is_of_two(event, "leave").then_some(()));

    two.rpc("status.set", json!({"status": "busy"}));
    two.rpc("app.state", json!({"state": "background"}));
    two.rpc("typing", json!({"room": "lobby", "on": true}));
    one.wait_for("typing in the room", |event| (event.said["data"]["type"] == "typing").then_some(()));
    two.ask("unsubscribe", json!({"channel": ROOM}));
    let mut met = Vec::new();
    one.wait_for("the other to leave", |event| {
        met.push(event.said["event"].clone());
        is_of_two(event, "leave").then_some(())
    });
    assert!(!met.contains(&json!("join")), "an update is no leave and join: {met:?}");
    assert_eq!(one.ask("presence_stats", json!({"channel": ROOM})), json!({"clients": 1, "users": 1}));

    // A client whose connection breaks has left, too.
    two.ask("subscribe", json!({"channel": ROOM}));
    one.wait_for("the other to come again", |event| is_of_two(event, "join").then_some(()));
    two.process.kill();
    one.wait_for("the other to vanish", |event| is_of_two(event, "leave").then_some(()));

    let refusal = one.try_ask("publish", json!({"channel": ROOM, "data": {"text": "hello"}})).unwrap_err();
    assert_eq!(refusal.code, 103, "rooms tell who is there, and carry no messages: {refusal:?}");
    assert!(one.try_ask("subscribe", json!({"channel": "news:today"})).is_err(), "there are only rooms");
}

fn tokens(kind: Kind) {
    let server = server().start();
    people(&server, &[1], &[]);
    let mut one = Agent::start(kind, "1");
    // The first token has expired: the server reports it, and the SDK fetches another.
    let identity = json!({"secret": SECRET, "user": "1", "ttl_s": 2});
    one.ask("start", json!({"url": url(&server), "identity": identity, "first_ttl_s": -3600}));
    one.wait_event("token");
    one.wait_event("connected");
    for _ in 0..2 {
        let event = one.wait_for("a token to be refreshed", |event| {
            let name = event.said["event"].as_str().unwrap_or_default();
            ["token", "connecting", "disconnected"].contains(&name).then(|| event.said.clone())
        });
        assert_eq!(event["event"], "token", "{event}");
    }
    one.rpc("status.get", json!({"users": ["1"]}));
}

fn restart(kind: Kind) {
    let mut server = server().start();
    people(&server, &[1, 2], &[(1, 2)]);
    let mut one = arrive(kind, &server, "1", "laptop");
    let mut two = arrive(kind, &server, "2", "phone");
    two.rpc("status.set", json!({"status": "busy", "text": "back soon"}));
    one.wait_status("2", "busy");

    for is_orderly in [true, false] {
        if is_orderly {
            server.stop();
            let event = one.wait_event("connecting");
            assert_eq!(event.said["code"], 3001, "told to come back: {event:?}");
        } else {
            // Whatever crashes a process, others must see no flicker.
            until_remembered(&server);
            server.kill();
            one.wait_event("connecting");
        }
        server.start_again();
        one.wait_event("connected");
        two.wait_event("connected");
        let shown = one.wait_status("2", "busy");
        assert!(shown.before.iter().all(|(_, status)| status != "offline"), "no flicker: {shown:?}");
        assert_eq!(shown.user["text"], "back soon", "what was declared is kept");
    }
    one.ask("disconnect", json!({}));
}

fn sent_away(kind: Kind) {
    let server = server().start();
    people(&server, &[1], &[]);
    let mut laptop = arrive(kind, &server, "1", "laptop");
    let mut phone = arrive(kind, &server, "1", "phone");
    laptop.wait_shown("both devices", "1", |me| me["devices"].as_array().is_some_and(|all| all.len() == 2));
    laptop.rpc("devices.sign_out", json!({"device": "phone"}));
    let event = phone.wait_event("disconnected");
    assert_eq!(event.said["code"], 3503, "{event:?}");
    laptop.wait_shown("one device", "1", |me| me["devices"].as_array().is_some_and(|all| all.len() == 1));

    let mut forger = Agent::start(kind, "forger");
    let mut forged = identity("1");
    forged["secret"] = "not the secret of this server, not at all".into();
    forger.ask("start", json!({"url": url(&server), "identity": forged}));
    let event = forger.wait_event("disconnected");
    assert_eq!(event.said["code"], 3500, "{event:?}");
    assert!(!server.log().contains("eyJ"), "tokens are in no log");
    // Neither has come back.
    assert!(phone.drain().iter().all(|event| event.said["event"] != "connecting"));
}

/// The server does not support protobuf: its SDKs get a permanent error instead of reconnecting forever.
#[test]
fn the_javascript_sdk_in_protobuf_mode_is_closed_for_good_with_a_reason_and_it_is_logged_once() {
    let server = server().start();
    people(&server, &[1], &[]);
    for _ in 0..2 {
        let mut one = Agent::start(Kind::JavaScriptSdk, "1");
        one.ask("start", json!({"url": url(&server), "identity": identity("1"), "protobuf": true}));
        let event = one.wait_for("the end", |event| {
            let name = event.said["event"].as_str().unwrap_or_default();
            ["connected", "disconnected"].contains(&name).then(|| event.said.clone())
        });
        assert_eq!((&event["event"], &event["code"]), (&json!("disconnected"), &json!(3501)), "{event}");
        assert!(event["reason"].as_str().unwrap().contains("centrifuge-json"), "{event}");
    }
    let log = server.log();
    assert_eq!(log.matches("centrifuge-protobuf").count(), 1, "{log}");
}
