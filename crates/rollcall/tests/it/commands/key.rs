//! `rollcall key …`

use serde_json::json;

use crate::commands::Site;

#[test]
fn a_key_is_shown_once_and_listed_without_its_secret() {
    let site = Site::new();
    let made = site.json(&["key", "create", "--name", "statistics", "--scope", "read", "--scope", "verify"]);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!(
        (made["name"].clone(), made["scopes"].clone()),
        (json!("statistics"), json!(["verify", "read"]))
    );
    assert_eq!((key.len(), key.starts_with(&format!("rck_{id}_"))), (53, true));
    let secret = &key[13..];
    for arguments in [&["key", "list"][..], &["key", "list", "--json"], &["audit", "list", "--json"]] {
        let shown = site.text(arguments);
        assert!(shown.contains(id) && !shown.contains(secret), "{shown}");
    }
    let listed = site.json(&["key", "list"]);
    assert_eq!(
        listed,
        json!({ "keys": [{
            "id": id, "name": "statistics", "scopes": ["verify", "read"], "last_used_at": null, "revoked_at": null,
        }]})
    );
    let text = site.text(&["key", "create", "--name", "a", "--scope", "admin"]);
    assert!(text.contains("key     rck_") && text.contains("shown only once"), "{text}");
}

#[test]
fn a_revoked_key_stays_in_the_list() {
    let site = Site::new();
    let made = site.json(&["key", "create", "--name", "a", "--scope", "verify,read"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(site.text(&["key", "revoke", id]), format!("revoked key {id}\n"));
    assert_eq!(site.text(&["key", "revoke", id]), format!("key {id} was already revoked\n"));
    assert!(site.json(&["key", "list"])["keys"][0]["revoked_at"].as_u64().unwrap() > 1_700_000_000);
    let unknown = site.refusal(&["key", "revoke", "01234567"]);
    assert_eq!(unknown, "there is no key 01234567: see rollcall key list");
}

#[test]
fn a_key_needs_a_name_and_a_scope_that_there_is() {
    let site = Site::new();
    for (arguments, expected) in [
        (&["key", "create", "--name", "a"][..], "--scope <SCOPE>"),
        (&["key", "create", "--name", "a", "--scope", "all"], "a scope is verify, read or admin"),
        (&["key", "create", "--scope", "read"], "--name <NAME>"),
        (&["key", "revoke", "rck_1"], "a key's id has 8 digits"),
    ] {
        let outcome = site.run(arguments);
        assert_eq!(outcome.exit_code, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(expected), "{arguments:?}: {}", outcome.stderr);
    }
    let nameless = site.refusal(&["key", "create", "--name", "", "--scope", "read"]);
    assert!(nameless.starts_with("a key needs a name"), "{nameless}");
}
