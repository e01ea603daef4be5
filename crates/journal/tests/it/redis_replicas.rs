//! `WAIT`: a batch counts as stored once replicas have it, and a failover loses no confirmed batch.

use std::sync::Arc;
use std::time::Duration;

use journal::{AppendToken, EntryId, Fields, Journal, JournalError, Lane, RedisJournal, Replicas};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings, slot_of};
use testkit::{RedisBuilder, RedisCluster, RedisServer, eventually};

/// Upper bound; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const ONE: Replicas = Replicas { count: 1, timeout: Duration::from_millis(300) };

fn open(url: &str, mode: Mode) -> Arc<RedisJournal> {
    let redis = Redis::new(RedisSettings::from_url(url).unwrap()).unwrap();
    let keys = KeyNames::new(&BaseNames::default(), mode).unwrap();
    Arc::new(RedisJournal::new(redis, keys).with_replicas(ONE))
}

fn quick() -> RedisBuilder {
    RedisServer::builder().directive("repl-diskless-sync-delay 0")
}

fn token(number: u64) -> AppendToken {
    AppendToken { producer: "p".to_owned(), number }
}

fn entries(numbers: std::ops::Range<u64>) -> Vec<Fields> {
    numbers
        .map(|number| {
            let mut fields = Fields::new();
            fields.push_text("number", number);
            fields
        })
        .collect()
}

fn too_few(journal: &RedisJournal) -> u64 {
    journal.bounds_hit().too_few_replicas
}

async fn append_with_retries(journal: &RedisJournal, of: std::ops::Range<u64>, number: u64) -> u32 {
    let batch = entries(of);
    let mut failures = 0;
    while let Err(error) = journal.append(Lane::Traffic, &batch, &token(number)).await {
        assert!(error.is_retryable(), "{error}");
        failures += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    failures
}

async fn stored(journal: &RedisJournal) -> Vec<u64> {
    let stored = journal.list(Lane::Traffic, EntryId::ZERO, 100_000).await.unwrap();
    let number = |fields: &Fields| String::from_utf8_lossy(fields.get("number").unwrap()).parse().unwrap();
    stored.iter().map(|stored| number(&stored.fields)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn j3_a_batch_waits_for_its_replica_and_is_stored_once() {
    let master = quick().start();
    let journal = open(&master.url(), Mode::Single);
    let batch = entries(0..10);
    for _ in 0..3 {
        let error = journal.append(Lane::Traffic, &batch, &token(1)).await.unwrap_err();
        assert!(
            matches!(&error, JournalError::Unavailable { reason } if reason.contains("0 of 1 replicas")),
            "{error}"
        );
    }
    assert_eq!(too_few(&journal), 3);
    assert_eq!(master.cli(&["XLEN", "tracker:traffic"]), "10", "found stored, it was only waited for again");

    let replica = quick().directive(&format!("replicaof 127.0.0.1 {}", master.port())).start();
    append_with_retries(&journal, 0..10, 1).await;
    assert_eq!(replica.cli(&["XLEN", "tracker:traffic"]), "10");
    assert_eq!(append_with_retries(&journal, 10..20, 2).await, 0, "the replica is there");
    assert_eq!(replica.cli(&["XLEN", "tracker:traffic"]), "20");

    // A suspended replica does not confirm. The missing batch is waited for, not stored again.
    replica.freeze();
    let error = journal.append(Lane::Traffic, &entries(20..30), &token(3)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    replica.thaw();
    append_with_retries(&journal, 20..30, 3).await;
    assert_eq!(stored(&journal).await, (0..30).collect::<Vec<_>>());
}

/// The replica does not receive a batch that the master has stored; then the master dies. The batch was never
/// confirmed, so it is sent again, and the new master stores it.
#[tokio::test(flavor = "multi_thread")]
async fn j3_a_batch_lost_by_a_failover_is_appended_again() {
    let mut cluster = RedisCluster::start_with(&quick(), 2);
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    let journal = open(&url, Mode::Cluster);
    append_with_retries(&journal, 0..10, 1).await;
    let master = usize::from(slot_of(b"tracker:traffic")) * 3 / 16384;
    let replicas = [3 + master, 6 + master];
    for replica in replicas {
        eventually("both replicas to have it", PATIENCE, || {
            let info = cluster.node(replica).cli(&["INFO", "replication"]);
            info.contains("master_link_status:up").then_some(())
        });
        cluster.node(replica).freeze();
    }
    let error = journal.append(Lane::Traffic, &entries(10..20), &token(2)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    assert_eq!(cluster.node(master).cli(&["XLEN", "tracker:traffic"]), "20", "the master alone has it");
    cluster.node_mut(master).kill();
    replicas.iter().for_each(|replica| cluster.node(*replica).thaw());

    let again = tokio::time::timeout(PATIENCE * 2, append_with_retries(&journal, 10..20, 2)).await;
    assert!(again.expect("no replica took over") > 0);
    tokio::time::timeout(PATIENCE, append_with_retries(&journal, 20..30, 3)).await.unwrap();
    assert_eq!(stored(&journal).await, (0..30).collect::<Vec<_>>());
}
