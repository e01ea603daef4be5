//! `rollcall torrent …`

use serde_json::json;

use crate::commands::{Site, text_of};

const PRIVATE_INFOHASH: &str = "b27a70496a0678691f88f136775310bcebd13b1c";
const PUBLIC_INFOHASH: &str = "f229aac652554573dc5b006f0a88ff63dc92c723";
const OTHER_INFOHASH: &str = "0123456789abcdef0123456789abcdef01234567";

/// A torrent of one file of a MiB, whose infohash was computed by another program.
fn torrent_file(private: bool) -> Vec<u8> {
    let pieces = "A".repeat(20);
    let flag = if private { "7:privatei1e" } else { "" };
    format!("d4:infod6:lengthi1048576e4:name9:movie.mkv12:piece lengthi1048576e6:pieces20:{pieces}{flag}ee")
        .into()
}

#[test]
fn a_private_torrent_file_is_added_with_what_it_says() {
    let site = Site::new();
    let file = site.write("movie.torrent", torrent_file(true));
    let added = site.json(&["torrent", "add", text_of(&file), "--id", "12"]);
    let expected = json!({
        "id": 12,
        "name": "movie.mkv",
        "infohash": PRIVATE_INFOHASH,
        "infohash_v2": null,
        "total_bytes": "1048576",
        "enabled": true,
        "approved": true,
        "leech_slots": null,
    });
    assert_eq!(added, expected);
    let shown = site.json(&["torrent", "show", "12"]);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(shown[name], *value, "{name}");
    }
    assert_eq!((&shown["uploaded"], &shown["completed"]), (&json!("0"), &json!(0)));
    assert_eq!(site.json(&["torrent", "show", &PRIVATE_INFOHASH.to_uppercase()]), shown);
    assert_eq!(site.json(&["torrent", "list"]), json!({ "torrents": [expected] }));
    assert_eq!(
        site.text(&["torrent", "list"]),
        format!(
            "id  enabled  approved  infohash                                  size      name\n\
             12  yes      yes       {PRIVATE_INFOHASH}  1.00 MiB  movie.mkv\n"
        )
    );
}

#[test]
fn a_public_torrent_file_is_refused_with_the_reason_and_the_way_out() {
    let site = Site::new();
    site.write("movie.torrent", torrent_file(false));
    let refusal = site.refusal(&["torrent", "add", "movie.torrent"]);
    assert!(refusal.starts_with("movie.torrent has no private flag, "), "{refusal}");
    assert!(refusal.contains("private torrent") && refusal.contains("--allow-public"), "{refusal}");
    assert_eq!(site.json(&["torrent", "list"]), json!({ "torrents": [] }));
    let added = site.json(&["torrent", "add", "movie.torrent", "--allow-public", "--name", "Mine"]);
    assert_eq!((&added["infohash"], &added["name"]), (&json!(PUBLIC_INFOHASH), &json!("Mine")));
}

#[test]
fn what_is_not_a_torrent_is_refused() {
    let site = Site::new();
    site.write("notes.txt", "d4:infoi1ee");
    let refusal = site.refusal(&["torrent", "add", "notes.txt"]);
    assert!(refusal.starts_with("notes.txt is not a torrent: "), "{refusal}");
    let refusal = site.refusal(&["torrent", "add", "missing.torrent"]);
    assert_eq!(refusal, "cannot open missing.torrent: No such file or directory (os error 2)");
    let refusal = site.refusal(&["torrent", "add", "."]);
    assert!(refusal.starts_with("cannot read .: "), "{refusal}");
}

#[test]
fn a_torrent_can_be_added_by_infohash_and_gets_the_next_id() {
    let site = Site::new();
    let add = |infohash: &str| site.json(&["torrent", "add", "--infohash", infohash, "--name", "By hash"]);
    assert_eq!(add(OTHER_INFOHASH)["id"], 1);
    let second = add(PRIVATE_INFOHASH);
    assert_eq!(second["id"], 2);
    assert_eq!((&second["name"], &second["total_bytes"]), (&json!("By hash"), &json!("0")));
    let taken = site.refusal(&["torrent", "add", "--infohash", OTHER_INFOHASH, "--name", "Again"]);
    assert!(
        taken.starts_with(&format!("infohash {OTHER_INFOHASH} belongs to torrent 1 (By hash): ")),
        "{taken}"
    );
    let taken = site.refusal(&["torrent", "add", "--infohash", PUBLIC_INFOHASH, "--name", "x", "--id", "1"]);
    assert!(taken.starts_with("torrent 1 exists already: "), "{taken}");
}

#[test]
fn a_name_that_is_too_long_is_refused_with_the_limit() {
    let site = Site::new();
    let longest = "名".repeat(access::TORRENT_NAME_CHARS_MAX);
    let infohash = "ab".repeat(20);
    let refusal =
        site.refusal(&["torrent", "add", "--infohash", &infohash, "--name", &format!("{longest}x")]);
    assert!(refusal.contains("10000 characters"), "{refusal}");
    let added = site.json(&["torrent", "add", "--infohash", &infohash, "--name", &longest]);
    assert_eq!(added["name"], longest);
}

