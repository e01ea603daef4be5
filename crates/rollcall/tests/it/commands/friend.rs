//! `rollcall friend …`

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::commands::Site;

/// The numbers of a user's friends. When they became friends is never the same.
fn friends(site: &Site, user: &str) -> Vec<u64> {
    let json = site.json(&["friend", "list", user]);
    assert_eq!(json["user"].to_string(), user);
    let friends = json["friends"].as_array().unwrap();
    assert!(friends.iter().all(|friend| friend["since"].as_u64().unwrap() > 1_700_000_000));
    friends.iter().map(|friend| friend["id"].as_u64().unwrap()).collect()
}

#[test]
fn friends_are_added_listed_and_removed_in_either_order() {
    let site = Site::new();
    assert_eq!(site.json(&["friend", "add", "7", "9"]), json!({ "user": 7, "friend": 9, "added": true }));
    assert_eq!(site.json(&["friend", "add", "9", "7"]), json!({ "user": 9, "friend": 7, "added": false }));
    assert_eq!(site.text(&["friend", "add", "7", "3"]), "users 7 and 3 are now friends\n");
    assert_eq!(site.text(&["friend", "add", "7", "3"]), "users 7 and 3 are already friends\n");
    assert_eq!(friends(&site, "7"), [3, 9]);
    assert!(site.text(&["friend", "list", "7"]).starts_with("friend  since\n3       1"));
    assert_eq!(site.text(&["friend", "list", "50"]), "none\n");
    assert_eq!(
        site.json(&["friend", "remove", "9", "7"]),
        json!({ "user": 9, "friend": 7, "removed": true })
    );
    assert_eq!(
        site.refusal(&["friend", "remove", "9", "7"]),
        "users 9 and 7 are not friends: see rollcall friend list 9"
    );
    assert_eq!(
        site.refusal(&["friend", "add", "9", "9"]),
        "user 9 cannot be their own friend: name two users"
    );
    assert_eq!(friends(&site, "7"), [3]);
}

#[test]
fn many_are_imported_from_a_file_and_again_without_harm() {
    let site = Site::new();
    let mut lines = "# exported\n\n".to_owned();
    for number in 1..=2500 {
        lines.push_str(&format!("{number},{}\r\n", number + 1));
    }
    site.write("friends.csv", &lines);
    let imported = json!({ "added": 2500, "existing": 0 });
    assert_eq!(site.json(&["friend", "import", "friends.csv"]), imported);
    assert_eq!(site.text(&["friend", "import", "friends.csv"]), "added 0 friendships; 2500 existed\n");
    assert_eq!(friends(&site, "2000"), [1999, 2001]);
    site.write("empty.csv", "");
    assert_eq!(site.text(&["friend", "import", "empty.csv"]), "added 0 friendships\n");
}

#[test]
fn a_wrong_line_is_named_and_so_is_how_far_the_import_came() {
    let site = Site::new();
    site.write("short.csv", "1,2\n3,4\nfive,six\n7,8\n");
    let refusal = site.refusal(&["friend", "import", "short.csv"]);
    assert!(
        refusal.starts_with("cannot import short.csv; nothing was imported: line 3 is not a pair"),
        "{refusal}"
    );
    assert!(friends(&site, "1").is_empty());

    // More than one piece of reading, so that whole batches are in before the wrong line is seen.
    let mut lines: String = (1..=40_000).map(|number| format!("{number} {}\n", number + 1_000_000)).collect();
    lines.push_str("7,7\n");
    site.write("long.csv", &lines);
    let refusal = site.refusal(&["friend", "import", "long.csv"]);
    assert!(
        refusal.contains(
            "000 were imported: correct the rest and import again: line 40001 names one user twice"
        ),
        "{refusal}"
    );
    assert_eq!(friends(&site, "1"), [1_000_001]);
    assert!(site.refusal(&["friend", "import", "missing.csv"]).starts_with("cannot read missing.csv"));
}

#[test]
fn pairs_come_over_standard_input_too() {
    let site = Site::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    testkit::process::clear_settings_env(&mut command);
    command.current_dir(site.path("")).args(["friend", "import", "-", "--json"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"1 2\n1\t3").unwrap();
    let output = child.wait_with_output().unwrap();
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json, json!({ "added": 2, "existing": 0 }));
    assert_eq!(friends(&site, "1"), [2, 3]);
}

#[test]
fn changes_of_friendships_are_in_the_audit_trail() {
    let site = Site::new();
    site.write("friends.csv", "1,2\n");
    site.text(&["friend", "import", "friends.csv"]);
    site.text(&["friend", "add", "7", "9"]);
    site.refusal(&["friend", "remove", "7", "8"]);
    let trail = std::fs::read_to_string(site.path("data/logs/audit.log")).unwrap();
    for expected in
        ["friend.import", "friends.csv", "friend.add", "\"friend\":9", "friend.remove", "not friends"]
    {
        assert!(trail.contains(expected), "{expected} is missing in {trail}");
    }
}
