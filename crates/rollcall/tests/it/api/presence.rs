//! Presence over the API: online users, heartbeats over HTTP, devices, history, disconnecting.

use serde_json::{Value as Json, json};
use testkit::{Api, ApiReply, Server, eventually};

use crate::api::{PATIENCE, builder, detail, items, metric, problem, quoted, walk};

const HEARTBEAT: &str = "/api/v1/presence/heartbeat";

/// A caller with a person's own token.
struct Person {
    stranger: Api,
    bearer: String,
}

impl Person {
    fn new(server: &Server, user: u64) -> Person {
        let made = server.cli(&["token", &user.to_string()]);
        Person {
            stranger: server.anonymous_api(),
            bearer: format!("Bearer {}", made["token"].as_str().unwrap()),
        }
    }

    fn says(&self, said: &Json) -> ApiReply {
        let headers = [("authorization", self.bearer.as_str()), ("content-type", "application/json")];
        self.stranger.send("POST", HEARTBEAT, &headers, Some(said.to_string().as_bytes()))
    }
}

/// What others see of a person.
fn status_of(api: &Api, user: u64) -> String {
    api.get(&format!("/api/v1/presence/{user}")).ok()["status"].as_str().unwrap().to_owned()
}

#[test]
fn p8_heartbeats_over_http_follow_the_rules_of_the_apps_state() {
    let server = builder().start();
    let (read, admin, person) = (server.api(&["read"]), server.api(&["admin"]), Person::new(&server, 7));
    assert_eq!(status_of(&read, 7), "offline");
    let heard = person.says(&json!({ "device": "phone-1", "platform": "phone" }));
    assert_eq!(heard.ok(), json!({ "next_s": 24 }));
    let shown = read.get("/api/v1/presence/7").ok();
    assert_eq!((shown["id"].as_str(), shown["status"].as_str()), (Some("7"), Some("online")));
    assert_eq!(
        shown["devices"],
        json!([{ "id": "phone-1", "platform": "phone", "state": "foreground", "status": "online" }])
    );
    let count = admin.get("/api/v1/presence/count").ok();
    assert_eq!((count["online"].as_u64(), count["users"]["online"].as_u64()), (Some(1), Some(1)));
    assert_eq!((count["without_connection"].as_u64(), count["connections"].as_u64()), (Some(1), Some(0)));
    assert_eq!(metric(&read, "rollcall_presence_users{status=\"online\"}"), 1.0);

    let background = json!({ "device": "phone-1", "platform": "phone", "app_state": "background" });
    assert_eq!(person.says(&background).ok(), json!({ "next_s": 240 }));
    assert_eq!(status_of(&read, 7), "online", "the background is no absence yet");
    person.says(&json!({ "device": "phone-1", "app_state": "inactive" })).ok();
    assert_eq!(status_of(&read, 7), "away");

    let sessions = admin.get("/api/v1/users/7/devices").ok()["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        (sessions[0]["device"].as_str(), sessions[0]["connected"].as_bool()),
        (Some("phone-1"), Some(false))
    );
    let heartbeats = sessions[0]["heartbeats_ms"].as_array().unwrap();
    assert!((1..=10).contains(&heartbeats.len()) && heartbeats[0].as_u64() > Some(1_700_000_000_000));

    assert_eq!(person.says(&json!({ "device": "phone-1", "goodbye": true })).ok(), json!({ "next_s": null }));
    let shown = read.get("/api/v1/presence/7").ok();
    assert_eq!((shown["status"].as_str(), &shown["devices"]), (Some("offline"), &json!([])));
    assert!(shown["last_seen"].as_u64() > Some(1_700_000_000));
    let history = eventually("the history to be written", PATIENCE, || {
        let history = walk(&admin, "/api/v1/users/7/presence/history", 2);
        history.iter().any(|one| one["event"] == "left").then_some(history)
    });
    assert!(history.iter().any(|one| one["event"] == "arrived"), "{history:?}");
    let went = history.iter().find(|one| one["event"] == "transition").unwrap();
    assert_eq!((went["from"].as_str(), went["to"].as_str()), (Some("away"), Some("offline")));
    let ids: Vec<u64> = history.iter().map(|one| one["id"].as_u64().unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a > b), "newest first, none twice: {ids:?}");
}

