//! Friendships and privacy: `/api/v1/users/{id}/friends`, `/api/v1/friends/import`, `/api/v1/users/{id}/privacy`.

use serde_json::{Value as Json, json};

use crate::api::{builder, detail, items, problem, walk};

fn ids(friends: &[Json]) -> Vec<u64> {
    friends.iter().map(|friend| friend["id"].as_u64().unwrap()).collect()
}

#[test]
fn friends_are_added_listed_page_by_page_and_removed() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    for other in [9, 3, 5] {
        let reply = admin.send("PUT", &format!("/api/v1/users/7/friends/{other}"), &[], None);
        assert_eq!(reply.status(), 204);
    }
    assert_eq!(admin.send("PUT", "/api/v1/users/9/friends/7", &[], None).status(), 204, "again, no harm");
    assert_eq!(ids(&walk(&admin, "/api/v1/users/7/friends", 2)), [3, 5, 9]);
    let page = admin.get("/api/v1/users/9/friends").ok();
    assert_eq!(ids(items(&page)), [7]);
    assert!(items(&page)[0]["since"].as_u64().unwrap() > 1_700_000_000);
    assert!(items(&admin.get("/api/v1/users/1000/friends").ok()).is_empty());

    assert_eq!(admin.delete("/api/v1/users/9/friends/7").status(), 204);
    assert_eq!(problem(&admin.delete("/api/v1/users/9/friends/7"), 404), "unknown_friendship");
    assert_eq!(ids(&walk(&admin, "/api/v1/users/7/friends", 2)), [3, 5]);
    let own = admin.send("PUT", "/api/v1/users/7/friends/7", &[], None);
    assert_eq!(problem(&own, 409), "self_friendship");
    for wrong in ["/api/v1/users/0/friends/7", "/api/v1/users/7/friends/9223372036854775808"] {
        problem(&admin.send("PUT", wrong, &[], None), 400);
    }
}

#[test]
fn thousands_of_pairs_are_imported_all_or_none() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    let pairs: Vec<[u64; 2]> = (1..=5000).map(|number| [number, number + 1]).collect();
    let said = json!({ "pairs": pairs });
    assert_eq!(admin.post("/api/v1/friends/import", &said).ok(), json!({ "added": 5000, "existing": 0 }));
    assert_eq!(admin.post("/api/v1/friends/import", &said).ok(), json!({ "added": 0, "existing": 5000 }));
    let own = admin.post("/api/v1/friends/import", &json!({ "pairs": [[8001, 8002], [3, 3]] }));
    assert_eq!(problem(&own, 409), "self_friendship");
    assert!(items(&admin.get("/api/v1/users/8001/friends").ok()).is_empty());
    for wrong in [
        json!([[1, 2]]),
        json!({ "pairs": [[1]] }),
        json!({ "pairs": [[1, 2, 3]] }),
        json!({ "pairs": [[0, 2]] }),
    ] {
        let reply = admin.post("/api/v1/friends/import", &wrong);
        assert_eq!(reply.status(), 422, "{wrong}: {}", detail(&reply));
    }
    let many: Vec<[u64; 2]> = (1..=10_001).map(|number| [number, number + 1]).collect();
    problem(&admin.post("/api/v1/friends/import", &json!({ "pairs": many })), 400);
}

#[test]
fn privacy_is_the_configured_default_until_the_user_sets_it() {
    let server = builder().set("presence.default_visibility", "\"everyone\"").start();
    let admin = server.api(&["admin"]);
    let default = json!({ "status": "everyone", "last_seen": "everyone", "never": [] });
    assert_eq!(admin.get("/api/v1/users/7/privacy").ok(), default);
    let chosen = json!({ "status": "friends", "last_seen": "nobody", "never": [9, 8, 9] });
    let kept = json!({ "status": "friends", "last_seen": "nobody", "never": [8, 9] });
    assert_eq!(admin.json("PUT", "/api/v1/users/7/privacy", &chosen).ok(), kept);
    assert_eq!(admin.get("/api/v1/users/7/privacy").ok(), kept);
    let wrong = json!({ "status": "enemies", "last_seen": "nobody" });
    assert_eq!(admin.json("PUT", "/api/v1/users/7/privacy", &wrong).status(), 422);
    let many =
        json!({ "status": "friends", "last_seen": "nobody", "never": (100..1101).collect::<Vec<_>>() });
    problem(&admin.json("PUT", "/api/v1/users/7/privacy", &many), 400);
    assert_eq!(admin.get("/api/v1/users/7/privacy").ok(), kept);
    let trail = admin.get("/api/v1/audit").ok().to_string();
    assert!(trail.contains("privacy.set") && trail.contains("\"never\":3"), "{trail}");
}
