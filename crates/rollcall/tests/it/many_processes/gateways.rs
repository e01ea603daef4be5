//! Several gateways on one Redis and one database are one.

use serde_json::{Value, json};
use testkit::{RedisServer, Server, eventually, http};

use crate::site::{DatabaseKind, PATIENCE, Site, builder, quoted};

const SECRET: &str = "a secret that all gateways and the site share";
const HEARTBEAT: &str = "/api/v1/presence/heartbeat";

fn token_of(server: &Server, user: u64) -> String {
    let said = server.cli(&["token", &user.to_string()]);
    said["token"].as_str().unwrap().to_owned()
}

fn heartbeat(server: &Server, token: &str, device: &str, more: Value) {
    let mut body = json!({"device": device, "platform": "phone", "app_state": "foreground"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    server.anonymous_api().send("POST", HEARTBEAT, &headers, Some(body.to_string().as_bytes())).ok();
}

#[test]
fn p3_users_of_one_gateway_are_visible_on_the_other_and_in_the_public_keys() {
    let shared = || {
        builder()
            .set("gateway.token_hmac_secret", quoted(SECRET))
            .set("presence.lease_s", 3)
            .set("presence.pending_s", 2)
            .set("site.metrics_open", true)
    };
    let site = Site::start(
        shared().set("journal.node_name", quoted("gw-a")),
        Some(RedisServer::start()),
        DatabaseKind::Sqlite,
    );
    let database = format!("sqlite://{}", site.server.data_folder().join("rollcall.db").display());
    let mut other = shared()
        .set("journal.node_name", quoted("gw-b"))
        .set("redis.url", quoted(&site.redis().url()))
        .set("database.url", quoted(&database))
        .roles("tracker,gateway,site")
        .start();
    let one = &site.server;
    assert_eq!(http::get(other.site_addr(), "/readyz").status(), 200);
    let (api, token) = (one.api(&["read", "admin"]), token_of(one, 7));
    heartbeat(&other, &token, "phone-1", json!({}));
    let get = |key: &str| site.redis().cli(&["GET", key]).trim().to_owned();
    eventually("the keys", PATIENCE, || (get("presence:7") == "online").then_some(()));
    assert_eq!(get("connection:7"), "gw-b");
    assert!(get("heartbeat:7").parse::<u64>().unwrap() > 1_700_000_000);
    eventually("the person at the other gateway", PATIENCE, || {
        let person = api.get("/api/v1/presence/7").json();
        (person["status"] == "online" && person["devices"][0]["id"] == "phone-1").then_some(())
    });
    let devices = api.get("/api/v1/users/7/devices").json();
    assert_eq!(
        (devices["sessions"].as_array().unwrap().len(), &devices["remote"][0]["node"]),
        (0, &json!("gw-b"))
    );
    heartbeat(one, &token, "tablet", json!({}));
    eventually("both", PATIENCE, || (get("connection:7") == "gw-a,gw-b").then_some(()));
    eventually("to be counted once", PATIENCE, || {
        let count = api.get("/api/v1/presence/count").json();
        (count["users"]["online"] == 1 && count["without_connection"] == 2).then_some(())
    });
    // The goodbye of a device may come to another gateway than its heartbeats.
    heartbeat(one, &token, "phone-1", json!({"goodbye": true}));
    eventually("one device", PATIENCE, || (get("connection:7") == "gw-a").then_some(()));

    heartbeat(&other, &token_of(one, 8), "phone-2", json!({}));
    eventually("the second person", PATIENCE, || (get("presence:8") == "online").then_some(()));
    other.kill();
    eventually("to be pending", PATIENCE, || {
        (api.get("/api/v1/presence/8").json()["status"] == "pending").then_some(())
    });
    assert_eq!(get("presence:8"), "", "P19: pending is not online");
    eventually("to be gone", PATIENCE, || {
        (api.get("/api/v1/presence/8").json()["status"] == "offline").then_some(())
    });
    assert_eq!(get("presence:7"), "online");
    let page = String::from_utf8(http::get(one.site_addr(), "/metrics").body).unwrap();
    assert!(page.contains("rollcall_cluster_nodes 1\n"), "{page}");
}