#[test]
fn a_torrent_can_be_disabled_enabled_and_removed_by_id_or_infohash() {
    let site = Site::new();
    site.text(&["torrent", "add", "--infohash", OTHER_INFOHASH, "--name", "x", "--id", "5"]);
    assert_eq!(site.json(&["torrent", "disable", "5"]), json!({ "id": 5, "enabled": false }));
    assert_eq!(site.json(&["torrent", "show", "5"])["enabled"], false);
    assert_eq!(site.text(&["torrent", "enable", OTHER_INFOHASH]), "enabled torrent 5\n");
    assert_eq!(site.json(&["torrent", "remove", OTHER_INFOHASH]), json!({ "id": 5, "removed": true }));
    for command in ["show", "remove", "enable", "disable"] {
        assert!(site.refusal(&["torrent", command, "5"]).starts_with("there is no torrent 5"), "{command}");
        let refusal = site.refusal(&["torrent", command, OTHER_INFOHASH]);
        assert_eq!(refusal, format!("there is no torrent with infohash {OTHER_INFOHASH}"));
    }
}

#[test]
fn a_torrent_awaits_approval_is_approved_and_limited() {
    let site = Site::new();
    let add = ["torrent", "add", "--infohash", OTHER_INFOHASH, "--name", "x", "--id", "5"];
    let added = site.json(&[&add[..], &["--pending"]].concat());
    assert_eq!(added["approved"], false);
    assert_eq!(site.json(&["torrent", "show", "5"])["approved"], false);
    assert_eq!(site.json(&["torrent", "approve", "5"]), json!({ "id": 5, "approved": true }));
    assert_eq!(site.json(&["torrent", "show", "5"])["approved"], true);
    assert_eq!(site.text(&["torrent", "unapprove", OTHER_INFOHASH]), "torrent 5 is pending\n");
    let set = |slots: &str| site.json(&["torrent", "set", OTHER_INFOHASH, "--leech-slots", slots]);
    assert_eq!(set("20"), json!({ "id": 5, "leech_slots": 20 }));
    assert_eq!(set("unlimited"), json!({ "id": 5, "leech_slots": -1 }));
    assert_eq!(set("default"), json!({ "id": 5, "leech_slots": null }));
    assert_eq!(site.json(&["torrent", "show", "5"])["approved"], false, "one change leaves the other");
    assert!(site.refusal(&["torrent", "approve", "6"]).starts_with("there is no torrent 6"));
}

#[test]
fn announce_urls_come_from_the_addresses_listened_on() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7", "--passkey", "0123abcd"]);
    assert_eq!(
        site.text(&["torrent", "announce-url", "--user", "7"]),
        "http://127.0.0.1:6969/0123abcd/announce\n\
         http://[::1]:6969/0123abcd/announce\n\
         udp://127.0.0.1:6969/0123abcd/announce\n\
         udp://[::1]:6969/0123abcd/announce\n"
    );
    let set = [
        "--set",
        "tracker.http_addr=203.0.113.5:80",
        "--set",
        "tracker.allow_plaintext=true",
        "--set",
        "tracker.udp_addr=",
    ];
    assert_eq!(
        site.json(&[&["torrent", "announce-url", "--user", "7"][..], &set].concat()),
        json!({ "user": 7, "https": [], "http": ["http://203.0.113.5:80/0123abcd/announce"], "udp": [] })
    );
}

#[test]
fn announce_urls_can_have_another_base() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7", "--passkey", "0123abcd"]);
    assert_eq!(
        site.text(&["torrent", "announce-url", "--user", "7", "--base", "https://tracker.example.org"]),
        "https://tracker.example.org/0123abcd/announce\n",
        "UDP listens on loopback only"
    );
    let base = ["torrent", "announce-url", "--user", "7", "--base", "https://tracker.example.org"];
    assert_eq!(
        site.text(&[&base[..], &["--set", "tracker.udp_addr=0.0.0.0:6969"]].concat()),
        "https://tracker.example.org/0123abcd/announce\nudp://tracker.example.org:6969/0123abcd/announce\n"
    );
    let everywhere = [
        "--set",
        "tracker.http_addr=0.0.0.0:6969",
        "--set",
        "tracker.allow_plaintext=true",
        "--set",
        "tracker.udp_addr=",
    ];
    let refusal = site.refusal(&[&["torrent", "announce-url", "--user", "7"][..], &everywhere].concat());
    assert!(refusal.contains("(0.0.0.0:6969)") && refusal.contains("add --base"), "{refusal}");
    assert!(site.refusal(&["torrent", "announce-url", "--user", "8"]).starts_with("there is no user 8"));
}
