//! Who may ask what: every route that the description names, with every kind of caller.

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::{Announce, Api, ApiReply, RawHttp, Server, eventually};

use crate::api::{PATIENCE, add_torrent, announce, builder, items, metric, problem, quoted};

const TRACKER_KEY: &str = "a key of the operator's own choice";
/// What no key is good for.
const PERSON: &str = "a person's own token";
/// Nor for this.
const SESSION: &str = "session";
const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];

/// A route as the description has it.
struct Route {
    method: String,
    target: String,
    /// The scope it takes, or a person's own token; none if it is open.
    needs: Option<String>,
}

fn routes(server: &Server) -> Vec<Route> {
    let document = server.anonymous_api().get("/openapi.json").ok();
    assert_eq!(document["openapi"], "3.1.0");
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let target = path
                .replace("{lane}", "dlq")
                .replace("{prefix}", "-XX9")
                .replace("{first}/{last}", "1/2")
                .replace("{view}", "nothing")
                .replace("dead-letters/dlq/{id}", "dead-letters/dlq/1-1")
                .replace("{other}", "999998")
                .replace("{torrent}", "999998")
                .replace("{id}", "999999");
            assert!(!target.contains('{'), "{target}");
            let needs = scope_of(operation);
            routes.push(Route { method: method.to_ascii_uppercase(), target, needs });
        }
    }
    assert!(routes.len() > 30, "all of the API is described: {}", routes.len());
    routes
}

/// The declared scopes of an operation. Both ways to send a key, and the session, must agree.
fn scope_of(operation: &Json) -> Option<String> {
    let ways = operation["security"].as_array()?;
    if ways.iter().any(|way| way.as_object().is_some_and(serde_json::Map::is_empty)) {
        return None;
    }
    if let [way] = ways.as_slice() {
        let is_person = way.get("user_token").is_some();
        assert!(is_person || way.get("session").is_some(), "{operation}");
        return Some(if is_person { PERSON.to_owned() } else { SESSION.to_owned() });
    }
    let [header, bearer, session] = ways.as_slice() else { panic!("three ways: {operation}") };
    let scope = header["api_key"][0].as_str().unwrap();
    assert_eq!((&bearer["bearer"][0], &session["session"][0]), (&Json::from(scope), &Json::from(scope)));
    Some(scope.to_owned())
}

fn ask(api: &Api, route: &Route) -> ApiReply {
    match route.method.as_str() {
        "GET" | "DELETE" => api.send(&route.method, &route.target, &[], None),
        _ => api.json(&route.method, &route.target, &json!({})),
    }
}

fn last_digit_changed(key: &str) -> String {
    let (rest, last) = key.split_at(key.len() - 1);
    format!("{rest}{}", if last == "0" { "1" } else { "0" })
}

/// Revokes the key of this caller, and waits until it is refused.
fn revoke(server: &Server, api: &Api, id: &str) {
    server.cli(&["key", "revoke", id]);
    eventually("a revoked key to be refused", PATIENCE, || {
        (api.get("/api/v1/stats").status() == 401).then_some(())
    });
}

fn revoked(server: &Server) -> Api {
    let made = server.cli(&["key", "create", "--name", "gone", "--scope", "admin"]);
    let api = server.anonymous_api().with_key(made["key"].as_str().unwrap());
    eventually("the key to work", PATIENCE, || (api.get("/api/v1/stats").status() == 200).then_some(()));
    revoke(server, &api, made["id"].as_str().unwrap());
    api
}

