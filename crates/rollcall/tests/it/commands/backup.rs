//! `rollcall backup`, `restore` and `migrate`: with a server that runs, on real databases; and what is refused.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{AnnounceEvent, InfoHash, Passkey};
use serde_json::{Value as Json, json};
use testkit::{Announce, Family, MariaDbServer, PostgresServer, Server, eventually};

use crate::commands::{Site, text_of};

const BINARY: &str = env!("CARGO_BIN_EXE_rollcall");
const PATIENCE: Duration = Duration::from_secs(60);
const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

/// Runs the program with nothing but these arguments.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    testkit::process::clear_settings_env(&mut command);
    command.args(arguments).output().unwrap()
}

#[track_caller]
fn json_of(arguments: &[&str]) -> Json {
    let output = run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refusal_of(arguments: &[&str]) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?} succeeded");
    stderr.trim_start_matches("error: ").trim_end().to_owned()
}

fn announce(server: &Server, passkey: &Passkey, said: &Announce) {
    assert_eq!(server.announce(Family::V4, passkey, said).failure_reason, None);
}

/// A server with two users, one torrent, a friendship, a multiplier, and traffic that has been counted.
fn populated() -> (Server, Passkey) {
    let server = Server::builder(BINARY).start();
    let (passkey, other) = (server.add_user(1), server.add_user(2));
    server.cli(&["user", "set", "1", "--name", "Łada"]);
    server.cli(&["friend", "add", "1", "2"]);
    server.cli(&["multiplier", "add", "--upload", "200"]);
    server.cli(&["torrent", "add", "--infohash", HASH, "--name", "Łódź 🦀"]);
    let hash: InfoHash = HASH.parse().unwrap();
    eventually("the torrent to be known", PATIENCE, || server.try_scrape(&passkey, &hash).ok().flatten());
    let leecher = Announce::leecher(hash, 1).with_totals(0, 0, 5000);
    announce(&server, &passkey, &leecher.with_event(AnnounceEvent::Started));
    announce(&server, &other, &Announce::seeder(hash, 2));
    announce(&server, &passkey, &leecher.with_totals(100, 2000, 3000));
    await_uploaded(&server, "100");
    (server, passkey)
}

fn await_uploaded(server: &Server, uploaded: &str) {
    eventually("the traffic to be counted", PATIENCE, || {
        (server.cli(&["user", "show", "1"])["uploaded"] == uploaded).then_some(())
    });
}

/// Users, torrents, friends and accounts of a database, without fields that change by themselves.
fn story(settings: &[&str]) -> Json {
    let ask = |arguments: &[&str]| json_of(&[arguments, settings].concat());
    json!([
        ask(&["user", "list", "--show-passkeys"]),
        ask(&["user", "torrents", "1"]),
        ask(&["torrent", "list"]),
        ask(&["friend", "list", "1"]),
        ask(&["multiplier", "list"]),
    ])
}

#[test]
fn a_backup_is_made_while_the_server_runs_and_its_folder_takes_it_back() {
    let (mut server, passkey) = populated();
    let file = server.data_folder().join("../one.backup");
    let made = server.cli(&["backup", text_of(&file)]);
    assert_eq!((&made["users"], &made["torrents"]), (&json!(2), &json!(1)), "{made}");
    assert_eq!((&made["uploaded"], &made["downloaded"]), (&json!("100"), &json!("2000")), "{made}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "it holds every passkey");
    let data = server.data_folder();
    let folder = ["--data", text_of(&data)];
    let before = story(&folder);
    // What comes after the backup is not in it.
    server.cli(&["user", "add", "--id", "3"]);
    assert!(refusal_of(&["restore", text_of(&file), "--data", text_of(&data)]).contains("stop it first"));
    server.stop();
    let full = refusal_of(&["restore", text_of(&file), "--data", text_of(&data)]);
    assert!(full.contains("nothing was changed") && full.contains("move"), "{full}");
    for name in ["rollcall.db", "journal.db"] {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(data.join(format!("{name}{suffix}")));
        }
    }
    assert!(data.join("databases").exists(), "the folder remembers the files that are gone");
    let restored = server.cli(&["restore", text_of(&file)]);
    assert_eq!((&restored["users"], &restored["uploaded"]), (&json!(2), &json!("100")), "{restored}");
    assert_eq!(restored["rows"], made["rows"]);
    assert_eq!(story(&folder), before);
    // The restored server continues to account, neither twice nor from zero.
    server.start_again();
    let leecher = Announce::leecher(HASH.parse().unwrap(), 1).with_totals(100, 2000, 3000);
    announce(&server, &passkey, &leecher);
    announce(&server, &passkey, &leecher.with_totals(150, 2500, 2500));
    await_uploaded(&server, "150");
    assert_eq!(server.cli(&["user", "add"])["id"], 3, "ids go on as before");
}

