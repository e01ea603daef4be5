//! The journal on a failing Redis: errors are classified correctly, nothing is lost, nothing is stored twice.

use std::sync::Arc;
use std::time::Duration;

use journal::{EntryId, Fields, Journal, JournalError, Lane, RedisJournal, StartAt, TrafficEntry, Transfer};
use keyspace::{BaseNames, KeyNames, Redis, RedisSettings};
use testkit::{Fsync, RedisSentinel, RedisServer, eventually_async};

use crate::conformance::{self, append_with_retries, stored_numbers, token};
use crate::cutting_proxy::CuttingProxy;

/// Upper bound.
const PATIENCE: Duration = Duration::from_secs(60);

fn open_with(url: &str, change: impl FnOnce(&mut RedisSettings)) -> Arc<RedisJournal> {
    let mut settings = RedisSettings::from_url(url).unwrap();
    change(&mut settings);
    let keys = KeyNames::new(&BaseNames::default(), settings.mode).unwrap();
    Arc::new(RedisJournal::new(Redis::new(settings).unwrap(), keys))
}

fn open(url: &str) -> Arc<RedisJournal> {
    open_with(url, |_| ())
}

#[tokio::test]
async fn a_key_of_the_wrong_type_loses_nothing_and_names_the_remedy() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    server.cli(&["SET", "tracker:traffic", "another value"]);
    let refused = [
        journal.append(Lane::Traffic, &conformance::entries(0..3), &token("p", 1)).await.unwrap_err(),
        journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap_err(),
        journal.read(Lane::Traffic, "g", "c", 1, Duration::ZERO).await.unwrap_err(),
        journal.read(Lane::Traffic, "g", "c", 1, Duration::from_millis(5)).await.unwrap_err(),
        journal.acknowledge(Lane::Traffic, "g", &[EntryId::ZERO]).await.unwrap_err(),
        journal.list(Lane::Traffic, EntryId::ZERO, 1).await.unwrap_err(),
        journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap_err(),
        journal.status(Lane::Traffic).await.unwrap_err(),
        journal.consumers(Lane::Traffic, "g").await.unwrap_err(),
        journal.take_over(Lane::Traffic, "g", "a", "b", 1).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(&error, JournalError::Damaged { what, .. } if what == "tracker:traffic"), "{error}");
        assert!(error.is_retryable() && error.to_string().contains("rename it"), "{error}");
    }
    server.cli(&["RENAME", "tracker:traffic", "elsewhere"]);
    journal.append(Lane::Traffic, &conformance::entries(0..3), &token("p", 1)).await.unwrap();
    assert_eq!(stored_numbers(&*journal).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_dead_letter_that_cannot_be_written_is_not_acknowledged() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    journal.append(Lane::Traffic, &conformance::entries(0..3), &token("p", 1)).await.unwrap();
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let read = journal.read(Lane::Traffic, "g", "c", 10, Duration::ZERO).await.unwrap();
    let dead_letters: Vec<Transfer> =
        read.into_iter().map(|stored| Transfer { id: stored.id, fields: stored.fields }).collect();
    let pending = async || journal.status(Lane::Traffic).await.unwrap().groups[0].pending;

    server.cli(&["SET", "tracker:traffic:dlq", "x"]);
    let error = journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap_err();
    assert!(matches!(&error, JournalError::Damaged { what, .. } if what == "tracker:traffic:dlq"), "{error}");
    assert_eq!(pending().await, 3);
    server.cli(&["DEL", "tracker:traffic:dlq"]);

    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("raise maxmemory"), "{error}");
    assert_eq!(pending().await, 3);
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);

    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("replica"), "{error}");
    server.cli(&["REPLICAOF", "NO", "ONE"]);

    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &dead_letters).await.unwrap(), 3);
    assert_eq!(pending().await, 0);
    assert_eq!(server.cli(&["XLEN", "tracker:traffic:dlq"]), "3");
}

