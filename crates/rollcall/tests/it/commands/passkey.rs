//! `rollcall passkey …`

use serde_json::{Value as Json, json};

use crate::commands::Site;

const OLD: &str = "00000000000000000000000000000001";
const NEW: &str = "00000000000000000000000000000002";

#[test]
fn a_rotated_passkey_stops_working() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7", "--passkey", OLD]);
    let rotated = site.json(&["passkey", "rotate", "--user", "7", "--passkey", NEW]);
    let expected = json!({ "id": 7, "name": null, "passkey": NEW, "enabled": true, "external": false, "leech_slots": null });
    assert_eq!(rotated, expected);
    assert_eq!(
        site.json(&["passkey", "check", NEW]),
        json!({ "valid": true, "user": 7, "whitelisted": false, "reason": null })
    );
    assert_eq!(site.run(&["passkey", "check", OLD]).exit_code, 1);
    let random = site.json(&["passkey", "rotate", "--user", "7"]);
    assert_ne!(random["passkey"], NEW);
}

#[test]
fn check_returns_an_exit_code_and_a_reason() {
    let site = Site::new();
    let unknown = site.run(&["passkey", "check", OLD]);
    assert_eq!(unknown.exit_code, 1);
    let text = "passkey 0000… is not valid: no user has it, and it is not on the whitelist\n";
    assert_eq!(unknown.stdout, text);
    site.text(&["user", "add", "--id", "7", "--passkey", OLD]);
    assert_eq!(site.text(&["passkey", "check", OLD]), "passkey 0000… is valid: user 7\n");
    site.text(&["user", "disable", "7"]);
    let disabled = site.run(&["passkey", "check", OLD, "--json"]);
    assert_eq!(disabled.exit_code, 1);
    let answer: Json = serde_json::from_str(&disabled.stdout).unwrap();
    assert_eq!(answer, json!({ "valid": false, "user": 7, "whitelisted": false, "reason": "disabled" }));
}

#[test]
fn rotating_is_refused_for_an_unknown_user_and_a_passkey_in_use() {
    let site = Site::new();
    assert!(site.refusal(&["passkey", "rotate", "--user", "7"]).starts_with("there is no user 7"));
    site.text(&["user", "add", "--id", "7", "--passkey", OLD]);
    site.text(&["user", "add", "--id", "8", "--passkey", NEW]);
    let taken = site.refusal(&["passkey", "rotate", "--user", "8", "--passkey", OLD]);
    assert!(taken.starts_with("passkey 0000… belongs to user 7: "), "{taken}");
    assert_eq!(site.json(&["user", "show", "8"])["passkey"], NEW);
}
