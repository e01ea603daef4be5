//! Metrics of a running server.

use domain::AnnounceEvent;
use testkit::{Announce, RawUdp, eventually_async};

use crate::metrics::promtool;
use crate::metrics::server::{PATIENCE, TORRENT, TestServer, VERSION, number};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j7_the_page_has_the_counts_of_a_server_and_passes_promtool() {
    let server = TestServer::start().await;
    let seeder = Announce::seeder(TORRENT, 1).with_event(AnnounceEvent::Started);
    server.announce(1, &seeder);
    server.announce(2, &Announce::leecher(TORRENT, 2).with_event(AnnounceEvent::Started));
    server.announce(2, &Announce::leecher(TORRENT, 2));
    server.announce(77, &seeder);
    RawUdp::new(server.running.addresses().udp[0]).connect();
    server.wait_for("rollcall_view_applied_total{view=\"ledger\"}", 3.0).await;
    server.wait_for("rollcall_view_applied_total{view=\"activity\"}", 3.0).await;
    server.wait_for("rollcall_journal_length_alarm_entries", 1_000.0).await;
    server.wait_for("rollcall_view_lag_entries{group=\"ledger\",view=\"ledger\"}", 0.0).await;
    let page = server.metrics.render();
    for (sample, expected) in [
        ("rollcall_tracker_announces_total{wire=\"http\",event=\"started\"}", 2.0),
        ("rollcall_tracker_announces_total{wire=\"http\",event=\"none\"}", 1.0),
        ("rollcall_tracker_announces_total{wire=\"udp\",event=\"none\"}", 0.0),
        ("rollcall_tracker_refused_total{reason=\"unknown_passkey\"}", 1.0),
        ("rollcall_tracker_too_soon_total", 1.0),
        ("rollcall_tracker_answer_seconds_count{wire=\"http\"}", 4.0),
        ("rollcall_tracker_journal_wait_seconds_count", 2.0),
        ("rollcall_tracker_packets_total", 1.0),
        ("rollcall_tracker_connections_max", 20_000.0),
        ("rollcall_swarm_peers{state=\"seeding\"}", 1.0),
        ("rollcall_swarm_peers{state=\"leeching\"}", 1.0),
        ("rollcall_swarm_torrents", 1.0),
        ("rollcall_queue_stored_total", 3.0),
        ("rollcall_queue_max_entries", 1_000.0),
        ("rollcall_journal_entries{lane=\"traffic\"}", 3.0),
        ("rollcall_journal_entries{lane=\"failed\"}", 0.0),
        ("rollcall_view_lag_seconds{group=\"ledger\",view=\"ledger\"}", 0.0),
        ("rollcall_view_paused{view=\"activity\"}", 0.0),
        ("rollcall_ledger_entries_total{result=\"applied\"}", 3.0),
        ("rollcall_activity_entries_total{result=\"rejected\"}", 0.0),
        ("rollcall_access_users", 9.0),
        ("rollcall_access_poll_failures_in_a_row", 0.0),
        ("rollcall_database_connections_max{use=\"ledger\"}", 4.0),
        (&format!("rollcall_build_info{{version=\"{VERSION}\"}}"), 1.0),
    ] {
        assert_eq!(number(&page, sample), expected, "{sample}");
    }
    assert!(number(&page, "process_resident_memory_bytes") > 1e6);
    assert!(number(&page, "process_open_fds") >= 3.0);
    assert!(number(&page, "process_max_fds") >= number(&page, "process_open_fds"));
    assert!(number(&page, "process_start_time_seconds") > 1.6e9);
    assert!(number(&page, "rollcall_process_memory_limit_bytes") > 1e6);
    let output = promtool::run(server.folder.path(), &["check", "metrics"], &page);
    assert_eq!(output, "", "promtool reports problems");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_poller_polls_and_stops() {
    let server = TestServer::start().await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let poller = std::sync::Arc::clone(server.metrics.journal_poller());
    assert!(!server.metrics.render().contains("rollcall_journal_entries{"), "nothing is known yet");
    let running = tokio::spawn(poller.run(stopped));
    let shown = "rollcall_journal_entries{lane=\"traffic\"} 0";
    eventually_async("the first poll, which is immediate", PATIENCE, async || {
        server.metrics.render().contains(shown).then_some(())
    })
    .await;
    stop.send(true).unwrap();
    tokio::time::timeout(PATIENCE, running).await.expect("it ends").unwrap();
    server.end().await;
}
