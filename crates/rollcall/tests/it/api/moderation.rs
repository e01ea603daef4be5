//! Slots, torrents that await approval, and banned ports: `/api/v1/users`, `/api/v1/torrents`, `/api/v1/ports`.

use serde_json::{Value as Json, json};
use testkit::{Announce, Family, eventually};

use crate::api::{PATIENCE, add_torrent, builder, info_hash, problem};

#[test]
fn slots_and_approval_are_set_and_what_is_left_out_stays() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let torrent = format!("/api/v1/torrents/{hash}");
    let patch = |target: &str, said: Json| admin.json("PATCH", target, &said);

    let named = patch("/api/v1/users/1", json!({ "name": "Ada" })).ok();
    assert_eq!((&named["name"], &named["enabled"]), (&json!("Ada"), &json!(true)));
    let user = patch("/api/v1/users/1", json!({ "leech_slots": 1 })).ok();
    assert_eq!(user["name"], "Ada", "what a change does not name stays");
    assert_eq!(patch("/api/v1/users/1", json!({ "name": null })).ok()["name"], json!(null));
    for wrong in [json!(7), json!("a\u{7}b"), json!("x".repeat(101))] {
        assert_eq!(problem(&patch("/api/v1/users/1", json!({ "name": wrong })), 422), "bad_body");
    }
    assert_eq!((&user["leech_slots"], &user["enabled"]), (&json!(1), &json!(true)));
    assert_eq!(read.get("/api/v1/users/1").ok()["user"]["leech_slots"], 1);
    for (said, shown) in [(json!(0), json!(0)), (json!(-1), json!(-1)), (json!(null), json!(null))] {
        assert_eq!(patch("/api/v1/users/1", json!({ "leech_slots": said })).ok()["leech_slots"], shown);
    }
    assert_eq!(patch("/api/v1/users/1", json!({})).ok()["leech_slots"], json!(null), "nothing to change");
    for wrong in [json!(-2), json!(1_000_001), json!("3"), json!(1.5)] {
        assert_eq!(problem(&patch("/api/v1/users/1", json!({ "leech_slots": wrong })), 422), "bad_body");
        assert_eq!(problem(&patch(&torrent, json!({ "leech_slots": wrong })), 422), "bad_body");
    }
    assert_eq!(problem(&patch("/api/v1/users/9", json!({ "leech_slots": 1 })), 404), "unknown_user");

    let changed = patch(&torrent, json!({ "approved": false, "leech_slots": 3 })).ok();
    assert_eq!((&changed["approved"], &changed["leech_slots"]), (&json!(false), &json!(3)));
    assert_eq!(patch(&torrent, json!({ "enabled": true })).ok()["approved"], false);
    eventually("the torrent to await approval", PATIENCE, || {
        let reply = server.announce(Family::V4, &passkey, &Announce::seeder(hash, 1));
        (reply.interval == Some(60)).then_some(())
    });
    assert_eq!(patch(&torrent, json!({ "approved": true })).ok()["approved"], true);
    eventually("the torrent to be approved", PATIENCE, || {
        let reply = server.announce(Family::V4, &passkey, &Announce::seeder(hash, 1));
        (reply.interval != Some(60)).then_some(())
    });

    let said = json!({ "infohash": info_hash(2).to_string(), "name": "pending", "approved": false });
    let added = admin.post("/api/v1/torrents", &said).json();
    assert_eq!(added["approved"], false);
}

#[test]
fn ports_are_banned_in_either_order_and_allowed_again() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let client = Announce::seeder(hash, 1);
    let refusal = || server.announce(Family::V4, &passkey, &client).failure_reason;
    assert_eq!(refusal(), None);
    assert_eq!(read.get("/api/v1/ports").ok(), json!({ "items": [], "next": null }));
    let target = format!("/api/v1/ports/{}/{}", client.port + 5, client.port);
    let banned = json!({ "first": client.port, "last": client.port + 5, "reason": "throttled" });
    assert_eq!(admin.json("PUT", &target, &json!({ "reason": "throttled" })).ok(), banned);
    assert_eq!(read.get("/api/v1/ports").ok(), json!({ "items": [banned], "next": null }));
    let said = eventually("the port to be refused", PATIENCE, refusal);
    assert!(said.contains("choose another"), "{said}");
    for wrong in ["/api/v1/ports/0/5", "/api/v1/ports/5/65536", "/api/v1/ports/a/5"] {
        assert_eq!(problem(&admin.json("PUT", wrong, &json!({})), 400), "bad_request", "{wrong}");
    }
    let long = json!({ "reason": "x".repeat(201) });
    assert_eq!(problem(&admin.json("PUT", &target, &long), 400), "bad_request");
    assert_eq!(admin.delete(&format!("/api/v1/ports/{0}/{0}", client.port)).status(), 204);
    eventually("the port to be allowed", PATIENCE, || refusal().is_none().then_some(()));
    assert_eq!(
        problem(&admin.delete(&format!("/api/v1/ports/{0}/{0}", client.port)), 404),
        "ports_not_banned"
    );
}