#[test]
fn every_route_does_with_every_caller_what_the_description_says() {
    let server = builder().set("site.tracker_api_key", quoted(TRACKER_KEY)).start();
    let stranger = server.anonymous_api();
    let admin = server.api(&["admin"]);
    let wrong = last_digit_changed(admin.key().unwrap());
    let unknown = [
        ("no key", stranger.clone()),
        ("a wrong key", stranger.with_key(&wrong)),
        ("a malformed key", stranger.with_key("nonsense")),
        ("an empty key", stranger.with_key("")),
        ("a long key", stranger.with_key(&"a".repeat(2000))),
        ("a revoked key", revoked(&server)),
    ];
    let known = [
        ("verify", server.api(&["verify"]), vec!["verify"]),
        ("read", server.api(&["read"]), vec!["read"]),
        ("verify and read", server.api(&["verify", "read"]), vec!["verify", "read"]),
        ("admin", admin.clone(), vec!["verify", "read", "admin"]),
        ("the configured key", stranger.with_key(TRACKER_KEY), vec!["verify"]),
    ];
    let (mut unauthorized, mut forbidden) = (0.0, 0.0);
    let before = metric(&admin, "rollcall_site_unauthorized_total");
    for route in routes(&server) {
        let name = format!("{} {}", route.method, route.target);
        for (who, api) in &unknown {
            let reply = ask(api, &route);
            if route.needs.is_none() {
                assert!(!matches!(reply.status(), 401 | 403), "{name} with {who}: {}", reply.status());
                continue;
            }
            assert_eq!(reply.status(), 401, "{name} with {who}");
            assert_eq!(problem(&reply, 401), "unauthorized");
            assert_eq!(reply.reply.header("www-authenticate"), Some("Bearer"), "{name} with {who}");
            unauthorized += 1.0;
        }
        for (who, api, may) in &known {
            let status = ask(api, &route).status();
            match &route.needs {
                Some(needs) if needs == PERSON || needs == SESSION => {
                    assert_eq!(status, 401, "{name} with {who}");
                    unauthorized += 1.0;
                }
                Some(needs) if !may.contains(&needs.as_str()) => {
                    assert_eq!(status, 403, "{name} with {who}");
                    forbidden += 1.0;
                }
                _ => assert!(!matches!(status, 401 | 403 | 405 | 500), "{name} with {who}: {status}"),
            }
        }
    }
    assert_eq!(metric(&admin, "rollcall_site_unauthorized_total") - before, unauthorized);
    assert_eq!(metric(&admin, "rollcall_site_forbidden_total"), forbidden);
}

/// What the description does not name is not there: other methods, other paths.
#[test]
fn what_is_not_described_is_not_there() {
    let server = builder().start();
    let (stranger, admin) = (server.anonymous_api(), server.api(&["admin"]));
    let document = stranger.get("/openapi.json").ok();
    for (path, item) in document["paths"].as_object().unwrap() {
        let target = path.replace(['{', '}'], "");
        for method in METHODS.iter().chain(&["options", "trace", "brew"]) {
            let is_described = item.get(method).is_some() || (*method == "head" && item.get("get").is_some());
            if is_described {
                continue;
            }
            for (who, api) in [("a stranger", &stranger), ("an admin", &admin)] {
                let request = format!(
                    "{} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {}\r\n\r\n",
                    method.to_ascii_uppercase(),
                    api.key().unwrap_or("none")
                );
                let mut connection = RawHttp::connect(server.site_addr());
                connection.send(request.as_bytes());
                let reply = String::from_utf8(connection.read_to_close()).unwrap();
                let expected = if who == "an admin" { &["405"][..] } else { &["405", "401"][..] };
                let status = reply.split(' ').nth(1).unwrap();
                assert!(expected.contains(&status), "{method} {target} of {who}: {reply}");
            }
        }
    }
    for target in
        ["/api", "/api/v1", "/api/v1/", "/api/v2/users", "/api/v1/users/1/nothing", "/admin", "/.env"]
    {
        for api in [&stranger, &admin] {
            assert_eq!(problem(&api.get(target), 404), "unknown_path", "{target}");
        }
    }
}

