//! The metrics page of the real program, as Prometheus would read it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::AnnounceEvent;
use testkit::{Announce, Family, Server, TorrentFile, eventually, http};

const PATIENCE: Duration = Duration::from_secs(30);

fn page(server: &Server) -> String {
    let reply = http::get(server.site_addr(), "/metrics");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    String::from_utf8(reply.body).unwrap()
}

fn number(page: &str, sample: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

#[track_caller]
fn check_by_promtool(page: &str) {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("no promtool ({error}): run scripts/install-test-needs.sh"));
    // It prints only after it has read everything, so there is no deadlock.
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "promtool says:\n{said}");
}

#[test]
fn j7_the_program_shows_what_it_does() {
    let server = Server::builder(env!("CARGO_BIN_EXE_rollcall")).set("site.metrics_open", true).start();
    let passkey = server.add_user(7);
    let torrent = TorrentFile::random("a file", 50_000, 1);
    server.add_torrent(&torrent, &passkey);
    let seeder = Announce::seeder(torrent.info_hash(), 1).with_event(AnnounceEvent::Started);
    server.announce(Family::V4, &passkey, &seeder);
    let shown = eventually("the announce to be in the accounts", PATIENCE, || {
        let page = page(&server);
        let applied = number(&page, "rollcall_view_applied_total{view=\"ledger\"}");
        let seen = number(&page, "rollcall_journal_entries{lane=\"traffic\"}");
        (applied == Some(1.0) && seen == Some(1.0)).then_some(page)
    });
    for (sample, expected) in [
        ("rollcall_tracker_announces_total{wire=\"http\",event=\"started\"}", 1.0),
        ("rollcall_swarm_peers{state=\"seeding\"}", 1.0),
        ("rollcall_queue_stored_total", 1.0),
        ("rollcall_access_users", 1.0),
        ("rollcall_access_torrents", 1.0),
        ("rollcall_access_poll_failures_in_a_row", 0.0),
        ("rollcall_audit_failures_total", 0.0),
        ("rollcall_site_unauthorized_total", 0.0),
        ("rollcall_view_paused{view=\"activity\"}", 0.0),
        (concat!("rollcall_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
    ] {
        assert_eq!(number(&shown, sample), Some(expected), "{sample}");
    }
    assert!(number(&shown, "rollcall_site_requests_total{route=\"/metrics\",status=\"200\"}").is_some());
    assert!(number(&shown, "rollcall_allocator_allocated_bytes").unwrap() > 1e5, "jemalloc is asked");
    check_by_promtool(&shown);
}

#[test]
fn without_a_key_the_page_is_closed_unless_it_was_opened() {
    let server = Server::builder(env!("CARGO_BIN_EXE_rollcall")).start();
    assert_eq!(http::get(server.site_addr(), "/metrics").status(), 401);
}
