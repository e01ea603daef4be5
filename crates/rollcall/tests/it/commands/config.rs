//! `rollcall config …`

use serde_json::json;

use crate::commands::{Site, text_of};

#[test]
fn the_printed_file_is_valid_and_changes_nothing() {
    let site = Site::new();
    let printed = site.text(&["config", "print"]);
    assert!(printed.contains("# Announce interval of clients.\n"), "{printed}");
    assert!(printed.contains("\nannounce_interval_s = 1800\n"), "{printed}");
    assert!(printed.contains("\nhttp_addr = \"127.0.0.1:6969,[::1]:6969\"\n"), "{printed}");
    let file = site.write("rollcall.toml", printed);
    let checked = site.text(&["config", "check", "--config", text_of(&file)]);
    assert_eq!(checked, "valid, every setting at its default\n");
}

#[test]
fn the_defaults_can_be_had_as_json() {
    let defaults = Site::new().json(&["config", "print"]);
    assert_eq!(defaults["tracker"]["announce_interval_s"], 1800);
    assert_eq!(defaults["tracker"]["trusted_proxies"], json!([]));
    assert_eq!(defaults["database"]["url"], "");
    assert_eq!(defaults["log"], json!({ "level": "info", "format": "auto" }));
}

#[test]
fn printing_works_even_where_the_settings_are_broken() {
    let outcome = Site::new().run_with(&[("ROLLCALL_NO__SUCH", "1")], &["config", "print"]);
    assert_eq!(outcome.exit_code, 0, "{outcome:?}");
}

#[test]
fn check_prints_differences_and_their_origin() {
    let site = Site::new();
    site.write("rollcall.toml", "[tracker]\nannounce_interval_s = 3600\nworkers = 0\n");
    let environment = [("ROLLCALL_LIMITS__HEADER_TIMEOUT_S", "30"), ("ROLLCALL_CONFIG", "rollcall.toml")];
    let arguments = ["config", "check", "--set", "log.format=json"];
    let outcome = site.run_with(&environment, &arguments);
    assert_eq!(
        outcome.stdout,
        "valid, these settings differ from their defaults:\n\
         setting                      value   default  set by\n\
         tracker.announce_interval_s  3600    1800     rollcall.toml:2\n\
         limits.header_timeout_s      30      10       environment ROLLCALL_LIMITS__HEADER_TIMEOUT_S\n\
         log.format                   \"json\"  \"auto\"   --set\n"
    );
    let outcome = site.run_with(&environment, &[&arguments[..], &["--json"]].concat());
    let checked: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(checked["valid"], true);
    assert_eq!(
        checked["changed"][0],
        json!({ "key": "tracker.announce_interval_s", "value": 3600, "default": 1800, "set_by": "rollcall.toml:2" })
    );
    assert_eq!(checked["changed"].as_array().unwrap().len(), 3);
}

#[test]
fn unknown_names_are_errors_that_name_the_nearest_with_file_and_line() {
    let site = Site::new();
    site.write("a.toml", "# mine\n[tracker]\nanounce_interval_s = 900\n");
    assert_eq!(
        site.refusal(&["config", "check", "--config", "a.toml"]),
        "a.toml:3: unknown key tracker.anounce_interval_s, the nearest known one is tracker.announce_interval_s"
    );
    site.write("b.toml", "[limit]\n");
    assert_eq!(
        site.refusal(&["config", "check", "--config", "b.toml"]),
        "b.toml:1: unknown section [limit], the nearest known one is [limits]"
    );
    let outcome = site.run_with(&[("ROLLCALL_TRACKER_HTTP_ADDR", "127.0.0.1:1")], &["config", "check"]);
    assert_eq!(
        outcome.refusal(),
        "environment ROLLCALL_TRACKER_HTTP_ADDR: unknown key ROLLCALL_TRACKER_HTTP_ADDR, \
         the nearest known one is ROLLCALL_TRACKER__HTTP_ADDR"
    );
}

#[test]
fn every_command_refuses_broken_settings() {
    let site = Site::new();
    site.write("bad.toml", "[tracker]\nworkers = \"many\"\n");
    for arguments in [&["serve"][..], &["user", "list"], &["torrent", "list"], &["client", "list"]] {
        assert_eq!(
            site.refusal(&[arguments, &["--config", "bad.toml"]].concat()),
            "bad.toml:2: tracker.workers = \"many\": expected a whole number from 0 to 1024"
        );
    }
    assert!(!site.path("data").exists(), "nothing is made before the settings are known to be good");
}

#[test]
fn a_missing_file_is_named() {
    let refusal = Site::new().refusal(&["config", "check", "--config", "none.toml"]);
    assert_eq!(
        refusal,
        "cannot read the configuration file none.toml: No such file or directory (os error 2)"
    );
}

/// Names that sites know from elsewhere.
#[test]
fn w8_settings_have_the_names_of_the_integration_guide() {
    let environment = [
        ("TRACKER_STREAM_KEY", "site:traffic"),
        ("TRACKER_DLQ_KEY", "site:dlq"),
        ("TRACKER_FAILED_KEY", "site:failed"),
        ("TRACKER_RETRY_MAX", "5"),
        ("REDIS_HOST", "redis.example.org"),
        ("REDIS_PORT", "6380"),
        ("REDIS_PASSWORD", "hunter2"),
        ("REDIS_DB", "2"),
        ("ROLLCALL_JOURNAL__RETRY_MAX", "7"),
    ];
    let outcome = Site::new().run_with(&environment, &["config", "check"]);
    for line in
        ["journal.stream_key", "journal.retry_max", "redis://redis.example.org:6380/2", "redis.password"]
    {
        assert!(outcome.stdout.contains(line), "{line}: {}", outcome.stdout);
    }
    let retries = outcome.stdout.lines().find(|line| line.starts_with("journal.retry_max")).unwrap();
    assert!(retries.contains(" 7 "), "our own name overrides: {retries}");
    assert!(!outcome.stdout.contains("hunter2"), "{}", outcome.stdout);
    let refused = Site::new().run_with(&[("TRACKER_RETRY_MAX", "many")], &["config", "check"]);
    assert!(refused.stderr.contains("TRACKER_RETRY_MAX"), "{}", refused.stderr);
    let empty = Site::new().run_with(&[("REDIS_HOST", "")], &["config", "check"]);
    assert!(!empty.stdout.contains("redis.url"), "an empty variable is none: {}", empty.stdout);
    for (name, value) in [("REDIS_HOST", "a,b"), ("REDIS_PORT", "0"), ("REDIS_DB", "first")] {
        let environment = [("REDIS_HOST", "::1"), (name, value)];
        let refused = Site::new().run_with(&environment, &["config", "check"]);
        assert!(refused.exit_code != 0 && refused.stderr.contains(name), "{name}: {}", refused.stderr);
    }
    let address = Site::new().run_with(&[("REDIS_HOST", "::1")], &["config", "check"]);
    assert!(address.stdout.contains("redis://[::1]:6379/0"), "{}", address.stdout);
    let site = Site::new();
    site.write("rollcall.toml", "[redis]\nurl = \"redis://127.0.0.1:1\"\n");
    let both =
        site.run_with(&[("REDIS_HOST", "::1"), ("ROLLCALL_CONFIG", "rollcall.toml")], &["config", "check"]);
    assert!(both.stderr.contains("keep one of them"), "{}", both.stderr);
}