#[test]
fn a_key_counts_in_its_headers_only_and_two_that_differ_are_none() {
    let server = builder().start();
    let (stranger, read, admin) = (server.anonymous_api(), server.api(&["read"]), server.api(&["admin"]));
    let key = read.key().unwrap();
    let status = |headers: &[(&str, &str)]| stranger.send("GET", "/api/v1/stats", headers, None).status();
    let bearer = format!("Bearer {key}");
    let other = format!("Bearer {}", admin.key().unwrap());
    assert_eq!(status(&[("x-api-key", key)]), 200);
    assert_eq!(status(&[("authorization", &bearer)]), 200);
    assert_eq!(status(&[("AUTHORIZATION", &bearer.replace("Bearer", "bearer"))]), 200);
    assert_eq!(status(&[("x-api-key", key), ("authorization", &bearer)]), 200, "the same one twice");
    assert_eq!(status(&[("x-api-key", key), ("authorization", &other)]), 401);
    assert_eq!(status(&[("x-api-key", key), ("x-api-key", admin.key().unwrap())]), 401);
    assert_eq!(status(&[("authorization", &bearer), ("authorization", &other)]), 401);
    assert_eq!(status(&[("authorization", &format!("Basic {key}"))]), 401);
    assert_eq!(status(&[("authorization", key)]), 401);
    assert_eq!(status(&[("cookie", &format!("x-api-key={key}"))]), 401);
    for parameter in ["key", "api_key", "x-api-key", "apikey", "token", "access_token"] {
        let target = format!("/api/v1/stats?{parameter}={key}");
        assert_eq!(stranger.get(&target).status(), 401, "{parameter}");
    }
}

/// Addresses, passkeys and what other keys did are for `admin` alone.
#[test]
fn secrets_are_shown_to_admins_only() {
    let server = builder().set("limits.peer_rate_max_mbit_per_s", 1).start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(7);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let client = Announce::leecher(hash, 1).with_event(AnnounceEvent::Started);
    announce(&server, &passkey, &client);
    // A petabyte in no time: a risk event.
    announce(&server, &passkey, &client.with_event(AnnounceEvent::None).with_totals(1 << 50, 0, 5));
    eventually("a risk event", PATIENCE, || {
        (!items(&read.get("/api/v1/risks").ok()).is_empty()).then_some(())
    });
    let passkey = passkey.to_string();
    for (target, secret) in [
        ("/api/v1/users".to_owned(), passkey.as_str()),
        ("/api/v1/users/7".to_owned(), &passkey),
        (format!("/api/v1/torrents/{hash}/peers"), "127.0.0.1"),
        ("/api/v1/risks".to_owned(), "127.0.0.1"),
    ] {
        let (to_reader, to_admin) = (read.get(&target).ok().to_string(), admin.get(&target).ok().to_string());
        assert!(to_admin.contains(secret), "{target}: {to_admin}");
        assert!(!to_reader.contains(secret), "{target}: {to_reader}");
        assert!(to_reader.contains("\"user\":7") || to_reader.contains("\"id\":7"), "{target}: {to_reader}");
    }
    let log = server.log();
    for secret in [&*passkey, read.key().unwrap(), admin.key().unwrap()] {
        assert!(!log.contains(secret), "the log tells {secret}");
    }
}

#[test]
fn reasons_of_readiness_take_a_key_and_metrics_can_be_opened() {
    let redis = testkit::RedisServer::start();
    let mut server = builder().set("redis.url", quoted(&redis.url())).start();
    let (stranger, read) = (server.anonymous_api(), server.api(&["read"]));
    let verify = server.api(&["verify"]);
    eventually("everything to be well", PATIENCE, || (stranger.get("/readyz").status() == 200).then_some(()));
    drop(redis);
    let told = eventually("the whitelist to be missed", PATIENCE, || {
        let reply = read.get("/readyz");
        let has_reason = reply.json()["dependencies"].as_array()?.iter().any(|one| one["reason"].is_string());
        (reply.status() == 503 && has_reason).then(|| reply.json())
    });
    assert_eq!(told["ready"], false);
    for api in [&stranger, &verify] {
        let reply = api.get("/readyz");
        assert_eq!(reply.status(), 503);
        let states = reply.json()["dependencies"].as_array().unwrap().clone();
        assert!(states.iter().any(|one| one["state"] == "failing" && one["since"].as_u64() > Some(0)));
        assert!(states.iter().all(|one| one.get("reason").is_none()), "{states:?}");
        assert_eq!(api.get("/healthz").ok()["state"], "alive");
    }
    assert_eq!((stranger.get("/metrics").status(), verify.get("/metrics").status()), (401, 403));
    assert_eq!(read.get("/metrics").status(), 200);
    server.kill();
    let open = builder().set("site.metrics_open", true).start();
    assert_eq!(open.anonymous_api().get("/metrics").status(), 200);
    assert_eq!(open.anonymous_api().get("/api/v1/stats").status(), 401, "and nothing else");
}