/// More fields than a script can pass at once, as only another program writes them.
#[tokio::test]
async fn a_dead_letter_with_thousands_of_fields_is_moved() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    let fields: Fields = (0..9000).map(|number| (format!("name{number}"), "value")).collect();
    journal.append(Lane::Dead, &[fields], &token("p", 1)).await.unwrap();
    let stored = journal.list(Lane::Dead, EntryId::ZERO, 10).await.unwrap().remove(0);
    assert_eq!(stored.fields.len(), 9000);
    let dead_letter = Transfer { id: stored.id, fields: stored.fields };
    assert_eq!(journal.transfer(Lane::Dead, Lane::Failed, None, &[dead_letter]).await.unwrap(), 1);
    let moved = journal.list(Lane::Failed, EntryId::ZERO, 10).await.unwrap().remove(0);
    assert!(moved.fields.get("name0").is_some() && moved.fields.get("name8999").is_some());
    assert_eq!(journal.dead_letters_truncated(), 1);
}

#[tokio::test]
async fn an_unreachable_redis_is_reported_as_unreachable() {
    let port = testkit::ports::free_port();
    let journal = open(&format!("redis://127.0.0.1:{port}"));
    let error = journal.append(Lane::Traffic, &conformance::entries(0..1), &token("p", 1)).await.unwrap_err();
    assert!(matches!(&error, JournalError::Unavailable { reason } if reason.contains("refused")), "{error}");
    let error = journal.read(Lane::Traffic, "g", "c", 1, PATIENCE).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
}

