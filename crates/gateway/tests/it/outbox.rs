//! What goes out, in which order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake};

use presence::{ConnId, WallTime};
use serde_json::{Value, json};
use wire::websocket::{Decoder, Event};

use domain::UserId;
use gateway::counters::GatewayCounters;
use gateway::hub::ConnRef;
use gateway::outbox::{FeedUser, Outbox, OutboxState};
use gateway::protocol::{CloseCode, Frame};
use gateway::settings::ConnectionSettings;

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Scene {
    outbox: Arc<Outbox>,
    wake_count: Arc<Woken>,
    counters: Arc<GatewayCounters>,
}

fn scene(bytes_max: usize) -> Scene {
    let settings = ConnectionSettings { outbox_bytes_max: bytes_max, ..ConnectionSettings::default() };
    let counters = Arc::new(GatewayCounters::default());
    let outbox = Outbox::new(&settings, Arc::clone(&counters));
    Scene { outbox, wake_count: Arc::new(Woken(AtomicUsize::new(0))), counters }
}

impl Scene {
    fn state(&self, is_blocked: bool) -> OutboxState {
        let waker = Arc::clone(&self.wake_count).into();
        self.outbox.poll_state(&Context::from_waker(&waker), is_blocked)
    }

    fn wake_count(&self) -> usize {
        self.wake_count.0.swap(0, Ordering::SeqCst)
    }

    /// All frames that are written, as JSON.
    fn take(&self, with_changes: bool) -> Vec<Value> {
        let mut bytes = Vec::new();
        while self.outbox.take(&mut bytes, with_changes).more {}
        texts(bytes)
    }

