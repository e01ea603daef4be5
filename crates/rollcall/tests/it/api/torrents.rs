//! Torrents and swarms, and which programs may announce: `/api/v1/torrents`, `/api/v1/clients`.

use serde_json::{Value as Json, json};
use testkit::{Announce, Family, eventually, eventually_equal};

use crate::api::{PATIENCE, add_torrent, announce, builder, info_hash, items, problem, walk};

#[test]
fn torrents_are_added_shown_closed_and_removed() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let said = json!({
        "id": 77, "infohash": "AB".repeat(20), "name": "ein Name – 名", "total_bytes": "9223372036854775807",
        "infohash_v2": "cd".repeat(20),
    });
    let added = admin.post("/api/v1/torrents", &said);
    assert_eq!(added.status(), 201);
    let torrent = added.json();
    assert_eq!((&torrent["id"], &torrent["infohash"]), (&77.into(), &"ab".repeat(20).into()));
    assert_eq!((&torrent["name"], &torrent["total_bytes"]), (&said["name"], &said["total_bytes"]));
    assert_eq!(torrent["swarm"], json!({ "seeders": 0, "leechers": 0, "snatches": 0 }));
    let by_number = read.get("/api/v1/torrents/77").ok();
    assert_eq!(by_number, read.get(&format!("/api/v1/torrents/{}", "Ab".repeat(20))).ok());
    assert_eq!((&by_number["torrent"], &by_number["figures"]), (&torrent, &Json::Null));

    let add = |said: Json| admin.post("/api/v1/torrents", &said);
    assert_eq!(problem(&add(said.clone()), 409), "already_exists");
    let hash = "ef".repeat(20);
    for wrong in [
        json!({ "infohash": "ef", "name": "x" }),
        json!({ "infohash": hash, "name": "x".repeat(10_001) }),
        json!({ "infohash": hash, "name": "nul\u{0}" }),
        json!({ "infohash": hash, "name": "x", "total_bytes": "9223372036854775808" }),
        json!({ "infohash": hash, "name": "x", "total_bytes": "-1" }),
        json!({ "infohash": hash, "name": "x", "id": 0 }),
    ] {
        assert_eq!(problem(&add(wrong.clone()), 400), "bad_request", "{wrong}");
    }
    assert_eq!(problem(&add(json!({ "name": "x" })), 422), "bad_body");
    assert_eq!(problem(&read.get("/api/v1/torrents/78"), 404), "unknown_torrent");
    assert_eq!(problem(&read.get(&format!("/api/v1/torrents/{hash}")), 404), "unknown_torrent");
    assert_eq!(problem(&read.get("/api/v1/torrents/x"), 400), "bad_request");
    assert_eq!(problem(&read.get(&format!("/api/v1/torrents/{}", "zz".repeat(20))), 400), "bad_request");

    let client = Announce::seeder(info_hash(0xab), 1);
    let refusal = || server.announce(Family::V4, &passkey, &client).failure_reason;
    eventually("the torrent to be open", PATIENCE, || refusal().is_none().then_some(()));
    eventually_equal(Json::from(1), PATIENCE, || {
        read.get("/api/v1/torrents/77").ok()["torrent"]["swarm"]["seeders"].clone()
    });
    let closed = admin.json("PATCH", "/api/v1/torrents/77", &json!({ "enabled": false })).ok();
    assert_eq!(closed["enabled"], false);
    eventually("the torrent to be closed", PATIENCE, refusal);
    admin.json("PATCH", "/api/v1/torrents/77", &json!({ "enabled": true })).ok();
    eventually("the torrent to be open again", PATIENCE, || refusal().is_none().then_some(()));
    assert_eq!(admin.delete(&format!("/api/v1/torrents/{}", "ab".repeat(20))).status(), 204);
    eventually("the torrent to be gone", PATIENCE, refusal);
    assert_eq!(problem(&admin.delete("/api/v1/torrents/77"), 404), "unknown_torrent");
}

