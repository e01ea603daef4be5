//! `rollcall client …`

use serde_json::json;

use crate::commands::Site;

#[test]
fn clients_are_allowed_forbidden_listed_and_removed() {
    let site = Site::new();
    let allowed = json!({ "prefix": "-TR", "name": "Transmission", "allowed": true });
    let forbidden = json!({ "prefix": "-TR29", "name": "", "allowed": false });
    assert_eq!(site.json(&["client", "allow", "-TR", "--name", "Transmission"]), allowed);
    assert_eq!(site.json(&["client", "forbid", "-TR29"]), forbidden);
    assert_eq!(site.json(&["client", "list"]), json!({ "clients": [allowed, forbidden] }));
    assert_eq!(
        site.text(&["client", "list"]),
        "prefix  allowed  name\n-TR     yes      Transmission\n-TR29   no\n"
    );
    assert_eq!(site.json(&["client", "remove", "-TR29"]), json!({ "prefix": "-TR29", "removed": true }));
    assert_eq!(site.json(&["client", "list"]), json!({ "clients": [allowed] }));
}

#[test]
fn the_last_rule_of_a_prefix_applies_and_its_name_is_kept() {
    let site = Site::new();
    site.text(&["client", "allow", "-qB", "--name", "qBittorrent"]);
    site.text(&["client", "forbid", "-qB"]);
    assert_eq!(
        site.json(&["client", "list"]),
        json!({ "clients": [{ "prefix": "-qB", "name": "qBittorrent", "allowed": false }] })
    );
}

#[test]
fn prefixes_that_are_unknown_or_impossible_are_refused() {
    let site = Site::new();
    assert_eq!(site.refusal(&["client", "remove", "-XX"]), "no client has the prefix -XX");
    for impossible in ["", "-this-is-longer-than-a-peer-id", "hex:0"] {
        let outcome = site.run(&["client", "allow", impossible]);
        assert_eq!(outcome.exit_code, 2, "{outcome:?}");
    }
}