/// The WRONGTYPE reply was lost: the batch must not count as stored.
#[tokio::test]
async fn a_batch_whose_error_reply_was_lost_is_stored_later() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port());
    let journal = open(&format!("redis://127.0.0.1:{}", proxy.port()));
    journal.append(Lane::Traffic, &conformance::entries(0..1), &token("p", 1)).await.unwrap();
    server.cli(&["RENAME", "tracker:traffic", "aside"]);
    server.cli(&["SET", "tracker:traffic", "x"]);
    proxy.cut_next_answer();
    let error = journal.append(Lane::Traffic, &conformance::entries(1..4), &token("p", 2)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unanswered { .. }), "{error}");
    server.cli(&["RENAME", "aside", "tracker:traffic"]);
    append_with_retries(&*journal, &conformance::entries(1..4), &token("p", 2)).await;
    assert_eq!(stored_numbers(&*journal).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_batch_whose_reply_was_lost_is_not_stored_twice() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port());
    let journal = open(&format!("redis://127.0.0.1:{}", proxy.port()));
    let mut lost = 0;
    for number in 0..40 {
        let entries = conformance::entries(number * 5..(number + 1) * 5);
        if number % 3 == 1 {
            proxy.cut_next_answer();
        }
        match journal.append(Lane::Traffic, &entries, &token("p", number + 1)).await {
            Ok(()) => {}
            Err(JournalError::Unanswered { .. }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(!proxy.is_about_to_cut());
        append_with_retries(&*journal, &entries, &token("p", number + 1)).await;
    }
    assert!(lost >= 10, "only {lost} answers were lost");
    assert_eq!(stored_numbers(&*journal).await, (0..200).collect::<Vec<_>>());
}

/// The first attempt is still in flight when the second has been stored, and arrives after it.
#[tokio::test]
async fn a_batch_that_arrives_after_its_repetition_is_not_stored_again() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port());
    let journal = open_with(&format!("redis://127.0.0.1:{}", proxy.port()), |settings| {
        settings.response_timeout = Duration::from_millis(300);
    });
    let transactions = || {
        let status = server.cli(&["INFO", "commandstats"]);
        let line = status.lines().find_map(|line| line.strip_prefix("cmdstat_exec:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse::<u32>().unwrap())
    };
    append_with_retries(&*journal, &conformance::entries(0..1), &token("p", 1)).await;
    for number in 1..4 {
        let entries = conformance::entries(number * 10..number * 10 + 10);
        let release = proxy.hold_next_request();
        let error = journal.append(Lane::Traffic, &entries, &token("p", number + 1)).await.unwrap_err();
        assert!(matches!(error, JournalError::Unanswered { .. }), "{error}");
        append_with_retries(&*journal, &entries, &token("p", number + 1)).await;
        let before = transactions();
        release.send(()).unwrap();
        testkit::eventually("the late transaction", PATIENCE, || (transactions() > before).then_some(()));
        // The watch still works for the following batches.
        append_with_retries(
            &*journal,
            &conformance::entries(number * 10..number * 10 + 10),
            &token("p", number + 1),
        )
        .await;
    }
    let expected: Vec<u64> = std::iter::once(0).chain(10..40).collect();
    assert_eq!(stored_numbers(&*journal).await, expected);
}

/// The first attempt is queued in a suspended server, and executed after the second was sent.
#[tokio::test]
async fn a_batch_queued_in_a_suspended_server_is_not_stored_twice() {
    let server = RedisServer::start();
    let impatient = |settings: &mut RedisSettings| {
        settings.response_timeout = Duration::from_millis(150);
        settings.connect_timeout = Duration::from_millis(150);
    };
    let journal = open_with(&server.url(), impatient);
    append_with_retries(&*journal, &conformance::entries(0..1), &token("p", 1)).await;
    for number in 1..6 {
        let entries = conformance::entries(number * 100..number * 100 + 100);
        server.freeze();
        for _ in 0..3 {
            let error = journal.append(Lane::Traffic, &entries, &token("p", number + 1)).await.unwrap_err();
            assert!(error.is_retryable(), "{error}");
        }
        server.thaw();
        append_with_retries(&*journal, &entries, &token("p", number + 1)).await;
    }
    // All requests in flight have been executed before this reply.
    server.cli(&["PING"]);
    let expected: Vec<u64> = std::iter::once(0).chain((1..6).flat_map(|n| n * 100..n * 100 + 100)).collect();
    assert_eq!(stored_numbers(&*journal).await, expected);
}

#[tokio::test]
async fn a_read_only_redis_is_retryable() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    journal.append(Lane::Traffic, &conformance::entries(0..2), &token("p", 1)).await.unwrap();
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    server.cli(&["CONFIG", "SET", "replica-serve-stale-data", "yes"]);
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = journal.append(Lane::Traffic, &conformance::entries(2..4), &token("p", 2)).await.unwrap_err();
    assert!(matches!(&error, JournalError::Unavailable { reason } if reason.contains("replica")), "{error}");
    let dead_letter = Transfer { id: EntryId::at_ms(1), fields: conformance::entries(9..10).remove(0) };
    let error = journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &[dead_letter]).await;
    assert!(error.is_ok_and(|moved| moved == 0), "nothing was pending, so nothing had to be written");
    assert_eq!(stored_numbers(&*journal).await, [0, 1]);
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    journal.append(Lane::Traffic, &conformance::entries(2..4), &token("p", 2)).await.unwrap();
    assert_eq!(stored_numbers(&*journal).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_full_redis_stores_nothing_and_names_the_setting() {
    let server = RedisServer::builder().memory_bytes_max(4 << 20).start();
    let journal = open(&server.url());
    let large: Vec<Fields> = (0..100).map(|_| [("x", "y".repeat(2000))].into_iter().collect()).collect();
    let mut stored = 0;
    let error = loop {
        match journal.append(Lane::Traffic, &large, &token("p", stored + 1)).await {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1000, "it never gets full");
    };
    assert!(error.is_retryable() && error.to_string().contains("raise maxmemory"), "{error}");
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().length, stored * 100);
    // Reading, acknowledging, deleting and trimming still work: they free memory.
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    journal.append(Lane::Failed, &conformance::entries(0..3), &token("p", 1)).await.unwrap();
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let read = journal.read(Lane::Traffic, "g", "c", 50, Duration::ZERO).await.unwrap();
    let ids: Vec<EntryId> = read.iter().map(|stored| stored.id).collect();
    assert_eq!(journal.take_over(Lane::Traffic, "g", "c", "d", 50).await.unwrap().len(), 50);
    journal.acknowledge(Lane::Traffic, "g", &ids).await.unwrap();
    assert_eq!(journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap().removed, 50);
    let failed = journal.list(Lane::Failed, EntryId::ZERO, 1).await.unwrap();
    assert_eq!(journal.delete(Lane::Failed, None, &[failed[0].id]).await.unwrap(), 1);
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    journal.append(Lane::Traffic, &large, &token("p", stored + 1)).await.unwrap();
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().length, (stored + 1) * 100 - 50);
}

