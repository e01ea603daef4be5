//! `rollcall passkey add|remove|check|count|refresh|undo`: the whitelist, in the database and in Redis.

use std::io::{BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};
use testkit::{RedisServer, eventually};

use crate::commands::{Outcome, Site, text_of};

const ONE: &str = "00000000000000000000000000000001";
const TWO: &str = "00000000000000000000000000000002";
const MILLION: u64 = 1_000_000;

/// A command that is fed a list.
fn start(site: &Site, environment: &[(&str, &str)], arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    testkit::process::clear_settings_env(&mut command);
    command.current_dir(site.folder.path()).envs(environment.iter().copied()).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn feed(site: &Site, environment: &[(&str, &str)], arguments: &[&str], list: &[u8]) -> Outcome {
    let mut child = start(site, environment, arguments);
    // A command that has found a fault does not read to the end.
    let _ = child.stdin.take().unwrap().write_all(list);
    outcome(child)
}

fn outcome(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        exit_code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: crate::commands::without_note(&String::from_utf8(output.stderr).unwrap()),
    }
}

/// Without Redis, and with one.
fn everywhere(test: impl Fn(&Site, &[(&str, &str)])) {
    test(&Site::new(), &[]);
    let redis = RedisServer::start();
    test(&Site::new(), &[("ROLLCALL_REDIS__URL", &redis.url())]);
}

fn json_of(site: &Site, environment: &[(&str, &str)], arguments: &[&str]) -> Json {
    let outcome = site.run_with(environment, &[arguments, &["--json"]].concat());
    assert_eq!((outcome.exit_code, outcome.stderr.as_str()), (0, ""), "{arguments:?}: {outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn w2_passkeys_are_put_on_the_whitelist_and_taken_off() {
    everywhere(|site, environment| {
        let run = |arguments: &[&str]| json_of(site, environment, arguments);
        assert_eq!(run(&["passkey", "count"]), json!({ "count": 0 }));
        assert_eq!(run(&["passkey", "add", ONE, TWO, ONE]), json!({ "added": 2, "unchanged": 0 }));
        assert_eq!(run(&["passkey", "add", &ONE.to_uppercase()]), json!({ "added": 0, "unchanged": 1 }));
        assert_eq!(run(&["passkey", "count"]), json!({ "count": 2 }));
        let valid = json!({ "valid": true, "user": null, "whitelisted": true, "reason": null });
        assert_eq!(run(&["passkey", "check", ONE]), valid);
        assert_eq!(run(&["passkey", "remove", ONE]), json!({ "removed": 1, "unchanged": 0 }));
        assert_eq!(run(&["passkey", "remove", ONE]), json!({ "removed": 0, "unchanged": 1 }));
        let gone = site.run_with(environment, &["passkey", "check", ONE]);
        assert_eq!(gone.exit_code, 1, "{gone:?}");
    });
}

#[test]
fn w1_what_is_no_passkey_is_refused() {
    let site = Site::new();
    for wrong in ["0123", "not-hex-at-all", ""] {
        assert_eq!(site.run(&["passkey", "add", wrong]).exit_code, 2, "{wrong}");
    }
    assert_eq!(site.run(&["passkey", "add"]).exit_code, 2);
    assert_eq!(site.json(&["passkey", "count"]), json!({ "count": 0 }));
}

#[test]
fn a_disabled_user_is_not_helped_by_the_whitelist() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7", "--passkey", ONE]);
    site.text(&["passkey", "add", ONE]);
    let text = "passkey 0000… is valid: user 7, and it is on the whitelist\n";
    assert_eq!(site.text(&["passkey", "check", ONE]), text);
    site.text(&["user", "disable", "7"]);
    let refused = site.run(&["passkey", "check", ONE]);
    let text = "passkey 0000… is not valid: user 7 is disabled, and it is on the whitelist\n";
    assert_eq!((refused.exit_code, refused.stdout.as_str()), (1, text));
    site.text(&["user", "remove", "7"]);
    assert_eq!(site.text(&["passkey", "check", ONE]), "passkey 0000… is valid: it is on the whitelist\n");
}

#[test]
fn w2_a_refresh_replaces_everything_and_can_be_undone() {
    everywhere(|site, environment| {
        let run = |arguments: &[&str]| json_of(site, environment, arguments);
        let nothing = site.run_with(environment, &["passkey", "undo"]).refusal();
        assert!(nothing.starts_with("nothing to undo"), "{nothing}");
        run(&["passkey", "add", ONE]);
        let list = site.write("list.txt", format!("# users of the site\n\n  {TWO}  \r\n0123456789ABCDEF"));
        let refreshed = run(&["passkey", "refresh", text_of(&list)]);
        assert_eq!(refreshed, json!({ "before": 1, "after": 2 }));
        run(&["passkey", "check", "0123456789abcdef"]);
        assert_eq!(site.run_with(environment, &["passkey", "check", ONE]).exit_code, 1);
        assert_eq!(run(&["passkey", "undo"]), json!({ "before": 2, "after": 1 }));
        run(&["passkey", "check", ONE]);
        assert_eq!(run(&["passkey", "undo"]), json!({ "before": 1, "after": 2 }));
        for arguments in [&["passkey", "refresh"][..], &["passkey", "refresh", "-"]] {
            let fed = feed(site, environment, arguments, format!("{ONE}\n").as_bytes());
            assert_eq!((fed.exit_code, fed.stderr.as_str()), (0, ""), "no progress but on a terminal");
            assert!(fed.stdout.starts_with("the whitelist has 1 passkey, before "), "{fed:?}");
        }
    });
}