/// Each table of the ledger is written with the others: a backup in between would show it.
#[test]
fn backups_under_traffic_show_one_moment_each() {
    let (server, passkey) = populated();
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (1..=3).map(|number| folder.path().join(format!("{number}.backup"))).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let leecher = Announce::leecher(HASH.parse().unwrap(), 1);
            // Below the limits of requests per address and announces per user.
            for moved in (1..=2_000).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                std::thread::sleep(Duration::from_millis(20));
                announce(&server, &passkey, &leecher.with_totals(100 + moved, 2000, 3000));
            }
        });
        for file in &files {
            server.cli(&["backup", text_of(file)]);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for file in &files {
        let restored = tempfile::tempdir().unwrap();
        let data = ["--data", text_of(restored.path())];
        json_of(&[&["restore", text_of(file)], &data[..]].concat());
        let ask = |arguments: &[&str]| json_of(&[arguments, &data].concat());
        let (user, torrent) = (ask(&["user", "show", "1"]), ask(&["torrent", "show", "1"]));
        let accounts = ask(&["user", "torrents", "1"]);
        assert_eq!(user["uploaded"], torrent["uploaded"], "only user 1 uploads");
        assert_eq!(user["uploaded"], accounts["accounts"][0]["uploaded"]);
        assert!(user["uploaded"].as_str().unwrap().parse::<u64>().unwrap() >= 100, "{user}");
    }
}

#[test]
fn everything_moves_from_sqlite_to_postgresql_to_mariadb_and_back() {
    let (mut server, _) = populated();
    server.cli(&["user", "add", "--id", "70"]);
    server.cli(&["user", "remove", "70"]);
    let data = server.data_folder();
    let data = text_of(&data);
    let postgres = PostgresServer::shared().fresh_database();
    let refused = refusal_of(&["migrate", "--to", &postgres, "--data", data]);
    assert!(refused.contains("stop it first"), "{refused}");
    server.stop();
    let before = story(&["--data", data]);
    let moved = json_of(&["migrate", "--to", &postgres, "--data", data]);
    assert_eq!((&moved["users"], &moved["uploaded"]), (&json!(2), &json!("100")), "{moved}");
    let on = |url: &str| format!("database.url={url}");
    assert_eq!(story(&["--data", data, "--set", &on(&postgres)]), before);
    let mariadb = MariaDbServer::shared().fresh_database();
    json_of(&["migrate", "--to", &mariadb, "--data", data, "--set", &on(&postgres)]);
    assert_eq!(story(&["--data", data, "--set", &on(&mariadb)]), before);
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("back.db").display());
    json_of(&["migrate", "--to", &sqlite, "--data", data, "--set", &on(&mariadb)]);
    assert_eq!(story(&["--data", data, "--set", &on(&sqlite)]), before);
    for url in [&postgres, &mariadb, &sqlite] {
        let added = json_of(&["user", "add", "--data", data, "--set", &on(url)]);
        assert_eq!(added["id"], 71, "an id is not given twice: {url}");
        let again = refusal_of(&["migrate", "--to", url, "--data", data]);
        assert!(again.contains("nothing was changed"), "{again}");
    }
    // A backup of one kind can be restored into another.
    let file = folder.path().join("mariadb.backup");
    json_of(&["backup", text_of(&file), "--data", data, "--set", &on(&mariadb)]);
    let other = tempfile::tempdir().unwrap();
    let empty = PostgresServer::shared().fresh_database();
    let restore = ["restore", text_of(&file), "--data", text_of(other.path()), "--set", &on(&empty)];
    assert_eq!(json_of(&restore)["users"], 3);
}