#[tokio::test]
async fn a_group_deleted_during_a_read_is_reported() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let waiting = {
        let journal = journal.clone();
        tokio::spawn(async move { journal.read(Lane::Traffic, "g", "c", 10, PATIENCE).await })
    };
    eventually_async("the read to arrive", PATIENCE, async || {
        server.cli(&["CLIENT", "LIST"]).contains("cmd=xreadgroup").then_some(())
    })
    .await;
    server.cli(&["XGROUP", "DESTROY", "tracker:traffic", "g"]);
    let error = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(&error, JournalError::NoGroup { group } if group == "g"), "{error}");
    assert!(journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap());
}

/// A reader waits longer than the response timeout.
#[tokio::test]
async fn a_waiting_reader_outlives_the_response_timeout() {
    let server = RedisServer::start();
    let journal = open_with(&server.url(), |settings| settings.response_timeout = Duration::from_millis(300));
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let read = journal.read(Lane::Traffic, "g", "c", 10, Duration::from_millis(1200)).await.unwrap();
    assert_eq!(read, []);
}

#[tokio::test]
async fn j3_entries_of_other_producers_are_read_as_they_are() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let fourteen = "passkey 0123456789abcdef infohash aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d \
                    peer_id 2d5452343030302d303132333435363738396162 port 6881 ip 10.0.0.7 af IPv4 du 100 dd 50 \
                    left 0 event none ts 1794742234 dt 1800 interval 1800 min_interval 900";
    server.cli_lines(&format!(
        "XADD tracker:traffic * {fourteen}\nXADD tracker:traffic 9999999999999-7 odd \"\\xff\\x00\\r\\n\" odd twice\n"
    ));
    let read = journal.read(Lane::Traffic, "g", "c", 10, Duration::ZERO).await.unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read[0].fields.len(), 14);
    let entry = TrafficEntry::parse(&read[0].fields).unwrap();
    assert_eq!((entry.uploaded_delta, entry.downloaded_delta, entry.port), (100, 50, 6881));
    assert_eq!(read[1].id, EntryId { ms: 9_999_999_999_999, seq: 7 });
    let pairs: Vec<_> = read[1].fields.iter().collect();
    assert_eq!(pairs, [(&b"odd"[..], &b"\xff\x00\r\n"[..]), (&b"odd"[..], &b"twice"[..])]);
    // Our entries follow an id from the future.
    journal.append(Lane::Traffic, &conformance::entries(0..1), &token("p", 1)).await.unwrap();
    let next = journal.read(Lane::Traffic, "g", "c", 10, Duration::ZERO).await.unwrap();
    assert!(next[0].id > read[1].id);
}

#[tokio::test]
async fn a_group_of_another_program_holds_trimming_back() {
    let server = RedisServer::start();
    let journal = open(&server.url());
    journal.append(Lane::Traffic, &conformance::entries(0..10), &token("p", 1)).await.unwrap();
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let read = journal.read(Lane::Traffic, "g", "c", 10, Duration::ZERO).await.unwrap();
    let ids: Vec<EntryId> = read.iter().map(|stored| stored.id).collect();
    journal.acknowledge(Lane::Traffic, "g", &ids).await.unwrap();
    server.cli(&["XGROUP", "CREATE", "tracker:traffic", "foreign", "0"]);
    server.cli(&["XREADGROUP", "GROUP", "foreign", "x", "COUNT", "4", "STREAMS", "tracker:traffic", ">"]);
    server.cli(&["XACK", "tracker:traffic", "foreign", &ids[0].to_string(), &ids[1].to_string()]);
    let trimmed = journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap();
    assert_eq!((trimmed.removed, trimmed.held_back_by.as_deref()), (2, Some("foreign")));
    assert_eq!(stored_numbers(&*journal).await, (2..10).collect::<Vec<_>>());
}

