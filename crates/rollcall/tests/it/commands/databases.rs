//! Commands on PostgreSQL and MariaDB: as on a file, and without ever showing the password.

use testkit::{MariaDbServer, PostgresServer};

use crate::commands::{Outcome, Site};

const PASSKEY: &str = "0123456789abcdef0123456789abcdef";
const PASSWORD: &str = "hunter2";

/// Addresses with a password, as operators write them.
fn addresses() -> [String; 2] {
    let postgres = PostgresServer::shared().fresh_database();
    let mariadb = MariaDbServer::shared();
    let url = mariadb.fresh_database();
    mariadb.mariadb(
        "mysql",
        &format!(
            "CREATE USER IF NOT EXISTS rollcall@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
             GRANT ALL ON `test%`.* TO rollcall@'127.0.0.1'"
        ),
    );
    // PostgreSQL trusts this machine, whatever the password.
    [
        postgres.replace("postgres@", &format!("postgres:{PASSWORD}@")),
        url.replace("root@", &format!("rollcall:{PASSWORD}@")),
    ]
}

fn run(site: &Site, url: &str, arguments: &[&str]) -> Outcome {
    let outcome = site.run_with(&[("ROLLCALL_DATABASE__URL", url)], arguments);
    assert!(!format!("{outcome:?}").contains(PASSWORD), "{outcome:?}");
    outcome
}

#[test]
fn users_torrents_and_clients_are_kept_on_a_server() {
    for url in addresses() {
        let site = Site::new();
        let run = |arguments: &[&str]| {
            let outcome = run(&site, &url, arguments);
            assert_eq!((outcome.exit_code, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
            outcome.stdout
        };
        run(&["user", "add", "--id", "7", "--passkey", PASSKEY]);
        run(&["user", "disable", "7"]);
        assert_eq!(
            run(&["user", "list"]),
            "id  enabled  external  passkey  name\n7   no       no        0123…\n"
        );
        let hash = "0123456789012345678901234567890123456789";
        run(&["torrent", "add", "--infohash", hash, "--name", "Łódź 🦀"]);
        assert!(run(&["torrent", "list"]).contains("Łódź 🦀"));
        run(&["client", "allow", "-TR3"]);
        assert!(run(&["client", "list"]).contains("-TR3"));
        run(&["user", "remove", "7"]);
        assert_eq!(run(&["user", "list"]), "none\n");
    }
}

/// The sandbox has high ids. Without care the next automatic id is one more, and `sandbox clear` removed that user.
#[test]
fn w9_a_real_user_added_beside_a_sandbox_survives_its_clearing() {
    let [postgres, mariadb] = addresses();
    let folder = Site::new();
    let sqlite = format!("sqlite:{}", folder.path("site.db").display());
    for url in [sqlite, postgres, mariadb] {
        let site = Site::new();
        let json = |arguments: &[&str]| -> serde_json::Value {
            let outcome = run(&site, &url, &[arguments, &["--json"]].concat());
            assert_eq!(outcome.exit_code, 0, "{arguments:?}: {outcome:?}");
            serde_json::from_str(&outcome.stdout).unwrap()
        };
        json(&["user", "add"]);
        json(&["sandbox"]);
        assert_eq!(json(&["user", "add"])["id"], 2, "{url}");
        json(&["user", "add", "--id", "900000077"]);
        assert_eq!(json(&["user", "add"])["id"], 3, "{url}");
        let hash = "0123456789012345678901234567890123456789";
        assert_eq!(json(&["torrent", "add", "--infohash", hash, "--name", "mine"])["id"], 1, "{url}");
        json(&["sandbox"]);
        assert_eq!(json(&["sandbox", "clear"])["users"], 2, "{url}");
        let users = json(&["user", "list"]);
        let ids: Vec<_> = users["users"].as_array().unwrap().iter().map(|user| user["id"].clone()).collect();
        assert_eq!(ids, [1, 2, 3, 900_000_077], "{url}");
        assert_eq!(json(&["user", "add"])["id"], 4, "{url}");
    }
}

#[test]
fn a_user_with_an_id_of_the_sandbox_is_not_taken_into_it() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "900000001"]);
    let refused = site.refusal(&["sandbox"]);
    assert!(refused.starts_with("user 900000001 is not a user of the sandbox"), "{refused}");
}

#[test]
fn findings_contain_no_password() {
    let site = Site::new();
    for (url, expected) in [
        ("postgres://me:hunter2@127.0.0.1:1/site", "postgres://me@127.0.0.1:1/site cannot be reached"),
        ("mysql://me:hunter2@127.0.0.1:1/site", "mysql://me@127.0.0.1:1/site cannot be reached"),
        ("mysql://me:hunter2@127.0.0.1:1", "names no database"),
        ("oracle://me:hunter2@127.0.0.1/site", "expected \"sqlite:PATH\""),
    ] {
        let refusal = run(&site, url, &["user", "list"]).refusal();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn a_check_of_the_settings_shows_the_server_without_the_password() {
    let checked = run(&Site::new(), "postgres://me:hunter2@db.example/site", &["config", "check"]).stdout;
    assert!(checked.contains("postgres://me@db.example:5432/site"), "{checked}");
}
