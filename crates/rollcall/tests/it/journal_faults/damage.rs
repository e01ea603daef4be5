//! Files that were damaged, emptied or replaced while no server ran are noticed at the next start.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use testkit::process::Process;

use crate::journal_faults::{PLAN, meanwhile, populate};
use crate::site::{DatabaseKind, PATIENCE, Site, builder};

/// Starts a server on the data of another, and returns the error it exits with.
#[track_caller]
fn refusal(site: &Site) -> String {
    let (data, config) = (site.server.data_folder(), site.server.config_path());
    let log = data.join("refusal.log");
    let _ = fs::remove_file(&log);
    let args =
        ["serve".as_ref(), "--data".as_ref(), data.as_os_str(), "--config".as_ref(), config.as_os_str()];
    let mut process = Process::start(env!("CARGO_BIN_EXE_rollcall"), args, &log);
    let status = process.wait_end(PATIENCE);
    let said = process.log();
    assert_eq!(status.code(), Some(1), "{said}");
    said.lines().find(|line| line.starts_with("error: ")).expect("a reason").to_owned()
}

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part} in {said}");
    }
}

/// A server that has stopped, with something in its files.
fn used_site() -> (Site, testkit::Population) {
    let mut site = Site::start(builder(), None, DatabaseKind::Sqlite);
    let mut population = populate(&site);
    meanwhile(&mut population, &mut site, |site| {
        testkit::eventually("a few hundred entries", PATIENCE, || {
            (site.status()["appended"].as_u64() > Some(500)).then_some(())
        });
    });
    site.settle();
    assert!(site.server.stop().success());
    // What stands in SQLite's logs goes into the files themselves.
    for file in ["rollcall.db", "journal.db"] {
        site.sqlite(file, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    (site, population)
}

#[test]
fn a_hole_of_zeros_in_the_journal_stops_the_start() {
    let (site, _population) = used_site();
    let journal = File::options().write(true).open(site.server.data_folder().join("journal.db")).unwrap();
    journal.write_all_at(&[0; 8192], 4096).unwrap();
    assert_says(&refusal(&site), &["journal.db is damaged", "restore a backup", ".recover"]);
}

#[test]
fn a_database_that_was_emptied_or_replaced_stops_the_start() {
    let (mut site, _population) = used_site();
    let path = |name: &str| -> PathBuf { site.server.data_folder().join(name) };
    let (database, kept, remembered) = (path("rollcall.db"), path("kept.db"), path("databases"));
    fs::rename(&database, &kept).unwrap();
    fs::write(&database, "").unwrap();
    assert_says(&refusal(&site), &["rollcall.db is missing or empty", "restore a backup", "databases"]);
    fs::remove_file(&database).unwrap();
    assert_says(&refusal(&site), &["rollcall.db is missing or empty"]);

    // What a command makes of it is another database.
    assert!(site.server.try_cli(&["user", "add", "--id", "7"]).status.success());
    assert_says(&refusal(&site), &["rollcall.db is not the database", "put that one back"]);
    fs::rename(&kept, &database).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", database.display()));
    }
    site.server.start_again();
    assert_eq!(site.sql("SELECT count(*) FROM users"), PLAN.users.to_string());

    // An operator can start with an empty database on purpose.
    assert!(site.server.stop().success());
    fs::remove_file(&database).unwrap();
    fs::remove_file(&remembered).unwrap();
    site.server.start_again();
    assert_eq!(site.sql("SELECT count(*) FROM users"), "0");
}

/// Earlier versions kept the activity lists in `activity.db`.
#[test]
fn activity_lists_are_rebuilt_from_the_journal_and_the_file_of_an_earlier_version_is_removed() {
    let (mut site, population) = used_site();
    let former = site.server.data_folder().join("activity.db");
    let activity_lists = population.activity_lists();
    for user in 1..=PLAN.users {
        // By commands, which read the journal without a server.
        site.assert_listed(&activity_lists, user, PLAN.torrents);
    }
    for round in 0..2 {
        fs::write(&former, "junk".repeat(4096)).unwrap();
        site.server.start_again();
        testkit::eventually("the lists to be rebuilt", PATIENCE, || {
            (site.server.log().matches("activity lists rebuilt from the journal").count() > round)
                .then_some(())
        });
        assert!(!former.exists());
        for user in 1..=PLAN.users {
            site.assert_listed(&activity_lists, user, PLAN.torrents);
        }
        assert!(site.server.stop().success());
    }
}
