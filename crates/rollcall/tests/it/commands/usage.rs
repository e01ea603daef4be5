//! Help, and command lines that are not understood.

use crate::commands::Site;

#[test]
fn help_shows_every_command_and_examples() {
    let help = Site::new().text(&["--help"]);
    for expected in [
        "serve",
        "user",
        "passkey",
        "torrent",
        "client",
        "port",
        "friend",
        "key",
        "audit",
        "config",
        "--config",
        "--data",
        "--json",
        "Examples:",
    ] {
        assert!(help.contains(expected), "{expected} is missing in {help}");
    }
}

#[test]
fn every_command_has_help_with_the_flags_all_share() {
    let site = Site::new();
    for command in [
        "serve",
        "user add",
        "passkey rotate",
        "torrent add",
        "client allow",
        "port ban",
        "torrent approve",
        "user set",
        "friend import",
        "config check",
        "key create",
        "audit verify",
    ] {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = site.text(&arguments);
        assert!(help.contains("--config <FILE>") && help.contains("--json"), "{command}: {help}");
    }
}

#[test]
fn w1_ids_and_passkeys_are_checked_before_anything_happens() {
    let site = Site::new();
    let cases: [(&[&str], &str); 8] = [
        (&["user", "add", "--id", "0"], "a user id must be a decimal number from 1 to 9223372036854775807"),
        (&["user", "add", "--id", "seven"], "a user id must be a decimal number"),
        (&["user", "add", "--id", "7", "--passkey", "xyz"], "a passkey is 8 to 64 hexadecimal digits"),
        (&["passkey", "check", "0123"], "a passkey is 8 to 64 hexadecimal digits"),
        (
            &["torrent", "add", "--infohash", "0123", "--name", "x"],
            "an infohash must be 40 hexadecimal digits",
        ),
        (&["torrent", "show", "abc"], "a torrent id must be a decimal number"),
        (&["torrent", "announce-url", "--user", "7", "--base", "tracker"], "expected a URL such as https://"),
        (&["client", "allow", ""], "a client prefix is 1 to 20 characters"),
    ];
    for (arguments, expected) in cases {
        let outcome = site.run(arguments);
        assert_eq!(outcome.exit_code, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(expected), "{arguments:?}: {}", outcome.stderr);
    }
    assert!(!site.path("data").exists());
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    let site = Site::new();
    let infohash = "0123456789abcdef0123456789abcdef01234567";
    let cases: [&[&str]; 4] = [
        &[],
        &["torrent", "add"],
        &["torrent", "add", "--infohash", infohash],
        &["torrent", "add", "a.torrent", "--infohash", infohash, "--name", "x"],
    ];
    for arguments in cases {
        assert_eq!(site.run(arguments).exit_code, 2, "{arguments:?}");
    }
}

#[test]
fn a_broken_database_is_a_one_line_error_with_a_remedy() {
    let site = Site::new();
    site.write(
        "other.db",
        "this is no database, but long enough to look like a file that must not be overwritten",
    );
    let refusal = site.refusal(&["user", "list", "--set", "database.url=sqlite:other.db"]);
    assert!(refusal.contains("other.db is not a SQLite database"), "{refusal}");
}
