//! Made twice it is one, and it goes without a trace but for the accounts.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use testkit::Server;

use crate::sandbox::{BINARY, make, pasted};

#[test]
fn w9_a_sandbox_made_twice_is_one_sandbox() {
    let server = Server::builder(BINARY).start();
    let first = make(&server, &[]);
    assert_eq!(first["users"][0]["id"], 900_000_001);
    assert_eq!(first["torrents"][1]["id"], 900_000_002);
    assert_eq!(make(&server, &[]), first);
    let more = make(&server, &["--users", "4", "--torrents", "3"]);
    assert_eq!(more["users"].as_array().unwrap().len(), 4);
    assert_eq!(more["users"].as_array().unwrap()[..2], first["users"].as_array().unwrap()[..]);
    assert_eq!(server.cli(&["user", "list"])["users"].as_array().unwrap().len(), 4);
    assert_eq!(server.cli(&["torrent", "list"])["torrents"].as_array().unwrap().len(), 3);
    let folder = std::fs::metadata(server.data_folder().join("sandbox")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700, "torrent files have passkeys in them");
}

#[test]
fn w9_clearing_removes_what_was_made_and_nothing_else() {
    let server = Server::builder(BINARY).start();
    server.add_user(7);
    let foreign = "0123456789abcdef0123456789abcdef01234567";
    server.cli(&["torrent", "add", "--infohash", foreign, "--name", "mine", "--id", "900000050"]);
    let sandbox = make(&server, &[]);
    pasted(&sandbox, "announce_seeder");
    assert_eq!(server.cli(&["sandbox", "clear"]), json!({ "users": 2, "torrents": 2, "files": true }));
    let users = server.cli(&["user", "list"]);
    assert_eq!((users["users"].as_array().unwrap().len(), &users["users"][0]["id"]), (1, &json!(7)));
    let torrents = server.cli(&["torrent", "list"]);
    assert_eq!(torrents["torrents"][0]["id"], 900_000_050, "a torrent that is not ours stays");
    assert_eq!(torrents["torrents"].as_array().unwrap().len(), 1);
    assert!(!server.data_folder().join("sandbox").exists());
    let trail = std::fs::read_to_string(server.data_folder().join("logs/audit.log")).unwrap();
    for action in ["passkey.add", "passkey.remove", "torrent.remove"] {
        assert!(trail.contains(&format!("\"action\":\"{action}\"")), "w7: {action}: {trail}");
    }
    assert_eq!(server.cli(&["sandbox", "clear"]), json!({ "users": 0, "torrents": 0, "files": false }));
    let again = make(&server, &[]);
    assert_ne!(again["users"][0]["passkey"], sandbox["users"][0]["passkey"], "old passkeys stay dead");
    assert_eq!(again["torrents"], sandbox["torrents"]);
}

#[test]
fn a_conflicting_torrent_is_named() {
    let server = Server::builder(BINARY).start();
    let foreign = "0123456789abcdef0123456789abcdef01234567";
    server.cli(&["torrent", "add", "--infohash", foreign, "--name", "mine", "--id", "900000001"]);
    let refused = server.try_cli(&["sandbox"]);
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && complaint.contains("torrent 900000001 (mine)"), "{complaint}");
}
