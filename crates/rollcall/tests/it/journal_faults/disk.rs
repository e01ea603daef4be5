//! The disk of an embedded server is full, or another process holds a lock on its files.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value as Json;
use testkit::{SmallDisk, eventually, http};

use crate::journal_faults::{assert_nothing_lost, meanwhile, populate};
use crate::site::{DatabaseKind, PATIENCE, Site, builder};

#[test]
fn a_full_disk_under_the_embedded_journal_loses_nothing() {
    // No file of this process grows beyond this, which is soon.
    let builder = builder().file_kib_max(1024).set("journal.ack_timeout_ms", 500);
    let mut site = Site::start(builder, None, DatabaseKind::Sqlite);
    let mut population = populate(&site);
    meanwhile(&mut population, &mut site, |site| {
        let line = site.wait_logged(&["journal unavailable; entries wait in the queue"]);
        eprintln!("the log says: {line}");
        site.wait_logged(&["not_stored_in_time"]);
        // Space is freed.
        site.server.kill();
        site.server.lift_file_limit();
        site.server.start_again();
    });
    assert_nothing_lost(&mut population, &site);
}

/// State of a dependency in `/readyz`.
fn state_of(site: &Site, dependency: &str) -> String {
    let reply = http::get(site.server.site_addr(), "/readyz");
    let body: Json = serde_json::from_slice(&reply.body).expect("readiness is JSON");
    let dependencies = body["dependencies"].as_array().expect("a list");
    let known = dependencies.iter().find(|known| known["name"] == dependency);
    let known = known.unwrap_or_else(|| panic!("no {dependency} in {body:#}"));
    known["state"].as_str().expect("a state").to_owned()
}

fn wait_state(site: &Site, dependency: &str, state: &str) {
    eventually(&format!("{dependency} to be {state}"), PATIENCE, || {
        (state_of(site, dependency) == state).then_some(())
    });
}

fn wait_ready(site: &Site) {
    eventually("everything to be ready", PATIENCE, || {
        (http::get(site.server.site_addr(), "/readyz").status() == 200).then_some(())
    });
}

/// L6, J5: a transaction that SQLite rolled back by itself once left its connection unusable until a restart, and entries
/// among the dead letters.
#[test]
fn l6_a_disk_that_is_full_now_and_then_costs_neither_a_byte_nor_a_restart() {
    if let Some(obstacle) = SmallDisk::unavailable() {
        eprintln!("skipped: this machine does not let tests mount a tmpfs: {obstacle}");
        return;
    }
    let builder = builder().disk_mib(48).set("journal.ack_timeout_ms", 500).set("ledger.batch_max", 50);
    let mut site = Site::start(builder, None, DatabaseKind::Sqlite);
    let pid = site.server.pid();
    let mut population = populate(&site);
    meanwhile(&mut population, &mut site, |site| {
        for round in 0..4 {
            wait_ready(site);
            site.server.disk().fill();
            // SQLite may still have room in its log, so the database fails only when that is used up.
            for dependency in ["journal", "audit"] {
                wait_state(site, dependency, "failing");
            }
            eprintln!("round {round}: the disk is full, and /readyz says so");
            site.server.disk().free();
        }
        wait_ready(site);
    });
    assert_nothing_lost(&mut population, &site);
    assert_eq!(site.server.pid(), pid, "nothing was started again");
    site.server.cli(&["user", "add", "--id", "1000"]);
    let verified = site.server.try_cli(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// Holds the lock of a writer on a SQLite file until it is dropped.
struct Lock(std::process::Child);

impl Lock {
    fn on(path: &std::path::Path) -> Lock {
        let mut child = Command::new("sqlite3")
            .arg("-cmd")
            .arg(".timeout 10000")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sqlite3 is installed; `make test` does that");
        let mut input = child.stdin.take().expect("its standard input is a pipe");
        writeln!(input, "BEGIN IMMEDIATE; SELECT 'locked';").unwrap();
        child.stdin = Some(input);
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("its standard output is a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        assert_eq!(line, "locked\n");
        Lock(child)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_that_another_process_holds_locked_is_not_ready() {
    let site = Site::start(builder(), None, DatabaseKind::Sqlite);
    for (file, dependency) in [("rollcall.db", "database"), ("journal.db", "journal")] {
        wait_ready(&site);
        let lock = Lock::on(&site.server.data_folder().join(file));
        wait_state(&site, dependency, "failing");
        drop(lock);
        wait_state(&site, dependency, "ok");
    }
    wait_ready(&site);
}
