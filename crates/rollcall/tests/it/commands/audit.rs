//! `rollcall audit …`, and that every command that changes something leaves a record (W7).

use std::fs;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::commands::Site;

const PASSKEY: &str = "0123456789abcdef0123456789abcdef";
const INFO_HASH: &str = "00000000000000000000000000000000000000aa";

impl Site {
    /// The newest record.
    fn newest(&self) -> Json {
        self.json(&["audit", "list", "--limit", "1"])["entries"][0].clone()
    }

    /// Action, subject and result of the newest record.
    fn newest_in_short(&self) -> String {
        let entry = self.newest();
        let text = |name: &str| entry[name].as_str().unwrap().to_owned();
        format!("{} {} {} {}", text("action"), text("subjectType"), text("subjectId"), text("result"))
    }
}

#[test]
fn w7_every_command_that_changes_something_leaves_a_record() {
    let site = Site::new();
    let torrent = ["torrent", "add", "--id", "12", "--infohash", INFO_HASH, "--name", "A name"];
    let listed = format!("passkey {}", admin::audit::passkey_subject_id(&PASSKEY.parse().unwrap()));
    let (added, removed) = (format!("passkey.add {listed} ok"), format!("passkey.remove {listed} ok"));
    let list = site.write("list.txt", "0123456789abcdef\n");
    let cases: [(&[&str], &str); 29] = [
        (&["passkey", "add", PASSKEY], &added),
        (&["passkey", "add", PASSKEY, "89abcdef"], "passkey.add whitelist all ok"),
        (&["passkey", "remove", PASSKEY], &removed),
        (&["passkey", "refresh", crate::commands::text_of(&list)], "passkey.refresh whitelist all ok"),
        (&["passkey", "undo"], "passkey.undo whitelist all ok"),
        (&["user", "add", "--id", "7", "--passkey", PASSKEY], "user.add user 7 ok"),
        (&["user", "disable", "7"], "user.disable user 7 ok"),
        (&["user", "enable", "7"], "user.enable user 7 ok"),
        (&["passkey", "rotate", "--user", "7"], "passkey.rotate user 7 ok"),
        (&torrent, "torrent.add torrent 12 ok"),
        (&["torrent", "disable", "12"], "torrent.disable torrent 12 ok"),
        (&["torrent", "enable", INFO_HASH], "torrent.enable torrent 12 ok"),
        (&["torrent", "unapprove", "12"], "torrent.unapprove torrent 12 ok"),
        (&["torrent", "approve", INFO_HASH], "torrent.approve torrent 12 ok"),
        (&["torrent", "set", "12", "--leech-slots", "9"], "torrent.change torrent 12 ok"),
        (&["user", "set", "7", "--leech-slots", "2"], "user.change user 7 ok"),
        (&["port", "ban", "6881-6889"], "port.ban port 6881-6889 ok"),
        (&["port", "allow", "6881"], "port.allow port 6881 ok"),
        (&["torrent", "remove", INFO_HASH], "torrent.remove torrent 12 ok"),
        (&["client", "allow", "-TR"], "client.allow client -TR ok"),
        (&["client", "forbid", "-TR"], "client.forbid client -TR ok"),
        (&["client", "remove", "-TR"], "client.remove client -TR ok"),
        (&["multiplier", "add", "--download", "0"], "multiplier.add multiplier 1 ok"),
        (&["multiplier", "remove", "1"], "multiplier.remove multiplier 1 ok"),
        (&["journal", "pause", "ledger"], "journal.pause view ledger ok"),
        (&["journal", "resume", "ledger"], "journal.resume view ledger ok"),
        (&["dlq", "replay", "--all"], "dlq.replay dead_letter all ok"),
        (&["failed", "drop", "--all"], "failed.drop dead_letter all ok"),
        (&["user", "remove", "7"], "user.remove user 7 ok"),
    ];
    for (number, (arguments, expected)) in cases.into_iter().enumerate() {
        site.text(arguments);
        assert_eq!(site.newest_in_short(), expected, "{arguments:?}");
        assert_eq!(site.newest()["seq"], number + 1, "one record each: {arguments:?}");
    }
    let made = site.json(&["key", "create", "--name", "a", "--scope", "read"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(site.newest_in_short(), format!("key.create key {id} ok"));
    site.text(&["key", "revoke", id]);
    assert_eq!(site.newest_in_short(), format!("key.revoke key {id} ok"));
    // What only looks leaves none.
    for looking in [
        &["passkey", "count"][..],
        &["user", "list"],
        &["torrent", "list"],
        &["client", "list"],
        &["key", "list"],
        &["dlq", "list"],
    ] {
        site.text(looking);
    }
    assert_eq!(site.newest()["seq"], 31);
    assert_eq!(site.json(&["audit", "verify"])["records"], 31);
}

#[test]
fn w7_a_change_that_failed_is_recorded_with_its_reason() {
    let site = Site::new();
    let refusal = site.refusal(&["user", "remove", "7"]);
    assert_eq!(site.newest_in_short(), "user.remove user 7 failed");
    assert_eq!(site.newest()["details"], json!({ "reason": refusal }));
    site.refusal(&["torrent", "remove", INFO_HASH]);
    assert_eq!(site.newest_in_short(), format!("torrent.remove torrent {INFO_HASH} failed"));
    site.refusal(&["failed", "drop", "1794742234000-0"]);
    assert_eq!(site.newest_in_short(), "failed.drop dead_letter 1794742234000-0 failed");
}

#[test]
fn w7_a_record_names_the_actor_and_no_passkey() {
    let site = Site::new();
    let add = ["user", "add", "--id", "7", "--passkey", PASSKEY];
    site.run_with(&[("USER", "ada"), ("SUDO_USER", "")], &add);
    assert_eq!(site.newest()["actorId"], "cli:ada");
    site.run_with(&[("USER", "root"), ("SUDO_USER", "grace")], &add);
    assert_eq!(site.newest()["actorId"], "cli:grace");
    let line = fs::read_to_string(site.path("data/logs/audit.log")).unwrap();
    assert_eq!(line.lines().count(), 2);
    assert!(line.contains("0123…") && !line.contains(PASSKEY), "{line}");
}

#[test]
fn w7_a_line_that_was_changed_is_found() {
    let site = Site::new();
    for id in ["1", "2", "3"] {
        site.text(&["user", "add", "--id", id]);
    }
    let whole = site.json(&["audit", "verify"]);
    assert_eq!((&whole["valid"], &whole["records"], &whole["fault"]), (&json!(true), &json!(3), &Json::Null));
    let last = whole["last"]["hash"].as_str().unwrap();
    let text = site.text(&["audit", "verify", "--expect-last", last]);
    assert!(text.contains(last) && text.contains("the chain is intact"), "{text}");

    let path = site.path("data/logs/audit.log");
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(&path, lines.replacen("\"subjectId\":\"2\"", "\"subjectId\":\"9\"", 1)).unwrap();
    let outcome = site.run(&["audit", "verify"]);
    assert_eq!(outcome.exit_code, 1);
    assert!(outcome.stdout.contains("line 2: its hash does not match its content"), "{}", outcome.stdout);
    let outcome = site.run(&["audit", "verify", "--json"]);
    let verdict: Json = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&verdict["valid"], &verdict["fault"]["line"]), (&json!(false), &json!(2)));

    // An end that was cut off shows against a hash that was kept.
    fs::write(&path, &lines[..lines.rfind("{\"action\"").unwrap()]).unwrap();
    let outcome = site.run(&["audit", "verify", "--expect-last", last]);
    assert_eq!(outcome.exit_code, 1);
    assert!(outcome.stdout.contains("the end was cut off"), "{}", outcome.stdout);
    // The same for a file that is named.
    let outcome = site.run(&["audit", "verify", "data/logs/audit.log", "--expect-last", last]);
    assert_eq!(outcome.exit_code, 1);
    assert!(site.refusal(&["audit", "verify", "no.log"]).contains("no.log"));
}

