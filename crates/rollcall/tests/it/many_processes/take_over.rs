//! A new process replaces the running one without an error for any client.

use std::ffi::OsStr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::population::{info_hash_of, passkey_of};
use testkit::process::Process;
use testkit::{Announce, Family, RawHttp, RedisServer, Server, ServerBuilder, eventually};

use crate::many_processes::busy_clients::{
    BusyClient, BusyClientTotals, ConnectionUse, registration, truth_of,
};
use crate::site::{DatabaseKind, PATIENCE, Site, builder};

const WAYS: [ConnectionUse; 3] = [ConnectionUse::KeptAlive, ConnectionUse::OneShot, ConnectionUse::Udp];

/// Two clients for each way, one for each family of addresses.
fn clients(server: &Server) -> Vec<BusyClient> {
    let both = WAYS.iter().flat_map(|way| [Family::V4, Family::V6].map(|family| (*way, family)));
    both.zip(1..).map(|((way, family), user)| BusyClient { way, user, server: server.addr(family) }).collect()
}

/// Says that it is over, also when a test fails.
struct UntilDropped<'a>(&'a AtomicBool);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// No request is refused because the machine is busy.
fn patient() -> ServerBuilder {
    builder().set("journal.ack_timeout_ms", 15_000)
}

/// Lets restless clients live while the server is replaced, again and again.
fn replace_under_load(mut site: Site, times: u32) {
    let clients = clients(&site.server);
    site.sql(&registration(&clients));
    let knows = |user: u64| site.server.try_scrape(&passkey_of(user), &info_hash_of(1));
    eventually("users and the torrent to be known", PATIENCE, || {
        clients.iter().all(|client| matches!(knows(client.user), Ok(Some(_)))).then_some(())
    });
    let (is_on, tally) = (AtomicBool::new(true), BusyClientTotals::default());
    let accepted = || tally.accepted.load(Ordering::Relaxed);
    let moved = std::thread::scope(|scope| {
        let over = UntilDropped(&is_on);
        let (is_on, tally) = (&is_on, &tally);
        let living: Vec<_> = clients
            .iter()
            .map(|client| scope.spawn(move || (client.user, client.live(is_on, tally))))
            .collect();
        let on_site = site.server.site_addr();
        let visiting = scope.spawn(move || {
            while is_on.load(Ordering::Relaxed) {
                assert_eq!(testkit::http::get(on_site, "/healthz").status(), 200);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        for _ in 0..times {
            let before = accepted();
            eventually("100 more announces", PATIENCE, || (accepted() > before + 100).then_some(()));
            let pid = site.server.pid();
            assert!(site.server.take_over().success());
            assert_ne!(site.server.pid(), pid);
        }
        let before = accepted();
        eventually("100 more announces", PATIENCE, || (accepted() > before + 100).then_some(()));
        drop(over);
        visiting.join().expect("the site answered all the time");
        living
            .into_iter()
            .map(|client| client.join().expect("every announce was accepted"))
            .collect::<Vec<_>>()
    });
    assert!(tally.parted.load(Ordering::Relaxed) >= 2, "kept connections end with an answer that says so");
    let end = site.settle();
    site.assert_nothing_failed(&end);
    site.assert_books_equal(&truth_of(moved));
    eprintln!("{} announces, none failed", accepted());
}

#[test]
fn t3_no_announce_fails_while_a_server_is_replaced_embedded() {
    replace_under_load(Site::start(patient(), None, DatabaseKind::Sqlite), 2);
}

#[test]
fn t3_no_announce_fails_while_a_server_is_replaced_on_redis() {
    replace_under_load(Site::start(patient(), Some(RedisServer::start()), DatabaseKind::Sqlite), 1);
}

/// Whatever goes wrong with the new process, the old one serves on.
#[test]
fn a_new_process_that_fails_leaves_the_old_one_serving() {
    let site = Site::start(builder(), None, DatabaseKind::Sqlite);
    let server = &site.server;
    let passkey = server.add_user(1);
    let offered = server.data_folder().join("take-over.sock");
    let metadata = eventually("the offer", PATIENCE, || std::fs::metadata(&offered).ok());
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);

    // It finds a port of its own taken only when it has the others.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let both = format!("--set=tracker.http_addr=127.0.0.1:{},{}", server.port(), taken.local_addr().unwrap());
    let output = server.take_over_in_vain(&[&both]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && complaint.contains("the port is taken"), "{complaint}");
    site.wait_logged(&["take-over failed; this process continues"]);

    // A process without the protocol, and one with another version.
    use std::io::{Read, Write};
    let mut stranger = std::os::unix::net::UnixStream::connect(&offered).unwrap();
    let hello = br#"{"say":"hello","protocol":99}"#;
    stranger.write_all(&[&(hello.len() as u32).to_be_bytes()[..], hello].concat()).unwrap();
    let mut refusal = String::new();
    stranger.read_to_string(&mut refusal).unwrap();
    assert!(refusal.contains("incompatible take-over protocol"), "{refusal}");

    let announce = Announce::leecher(info_hash_of(1), 1);
    let reply = server.announce(Family::V4, &passkey, &announce);
    assert_eq!(
        reply.failure_reason.as_deref(),
        Some("unknown torrent: it is not registered here, or was removed")
    );
    assert!(offered.exists(), "and can still be taken over from");
}

/// A process that is about to take over, and cannot get on because Redis does not answer.
fn held_up(site: &Site, name: &str) -> Process {
    site.redis().freeze();
    let (data, config) = (site.server.data_folder(), site.server.config_path());
    let args = [OsStr::new("serve"), "--take-over".as_ref(), "--data".as_ref(), data.as_os_str()];
    let args = args.into_iter().chain(["--config".as_ref(), config.as_os_str()]);
    let next = Process::start(env!("CARGO_BIN_EXE_rollcall"), args, &data.join(name));
    eventually("it to find the running server", PATIENCE, || {
        next.log().contains("taking over from the running server").then_some(())
    });
    next
}

/// Stopping one process always leaves the other serving: if the new one is stopped while it starts, the old one
/// continues; if the old one is stopped, the new one waits for its end and serves.
#[test]
fn a_process_stopped_during_a_take_over_leaves_the_other_serving() {
    let mut site = Site::start(builder(), Some(RedisServer::start()), DatabaseKind::Sqlite);
    let offered = site.server.data_folder().join("take-over.sock");
    eventually("the offer", PATIENCE, || offered.exists().then_some(()));
    let is_up = |site: &Site| testkit::http::get(site.server.site_addr(), "/healthz").status() == 200;

    let mut next = held_up(&site, "first.log");
    next.terminate();
    assert!(next.wait_end(PATIENCE).success());
    site.redis().thaw();
    assert!(is_up(&site) && !next.log().contains("\"draining\""), "{}", next.log());

    let mut next = held_up(&site, "second.log");
    eventually("the old one to see it", PATIENCE, || {
        (site.server.log().matches("is preparing to take over").count() == 2).then_some(())
    });
    site.redis().thaw();
    assert!(site.server.stop().success());
    eventually("the new one to serve", PATIENCE, || {
        assert!(next.has_ended().is_none(), "{}", next.log());
        next.log().contains("ready").then_some(())
    });
    assert!(is_up(&site));
    next.terminate();
    assert!(next.wait_end(PATIENCE).success());
}

/// Another process holds the folder for longer than it should: the lock is tried until it is free.
#[test]
fn a_data_folder_lock_is_retried() {
    let mut site = Site::start(builder(), None, DatabaseKind::Sqlite);
    assert!(site.server.stop().success());
    let held = std::fs::File::open(site.server.data_folder().join("lock")).unwrap();
    held.lock().unwrap();
    site.server.start_again();
    site.wait_logged(&["cannot lock the data folder", "every second"]);
    let offered = site.server.data_folder().join("take-over.sock");
    assert!(!offered.exists());
    drop(held);
    eventually("the offer", PATIENCE, || offered.exists().then_some(()));
    assert!(site.server.take_over().success());
}

#[test]
fn a_take_over_without_a_running_server_is_a_start() {
    let mut site = Site::start(builder(), None, DatabaseKind::Sqlite);
    let offered = site.server.data_folder().join("take-over.sock");
    eventually("the offer", PATIENCE, || offered.exists().then_some(()));
    site.server.kill();
    assert!(offered.exists(), "a killed server leaves it behind");
    site.server.take_over();
    assert!(site.server.log().contains("starting without a take-over"));

    let mut kept = RawHttp::connect(site.server.addr(Family::V4));
    assert_eq!(kept.get("/nothing").status(), 404);
    assert!(site.server.take_over().success());
    assert!(site.server.stop().success());
    assert!(!offered.exists(), "an orderly end takes the offer back");
}
