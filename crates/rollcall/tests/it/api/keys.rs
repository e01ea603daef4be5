//! Keys over the API: made, listed, revoked.

use serde_json::{Value as Json, json};
use testkit::eventually;

use crate::api::{PATIENCE, builder, items, problem, walk};

#[test]
fn a_key_is_made_shown_once_and_revoked() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    let said = json!({ "name": "statistics — 統計", "scopes": ["read", "verify", "read"] });
    let reply = admin.post("/api/v1/keys", &said);
    assert_eq!(reply.status(), 201);
    let made = reply.json();
    let (id, text) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!((&made["name"], &made["scopes"]), (&said["name"], &json!(["verify", "read"])));
    let new = server.anonymous_api().with_key(text);
    assert_eq!(new.get("/api/v1/users").status(), 200, "it works at once where it was made");
    let listed = admin.get("/api/v1/keys").ok();
    let shown = items(&listed).iter().find(|key| key["id"] == id).unwrap();
    assert_eq!((&shown["scopes"], &shown["revoked_at"]), (&json!(["verify", "read"]), &Json::Null));
    assert!(!listed.to_string().contains(&text[13..]), "the secret is shown once");
    assert_eq!(problem(&new.get("/api/v1/keys"), 403), "forbidden");
    assert_eq!(problem(&new.delete(&format!("/api/v1/keys/{id}")), 403), "forbidden");

    assert_eq!(admin.delete(&format!("/api/v1/keys/{id}")).status(), 204);
    assert_eq!(new.get("/api/v1/users").status(), 401, "and stops at once");
    assert_eq!(admin.delete(&format!("/api/v1/keys/{id}")).status(), 204, "a second time changes nothing");
    let is_listed =
        |query: &str| walk_ids(&admin.get(&format!("/api/v1/keys{query}")).ok()).contains(&id.to_owned());
    assert!(!is_listed("") && is_listed("?revoked=true"));
    assert_eq!(problem(&admin.delete("/api/v1/keys/00000000"), 404), "unknown_key");
    let trail = admin.get("/api/v1/audit?action=key.").ok();
    let actions: Vec<&str> =
        items(&trail).iter().take(3).map(|record| record["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["key.revoke", "key.revoke", "key.revoke"]);
    assert!(items(&trail).iter().any(|record| record["action"] == "key.create" && record["subjectId"] == id));
}

fn walk_ids(page: &Json) -> Vec<String> {
    items(page).iter().map(|key| key["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_key_does_not_revoke_itself_unless_that_is_meant() {
    let server = builder().start();
    let made = server.cli(&["key", "create", "--name", "own", "--scope", "admin"]);
    let admin = server.anonymous_api().with_key(made["key"].as_str().unwrap());
    eventually("the key to work", PATIENCE, || (admin.get("/api/v1/stats").status() == 200).then_some(()));
    let target = format!("/api/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(problem(&admin.delete(&target), 409), "own_key");
    assert_eq!(problem(&admin.delete(&format!("{target}?force=false")), 409), "own_key");
    assert_eq!(admin.get("/api/v1/stats").status(), 200);
    assert_eq!(admin.delete(&format!("{target}?force=true")).status(), 204);
    assert_eq!(admin.get("/api/v1/stats").status(), 401);
}

#[test]
fn keys_come_in_pages_and_what_makes_no_sense_is_refused() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    for number in 0..7 {
        admin.post("/api/v1/keys", &json!({ "name": format!("k{number}"), "scopes": ["read"] })).ok();
    }
    let all = walk(&admin, "/api/v1/keys", 1000);
    assert_eq!(walk(&admin, "/api/v1/keys", 2), all);
    assert!(all.len() >= 8, "{all:?}");
    let times: Vec<u64> = all.iter().map(|key| key["created_at"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "newest first: {times:?}");
    for said in [
        json!({}),
        json!({ "name": "a" }),
        json!({ "name": "a", "scopes": [] }),
        json!({ "name": "a", "scopes": ["root"] }),
        json!({ "name": "a", "scopes": ["read", "read", "read", "read"] }),
        json!({ "name": " ", "scopes": ["read"] }),
        json!({ "name": "a\nb", "scopes": ["read"] }),
        json!({ "name": "x".repeat(101), "scopes": ["read"] }),
        json!({ "name": "a", "scopes": ["read"], "more": 1 }),
    ] {
        let status = admin.post("/api/v1/keys", &said).status();
        assert!(matches!(status, 400 | 422), "{said}: {status}");
    }
    for query in ["cursor=x", "cursor=1-", "cursor=+1-00000000", "limit=0", "revoked=perhaps", "nonsense=1"] {
        assert_eq!(problem(&admin.get(&format!("/api/v1/keys?{query}")), 400), "bad_request", "{query}");
    }
    for target in ["/api/v1/keys/x", "/api/v1/keys/0000000G"] {
        assert_eq!(problem(&admin.delete(target), 400), "bad_request");
    }
}
