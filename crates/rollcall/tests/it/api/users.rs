//! Users and what they moved: `/api/v1/users`.

use domain::AnnounceEvent;
use domain::clock::{Clock, SystemClock};
use serde_json::{Value as Json, json};
use testkit::{Announce, Api, Family, Server, eventually, eventually_equal};

use crate::api::{PATIENCE, add_torrent, announce, builder, detail, items, problem, walk};

fn ids(users: &[Json]) -> Vec<u64> {
    users.iter().map(|user| user["id"].as_u64().unwrap()).collect()
}

/// Why an announce is refused; none if it is accepted.
fn refusal(server: &Server, passkey: &str, announce: &Announce) -> Option<String> {
    server.announce(Family::V4, &passkey.parse().unwrap(), announce).failure_reason
}

fn wait_shown(api: &Api, target: &str, shows: impl Fn(&Json) -> bool) -> Json {
    eventually(&format!("{target} to show it"), PATIENCE, || {
        let shown = api.get(target).ok();
        shows(&shown).then_some(shown)
    })
}

#[test]
fn users_are_added_listed_page_by_page_and_looked_up() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    assert_eq!(items(&read.get("/api/v1/users").ok()).len(), 0);
    for id in 1..=25_u64 {
        let said = json!({ "id": id * 10, "passkey": format!("{id:032X}") });
        let added = admin.post("/api/v1/users", &said);
        assert_eq!(added.status(), 201);
        let user = added.json();
        assert_eq!(
            (&user["id"], &user["enabled"], &user["external"]),
            (&(id * 10).into(), &true.into(), &false.into())
        );
        assert_eq!(user["passkey"], format!("{id:032x}"), "upper case is taken as lower case (W1)");
    }
    let expected: Vec<u64> = (1..=25).map(|id| id * 10).collect();
    for limit in [1, 7, 25, 26, 1000] {
        assert_eq!(ids(&walk(&read, "/api/v1/users", limit)), expected, "limit {limit}");
    }
    let page = read.get("/api/v1/users?cursor=100&limit=2").ok();
    assert_eq!(ids(items(&page)), [110, 120]);
    assert_eq!(page["next"], "120");

    // Without a number and a passkey, both are chosen.
    let chosen = admin.post("/api/v1/users", &json!({})).ok();
    assert!(chosen["id"].as_u64() > Some(250), "{chosen}");
    assert_eq!(chosen["passkey"].as_str().unwrap().len(), 32);

    let asked = json!({ "passkeys": [format!("{:032x}", 3), "ffffffffffffffff", format!("{:032X}", 4)] });
    let found = eventually("the users to be known", PATIENCE, || {
        let found = read.post("/api/v1/users/lookup", &asked).ok()["items"].clone();
        found[2]["user"].is_u64().then_some(found)
    });
    assert_eq!(
        (&found[0]["user"], &found[1]["user"], &found[2]["user"]),
        (&30.into(), &Json::Null, &40.into())
    );
    let bad = read.post("/api/v1/users/lookup", &json!({ "passkeys": ["no passkey"] }));
    assert_eq!(problem(&bad, 400), "bad_request");
    let many = json!({ "passkeys": vec!["ffffffffffffffff"; 1001] });
    assert!(detail(&read.post("/api/v1/users/lookup", &many)).contains("1000"));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    admin.post("/api/v1/users", &json!({ "id": 1, "passkey": "0123456789abcdef" })).ok();
    let add = |said: Json| admin.post("/api/v1/users", &said);
    assert_eq!(problem(&add(json!({ "id": 1 })), 409), "already_exists");
    let taken = add(json!({ "id": 2, "passkey": "0123456789ABCDEF" }));
    assert_eq!(problem(&taken, 409), "already_exists");
    assert!(!detail(&taken).to_lowercase().contains("0123456789abcdef"), "{}", detail(&taken));
    for said in [
        json!({ "id": 0 }),
        json!({ "id": 1_u64 << 63 }),
        json!({ "passkey": "0123456" }),
        json!({ "passkey": "a".repeat(65) }),
        json!({ "passkey": "0123456789abcdeg" }),
    ] {
        assert_eq!(problem(&add(said.clone()), 400), "bad_request", "{said}");
    }
    for said in [json!({ "id": -1 }), json!({ "id": "7" }), json!({ "nick": "x" }), json!([1]), Json::Null] {
        assert_eq!(problem(&add(said.clone()), 422), "bad_body", "{said}");
    }
    assert_eq!(problem(&admin.get("/api/v1/users/2"), 404), "unknown_user");
    assert_eq!(problem(&admin.get("/api/v1/users/0"), 400), "bad_request");
    assert_eq!(problem(&admin.get("/api/v1/users/x"), 400), "bad_request");
    for reply in [
        admin.json("PATCH", "/api/v1/users/2", &json!({ "enabled": false })),
        admin.delete("/api/v1/users/2"),
        admin.post("/api/v1/users/2/passkey", &json!({})),
        admin.get("/api/v1/users/2/torrents"),
        admin.get("/api/v1/users/2/seeding"),
        admin.get("/api/v1/users/2/hit-and-runs"),
    ] {
        assert_eq!(problem(&reply, 404), "unknown_user");
    }
    assert_eq!(ids(&walk(&admin, "/api/v1/users", 100)), [1]);
}