#[test]
fn records_are_listed_newest_first_by_action_and_page() {
    let site = Site::new();
    for id in ["1", "2", "3"] {
        site.text(&["user", "add", "--id", id]);
    }
    site.text(&["user", "remove", "2"]);
    let page = site.json(&["audit", "list", "--action", "user.add", "--limit", "2"]);
    let seqs = |page: &Json| -> Vec<u64> {
        page["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!((seqs(&page), &page["next"]), (vec![3, 2], &json!(2)));
    assert_eq!(seqs(&site.json(&["audit", "list", "--before", "2"])), [1]);
    assert_eq!(seqs(&site.json(&["audit", "list", "--action", "user.", "--limit", "1"])), [4]);
    let text = site.text(&["audit", "list"]);
    assert!(text.lines().nth(1).unwrap().contains("user.remove"), "{text}");
    assert_eq!(Site::new().text(&["audit", "list"]), "none\n");
}

#[test]
fn a_setting_sets_the_path_of_the_audit_trail() {
    let site = Site::new();
    let elsewhere = site.path("elsewhere/trail");
    let set = format!("access.audit_file={}", elsewhere.display());
    site.text(&["user", "add", "--id", "1", "--set", &set]);
    assert!(elsewhere.exists());
    assert_eq!(site.json(&["audit", "list", "--set", &set])["entries"][0]["subjectId"], "1");
    assert!(!site.path("data/logs").exists());
}

#[test]
fn w7_commands_at_the_same_time_write_one_chain() {
    let site = Site::new();
    site.text(&["user", "list"]);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let site = &site;
            scope.spawn(move || {
                for number in 1..=5 {
                    site.text(&["user", "add", "--id", &(worker * 10 + number).to_string()]);
                }
            });
        }
    });
    let verdict = site.json(&["audit", "verify"]);
    assert_eq!((&verdict["valid"], &verdict["records"]), (&json!(true), &json!(20)));
}

#[test]
fn w7_a_trail_that_cannot_be_written_stops_the_change() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "1"]);
    // Nearly as large as files may become below: no room for a record, and enough for the database.
    let path = site.path("data/logs/audit.log");
    let trail = fs::read(&path).unwrap();
    let full = [vec![b'x'; (1 << 20) - 1000 - trail.len()], b"\n".to_vec(), trail].concat();
    fs::write(&path, &full).unwrap();
    let program = env!("CARGO_BIN_EXE_rollcall");
    // In units of 512 bytes; the signal that comes with it would kill.
    let script = format!("trap '' XFSZ; ulimit -f 2048; exec {program} user add --id 2");
    let mut command = Command::new("sh");
    testkit::process::clear_settings_env(&mut command);
    let output = command.current_dir(site.path(".")).args(["-c", &script]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("nothing was changed, because the audit trail cannot be written"), "{stderr}");
    assert_eq!(site.json(&["user", "list"])["users"].as_array().unwrap().len(), 1);
    assert!(fs::read(&path).unwrap() == full, "what there was no room for left nothing behind");
}
