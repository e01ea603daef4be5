//! The overview: the first page of the dashboard, online users, recent events.

use serde_json::{Value as Json, json};
use testkit::{Announce, Api, Server, eventually};

use crate::api::{PATIENCE, add_torrent, announce, builder, detail, items, problem, walk};

/// Waits until the overview is as it should be.
#[track_caller]
fn overview(api: &Api, what: &str, is_so: impl Fn(&Json) -> bool) -> Json {
    eventually(what, PATIENCE, || Some(api.get("/api/v1/overview").ok()).filter(&is_so))
}

/// A heartbeat of a person's device.
#[track_caller]
fn heartbeat(server: &Server, user: u64, said: &Json) {
    let token = server.cli(&["token", &user.to_string()])["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let stranger = server.anonymous_api();
    stranger.send("POST", "/api/v1/presence/heartbeat", &headers, Some(said.to_string().as_bytes())).ok();
}

fn has_alert(overview: &Json, code: &str, subject: Option<&str>) -> bool {
    let alerts = overview["alerts"].as_array().unwrap();
    alerts.iter().any(|alert| alert["code"] == code && alert["subject"] == json!(subject))
}

#[test]
fn the_overview_shows_alerts_with_remedies() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    assert_eq!(problem(&server.anonymous_api().get("/api/v1/overview"), 401), "unauthorized");
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 7);
    announce(&server, &passkey, &Announce::seeder(hash, 1).with_totals(1_000_000, 0, 0));
    announce(&server, &passkey, &Announce::leecher(hash, 2).with_totals(0, 5, 100));
    heartbeat(&server, 1, &json!({ "device": "d", "platform": "phone" }));
    let seen = overview(&read, "peers and people", |seen| {
        seen["tracker"]["announces"] == 2
            && seen["presence"]["online"] == 1
            && seen["journal"]["appended"] == 2
            && seen["journal"]["views"][0]["lag"] == 0
    });
    assert_eq!(seen["presence"]["users"]["invisible"], json!(null), "a count beside names tells who it is");
    overview(&admin, "no invisible users", |seen| seen["presence"]["users"]["invisible"] == 0);
    let tracker = &seen["tracker"];
    assert_eq!(
        (&tracker["seeders"], &tracker["leechers"], &tracker["peers"]),
        (&json!(1), &json!(1), &json!(2))
    );
    assert_eq!(tracker["torrents_active"], 1);
    assert_eq!((&tracker["torrents_seeded"], &tracker["torrents_leeched"]), (&json!(1), &json!(1)));
    assert!(tracker["uploaded"].is_string() && tracker["announces_per_s"].is_f64(), "{tracker}");
    let views: Vec<&str> = seen["journal"]["views"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| view["view"].as_str().unwrap())
        .collect();
    assert_eq!(views, ["ledger", "activity"]);
    assert!(seen["health"].as_array().unwrap().iter().all(|one| one["state"] == "ok"), "{seen}");
    assert_eq!(seen["alerts"], json!([]));
    assert!(seen["started_at"].as_u64() > Some(1_700_000_000) && seen["node"].is_string());
    let causes: Vec<&Json> = seen["gateway"]["disconnects"].as_array().unwrap().iter().collect();
    assert!(causes.iter().any(|one| one["cause"] == "dropped" && one["count"] == 0), "{causes:?}");
    assert_eq!(seen["gateway"]["heartbeat_delay_ms"], json!(null));

    admin.json("PATCH", "/api/v1/journal/views/ledger", &json!({ "paused": true })).ok();
    let seen = overview(&read, "the pause", |seen| has_alert(seen, "view_paused", Some("ledger")));
    let alert = &seen["alerts"][0];
    assert_eq!(alert["severity"], "warning");
    assert!(alert["detail"].as_str().unwrap().contains("resume"), "{alert}");
    admin.json("PATCH", "/api/v1/journal/views/ledger", &json!({ "paused": false })).ok();
    overview(&read, "all well again", |seen| seen["alerts"] == json!([]));

    let history = read.get("/api/v1/overview/history").ok();
    assert_eq!(history["step_s"], 10);
    let first = &history["points"][0];
    assert!(first["at"].is_u64() && first["online"].is_u64() && first["announces_per_s"].is_f64(), "{first}");
    // The journal may not have answered yet when the first point was made.
    assert!(first["lag"].is_object(), "{first}");
}

