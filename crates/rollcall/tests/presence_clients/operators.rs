//! The operators' feed, as the dashboard reads it: with the npm package `centrifuge`, unchanged.

use serde_json::{Value, json};
use testkit::Server;

use crate::agent::{Agent, Kind};
use crate::fixture::{arrive, people, server, url};

/// The next message of this type in the operators' channel.
#[track_caller]
fn next(agent: &mut Agent, kind: &str) -> Value {
    agent.wait_for(kind, |event| {
        let is_it = event.said["channel"] == "admin" && event.said["data"]["type"] == kind;
        is_it.then(|| event.said["data"].clone())
    })
}

/// A connected operator, with a token fetched as the dashboard does.
#[track_caller]
fn look_on(server: &Server, is_admin: bool) -> Agent {
    let mut agent = Agent::start(Kind::JavaScriptSdk, "operator");
    let api = server.api(if is_admin { &["admin"] } else { &["read"] });
    let feed = json!({"url": format!("http://{}/session/feed-token", server.site_addr()), "key": api.key()});
    agent.ask("start", json!({"url": url(server), "identity": {"feed": feed}}));
    agent.wait_event("connected");
    agent
}

#[test]
fn an_operator_sees_the_overview_and_presence_events() {
    let server = server().start();
    people(&server, &[1], &[]);
    let (mut admin, mut reader) = (look_on(&server, true), look_on(&server, false));
    let overview = next(&mut admin, "overview")["overview"].clone();
    assert_eq!((&overview["people"]["online"], &overview["people"]["connections"]), (&json!(0), &json!(0)));
    assert!(
        overview["tracker"]["announces"].is_u64() && overview["journal"]["views"].is_array(),
        "{overview}"
    );

    let mut one = arrive(Kind::JavaScriptSdk, &server, "1", "laptop");
    // Without `admin` every connect looks alike: otherwise it would reveal who was invisible.
    for (agent, platform) in [(&mut admin, json!("computer")), (&mut reader, json!(null))] {
        let told = next(agent, "people");
        let joined = &told["events"][0];
        assert_eq!(
            (&joined["user"], &joined["event"], &joined["to"]),
            (&json!(1), &json!("joined"), &json!("online"))
        );
        assert_eq!((&joined["platform"], &joined["cause"]), (&platform, &json!("connect")));
        assert_eq!(told["left_out"], 0);
    }
    admin.wait_for("an overview with the one who came", |event| {
        (event.said["data"]["overview"]["people"]["online"] == 1).then_some(())
    });

    one.rpc("status.set", json!({"status": "invisible"}));
    let hidden = next(&mut admin, "people")["events"][0].clone();
    assert_eq!(
        (&hidden["event"], &hidden["to"], &hidden["cause"]),
        (&json!("status"), &json!("invisible"), &json!("declared"))
    );
    let left = next(&mut reader, "people")["events"][0].clone();
    assert_eq!(
        (&left["event"], &left["to"], &left["cause"]),
        (&json!("left"), &json!("offline"), &json!("close"))
    );
    one.ask("disconnect", json!({}));
    assert_eq!(next(&mut admin, "people")["events"][0]["event"], "left");
}
