//! Commands on PostgreSQL and MariaDB: as on a file, and without ever showing the password.

use testkit::{MariaDbServer, PostgresServer};

use crate::{Outcome, Site};

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
        assert_eq!(run(&["user", "list"]), "id  enabled  adopted  passkey\n7   no       no       0123…\n");
        let hash = "0123456789012345678901234567890123456789";
        run(&["torrent", "add", "--infohash", hash, "--name", "Łódź 🦀"]);
        assert!(run(&["torrent", "list"]).contains("Łódź 🦀"));
        run(&["client", "allow", "-TR3"]);
        assert!(run(&["client", "list"]).contains("-TR3"));
        run(&["user", "remove", "7"]);
        assert_eq!(run(&["user", "list"]), "none\n");
    }
}

#[test]
fn what_is_wrong_with_a_server_is_told_without_the_password() {
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
