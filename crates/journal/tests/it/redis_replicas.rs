//! `WAIT`: a batch counts as stored once replicas have it, and a failover loses no confirmed batch.

use std::sync::Arc;
use std::time::Duration;

use journal::{Journal, JournalError, Lane, RedisJournal, Replicas};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings, slot_of};
use testkit::{RedisBuilder, RedisCluster, RedisServer, eventually};

use crate::conformance::{PATIENCE, append_with_retries, entries, stored_numbers, token};

const ONE: Replicas = Replicas { count: 1, timeout: Duration::from_millis(300) };

fn open(url: &str, mode: Mode) -> Arc<RedisJournal> {
    let redis = Redis::new(RedisSettings::from_url(url).unwrap()).unwrap();
    let keys = KeyNames::new(&BaseNames::default(), mode).unwrap();
    Arc::new(RedisJournal::new(redis, keys).with_replicas(ONE))
}

fn quick() -> RedisBuilder {
    RedisServer::builder().directive("repl-diskless-sync-delay 0")
}

fn too_few(journal: &RedisJournal) -> u64 {
    journal.bounds_hit().too_few_replicas
}

#[tokio::test(flavor = "multi_thread")]
async fn j3_a_batch_waits_for_its_replica_and_is_stored_once() {
    let master = quick().start();
    let journal = open(&master.url(), Mode::Single);
    let batch = entries(0..10);
    for _ in 0..3 {
        let error = journal.append(Lane::Traffic, &batch, &token("p", 1)).await.unwrap_err();
        assert!(
            matches!(&error, JournalError::Unavailable { reason } if reason.contains("0 of 1 replicas")),
            "{error}"
        );
    }
    assert_eq!(too_few(&journal), 3);
    assert_eq!(master.cli(&["XLEN", "tracker:traffic"]), "10", "found stored, it was only waited for again");

    let replica = quick().directive(&format!("replicaof 127.0.0.1 {}", master.port())).start();
    append_with_retries(&*journal, &entries(0..10), &token("p", 1)).await;
    assert_eq!(replica.cli(&["XLEN", "tracker:traffic"]), "10");
    assert_eq!(
        append_with_retries(&*journal, &entries(10..20), &token("p", 2)).await,
        0,
        "the replica is there"
    );
    assert_eq!(replica.cli(&["XLEN", "tracker:traffic"]), "20");

    // A suspended replica does not confirm. The missing batch is waited for, not stored again.
    replica.freeze();
    let error = journal.append(Lane::Traffic, &entries(20..30), &token("p", 3)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    replica.thaw();
    append_with_retries(&*journal, &entries(20..30), &token("p", 3)).await;
    assert_eq!(stored_numbers(&*journal).await, (0..30).collect::<Vec<_>>());
}

/// The replica does not receive a batch that the master has stored; then the master dies. The batch was never
/// confirmed, so it is sent again, and the new master stores it.
#[tokio::test(flavor = "multi_thread")]
async fn j3_a_batch_lost_by_a_failover_is_appended_again() {
    let mut cluster = RedisCluster::start_with(&quick(), 2);
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    let journal = open(&url, Mode::Cluster);
    append_with_retries(&*journal, &entries(0..10), &token("p", 1)).await;
    let master = usize::from(slot_of(b"tracker:traffic")) * 3 / 16384;
    let replicas = [3 + master, 6 + master];
    for replica in replicas {
        eventually("both replicas to have it", PATIENCE, || {
            let info = cluster.node(replica).cli(&["INFO", "replication"]);
            info.contains("master_link_status:up").then_some(())
        });
        cluster.node(replica).freeze();
    }
    let error = journal.append(Lane::Traffic, &entries(10..20), &token("p", 2)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    assert_eq!(cluster.node(master).cli(&["XLEN", "tracker:traffic"]), "20", "the master alone has it");
    cluster.node_mut(master).kill();
    replicas.iter().for_each(|replica| cluster.node(*replica).thaw());

    let failures = append_with_retries(&*journal, &entries(10..20), &token("p", 2)).await;
    assert!(failures > 0, "a replica took over at once");
    append_with_retries(&*journal, &entries(20..30), &token("p", 3)).await;
    assert_eq!(stored_numbers(&*journal).await, (0..30).collect::<Vec<_>>());
}