    fn open(&self) {
        self.outbox.open(conn(7), Frame::text(r#"{"id":1}"#));
        self.outbox.snapshot(std::iter::empty());
        self.take(true);
        self.state(false);
        self.wake_count();
    }
}

/// Parses frames of the server as a client's: with a mask of zeros.
fn texts(bytes: Vec<u8>) -> Vec<Value> {
    let mut masked = Vec::new();
    let mut rest = &bytes[..];
    while let [first, length, ..] = *rest {
        let (head, length) = match length {
            126 => (4, usize::from(u16::from_be_bytes([rest[2], rest[3]]))),
            127 => (10, u64::from_be_bytes(rest[2..10].try_into().unwrap()) as usize),
            short => (2, usize::from(short)),
        };
        masked.extend_from_slice(&[first, rest[1] | 0x80]);
        masked.extend_from_slice(&rest[2..head]);
        masked.extend_from_slice(&[0; 4]);
        masked.extend_from_slice(&rest[head..head + length]);
        rest = &rest[head + length..];
    }
    let mut decoder = Decoder::new(1 << 24);
    let mut left = &mut masked[..];
    let mut texts = Vec::new();
    while let Some(event) = decoder.read(&mut left).unwrap() {
        match event {
            Event::Text(text) => texts.push(serde_json::from_str(&text).unwrap()),
            other => texts.push(json!(format!("{other:?}"))),
        }
    }
    texts
}

/// When all of it changed.
const AT: WallTime = WallTime(7);

fn id(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

fn conn(number: u64) -> ConnRef {
    ConnRef { user: id(number), conn: ConnId(1) }
}

fn user(number: u64, version: u64) -> FeedUser {
    let json = json!({ "id": number.to_string(), "version": version });
    FeedUser { id: id(number), version, json: json.to_string().into() }
}

fn data(message: &Value) -> &Value {
    assert_eq!(message["push"]["channel"], "feed:#7");
    &message["push"]["pub"]["data"]
}

#[test]
fn nothing_goes_out_before_the_answer_to_connect_and_no_change_before_the_snapshot() {
    let scene = scene(1 << 20);
    assert_eq!(scene.state(false), OutboxState::default());
    scene.outbox.change(user(2, 9), true, AT);
    scene.outbox.change(user(3, 3), true, AT);
    scene.outbox.push(Frame::text(r#"{"push":{}}"#));
    assert_eq!(scene.state(false), OutboxState::default());
    scene.outbox.snapshot([user(7, 1), user(2, 8), user(3, 4)].into_iter());
    assert!(scene.take(true).is_empty());
    assert_eq!(scene.wake_count(), 0);
    scene.outbox.open(conn(7), Frame::text(r#"{"id":1}"#));
    assert_eq!(scene.wake_count(), 1);
    assert!(scene.state(false).now);
    let out = scene.take(true);
    assert_eq!(out[..2], [json!({"id": 1}), json!({"push": {}})]);
    let ids = |message: &Value| {
        let users = data(message)["users"].as_array().unwrap().clone();
        users.into_iter().map(|user| (user["id"].clone(), user["version"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(data(&out[2])["type"], "snapshot");
    assert_eq!(ids(&out[2]), [(json!("7"), json!(1)), (json!("2"), json!(8)), (json!("3"), json!(4))]);
    assert_eq!(data(&out[3])["type"], "changes");
    assert_eq!(ids(&out[3]), [(json!("2"), json!(9))]);
    assert_eq!(out.len(), 4);
    assert_eq!(scene.state(false), OutboxState::default());
}

#[test]
fn the_latest_waiting_version_is_kept_and_version_zero_replaces_all() {
    let scene = scene(1 << 20);
    scene.open();
    for version in [3, 5, 4] {
        scene.outbox.change(user(2, version), false, AT);
    }
    scene.outbox.change(user(4, 8), false, AT);
    scene.outbox.change(user(4, 0), false, AT);
    scene.outbox.change(user(5, 1), false, AT);
    scene.outbox.remove(id(5), WallTime(9));
    let out = scene.take(true);
    let [message] = &out[..] else { panic!("{out:?}") };
    let mut users = data(message)["users"].as_array().unwrap().clone();
    users.sort_by_key(|user| user["id"].to_string());
    let shown = |id: &str, version| json!({"id": id, "version": version, "at_ms": AT.0});
    assert_eq!(users, [shown("2", 5), shown("4", 0)]);
    assert_eq!(data(message)["at_ms"], 9, "P18: a removal has its time, too");
    assert_eq!(data(message)["removed"], json!(["5"]));
    assert_eq!(scene.counters.sessions.changes_coalesced.get(), 3);
}

#[test]
fn the_session_is_woken_once_by_what_may_wait_and_again_by_what_is_urgent() {
    let scene = scene(1 << 20);
    scene.open();
    scene.outbox.change(user(2, 1), false, AT);
    assert_eq!(scene.wake_count(), 1);
    assert_eq!(scene.state(false), OutboxState { changes: true, ..OutboxState::default() });
    scene.outbox.change(user(3, 1), false, AT);
    assert_eq!(scene.wake_count(), 0);
    scene.outbox.change(user(4, 1), true, AT);
    assert_eq!(scene.wake_count(), 1);
    assert_eq!(scene.state(false), OutboxState { changes: true, urgent: true, ..OutboxState::default() });
    assert!(scene.take(false).is_empty());
    assert_eq!(data(&scene.take(true)[0])["users"].as_array().unwrap().len(), 3);
    // While the client does not read, only urgent events wake the session.
    scene.state(true);
    scene.outbox.change(user(2, 2), true, AT);
    scene.outbox.ping();
    assert_eq!(scene.wake_count(), 0);
    scene.outbox.probe();
    assert_eq!(scene.wake_count(), 1);
    assert!(!scene.state(true).probe_failed);
    scene.outbox.probe();
    assert!(scene.state(true).probe_failed);
    scene.outbox.close(CloseCode::NoPong);
    assert_eq!(scene.wake_count(), 2);
}

#[test]
fn a_client_over_the_bound_is_slow_and_its_outbox_is_freed() {
    let scene = scene(4096);
    scene.open();
    // Repeated changes of the same users do not grow the outbox.
    for version in 1..1000 {
        scene.outbox.change(user(2, version), false, AT);
    }
    assert!(!scene.outbox.is_closing());
    for number in 1..1000 {
        scene.outbox.change(user(number, 2000), false, AT);
    }
    assert_eq!(scene.state(false).close, Some(CloseCode::Slow));
    assert!(scene.take(true).is_empty());
    scene.outbox.close(CloseCode::Shutdown);
    scene.outbox.reply(Frame::text("{}"));
    assert_eq!(scene.state(false), OutboxState { close: Some(CloseCode::Slow), ..OutboxState::default() });
}

#[test]
fn replies_are_written_before_the_close_frame_and_the_rest_is_dropped() {
    let scene = scene(1 << 20);
    scene.open();
    scene.outbox.change(user(2, 1), true, AT);
    scene.outbox.ping();
    scene.outbox.reply(Frame::text(r#"{"id":2}"#));
    scene.outbox.close(CloseCode::ForceNoReconnect);
    assert_eq!(
        scene.state(false),
        OutboxState { now: true, close: Some(CloseCode::ForceNoReconnect), ..OutboxState::default() }
    );
    assert_eq!(scene.take(true), [json!({"id": 2})]);
}

#[test]
fn a_long_snapshot_comes_in_several_messages_and_is_not_taken_for_slowness() {
    let scene = scene(16 * 1024);
    scene.outbox.open(conn(7), Frame::text(r#"{"id":1}"#));
    let text: Arc<str> = format!(r#"{{"id":"1","text":"{}"}}"#, "x".repeat(10_000)).into();
    scene.outbox.snapshot((1..=60).map(|number| FeedUser {
        id: id(number),
        version: 1,
        json: Arc::clone(&text),
    }));
    let out = scene.take(false);
    let kinds: Vec<_> = out[1..].iter().map(|message| data(message)["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["snapshot", "changes", "changes"]);
    let more: Vec<_> = out[1..].iter().map(|message| data(message).get("more").is_some()).collect();
    assert_eq!(more, [true, true, false], "all but the last say that there is more");
    let count = |message: &Value| data(message)["users"].as_array().unwrap().len();
    assert_eq!(out[1..].iter().map(count).sum::<usize>(), 60);
    assert!(!scene.outbox.is_closing());
}

#[test]
fn a_user_that_becomes_invisible_during_the_snapshot_is_invisible_after_it() {
    let scene = scene(1 << 20);
    scene.outbox.change(user(2, 0), true, AT);
    scene.outbox.change(user(3, 4), true, AT);
    scene.outbox.snapshot([user(2, 8), user(3, 4)].into_iter());
    scene.outbox.open(conn(7), Frame::text(r#"{"id":1}"#));
    let out = scene.take(true);
    let users = data(&out[2])["users"].as_array().unwrap();
    // The third has the same version, but its visibility may differ.
    assert!(users.iter().any(|user| user["id"] == "2" && user["version"] == 0));
    assert!(users.iter().any(|user| user["id"] == "3" && user["version"] == 4));
}

#[test]
fn a_sample_that_cannot_be_written_is_no_failed_probe() {
    let scene = scene(4096);
    scene.open();
    scene.outbox.sample();
    scene.outbox.probe();
    scene.outbox.sample();
    assert!(!scene.state(true).probe_failed);
    scene.outbox.probe();
    assert!(scene.state(true).probe_failed);
}

#[test]
fn a_long_reply_does_not_make_a_client_slow() {
    let scene = scene(4096);
    scene.open();
    scene.outbox.reply(Frame::text(&format!(r#"{{"id":2,"x":"{}"}}"#, "x".repeat(10_000))));
    assert!(!scene.outbox.is_closing());
    scene.outbox.push(Frame::text(&format!(r#"{{"x":"{}"}}"#, "x".repeat(5_000))));
    assert_eq!(scene.state(false).close, Some(CloseCode::Slow), "all else counts as before");
}
