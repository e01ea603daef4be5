//! The metrics page during failures.

use std::sync::Arc;

use domain::AnnounceEvent;
use domain::clock::SystemClock;
use journal::{AppendToken, EntryId, Fields, Journal, Lane, SqliteJournal, StartAt};
use site::metrics::{JournalPoller, Page, Source};
use testkit::{Announce, RedisServer, eventually_async};

use crate::metrics::promtool;
use crate::metrics::server::{PATIENCE, TORRENT, number, on_redis};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j7_while_redis_is_down_the_page_shows_the_last_state_its_age_and_failures() {
    let mut redis = RedisServer::start();
    let server = on_redis(&redis).await;
    server.announce(1, &Announce::seeder(TORRENT, 1).with_event(AnnounceEvent::Started));
    server.wait_for("rollcall_journal_entries{lane=\"traffic\"}", 1.0).await;
    server.wait_for("rollcall_view_applied_total{view=\"ledger\"}", 1.0).await;
    redis.kill();
    server.announce(1, &Announce::seeder(TORRENT, 1));
    server.wait_for("rollcall_queue_occupied_entries", 1.0).await;
    let failures = async {
        while server.poll_for("rollcall_queue_append_failures_in_a_row").await == 0.0 {}
        while server.poll_for("rollcall_redis_connect_failures_total{use=\"journal\"}").await == 0.0 {}
    };
    tokio::time::timeout(PATIENCE, failures).await.expect("the failures are seen");
    let page = server.metrics.render();
    assert_eq!(number(&page, "rollcall_journal_entries{lane=\"traffic\"}"), 1.0, "the last state stays");
    assert!(number(&page, "rollcall_journal_polls_total{outcome=\"failed\"}") >= 1.0);
    assert!(number(&page, "rollcall_journal_poll_age_seconds") >= 0.0);
    assert!(number(&page, "rollcall_queue_append_failures_total") >= 1.0);
    assert_eq!(promtool::run(server.folder.path(), &["check", "metrics"], &page), "");
    redis.restart();
    server.wait_for("rollcall_queue_occupied_entries", 0.0).await;
    server.wait_for("rollcall_queue_append_failures_in_a_row", 0.0).await;
    server.end().await;
}

async fn append(journal: &dyn Journal, number: u64, text: &str) {
    let mut fields = Fields::with_entry_capacity();
    fields.push("what", text);
    let token = AppendToken { producer: "test".to_owned(), number };
    journal.append(Lane::Traffic, &[fields], &token).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j7_malformed_entries_are_counted_as_dead_letters() {
    let redis = RedisServer::start();
    let server = on_redis(&redis).await;
    redis.cli(&["XADD", "tracker:traffic", "*", "what", "is this"]);
    server.wait_for("rollcall_view_dead_letters_total{view=\"ledger\"}", 1.0).await;
    server.wait_for("rollcall_view_skipped_total{view=\"activity\"}", 1.0).await;
    server.wait_for("rollcall_journal_entries{lane=\"dlq\"}", 1.0).await;
    server.wait_for("rollcall_view_dead_letters_held{view=\"ledger\"}", 1.0).await;
    let page = server.metrics.render();
    assert_eq!(number(&page, "rollcall_view_dead_letters_held_max{view=\"ledger\"}"), 10_000.0);
    assert_eq!(
        number(&page, "rollcall_view_dead_letter_retries_total{view=\"ledger\",tried_before=\"0\"}"),
        0.0
    );
    server.end().await;
}

/// A journal and its poller, with one view.
async fn journal_and_poller(folder: &std::path::Path) -> (Arc<SqliteJournal>, JournalPoller) {
    let path = folder.join("journal.db");
    let journal = Arc::new(SqliteJournal::open(&path, Arc::new(SystemClock)).await.unwrap());
    let views = [("zz-ours".to_owned(), "ledger")].into();
    let poller = JournalPoller::new(Arc::clone(&journal) as Arc<dyn Journal>, Arc::new(SystemClock), views);
    (journal, poller)
}

async fn page_of(poller: &JournalPoller) -> String {
    poller.poll().await;
    let mut page = Page::default();
    poller.encode(&mut page);
    page.finish()
}

#[tokio::test]
async fn j7_lag_counts_undelivered_and_unacknowledged_entries() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, poller) = journal_and_poller(folder.path()).await;
    journal.ensure_group(Lane::Traffic, "zz-ours", StartAt::Beginning).await.unwrap();
    let labels = "{group=\"zz-ours\",view=\"ledger\"}";
    let lag = |page: &str| {
        let read = |name: &str| number(page, &format!("rollcall_view_{name}{labels}"));
        (read("lag_entries"), read("pending_entries"), read("lag_seconds") > 0.0)
    };
    assert_eq!(lag(&page_of(&poller).await), (0.0, 0.0, false));
    append(&*journal, 1, "one").await;
    append(&*journal, 2, "two").await;
    let two_wait = async || (lag(&page_of(&poller).await) == (2.0, 0.0, true)).then_some(());
    eventually_async("two entries to wait for a while", PATIENCE, two_wait).await;
    let wait = std::time::Duration::from_millis(1);
    let given = journal.read(Lane::Traffic, "zz-ours", "reader", 1, wait).await.unwrap();
    assert_eq!(lag(&page_of(&poller).await), (2.0, 1.0, true));
    journal.acknowledge(Lane::Traffic, "zz-ours", &[given[0].id]).await.unwrap();
    assert_eq!(lag(&page_of(&poller).await), (1.0, 0.0, true));
    journal.set_note("ledger", Some("paused")).await.unwrap();
    assert_eq!(number(&page_of(&poller).await, "rollcall_view_paused{view=\"ledger\"}"), 1.0);
}

#[tokio::test]
async fn foreign_groups_are_limited_and_own_groups_are_always_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, poller) = journal_and_poller(folder.path()).await;
    for number in 0..60 {
        let start = StartAt::After(EntryId::ZERO);
        journal.ensure_group(Lane::Traffic, &format!("a\"{number}"), start).await.unwrap();
    }
    journal.ensure_group(Lane::Traffic, "zz-ours", StartAt::Beginning).await.unwrap();
    let page = page_of(&poller).await;
    assert_eq!(page.lines().filter(|line| line.starts_with("rollcall_view_lag_entries{")).count(), 50);
    assert_eq!(number(&page, "rollcall_view_lag_entries{group=\"zz-ours\",view=\"ledger\"}"), 0.0);
    assert_eq!(number(&page, "rollcall_journal_groups"), 61.0);
    assert_eq!(promtool::run(folder.path(), &["check", "metrics"], &page), "");
}
