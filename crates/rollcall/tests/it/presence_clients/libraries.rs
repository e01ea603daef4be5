//! Our own libraries: `clients/js` and the example in `clients/python`. One suite, both run it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use testkit::process::Process;
use testkit::{Server, eventually};

use crate::presence_clients::agent::{self, Agent, Kind};
use crate::presence_clients::fixture::{arrive, people, server, until_remembered, url};

macro_rules! suite {
    ($($name:ident => $kind:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn p4_friends_are_a_live_map() {
                super::friends_are_a_live_map($kind);
            }

            #[test]
            fn p2_typing_devices_rooms_and_tracking() {
                super::typing_devices_rooms_and_tracking($kind);
            }

            #[test]
            fn p18_a_client_sends_disconnect_before_it_closes() {
                super::a_client_sends_disconnect_on_close($kind);
            }

            #[test]
            fn p12_everything_is_restored_after_a_reconnect() {
                super::everything_is_restored_after_a_reconnect($kind);
            }
        }
    )*};
}

suite! {
    javascript => Kind::JavaScriptLibrary;
    python => Kind::PythonLibrary;
}

/// The parts that need no server.
#[test]
fn the_javascript_library_passes_its_own_tests() {
    let tests = std::fs::read_dir(agent::js_folder().join("tests")).unwrap();
    let tests: Vec<PathBuf> = tests.map(|entry| entry.unwrap().path()).collect();
    let output = Command::new("node").arg("--test").args(tests).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The JavaScript library's own tests cover the same (`clients/js/tests/small.test.mjs`).
#[test]
fn p18_the_python_library_reports_ten_failed_reconnects_and_keeps_retrying() {
    let mut server = server().start();
    people(&server, &[1], &[]);
    let mut one = arrive(Kind::PythonLibrary, &server, "1", "laptop");
    server.kill();
    let told = one.wait_event("stuck");
    assert_eq!(told.said["tries"], 10, "{told:?}");
    assert!(!told.said["reason"].as_str().unwrap().is_empty(), "{told:?}");
    server.start_again();
    one.wait_event("connected");
}

/// The history distinguishes a disconnect from a lost connection.
fn a_client_sends_disconnect_on_close(kind: Kind) {
    let (server, mut one, mut two) = two_friends(kind);
    let api = server.api(&["read", "admin"]);
    one.wait_status("2", "online");
    two.ask("close", json!({}));
    one.wait_status("2", "offline");
    let cause = eventually("the end to be in the history", agent::PATIENCE, || {
        let page = api.get("/api/v1/users/2/presence/history").ok();
        let left = page["items"].as_array().unwrap().iter().find(|entry| entry["event"] == "left")?;
        Some(left["cause"].clone())
    });
    assert_eq!(cause, "close");
}

/// The example, run as its own comment describes.
#[test]
fn the_python_example_prints_friends_as_they_come_and_go() {
    let server = server().start();
    people(&server, &[1, 2], &[(1, 2)]);
    let folder = tempfile::tempdir().unwrap();
    let rollcall = env!("CARGO_BIN_EXE_rollcall");
    let (config, data) = (server.config_path(), server.data_folder());
    let token = format!("{rollcall} token 1 --config {} --data {}", config.display(), data.display());
    let program = agent::repository().join("clients/python/presence.py").display().to_string();
    let args = ["-B", &program, &url(&server), "--token-command", &token];
    let python = agent::python_program().display().to_string();
    let watcher = Process::start(&python, args, &folder.path().join("log"));
    let says = |line: &str| {
        eventually(line, agent::PATIENCE, || watcher.log().lines().any(|said| said == line).then_some(()));
    };
    says("1: online");
    says("2: offline");
    let mut two = arrive(Kind::PythonSdk, &server, "2", "phone");
    says("2: online");
    two.rpc("status.set", json!({"status": "busy", "text": "on a call"}));
    says("2: busy on a call");
    watcher.interrupt();
}

fn two_friends(kind: Kind) -> (Server, Agent, Agent) {
    let server = server().start();
    people(&server, &[1, 2, 3], &[(1, 2)]);
    let one = arrive(kind, &server, "1", "laptop");
    let two = arrive(kind, &server, "2", "phone");
    (server, one, two)
}

#[track_caller]
fn wait_me(agent: &mut Agent, status: &str) -> Value {
    agent.wait_for(&format!("oneself to be {status}"), |event| {
        let is_it = event.said["event"] == "me" && event.said["user"]["status"] == status;
        is_it.then(|| event.said["user"].clone())
    })
}

fn friends_are_a_live_map(kind: Kind) {
    let (server, mut one, mut two) = two_friends(kind);
    one.wait_status("2", "online");
    two.ask("set_status", json!({"status": "busy", "text": "on a call"}));
    assert_eq!(one.wait_status("2", "busy").user["text"], "on a call");
    two.ask("set_status", json!({"status": "invisible"}));
    one.wait_status("2", "offline");
    wait_me(&mut two, "invisible");
    two.ask("clear_status", json!({}));
    one.wait_status("2", "online");
    two.ask("app_state", json!({"state": "inactive"}));
    one.wait_status("2", "away");
    let refusal = two.try_ask("set_status", json!({"status": "asleep"})).unwrap_err();
    assert_eq!(refusal.code, 107, "{refusal:?}");

    server.cli(&["friend", "add", "1", "3"]);
    one.wait_shown("a new friend", "3", |user| user["status"] == "offline");
    server.cli(&["friend", "remove", "1", "3"]);
    one.wait_for("a friend to go", |event| {
        (event.said["event"] == "unfriended" && event.said["id"] == "3").then_some(())
    });
    two.ask("close", json!({}));
    one.wait_status("2", "offline");
    two.ask("open", json!({}));
    one.wait_shown("the friend to be back", "2", |user| user["status"] != "offline");
}

fn typing_devices_rooms_and_tracking(kind: Kind) {
    let (server, mut one, mut two) = two_friends(kind);
    one.ask("typing", json!({"to": "2", "on": true}));
    two.wait_for("typing", |event| (event.said["now"] == json!([{"from": "1"}])).then_some(()));
    one.ask("typing", json!({"to": "2", "on": false}));
    two.wait_for("no typing", |event| (event.said["now"] == json!([])).then_some(()));

    one.ask("enter", json!({"room": "lobby"}));
    two.ask("enter", json!({"room": "lobby"}));
    one.wait_for("a join", |event| {
        (event.said["event"] == "joined" && event.said["user"] == "2").then_some(())
    });
    assert_eq!(one.ask("members", json!({"room": "lobby"})), json!(["1", "2"]));
    assert_eq!(two.ask("members", json!({"room": "lobby"})), json!(["1", "2"]));
    two.ask("leave", json!({"room": "lobby"}));
    one.wait_for("a leave", |event| {
        (event.said["event"] == "left" && event.said["user"] == "2").then_some(())
    });
    assert_eq!(one.ask("members", json!({"room": "lobby"})), json!(["1"]));

    one.ask("set_privacy", json!({"privacy": {"status": "everyone"}}));
    assert_eq!(one.ask("privacy", json!({}))["status"], "everyone");
    let mut three = arrive(kind, &server, "3", "other");
    three.ask("track", json!({"users": ["1", "2"]}));
    let tracked = three.wait_event("tracked");
    assert_eq!(
        (&tracked.said["user"]["id"], &tracked.said["user"]["status"]),
        (&json!("1"), &json!("online"))
    );
    one.ask("set_status", json!({"status": "busy"}));
    three.wait_for("a tracked one to change", |event| {
        (event.said["event"] == "tracked" && event.said["user"]["status"] == "busy").then_some(())
    });

    let many: Vec<String> = (1000..=2000).map(|id: u32| id.to_string()).collect();
    let refusal = three.try_ask("track", json!({"users": many})).unwrap_err();
    assert_eq!(refusal.code, 106, "{refusal:?}");
    three.ask("track", json!({"users": many[..998]}));

    let mut second = arrive(kind, &server, "1", "tablet");
    let devices = one.ask("devices", json!({}));
    assert_eq!(devices.as_array().unwrap().len(), 2, "{devices}");
    one.ask("sign_out", json!({"device": "tablet"}));
    let event = second.wait_event("disconnected");
    assert_eq!(event.said["code"], 3503, "{event:?}");
}

/// The declared status is stored by the server; subscriptions and app state of the session are sent again. Requests
/// without a connection are sent after the reconnect.
fn everything_is_restored_after_a_reconnect(kind: Kind) {
    let (mut server, mut one, mut two) = two_friends(kind);
    let mut three = arrive(kind, &server, "3", "other");
    three.ask("set_privacy", json!({"privacy": {"status": "everyone"}}));
    one.ask("track", json!({"users": ["3"]}));
    one.wait_event("tracked");
    two.ask("enter", json!({"room": "lobby"}));
    two.ask("set_status", json!({"status": "busy"}));
    one.wait_status("2", "busy");

    until_remembered(&server);
    server.kill();
    two.wait_event("connecting");
    let asked = two.send("set_status", json!({"status": "away", "text": "lunch"}));
    two.ask("app_state", json!({"state": "background"}));
    server.start_again();
    two.wait_for("what was asked for in between", |event| (event.said["id"] == asked).then_some(()));
    one.wait_event("connected");
    let shown = one.wait_shown("what was asked for", "2", |user| user["text"] == "lunch");
    assert!(shown.before.iter().all(|(_, status)| status != "offline"), "no flicker: {shown:?}");
    assert_eq!(
        (&shown.user["status"], &shown.user["devices"][0]["state"]),
        (&json!("away"), &json!("background"))
    );
    eventually("the room to be entered again", agent::PATIENCE, || {
        (two.ask("members", json!({"room": "lobby"})) == json!(["2"])).then_some(())
    });
    three.ask("set_status", json!({"status": "busy"}));
    one.wait_for("the tracked to be tracked again", |event| {
        (event.said["event"] == "tracked" && event.said["user"]["status"] == "busy").then_some(())
    });
}
