//! The conformance suite on a cluster of three masters, and failovers and moving slots.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use journal::{EntryId, Journal, Lane, RedisJournal, StartAt};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings, slot_of};
use testkit::{RedisCluster, RedisServer};

use crate::conformance;

/// Unique names, and so a slot of its own, on a cluster that all tests share.
struct Names(BaseNames);

fn cluster() -> &'static RedisCluster {
    static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
    CLUSTER.get_or_init(RedisCluster::start)
}

impl conformance::Fixture for Names {
    async fn fresh() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let stream = format!("test{}:traffic", COUNT.fetch_add(1, Ordering::Relaxed));
        let (dead, failed) = (format!("{stream}:dlq"), format!("{stream}:failed"));
        Names(BaseNames { stream, dead_letters: dead, failed, ..BaseNames::default() })
    }

    async fn open(&self) -> Arc<dyn Journal> {
        open(cluster(), &self.0)
    }
}

fn open(cluster: &RedisCluster, names: &BaseNames) -> Arc<dyn Journal> {
    // One node is enough to find the others.
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    let redis = Redis::new(RedisSettings::from_url(&url).unwrap()).unwrap();
    Arc::new(RedisJournal::new(redis, KeyNames::new(names, Mode::Cluster).unwrap()))
}

conformance_suite!(Names);

/// The master that initially owns the stream's slot.
fn first_master_of(stream: &str) -> usize {
    usize::from(slot_of(stream.as_bytes())) * 3 / 16384
}

/// Appends batches of ten, each until it is stored, and reads them meanwhile. Returns what was read.
async fn append_and_read(journal: Arc<dyn Journal>, batches: u64) -> Vec<EntryId> {
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let writer = journal.clone();
    let appending = tokio::spawn(async move {
        for batch in 0..batches {
            let entries = conformance::entries(batch * 10..(batch + 1) * 10);
            let token = conformance::token("p", batch + 1);
            conformance::append_with_retries(&*writer, &entries, &token).await;
            // Slow enough that slots move and masters die amid the work.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let mut seen = Vec::new();
    loop {
        let is_last = appending.is_finished();
        match journal.read(Lane::Traffic, "g", "c", 100, Duration::from_millis(200)).await {
            Ok(read) if read.is_empty() && is_last => break,
            Ok(read) => seen.extend(conformance::ids(&read)),
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                tokio::time::sleep(conformance::RETRY_DELAY).await;
            }
        }
    }
    appending.await.unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_and_reads_follow_a_moving_slot() {
    let cluster = RedisCluster::start();
    let names = BaseNames::default();
    let journal = open(&cluster, &names);
    let working = tokio::spawn(append_and_read(journal.clone(), 300));
    let slot = slot_of(names.stream.as_bytes()).to_string();
    let mut at = first_master_of(&names.stream);
    for _ in 0..3 {
        conformance::wait_appended(&*journal, 300).await;
        let (source, target) = (cluster.node(at), cluster.node((at + 1) % 3));
        let (source_id, target_id) = (source.cli(&["CLUSTER", "MYID"]), target.cli(&["CLUSTER", "MYID"]));
        target.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
        source.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
        loop {
            let keys = source.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "10"]);
            if keys.trim().is_empty() {
                break;
            }
            for key in keys.lines() {
                source.cli(&["MIGRATE", "127.0.0.1", &target.port().to_string(), key, "0", "5000"]);
            }
        }
        for node in [target, source, cluster.node((at + 2) % 3)] {
            node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
        at = (at + 1) % 3;
    }
    let seen = tokio::time::timeout(conformance::PATIENCE * 2, working).await.unwrap().unwrap();
    assert!(seen.is_sorted_by(|a, b| a < b), "an entry was delivered twice");
    let stored = conformance::all(&journal, Lane::Traffic).await;
    assert_eq!(conformance::numbers(&stored), (0..3000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_continue_after_a_failover() {
    let quick = RedisServer::builder().directive("repl-diskless-sync-delay 0");
    let mut cluster = RedisCluster::start_with(&quick, 1);
    let names = BaseNames::default();
    let journal = open(&cluster, &names);
    append_and_read(journal.clone(), 10).await;
    let master = first_master_of(&names.stream);
    // The journal does not guarantee replication: wait until the replica has everything.
    assert_eq!(cluster.node(master).cli(&["WAIT", "1", "10000"]), "1");
    cluster.node_mut(master).kill();
    let entries = conformance::entries(100..110);
    conformance::append_with_retries(&*journal, &entries, &conformance::token("p", 11)).await;
    let stored = conformance::all(&journal, Lane::Traffic).await;
    assert_eq!(conformance::numbers(&stored), (0..110).collect::<Vec<_>>());
}
