//! A server with a few users who are friends, for each test its own.

use serde_json::{Value, json};
use testkit::{Server, ServerBuilder, eventually, http};

use crate::presence_clients::agent::{Agent, Kind, PATIENCE};

/// With which the tokens of these tests are signed.
pub const SECRET: &str = "a secret of these tests, 32 characters and more";

/// A server to be, whose tokens these tests can sign.
pub fn server() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("gateway.token_hmac_secret", format!("{SECRET:?}"))
        .set("site.metrics_open", true)
}

/// The shortest times of P7 that the settings allow: a heartbeat every 5 s, probes of 1 s, offline after 15 s.
pub fn quick_ladder(builder: ServerBuilder) -> ServerBuilder {
    builder
        .set("presence.heartbeat_s", 5)
        .set("presence.ping_s", 2)
        .set("presence.background_away_s", 30)
        .set("presence.background_gone_s", 60)
}

/// Waits until presence is stored: a crash may lose the last second.
#[track_caller]
pub fn until_remembered(server: &Server) {
    eventually("presence to be written down", PATIENCE, || {
        let page = String::from_utf8(http::get(server.site_addr(), "/metrics").body).unwrap();
        let is_written = page.lines().any(|line| line == "rollcall_presence_writer_waiting_rows 0");
        is_written.then_some(())
    });
}

/// Adds users, and friendships between the given pairs.
#[track_caller]
pub fn people(server: &Server, ids: &[u64], friends: &[(u64, u64)]) {
    for id in ids {
        server.cli(&["user", "add", "--id", &id.to_string()]);
    }
    for (one, other) in friends {
        server.cli(&["friend", "add", &one.to_string(), &other.to_string()]);
    }
}

pub fn url(server: &Server) -> String {
    format!("ws://{}/connection/websocket", server.site_addr())
}

/// Whose tokens an agent signs.
pub fn identity(user: &str) -> Value {
    json!({"secret": SECRET, "user": user})
}

/// An agent of a person, connected, with its snapshot still unread.
#[track_caller]
pub fn arrive(kind: Kind, server: &Server, user: &str, device: &str) -> Agent {
    let mut agent = Agent::start(kind, user);
    let details = match kind {
        Kind::JavaScriptSdk | Kind::PythonSdk => {
            json!({"data": {"device": device, "platform": "computer", "app_state": "foreground"}})
        }
        _ => json!({"device": device, "platform": "computer"}),
    };
    let mut start = details;
    start["url"] = url(server).into();
    start["identity"] = identity(user);
    agent.ask("start", start);
    agent.wait_event("connected");
    agent
}