#[test]
fn what_is_no_backup_is_refused_and_changes_nothing() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7"]);
    let good = site.path("good.backup");
    site.text(&["backup", text_of(&good)]);
    let exists = site.refusal(&["backup", text_of(&good)]);
    assert!(exists.contains("exists: choose another name"), "{exists}");
    let nowhere = site.refusal(&["backup", "no/such/folder/file"]);
    assert!(nowhere.starts_with("there is no folder"), "{nowhere}");
    let into = |file: &Path| {
        let outcome = site.run(&["restore", text_of(file), "--data", "fresh"]);
        assert!(!site.path("fresh/rollcall.db").exists(), "{outcome:?}");
        outcome.refusal()
    };
    assert!(into(&site.path("missing")).contains("missing or empty"));
    assert!(into(&site.write("text", "no database at all")).contains("is not a SQLite database"));
    let other = site.path("other.db");
    sqlite(&other, "CREATE TABLE songs (name TEXT)");
    assert!(into(&other).contains("neither a backup nor a database of rollcall"), "{}", into(&other));
    let newer = site.path("newer.backup");
    std::fs::copy(&good, &newer).unwrap();
    sqlite(
        &newer,
        "INSERT INTO access_migrations SELECT 9999, description, installed_on, success, checksum, execution_time FROM access_migrations LIMIT 1",
    );
    assert!(into(&newer).contains("another version of rollcall"), "{}", into(&newer));
    let full = site.refusal(&["restore", text_of(&good)]);
    assert!(full.contains("nothing was changed"), "{full}");
    // A plain copy of the database is a backup, too.
    std::fs::copy(site.path("data/rollcall.db"), site.path("copy.db")).unwrap();
    site.text(&["restore", "copy.db", "--data", "fresh"]);
    assert_eq!(site.json(&["user", "list", "--data", "fresh"])["users"][0]["id"], 7);
    let absent = site.refusal(&["backup", "b", "--data", "nothing-here"]);
    assert!(absent.starts_with("there is no database"), "{absent}");
}

fn sqlite(path: &Path, sql: &str) {
    let done = Command::new("sqlite3").arg(path).arg(sql).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_server_does_not_start_empty_beside_a_database_with_users() {
    let site = Site::new();
    site.text(&["user", "add", "--id", "7"]);
    for url in [PostgresServer::shared().fresh_database(), MariaDbServer::shared().fresh_database()] {
        let setting = format!("database.url={url}");
        let refused = site.refusal(&["serve", "--set", &setting]);
        for part in ["rollcall migrate", "rollcall restore", "move", "rollcall.db"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
}

/// Flags of the server are recorded in the data folder for commands.
#[test]
fn commands_need_only_the_data_folder_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let postgres = PostgresServer::shared().fresh_database();
    let setting = format!("database.url={postgres}");
    let arguments = [
        "serve",
        "--data",
        text_of(&data),
        "--set",
        &setting,
        "--set",
        "tracker.http_addr=127.0.0.1:0",
        "--set",
        "site.addr=127.0.0.1:0",
    ];
    let mut server = testkit::process::Process::start(BINARY, arguments, &folder.path().join("log"));
    let log = eventually("the server to be up", PATIENCE, || {
        let log = server.log();
        log.contains("Next, in another terminal").then_some(log)
    });
    let announce = log.lines().find_map(|line| line.trim().strip_prefix("announce  ")).unwrap().to_owned();
    let settings = std::fs::metadata(data.join("settings")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&settings.permissions());
    assert_eq!(mode & 0o777, 0o600, "settings may hold passwords");
    // As printed.
    let step = log.lines().find(|line| line.contains("user add --id 1")).unwrap();
    let pasted = Command::new("sh").arg("-c").arg(step).current_dir("/").output().unwrap();
    assert!(pasted.status.success(), "{pasted:?}");
    let step = log.lines().find(|line| line.contains("torrent announce-url --user 1")).unwrap();
    let pasted = Command::new("sh").arg("-c").arg(step).current_dir("/").output().unwrap();
    let url = String::from_utf8_lossy(&pasted.stdout).into_owned();
    let base = announce.split("/<passkey>").next().unwrap();
    assert!(url.contains(base), "{url} {announce}");
    let users = json_of(&["user", "list", "--data", text_of(&data), "--config", "/dev/null"]);
    assert_eq!(users["users"], json!([]), "with a configuration of its own, a command goes by that");
    server.terminate();
    server.wait_end(PATIENCE);
}