#[test]
fn w2_a_list_with_a_fault_changes_nothing() {
    everywhere(|site, environment| {
        json_of(site, environment, &["passkey", "add", ONE]);
        let fault = format!("{TWO}\n0123456789abcdefg\n");
        let refusal = feed(site, environment, &["passkey", "refresh"], fault.as_bytes()).refusal();
        assert!(refusal.starts_with("cannot import standard input: line 2 is not a passkey"), "{refusal}");
        assert!(!refusal.contains("0123456789abcdefg"), "{refusal}");
        for empty in ["", "# empty\n"] {
            let refusal = feed(site, environment, &["passkey", "refresh"], empty.as_bytes()).refusal();
            assert!(refusal.contains("--allow-empty"), "{refusal}");
        }
        let missing = site.run_with(environment, &["passkey", "refresh", "nowhere.txt"]).refusal();
        assert!(missing.starts_with("cannot read nowhere.txt"), "{missing}");
        assert_eq!(site.run_with(environment, &["passkey", "refresh", "."]).exit_code, 1);
        assert_eq!(json_of(site, environment, &["passkey", "count"]), json!({ "count": 1 }));
        let emptied = feed(site, environment, &["passkey", "refresh", "--allow-empty", "--json"], b"");
        assert_eq!(emptied.stdout, "{\"after\":0,\"before\":1}\n");
        assert_eq!(json_of(site, environment, &["passkey", "undo"]), json!({ "before": 0, "after": 1 }));
    });
}

#[test]
fn w2_a_refresh_that_is_killed_leaves_everything_as_it_was() {
    everywhere(|site, environment| {
        json_of(site, environment, &["passkey", "add", ONE]);
        let mut child = start(site, environment, &["passkey", "refresh"]);
        let mut stdin = child.stdin.take().unwrap();
        // More than fits into the pipe and all that waits: some of it has been taken in.
        let list: String = (0..200_000).map(|number| format!("{number:032x}\n")).collect();
        stdin.write_all(list.as_bytes()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(json_of(site, environment, &["passkey", "count"]), json!({ "count": 1 }));
        json_of(site, environment, &["passkey", "check", ONE]);
        let fed = feed(site, environment, &["passkey", "refresh", "--json"], TWO.as_bytes());
        assert_eq!(fed.stdout, "{\"after\":1,\"before\":1}\n", "{fed:?}");
        assert_eq!(json_of(site, environment, &["passkey", "undo"]), json!({ "before": 1, "after": 1 }));
        json_of(site, environment, &["passkey", "check", ONE]);
    });
}

#[test]
fn an_unreachable_redis_is_reported_and_does_not_hide_a_user() {
    let site = Site::new();
    let environment = [("ROLLCALL_REDIS__URL", "redis://127.0.0.1:1")];
    site.text(&["user", "add", "--id", "7", "--passkey", ONE]);
    let known = json_of(&site, &environment, &["passkey", "check", ONE]);
    assert_eq!(known, json!({ "valid": true, "user": 7, "whitelisted": null, "reason": null }));
    for arguments in [&["check", TWO][..], &["add", TWO], &["remove", TWO], &["count"], &["undo"]] {
        let refusal = site.run_with(&environment, &[&["passkey"], arguments].concat());
        let last = refusal.stderr.lines().last().unwrap_or_default();
        assert!(refusal.exit_code == 1 && last.contains("Redis cannot be reached"), "{arguments:?}: {last}");
    }
}

/// The list is made on the fly: neither side ever has all of it in memory.
fn refresh_a_million(site: &Site, environment: &[(&str, &str)]) {
    let mut child = start(site, environment, &["passkey", "refresh", "-", "--json"]);
    let mut stdin = BufWriter::new(child.stdin.take().unwrap());
    let mut random = fastrand::Rng::with_seed(4);
    writeln!(stdin, "{ONE}").unwrap();
    for _ in 1..MILLION {
        writeln!(stdin, "{:032x}", random.u128(..)).unwrap();
    }
    drop(stdin);
    let fed = outcome(child);
    assert_eq!(fed.stdout, format!("{{\"after\":{MILLION},\"before\":1}}\n"), "{fed:?}");
    assert_eq!(json_of(site, environment, &["passkey", "count"]), json!({ "count": MILLION }));
    json_of(site, environment, &["passkey", "check", ONE]);
}

#[test]
fn w2_a_million_passkeys_are_streamed_into_the_database() {
    let site = Site::new();
    json_of(&site, &[], &["passkey", "add", TWO]);
    refresh_a_million(&site, &[]);
}

#[test]
fn w2_a_million_passkeys_are_streamed_into_redis_under_the_eyes_of_readers() {
    let (site, redis) = (Site::new(), RedisServer::start());
    let url = redis.url();
    redis.cli(&["SADD", "pt:passkeys", ONE]);
    std::thread::scope(|scope| {
        let refresh = scope.spawn(|| refresh_a_million(&site, &[("ROLLCALL_REDIS__URL", &url)]));
        while !refresh.is_finished() {
            assert_eq!(redis.cli(&["SISMEMBER", "pt:passkeys", ONE]), "1", "it is in both");
            let count = redis.cli(&["SCARD", "pt:passkeys"]);
            assert!(count == "1" || count == MILLION.to_string(), "a part: {count}");
            std::thread::sleep(Duration::from_millis(5));
        }
        refresh.join().unwrap();
    });
    assert_eq!(redis.cli(&["SISMEMBER", "pt:passkeys:old", ONE]), "1");
    eventually("nothing else is left", Duration::from_secs(10), || {
        (redis.cli(&["KEYS", "pt:passkeys:new*"]).is_empty()).then_some(())
    });
}
