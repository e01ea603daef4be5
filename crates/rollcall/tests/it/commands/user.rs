//! `rollcall user …`

use serde_json::json;

use crate::commands::Site;

const PASSKEY: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_new_user_gets_the_passkey_given_in_lower_case() {
    let site = Site::new();
    let passkey = PASSKEY.to_uppercase();
    let added = site.json(&["user", "add", "--id", "7", "--passkey", &passkey]);
    let expected = json!({ "id": 7, "name": null, "passkey": PASSKEY, "enabled": true, "external": false, "leech_slots": null });
    assert_eq!(added, expected);
    let shown = site.json(&["user", "show", "7"]);
    let without_traffic = json!({
        "id": 7, "name": null, "passkey": PASSKEY, "enabled": true, "external": false, "leech_slots": null,
        "uploaded": "0", "downloaded": "0", "credited_uploaded": "0", "credited_downloaded": "0",
        "seeding_s": 0, "leeching_s": 0, "completed": 0, "completed_again": 0, "first_seen": null, "last_seen": null,
        "ratio": null, "seeding": 0, "leeching": 0,
    });
    assert_eq!(shown, without_traffic);
    let shown = site.text(&["user", "show", "7"]);
    assert!(
        shown.starts_with(&format!(
            "id           7\npasskey      {PASSKEY}\nenabled      yes\nexternal     no\n"
        )),
        "{shown}"
    );
    assert!(shown.contains("\nuploaded     0 B\n"), "{shown}");
}

#[test]
fn a_new_user_without_a_passkey_gets_a_random_one() {
    let site = Site::new();
    let first = site.json(&["user", "add", "--id", "1"]);
    let second = site.json(&["user", "add", "--id", "2"]);
    assert_eq!(first["passkey"].as_str().unwrap().len(), 32);
    assert_ne!(first["passkey"], second["passkey"]);
}

#[test]
fn lists_hide_passkeys_by_default() {
    let site = Site::new();
    assert_eq!(site.text(&["user", "list"]), "none\n");
    assert_eq!(site.json(&["user", "list"]), json!({ "users": [] }));
    site.text(&["user", "add", "--id", "7", "--passkey", PASSKEY]);
    assert_eq!(
        site.text(&["user", "list"]),
        "id  enabled  external  passkey  name\n7   yes      no        0123…\n"
    );
    let listed = |passkey: &str| {
        json!({ "users": [
            { "id": 7, "name": null, "passkey": passkey, "enabled": true, "external": false, "leech_slots": null },
        ] })
    };
    assert_eq!(site.json(&["user", "list"]), listed("0123…"));
    assert_eq!(site.json(&["user", "list", "--show-passkeys"]), listed(PASSKEY));
}

#[test]
fn a_user_can_be_disabled_enabled_and_removed() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7"]);
    assert_eq!(site.json(&["user", "disable", "7"]), json!({ "id": 7, "enabled": false }));
    assert_eq!(site.json(&["user", "show", "7"])["enabled"], false);
    assert_eq!(site.text(&["user", "enable", "7"]), "enabled user 7\n");
    assert_eq!(site.json(&["user", "show", "7"])["enabled"], true);
    assert_eq!(site.json(&["user", "remove", "7"]), json!({ "id": 7, "removed": true }));
    assert_eq!(site.json(&["user", "list"]), json!({ "users": [] }));
}

#[test]
fn slots_are_a_number_none_at_all_unlimited_or_the_default() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7"]);
    let set = |slots: &str| site.json(&["user", "set", "7", "--leech-slots", slots]);
    let cases = [("3", json!(3)), ("0", json!(0)), ("unlimited", json!(-1)), ("default", json!(null))];
    for (slots, number) in cases {
        assert_eq!(set(slots), json!({ "id": 7, "leech_slots": number }));
        assert_eq!(site.json(&["user", "show", "7"])["leech_slots"], number);
        assert!(site.text(&["user", "show", "7"]).contains(&format!("\nleech slots  {slots}\n")));
    }
    assert_eq!(site.refusal(&["user", "set", "9", "--leech-slots", "3"]), "there is no user 9");
    let outcome = site.run(&["user", "set", "7", "--leech-slots", "many"]);
    assert_eq!(outcome.exit_code, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("\"default\", or \"unlimited\""), "{outcome:?}");
}

#[test]
fn a_user_has_a_display_name_once_it_is_set() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7"]);
    assert_eq!(site.json(&["user", "set", "7", "--name", " Ada "]), json!({ "id": 7, "name": "Ada" }));
    assert_eq!(site.json(&["user", "show", "7"])["name"], "Ada");
    assert!(site.text(&["user", "show", "7"]).starts_with("id           7\nname         Ada\n"));
    assert!(site.text(&["user", "list"]).lines().nth(1).unwrap().ends_with("Ada"));
    let both = site.json(&["user", "set", "7", "--name", "Łada", "--leech-slots", "2"]);
    assert_eq!(both, json!({ "id": 7, "name": "Łada", "leech_slots": 2 }));
    assert_eq!(site.json(&["user", "set", "7", "--name", ""]), json!({ "id": 7, "name": null }));
    assert_eq!(site.json(&["user", "show", "7"])["name"], json!(null));
    assert_eq!(site.json(&["user", "add", "--id", "8", "--name", "Grace"])["name"], "Grace");
    let refused = site.refusal(&["user", "set", "7", "--name", "a\nb"]);
    assert!(refused.starts_with("a name has 1 to 100 characters"), "{refused}");
    assert_eq!(site.run(&["user", "set", "7"]).exit_code, 2, "something must be set");
}

#[test]
fn taken_ids_and_passkeys_are_refused_and_change_nothing() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7", "--passkey", PASSKEY]);
    let taken_id = site.refusal(&["user", "add", "--id", "7"]);
    assert!(taken_id.starts_with("user 7 exists already: "), "{taken_id}");
    let taken_passkey = site.refusal(&["user", "add", "--id", "8", "--passkey", PASSKEY]);
    assert!(taken_passkey.starts_with("passkey 0123… belongs to user 7: "), "{taken_passkey}");
    assert_eq!(site.json(&["user", "list"])["users"].as_array().unwrap().len(), 1);
}

#[test]
fn users_that_do_not_exist_are_named() {
    let site = Site::new();
    for command in ["show", "remove", "enable", "disable"] {
        assert!(site.refusal(&["user", command, "9"]).starts_with("there is no user 9"), "{command}");
    }
}

#[test]
fn data_and_database_are_created_at_the_given_paths() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "1"]);
    assert!(site.path("data/rollcall.db").exists());
    site.text(&["user", "add", "--id", "1", "--data", "elsewhere/deep"]);
    assert!(site.path("elsewhere/deep/rollcall.db").exists());
    site.text(&["user", "add", "--id", "1", "--set", "database.url=sqlite:third.db"]);
    assert!(site.path("third.db").exists());
    let outcome = site.run_with(&[("ROLLCALL_DATA", "fourth")], &["user", "add", "--id", "1"]);
    assert_eq!(outcome.exit_code, 0, "{outcome:?}");
    assert!(site.path("fourth/rollcall.db").exists());
}
