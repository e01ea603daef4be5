//! Webhooks of the whole program: first device in, last device out, and a server that is killed in between.

use serde_json::json;
use testkit::{HookReceiver, HookReply, Server, eventually};

use crate::api::{PATIENCE, builder, metric, quoted};

fn heartbeat(server: &Server, user: u64, device: &str, goodbye: bool) {
    let token = server.cli(&["token", &user.to_string()])["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let said = json!({ "device": device, "goodbye": goodbye }).to_string();
    let reply =
        server.anonymous_api().send("POST", "/api/v1/presence/heartbeat", &headers, Some(said.as_bytes()));
    assert_eq!(reply.status(), 200);
}

/// What the receiver took about one user, each message once.
fn events_of(receiver: &HookReceiver, user: u64) -> Vec<String> {
    let mut seen = Vec::new();
    let mut events = Vec::new();
    for hook in receiver.taken().iter().filter(|hook| hook.user() == user) {
        let json = hook.json();
        if !seen.contains(&json["id"]) {
            seen.push(json["id"].clone());
            events.push(json["event"].as_str().unwrap().to_owned());
        }
    }
    events
}

#[test]
fn webhooks_report_the_first_device_online_and_the_last_one_offline() {
    let receiver = HookReceiver::start();
    let mut server = builder()
        .set("gateway.webhook_url", quoted(&receiver.url()))
        .set("gateway.webhook_secret", quoted(&"w".repeat(32)))
        .set("presence.history_days", 0)
        .set("presence.pending_s", 1)
        .start();
    heartbeat(&server, 7, "one", false);
    heartbeat(&server, 7, "two", false);
    heartbeat(&server, 7, "one", true);
    eventually("an arrival", PATIENCE, || (events_of(&receiver, 7) == ["arrived"]).then_some(()));
    heartbeat(&server, 7, "two", true);
    eventually("a departure", PATIENCE, || (events_of(&receiver, 7) == ["arrived", "left"]).then_some(()));
    let hook = &receiver.taken()[0];
    assert!(hook.header("rollcall-signature").unwrap().starts_with("t="));
    assert!(!hook.head.join("\n").contains(&"w".repeat(32)));

    receiver.behave(HookReply::Status(503));
    heartbeat(&server, 8, "one", false);
    let refused = || receiver.hooks().iter().any(|hook| hook.user() == 8);
    eventually("an attempt that fails", PATIENCE, || refused().then_some(()));
    server.kill();
    receiver.behave(HookReply::Accept);
    server.start_again();
    let expected = ["arrived", "left"];
    eventually("the arrival, and after the time to come back the departure", PATIENCE, || {
        (events_of(&receiver, 8) == expected).then_some(())
    });
    let read = server.api(&["read"]);
    assert!(metric(&read, "rollcall_webhook_attempts_total{outcome=\"delivered\"}") >= 2.0);
    assert_eq!(metric(&read, "rollcall_webhook_failed_total"), 0.0);
}

/// A take-over causes no presence events and no repeated webhooks.
#[test]
fn p11_a_take_over_causes_no_presence_events() {
    let receiver = HookReceiver::start();
    let mut server = builder()
        .set("gateway.webhook_url", quoted(&receiver.url()))
        .set("gateway.webhook_secret", quoted(&"w".repeat(32)))
        .start();
    (1..=20).for_each(|user| heartbeat(&server, user, "one", false));
    eventually("the arrivals", PATIENCE, || (receiver.taken().len() == 20).then_some(()));
    assert!(server.take_over().success());
    (1..=10).for_each(|user| heartbeat(&server, user, "one", false));
    heartbeat(&server, 21, "one", false);
    eventually("an arrival", PATIENCE, || (!events_of(&receiver, 21).is_empty()).then_some(()));
    assert_eq!(receiver.taken().len(), 21, "nothing else was told");
    heartbeat(&server, 1, "one", true);
    eventually("a departure", PATIENCE, || (events_of(&receiver, 1) == ["arrived", "left"]).then_some(()));
    assert_eq!(receiver.taken().len(), 22);
}