/// A kill loses no confirmed batch.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_comes_back_with_every_batch_once() {
    // With one sync per second, Redis replies before it writes if the disk is slow, and a kill loses confirmed entries.
    let mut server = RedisServer::builder().append_only(Fsync::Always).start();
    let journal = open(&server.url());
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let appending = {
        let journal = journal.clone();
        tokio::spawn(async move {
            for number in 0..600 {
                append_with_retries(
                    &*journal,
                    &conformance::entries(number * 10..(number + 1) * 10),
                    &token("p", number + 1),
                )
                .await;
            }
        })
    };
    let reading = {
        let journal = journal.clone();
        tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.len() < 6000 {
                match journal.read(Lane::Traffic, "g", "c", 100, Duration::from_millis(500)).await {
                    Ok(read) => seen.extend(read.into_iter().map(|stored| stored.id)),
                    Err(error) => {
                        assert!(error.is_retryable(), "{error}");
                        // Entries whose delivery was lost are pending: a consumer takes them over from itself.
                        tokio::time::sleep(conformance::RETRY_DELAY).await;
                    }
                }
                if appending.is_finished() {
                    break;
                }
            }
            appending.await.unwrap();
            seen
        })
    };
    for _ in 0..5 {
        conformance::wait_appended(&*journal, 600).await;
        tokio::task::block_in_place(|| server.restart());
    }
    let seen = tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert!(seen.is_sorted_by(|a, b| a < b), "an entry was delivered twice");
    assert_eq!(stored_numbers(&*journal).await, (0..6000).collect::<Vec<_>>());
}

/// Redis 7.0 does not log how many entries a group has read.
#[tokio::test(flavor = "multi_thread")]
async fn j7_unread_is_correct_after_a_restart_of_redis() {
    let mut server = RedisServer::builder().append_only(Fsync::Always).start();
    let journal = open(&server.url());
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    journal.append(Lane::Traffic, &conformance::entries(0..9000), &token("p", 1)).await.unwrap();
    let unread = async || journal.status(Lane::Traffic).await.unwrap().groups[0].unread;
    for (count, expected) in [(1000, 8000..=8000), (3000, 2000..=9000), (4900, 100..=100)] {
        assert_eq!(journal.read(Lane::Traffic, "g", "c", count, Duration::ZERO).await.unwrap().len(), count);
        let found = unread().await;
        assert!(expected.contains(&found), "{found} unread, not {expected:?}");
        tokio::task::block_in_place(|| server.restart());
        eventually_async("the restarted server", PATIENCE, async || journal.status(Lane::Traffic).await.ok())
            .await;
    }
    assert_eq!(unread().await, 100);
    assert_eq!(journal.read(Lane::Traffic, "g", "c", 200, Duration::ZERO).await.unwrap().len(), 100);
    assert_eq!(unread().await, 0);
}

#[tokio::test]
async fn tls_and_an_acl_user() {
    let server = RedisServer::builder().tls().user("rollcall", "s3cret", "~tracker:* &* +@all").start();
    let url = format!("{}?ca={}", server.url(), server.authority_path().display());
    let journal = open(&url);
    journal.append(Lane::Traffic, &conformance::entries(0..3), &token("p", 1)).await.unwrap();
    assert_eq!(stored_numbers(&*journal).await, [0, 1, 2]);
    // A certificate unknown to the system's authorities is rejected.
    let error = open(&server.url())
        .append(Lane::Traffic, &conformance::entries(3..4), &token("p", 2))
        .await
        .unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    let error = open(&url.replace("s3cret", "wrong")).status(Lane::Traffic).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("password"), "{error}");
    assert!(!format!("{error} {error:?}").contains("wrong@"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_is_followed() {
    let quick = RedisServer::builder().directive("repl-diskless-sync-delay 0");
    let mut group = RedisSentinel::start_with(&quick);
    let url = format!("redis+sentinel://127.0.0.1:{}/{}", group.sentinel_port(), group.master_name());
    let journal = open(&url);
    journal.append(Lane::Traffic, &conformance::entries(0..10), &token("p", 1)).await.unwrap();
    // The replica must have it before the failover: the journal does not guarantee replication. (`WAIT` is not enough:
    // a replica that is resynchronising has acknowledged it, and lost it for a moment.)
    testkit::eventually("the replica to have it", PATIENCE, || {
        let replica = group.server_mut(1);
        let is_up = replica.cli(&["INFO", "replication"]).contains("master_link_status:up");
        (is_up && replica.cli(&["XLEN", "tracker:traffic"]) == "10").then_some(())
    });
    tokio::task::block_in_place(|| group.kill_master());
    append_with_retries(&*journal, &conformance::entries(10..20), &token("p", 2)).await;
    assert_eq!(group.master().cli(&["XLEN", "tracker:traffic"]), "20");
    assert_eq!(stored_numbers(&*journal).await, (0..20).collect::<Vec<_>>());
}