#[test]
fn presence_of_many_users_is_read_in_one_request() {
    let server = builder().start();
    let (read, person) = (server.api(&["read"]), Person::new(&server, 9));
    person.says(&json!({ "device": "d", "status": "busy" })).ok();
    let users: Vec<Json> = (1..=10_000_u64)
        .map(|user| if user % 2 == 0 { json!(user) } else { json!(user.to_string()) })
        .collect();
    let shown = read.post("/api/v1/presence/query", &json!({ "users": users })).ok();
    let shown = shown["items"].as_array().unwrap();
    assert_eq!(shown.len(), 10_000);
    assert_eq!((shown[8]["id"].as_str(), shown[8]["status"].as_str()), (Some("9"), Some("busy")));
    assert_eq!((shown[9]["status"].as_str(), shown[9]["version"].as_u64()), (Some("offline"), Some(0)));
    let many: Vec<u64> = (1..=10_001).collect();
    let refused = read.post("/api/v1/presence/query", &json!({ "users": many }));
    assert_eq!(problem(&refused, 400), "bad_request");
    assert!(detail(&refused).contains("10000"));
    for wrong in [json!(0), json!("07"), json!(-1), json!("x"), json!(1.5), json!(u64::MAX), json!(null)] {
        let refused = read.post("/api/v1/presence/query", &json!({ "users": [wrong] }));
        assert_eq!(problem(&refused, 422), "bad_body", "{wrong}");
    }
    let nothing = read.post("/api/v1/presence/query", &json!({ "users": [] })).ok();
    assert_eq!(nothing, json!({ "items": [], "next": null }));
    assert_eq!(problem(&read.get("/api/v1/presence/0"), 400), "bad_request");
}