#[test]
fn online_users_are_paged_and_invisible_ones_shown_to_admins_only() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    assert_eq!(read.get("/api/v1/presence/online").ok(), json!({ "items": [], "next": null }));
    heartbeat(&server, 130, &json!({ "device": "d", "platform": "phone" }));
    heartbeat(&server, 2, &json!({ "device": "d", "platform": "computer", "status": "busy" }));
    heartbeat(&server, 66, &json!({ "device": "d", "platform": "phone", "status": "invisible" }));
    heartbeat(&server, 65, &json!({ "device": "d", "platform": "web" }));
    let ids = |all: &[Json]| all.iter().map(|one| one["id"].as_u64().unwrap()).collect::<Vec<u64>>();
    assert_eq!(ids(&walk(&read, "/api/v1/presence/online", 1)), [2, 65, 130]);
    assert_eq!(ids(&walk(&admin, "/api/v1/presence/online", 2)), [2, 65, 66, 130]);
    let of = |api: &Api, query: &str| ids(items(&api.get(&format!("/api/v1/presence/online?{query}")).ok()));
    assert_eq!(of(&read, "platform=phone"), [130]);
    assert_eq!(of(&admin, "platform=phone"), [66, 130]);
    assert_eq!(of(&admin, "status=invisible"), [66]);
    assert_eq!(of(&read, "status=busy&platform=computer"), [2]);
    assert_eq!(of(&read, "status=pending"), [] as [u64; 0]);
    assert_eq!(of(&read, "cursor=65"), [130]);
    assert_eq!(problem(&read.get("/api/v1/presence/online?status=invisible"), 403), "forbidden");
    let busy = read.get("/api/v1/presence/online?status=busy").ok()["items"][0].clone();
    assert_eq!((&busy["status"], &busy["text"], &busy["seeding"]), (&json!("busy"), &json!(null), &json!(0)));
    assert_eq!(busy["since"], json!(null), "it would tell who was hidden before");
    let busy_to_admin = admin.get("/api/v1/presence/online?status=busy").ok()["items"][0].clone();
    assert!(busy_to_admin["since"].as_u64() > Some(1_700_000_000));
    assert_eq!(
        busy["devices"],
        json!([{ "platform": "computer", "state": "foreground", "status": "online" }])
    );
    for wrong in [
        "status=offline",
        "status=",
        "platform=fridge",
        "limit=0",
        "limit=1001",
        "cursor=0",
        "cursor=x",
        "x=1",
    ] {
        let refused = read.get(&format!("/api/v1/presence/online?{wrong}"));
        assert_eq!(problem(&refused, 400), "bad_request", "{wrong}");
    }
}

#[test]
fn presence_events_are_newest_first_and_hide_invisible_users() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    heartbeat(&server, 7, &json!({ "device": "d", "platform": "phone" }));
    heartbeat(&server, 8, &json!({ "device": "d", "status": "invisible" }));
    heartbeat(&server, 7, &json!({ "device": "d", "platform": "phone", "goodbye": true }));
    let told = |api: &Api| {
        let all = api.get("/api/v1/presence/events").ok();
        let one = |one: &Json| (one["user"].as_u64().unwrap(), one["event"].as_str().unwrap().to_owned());
        items(&all).iter().map(one).collect::<Vec<(u64, String)>>()
    };
    let event = |user, name: &str| (user, name.to_owned());
    assert_eq!(told(&read), [event(7, "left"), event(7, "joined")]);
    assert_eq!(told(&admin), [event(7, "left"), event(8, "joined"), event(7, "joined")]);
    let newest = admin.get("/api/v1/presence/events?limit=1").ok()["items"][0].clone();
    assert_eq!(
        (&newest["from"], &newest["to"], &newest["cause"]),
        (&json!("online"), &json!("offline"), &json!("goodbye"))
    );
    let first = items(&admin.get("/api/v1/presence/events").ok())[2].clone();
    assert_eq!((&first["platform"], &first["cause"]), (&json!("phone"), &json!("heartbeat")));
    let first = items(&read.get("/api/v1/presence/events").ok())[1].clone();
    assert_eq!((&first["platform"], &first["cause"]), (&json!(null), &json!("connect")));
    assert!(first["at_ms"].as_u64() > Some(1_700_000_000_000));
    for wrong in ["limit=0", "limit=501", "limit=x", "x=1"] {
        let refused = read.get(&format!("/api/v1/presence/events?{wrong}"));
        assert_eq!(problem(&refused, 400), "bad_request", "{wrong}");
        assert!(detail(&refused).len() > 10);
    }
}
