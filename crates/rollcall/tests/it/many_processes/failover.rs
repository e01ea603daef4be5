//! A Redis Cluster of three masters and three replicas; the master that has the journal is killed under load. Announces
//! go on from memory, entries wait in the queue, and everything is accounted for afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::population::{info_hash_of, passkey_of};
use testkit::{Family, Plan, Population, RedisCluster, RedisServer, ServerBuilder, eventually};

use crate::many_processes::busy_clients::{
    BusyClient, BusyClientTotals, ConnectionUse, registration, truth_of,
};
use crate::site::{DatabaseKind, PATIENCE, Site, builder, quoted};

const STREAM: &str = "tracker:traffic";

fn cluster() -> RedisCluster {
    RedisCluster::start_with(&RedisServer::builder().directive("repl-diskless-sync-delay 0"), 1)
}

/// A node that was killed refuses connections at once. One that lives may take long to answer where the machine has
/// little time for it: given up, its work would be asked for again and again, and none of it ever be done.
const ANSWER_LIMIT_MS: u32 = 30_000;

fn site_on(cluster: &RedisCluster, builder: ServerBuilder) -> Site {
    let nodes: Vec<String> = cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
    let builder = builder
        .set("redis.url", quoted(&format!("redis+cluster://{}", nodes.join(","))))
        .set("redis.response_timeout_ms", ANSWER_LIMIT_MS);
    Site::start(builder, None, DatabaseKind::Sqlite)
}

struct UntilDropped<'a>(&'a AtomicBool);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// With `journal.wait_replicas`, nothing that was confirmed is lost with its master: clients begin, complete, die and
/// leave all the while, and every byte counts once.
#[test]
fn t3_a_master_killed_under_load_loses_nothing_that_replicas_were_waited_for() {
    let mut cluster = cluster();
    let waiting = builder().set("journal.wait_replicas", 1).set("journal.ack_timeout_ms", 1000);
    let site = site_on(&cluster, waiting);
    let plan = Plan {
        seed: 61,
        users: 20,
        torrents: 8,
        clients: 160,
        at_once: 8,
        crashes: true,
        pause: Duration::from_millis(5),
    };
    let mut population = Population::new(plan);
    site.register(&population);
    let (is_on, destination) = (AtomicBool::new(true), site.destination());
    std::thread::scope(|scope| {
        let over = UntilDropped(&is_on);
        let living = scope.spawn(|| population.live_while(destination, &is_on));
        wait_appended(&cluster, 500);
        let dead = cluster.kill_master_of(STREAM);
        let next = cluster.wait_master_of(STREAM);
        assert_ne!(dead, next);
        // The new master has no replica to wait for until the dead one returns.
        cluster.node_mut(dead).restart();
        wait_appended(&cluster, 300);
        drop(over);
        living.join().expect("every announce was accepted in the end");
    });
    population.stop(destination);
    let end = site.settle();
    site.assert_nothing_failed(&end);
    site.assert_books_equal(&population.truth());
    site.wait_logged(&["journal accepts entries again"]);
}

/// Without it, entries that the dead master had confirmed but not replicated are lost. Regular announces are answered
/// from memory throughout, and totals make up for the bytes.
#[test]
fn t3_announces_go_on_from_memory_while_a_replica_takes_over() {
    let mut cluster = cluster();
    let site = site_on(&cluster, builder().set("journal.ack_timeout_ms", 30_000));
    let ways =
        [ConnectionUse::KeptAlive, ConnectionUse::OneShot, ConnectionUse::Udp, ConnectionUse::KeptAlive];
    let server = site.server.addr(Family::V4);
    let clients: Vec<BusyClient> =
        ways.iter().zip(1..).map(|(way, user)| BusyClient { way: *way, user, server }).collect();
    site.sql(&registration(&clients));
    eventually("users and the torrent to be known", PATIENCE, || {
        let knows = |user| matches!(site.server.try_scrape(&passkey_of(user), &info_hash_of(1)), Ok(Some(_)));
        clients.iter().all(|client| knows(client.user)).then_some(())
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
        wait_appended(&cluster, 200);
        let dead = cluster.master_of(STREAM).unwrap();
        // Every run begins before the master dies: a run whose first entry is lost begins later.
        assert_eq!(cluster.node(dead).cli(&["WAIT", "1", "10000"]), "1");
        cluster.kill_master_of(STREAM);
        let before = accepted();
        eventually("announces to go on", PATIENCE, || (accepted() > before + 100).then_some(()));
        assert_ne!(cluster.wait_master_of(STREAM), dead);
        wait_appended(&cluster, 100);
        drop(over);
        living
            .into_iter()
            .map(|client| client.join().expect("every announce was accepted"))
            .collect::<Vec<_>>()
    });
    let end = site.settle();
    site.assert_nothing_failed(&end);
    site.assert_books_equal(&truth_of(moved));
}

/// Waits until so many more entries are in the journal.
fn wait_appended(cluster: &RedisCluster, count: u64) {
    let length = || -> Option<u64> {
        let master = cluster.master_of(STREAM)?;
        cluster.node(master).try_cli(&["XLEN", STREAM]).ok()?.parse().ok()
    };
    let before = eventually("the journal to answer", PATIENCE, length);
    eventually("the journal to grow", PATIENCE, || length().filter(|length| *length >= before + count));
}
