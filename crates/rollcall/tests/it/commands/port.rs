//! `rollcall port …`

use serde_json::json;

use crate::commands::Site;

#[test]
fn ports_are_banned_listed_and_allowed_again() {
    let site = Site::new();
    assert_eq!(site.text(&["port", "list"]), "none\n");
    let banned = json!({ "first": 6881, "last": 6889, "reason": "throttled" });
    assert_eq!(site.json(&["port", "ban", "6881-6889", "--reason", "throttled"]), banned);
    assert_eq!(site.text(&["port", "ban", "25"]), "banned clients that listen on 25\n");
    assert_eq!(site.text(&["port", "list"]), "ports      reason\n25\n6881-6889  throttled\n");
    assert_eq!(
        site.json(&["port", "allow", "6885"]),
        json!({ "first": 6885, "last": 6885, "allowed": true })
    );
    let left = json!({ "ports": [
        { "first": 25, "last": 25, "reason": "" },
        { "first": 6881, "last": 6884, "reason": "throttled" },
        { "first": 6886, "last": 6889, "reason": "throttled" },
    ] });
    assert_eq!(site.json(&["port", "list"]), left);
    assert_eq!(site.refusal(&["port", "allow", "6885"]), "no port of 6885 is banned: see rollcall port list");
    assert_eq!(site.text(&["port", "allow", "1-65535"]), "allowed clients to listen on 1-65535\n");
    assert_eq!(site.json(&["port", "list"]), json!({ "ports": [] }));
}

#[test]
fn what_is_no_port_is_refused() {
    let site = Site::new();
    for wrong in ["0", "65536", "9-8", "http", "1-2-3"] {
        let outcome = site.run(&["port", "ban", wrong]);
        assert_eq!(outcome.exit_code, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("1 to 65535"), "{outcome:?}");
    }
}