#[test]
fn swarms_are_shown_in_pages_with_addresses_for_admins() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkeys: Vec<_> = (1..=3).map(|id| server.add_user(id)).collect();
    let hash = add_torrent(&server, &admin, &passkeys[0], 1);
    for (passkey, client) in passkeys.iter().zip((1..).step_by(2)) {
        announce(&server, passkey, &Announce::seeder(hash, client).with_totals(1000, 5, 0));
        announce(&server, passkey, &Announce::leecher(hash, client + 1));
    }
    let target = format!("/api/v1/torrents/{hash}/peers");
    // What is left comes from the accounts, a moment later.
    let peers = eventually("the accounts to know all of them", PATIENCE, || {
        let peers = walk(&admin, &target, 100);
        peers.iter().all(|peer| !peer["left"].is_null()).then_some(peers)
    });
    assert_eq!(peers.len(), 6);
    for limit in [1, 4, 6] {
        assert_eq!(walk(&admin, &target, limit), peers, "limit {limit}");
    }
    let users: Vec<u64> = peers.iter().map(|peer| peer["user"].as_u64().unwrap()).collect();
    assert_eq!(users, [1, 1, 2, 2, 3, 3]);
    let seeders = peers.iter().filter(|peer| peer["seeding"] == true);
    assert_eq!(seeders.count(), 3);
    assert!(peers.iter().all(|peer| peer["addresses"][0].as_str().unwrap().starts_with("127.0.0.1:20")));
    let shown = walk(&read, &target, 2);
    assert!(shown.iter().all(|peer| peer.get("addresses").is_none()), "{shown:?}");
    assert_eq!(shown.len(), 6);
    assert_eq!(read.get("/api/v1/stats").ok()["tracker"]["peers"], 6);
    // A swarm without peers is empty; one of an unknown torrent does not exist.
    add_torrent(&server, &admin, &passkeys[0], 2);
    assert_eq!(items(&read.get(&format!("/api/v1/torrents/{}/peers", info_hash(2))).ok()).len(), 0);
    assert_eq!(
        problem(&read.get(&format!("/api/v1/torrents/{}/peers", info_hash(3))), 404),
        "unknown_torrent"
    );
    assert_eq!(walk(&read, "/api/v1/torrents", 1).len(), 2);
}

#[test]
fn programs_are_allowed_forbidden_and_taken_off_the_list() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let refusal = || server.announce(Family::V4, &passkey, &Announce::seeder(hash, 1)).failure_reason;
    let put = |prefix: &str, said: Json| admin.json("PUT", &format!("/api/v1/clients/{prefix}"), &said);
    assert_eq!(read.get("/api/v1/clients").ok(), json!({ "items": [], "next": null }));
    assert_eq!(put("-TR3", json!({ "allowed": false, "name": "Transmission" })).ok()["allowed"], false);
    eventually("the program to be refused", PATIENCE, refusal);
    assert_eq!(put("-TR3", json!({ "allowed": true })).ok()["name"], "");
    eventually("the program to be allowed", PATIENCE, || refusal().is_none().then_some(()));
    let listed = read.get("/api/v1/clients").ok()["items"].clone();
    assert_eq!(listed, json!([{ "prefix": "-TR3", "name": "", "allowed": true }]));
    assert_eq!(put("hex:00ff", json!({ "allowed": false })).ok()["prefix"], "hex:00ff");
    assert_eq!(problem(&put(&"x".repeat(30), json!({ "allowed": true })), 400), "bad_request");
    assert_eq!(problem(&put("-AB", json!({ "allowed": true, "name": "x".repeat(201) })), 400), "bad_request");
    assert_eq!(problem(&put("-AB", json!({ "allowed": "yes" })), 422), "bad_body");
    assert_eq!(admin.delete("/api/v1/clients/hex:00ff").status(), 204);
    assert_eq!(problem(&admin.delete("/api/v1/clients/hex:00ff"), 404), "unknown_client");
    assert_eq!(admin.delete("/api/v1/clients/-TR3").status(), 204);
    assert_eq!(read.get("/api/v1/clients").ok(), json!({ "items": [], "next": null }));
}