/// A change reaches the tracker within a second; a busy machine is given longer.
#[test]
fn shutting_out_rotating_and_removing_reach_the_tracker() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    let watcher = server.add_user(1);
    let hash = add_torrent(&server, &admin, &watcher, 1);
    let user = admin.post("/api/v1/users", &json!({ "id": 2 })).ok();
    let first = user["passkey"].as_str().unwrap().to_owned();
    let client = Announce::seeder(hash, 2);
    eventually("the user to be let in", PATIENCE, || {
        refusal(&server, &first, &client).is_none().then_some(())
    });
    assert_eq!(server.scrape(&watcher, &hash).complete, 1);
    let enable = |enabled: bool| admin.json("PATCH", "/api/v1/users/2", &json!({ "enabled": enabled })).ok();

    assert_eq!(enable(false)["enabled"], false);
    eventually_equal(0, PATIENCE, || server.scrape(&watcher, &hash).complete);
    eventually("the user to be shut out", PATIENCE, || refusal(&server, &first, &client));
    assert_eq!(enable(true)["enabled"], true);
    eventually("the user to be let in again", PATIENCE, || {
        refusal(&server, &first, &client).is_none().then_some(())
    });

    let rotated = admin.post("/api/v1/users/2/passkey", &json!({})).ok();
    let second = rotated["passkey"].as_str().unwrap();
    assert_ne!(second, first);
    eventually("the new passkey to work", PATIENCE, || {
        refusal(&server, second, &client).is_none().then_some(())
    });
    eventually("the old one to stop", PATIENCE, || refusal(&server, &first, &client));
    let own = admin.post("/api/v1/users/2/passkey", &json!({ "passkey": "feedfacefeedface" })).ok();
    assert_eq!(own["passkey"], "feedfacefeedface");
    let taken = admin.post("/api/v1/users/2/passkey", &json!({ "passkey": watcher.to_string() }));
    assert_eq!(problem(&taken, 409), "already_exists");

    assert_eq!(admin.delete("/api/v1/users/2").status(), 204);
    eventually("the user to be gone", PATIENCE, || refusal(&server, "feedfacefeedface", &client));
    eventually_equal(0, PATIENCE, || server.scrape(&watcher, &hash).complete);
    assert_eq!(problem(&admin.delete("/api/v1/users/2"), 404), "unknown_user", "once is enough");
}