#[test]
fn p1_invisible_users_look_offline_to_all_but_admins() {
    let server = builder().start();
    let (read, admin, person) = (server.api(&["read"]), server.api(&["admin"]), Person::new(&server, 7));
    person.says(&json!({ "device": "d", "status": "invisible" })).ok();
    let shown = read.get("/api/v1/presence/7").ok();
    assert_eq!((shown["status"].as_str(), &shown["devices"]), (Some("offline"), &json!([])));
    let count = |api: &Api| api.get("/api/v1/presence/count").ok();
    assert_eq!(count(&read)["online"], 0);
    // Neither how many hide, nor what includes them.
    let shown = count(&read);
    for figure in ["/users/invisible", "/connections", "/platforms", "/without_connection"] {
        assert_eq!(shown.pointer(figure), Some(&Json::Null), "{figure}");
        let overview = read.get("/api/v1/overview").ok();
        assert_eq!(overview["presence"].pointer(figure), Some(&Json::Null), "{figure} of the overview");
    }
    assert_eq!(
        (&count(&admin)["users"]["invisible"], &count(&admin)["without_connection"]),
        (&json!(1), &json!(1))
    );
    let page = String::from_utf8(read.get("/metrics").reply.body).unwrap();
    assert!(page.contains("rollcall_presence_users") && !page.contains("status=\"invisible\""), "{page}");
    for target in ["/api/v1/users/7/devices", "/api/v1/users/7/presence/history"] {
        assert_eq!(problem(&read.get(target), 403), "forbidden");
    }
    assert_eq!(admin.get("/api/v1/users/7/devices").ok()["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn an_admin_disconnects_users_and_it_is_audited() {
    let server = builder().start();
    let (read, admin, person) = (server.api(&["read"]), server.api(&["admin"]), Person::new(&server, 7));
    for device in ["one", "two", "three"] {
        person.says(&json!({ "device": device })).ok();
    }
    let one = admin.post("/api/v1/users/7/disconnect", &json!({ "device": "one" })).ok();
    assert_eq!(one, json!({ "sessions": 1 }));
    assert_eq!(status_of(&read, 7), "online", "two are left");
    assert_eq!(admin.post("/api/v1/users/7/disconnect", &json!({})).ok(), json!({ "sessions": 2 }));
    assert_eq!(status_of(&read, 7), "offline");
    assert_eq!(admin.post("/api/v1/users/7/disconnect", &json!({})).ok(), json!({ "sessions": 0 }));
    let bad = admin.post("/api/v1/users/7/disconnect", &json!({ "device": "" }));
    assert_eq!(problem(&bad, 400), "bad_request");
    let trail = admin.get("/api/v1/audit?action=user.disconnect").ok();
    let recorded = items(&trail);
    assert_eq!(recorded.len(), 3, "{trail}");
    assert_eq!(
        (recorded[2]["subjectId"].as_str(), &recorded[2]["details"]["device"]),
        (Some("7"), &json!("one"))
    );
    assert_eq!(recorded[1]["details"]["sessions"], 2);
}

#[test]
fn heartbeats_accept_only_a_valid_user_token() {
    let server = builder().start();
    let (stranger, admin, person) = (server.anonymous_api(), server.api(&["admin"]), Person::new(&server, 7));
    let room_token = server.cli(&["token", "7", "--room", "lobby"])["token"].as_str().unwrap().to_owned();
    let forged = format!("{}x", person.bearer);
    let said = json!({ "device": "d" });
    let body = Some(said.to_string().into_bytes());
    for (what, authorization) in [
        ("nothing", None),
        ("an API key", Some(format!("Bearer {}", admin.key().unwrap()))),
        ("a token for a room", Some(format!("Bearer {room_token}"))),
        ("a forged token", Some(forged)),
        ("no bearer", Some(person.bearer.replace("Bearer", "Basic"))),
        ("no algorithm", Some("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiI3In0.".to_owned())),
    ] {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(authorization.iter().map(|value| ("authorization", value.as_str())));
        let reply = stranger.send("POST", HEARTBEAT, &headers, body.as_deref());
        assert_eq!(problem(&reply, 401), "unauthorized", "{what}");
        assert!(detail(&reply).contains("rollcall token"), "{what}");
    }
    assert_eq!(admin.get("/api/v1/presence/count").ok()["without_connection"], 0, "nothing was kept");
    for (wrong, field) in [
        (json!({ "device": "d", "platform": "fridge" }), "platform"),
        (json!({ "device": "d", "app_state": "asleep" }), "app_state"),
        (json!({ "device": "d", "status": "offline" }), "status"),
        (json!({ "device": "a b" }), "device"),
    ] {
        let reply = person.says(&wrong);
        assert_eq!(problem(&reply, 400), "bad_request");
        assert!(detail(&reply).starts_with(field), "{}", detail(&reply));
    }
    assert_eq!(problem(&person.says(&json!({})), 422), "bad_body");
    let other = Person::new(&server, 8);
    // Twenty devices, slower than the rate limit if need be.
    let heartbeat = |device: String| {
        eventually("a heartbeat within the rate limit", PATIENCE, || {
            Some(other.says(&json!({ "device": device }))).filter(|reply| reply.status() != 429)
        })
    };
    for number in 0..20 {
        heartbeat(format!("device-{number}")).ok();
    }
    assert_eq!(problem(&heartbeat("one-more".to_owned()), 409), "too_many_devices");
    let log = server.log();
    assert!(!log.contains(&person.bearer[7..]), "the log tells a token");
}

#[test]
fn a_user_over_the_rate_limit_gets_a_retry_time() {
    let server = builder().start();
    let (read, person, other) = (server.api(&["read"]), Person::new(&server, 7), Person::new(&server, 8));
    let said = json!({ "device": "d" });
    let refused =
        eventually("a refusal", PATIENCE, || Some(person.says(&said)).filter(|reply| reply.status() != 200));
    assert_eq!(problem(&refused, 429), "too_many_requests");
    assert!(refused.reply.header("retry-after").is_some());
    assert_eq!(other.says(&said).status(), 200, "others are heard");
    assert!(metric(&read, "rollcall_site_rate_limited_total{by=\"user\"}") >= 1.0);
}

#[test]
fn pages_that_may_connect_may_send_heartbeats_and_nothing_else() {
    let server = builder().set("gateway.allowed_origins", "[\"https://pt.example.com\"]").start();
    let stranger = server.anonymous_api();
    let preflight = |target: &str, origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        stranger.send("OPTIONS", target, &headers, None)
    };
    let allowed = preflight(HEARTBEAT, "https://pt.example.com");
    assert_eq!(allowed.status(), 204);
    assert_eq!(allowed.reply.header("access-control-allow-origin"), Some("https://pt.example.com"));
    assert!(allowed.reply.header("access-control-allow-headers").unwrap().contains("authorization"));
    for (target, origin) in
        [(HEARTBEAT, "https://evil.example.com"), ("/api/v1/presence/query", "https://pt.example.com")]
    {
        let refused = preflight(target, origin);
        assert_eq!(refused.reply.header("access-control-allow-origin"), None, "{target} {origin}");
    }
}

#[test]
fn without_the_gateway_the_site_reports_it() {
    let server = builder().roles("tracker,ledger,activity,site").start();
    let (admin, stranger) = (server.api(&["admin"]), server.anonymous_api());
    for target in [
        "/api/v1/presence/7",
        "/api/v1/presence/count",
        "/api/v1/presence/online",
        "/api/v1/presence/events",
        "/api/v1/users/7/devices",
    ] {
        let reply = admin.get(target);
        assert_eq!(problem(&reply, 503), "no_gateway");
        assert!(detail(&reply).contains("--roles"));
    }
    let overview = admin.get("/api/v1/overview").ok();
    assert_eq!((&overview["presence"], &overview["gateway"]), (&Json::Null, &Json::Null));
    let headers = [("authorization", "Bearer x"), ("content-type", "application/json")];
    let reply = stranger.send("POST", HEARTBEAT, &headers, Some(b"{}"));
    assert_eq!(problem(&reply, 503), "no_gateway");
}

#[test]
fn with_a_secret_of_the_sites_own_nothing_is_kept_in_the_data_folder() {
    let secret = "s".repeat(40);
    let server = builder().set("gateway.token_hmac_secret", quoted(&secret)).start();
    assert!(!server.data_folder().join("gateway.secret").exists());
    Person::new(&server, 7).says(&json!({ "device": "d" })).ok();
    assert!(!server.log().contains(&secret));
}