#[test]
fn l2_accounts_follow_real_announces_in_decimal_texts() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let never = read.get("/api/v1/users/1").ok();
    assert_eq!((&never["figures"], &never["seeding"]), (&Json::Null, &0.into()));
    let hashes: Vec<_> = (1..=5).map(|number| add_torrent(&server, &admin, &passkey, number)).collect();
    for (hash, client) in hashes.iter().zip(1..) {
        let client = Announce::leecher(*hash, client).with_totals(0, 0, 1 << 22);
        announce(&server, &passkey, &client.with_event(AnnounceEvent::Started));
        let (up, down) = (3_000_000, 2 << 20);
        announce(&server, &passkey, &client.with_totals(up, down, 0).with_event(AnnounceEvent::Completed));
    }
    let shown = wait_shown(&read, "/api/v1/users/1", |shown| {
        shown["figures"]["uploaded"] == "15000000" && shown["seeding"] == 5
    });
    assert_eq!(shown["figures"]["downloaded"], (5_u64 * (2 << 20)).to_string());
    assert_eq!(shown["figures"]["completed"], 5);
    assert_eq!(shown["user"].get("passkey"), None, "not for keys with read");

    let accounts = walk(&read, "/api/v1/users/1/torrents", 2);
    assert_eq!(accounts.len(), 5);
    for (account, hash) in accounts.iter().zip(&hashes) {
        assert_eq!(account["infohash"], hash.to_string());
        assert_eq!((&account["figures"]["uploaded"], &account["left"]), (&"3000000".into(), &"0".into()));
        assert_eq!((&account["seeding"], &account["leeching"]), (&true.into(), &false.into()));
        assert!(account["completed_at"].as_u64() > Some(1_700_000_000), "{account}");
        assert_eq!(account["client"], "-TR3000-");
    }
    let owing = walk(&read, "/api/v1/users/1/hit-and-runs", 2);
    assert_eq!(owing.len(), 5, "who completed something owes seeding");
    assert!(owing.iter().all(|one| one["state"] == "owing" && one["seeding_s_left"].as_u64() > Some(0)));
    let torrent = read.get(&format!("/api/v1/torrents/{}", hashes[0])).ok();
    assert_eq!(torrent["figures"]["uploaded"], "3000000");
    // What was moved stays when the user goes.
    assert_eq!(admin.delete("/api/v1/users/1").status(), 204);
    assert_eq!(read.get(&format!("/api/v1/torrents/{}", hashes[0])).ok()["figures"], torrent["figures"]);
}

#[test]
fn a5_seeding_and_leeching_lists_are_newest_first_in_pages_with_counts() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hashes: Vec<_> = (1..=5).map(|number| add_torrent(&server, &admin, &passkey, number)).collect();
    announce(&server, &passkey, &Announce::seeder(hashes[0], 1));
    announce(&server, &passkey, &Announce::seeder(hashes[1], 2));
    // Times are in seconds: these must be later than those.
    let before = SystemClock.now();
    eventually("the next second", PATIENCE, || (SystemClock.now() > before).then_some(()));
    announce(&server, &passkey, &Announce::seeder(hashes[2], 3));
    announce(&server, &passkey, &Announce::leecher(hashes[3], 4));
    announce(&server, &passkey, &Announce::leecher(hashes[4], 5));
    wait_shown(&read, "/api/v1/users/1", |shown| shown["seeding"] == 3 && shown["leeching"] == 2);
    let seeding = read.get("/api/v1/users/1/seeding").ok();
    assert_eq!((&seeding["count"], &seeding["next"]), (&3.into(), &Json::Null));
    assert_eq!(items(&seeding)[0]["infohash"], hashes[2].to_string(), "newest first");
    assert!(items(&seeding)[0]["last_announce"].as_u64() > items(&seeding)[2]["last_announce"].as_u64());
    assert_eq!(&walk(&read, "/api/v1/users/1/seeding", 1), items(&seeding));
    let first = read.get("/api/v1/users/1/seeding?limit=1").ok();
    assert_eq!(first["count"], 3, "the count is of all, not of the page");
    let leeching = walk(&read, "/api/v1/users/1/leeching", 1);
    let mut leeched: Vec<&str> = leeching.iter().map(|one| one["infohash"].as_str().unwrap()).collect();
    leeched.sort_unstable();
    assert_eq!(leeched, [hashes[3].to_string(), hashes[4].to_string()]);
    // A completion moves the torrent between the lists; a stop removes it.
    let completed = Announce::seeder(hashes[3], 4).with_event(AnnounceEvent::Completed);
    announce(&server, &passkey, &completed);
    announce(&server, &passkey, &Announce::leecher(hashes[4], 5).with_event(AnnounceEvent::Stopped));
    wait_shown(&read, "/api/v1/users/1", |shown| shown["seeding"] == 4 && shown["leeching"] == 0);
}
