//! Redis is there, but does not do what it should.

use testkit::eventually;

use crate::journal_faults::{assert_nothing_lost, meanwhile, populate};
use crate::site::{DatabaseKind, PATIENCE, Site, builder, durable_redis};

/// Runs a population, causes a fault, waits for the log line, ends the fault, and compares every byte.
fn survives(begin: &[&[&str]], logged: &[&str], end: &[&[&str]]) {
    let builder = builder().set("journal.ack_timeout_ms", 500);
    let mut site = Site::start(builder, Some(durable_redis()), DatabaseKind::Sqlite);
    let mut population = populate(&site);
    // The first entry is stored, so this is a fault, not a first start.
    population.live(site.destination(), 1);
    meanwhile(&mut population, &mut site, |site| {
        for command in begin {
            site.redis().cli(command);
        }
        let line = site.wait_logged(logged);
        eprintln!("the log says: {line}");
        for command in end {
            site.redis().cli(command);
        }
        site.wait_logged(&["journal accepts entries again"]);
    });
    assert_nothing_lost(&mut population, &site);
}

#[test]
fn a_redis_that_takes_no_writes_for_lack_of_replicas() {
    survives(
        &[&["CONFIG", "SET", "min-replicas-to-write", "1"]],
        &["entries wait", "min-replicas-to-write"],
        &[&["CONFIG", "SET", "min-replicas-to-write", "0"]],
    );
}

#[test]
fn a_redis_whose_master_does_not_exist() {
    // No program listens on port 1.
    survives(
        &[&["CONFIG", "SET", "replica-serve-stale-data", "yes"], &["REPLICAOF", "127.0.0.1", "1"]],
        &["entries wait", "is a replica and takes no writes"],
        &[&["REPLICAOF", "NO", "ONE"]],
    );
}

#[test]
fn a_redis_that_is_out_of_memory() {
    survives(
        &[&["CONFIG", "SET", "maxmemory-policy", "noeviction"], &["CONFIG", "SET", "maxmemory", "1"]],
        &["entries wait", "out of memory"],
        &[&["CONFIG", "SET", "maxmemory", "0"]],
    );
}

#[test]
fn a_key_of_another_type_in_the_journals_place() {
    // What is moved aside comes back as it was. At once, or what is stored in between would be overwritten.
    let aside =
        "redis.call('RENAME', 'tracker:traffic', 'aside') redis.call('SET', 'tracker:traffic', 'mine')";
    let back = "redis.call('RENAME', 'aside', 'tracker:traffic')";
    survives(
        &[&["EVAL", aside, "0"]],
        &["entries wait", "tracker:traffic", "is not a stream"],
        &[&["EVAL", back, "0"]],
    );
}

#[test]
fn a_key_of_another_type_before_the_first_entry_loses_nothing_once_removed() {
    let redis = durable_redis();
    redis.cli(&["SET", "tracker:traffic", "mine"]);
    let builder = builder().set("journal.ack_timeout_ms", 500);
    let mut site = Site::start(builder, Some(redis), DatabaseKind::Sqlite);
    let mut population = populate(&site);
    meanwhile(&mut population, &mut site, |site| {
        site.wait_logged(&["entries wait", "tracker:traffic"]);
        site.redis().cli(&["DEL", "tracker:traffic"]);
        site.wait_logged(&["journal accepts entries again"]);
    });
    assert_nothing_lost(&mut population, &site);
}

#[test]
fn destroyed_groups_are_recreated_and_nothing_is_lost_or_doubled() {
    let mut site = Site::start(builder(), Some(durable_redis()), DatabaseKind::Sqlite);
    let mut population = populate(&site);
    population.live(site.destination(), 1);
    meanwhile(&mut population, &mut site, |site| {
        for round in 1..=4 {
            for group in ["ztorrent", "activity"] {
                site.redis().cli(&["XGROUP", "DESTROY", "tracker:traffic", group]);
                site.redis().cli(&["XGROUP", "DESTROY", "tracker:traffic:dlq", group]);
            }
            eventually("both groups to be made again", PATIENCE, || {
                let groups = site.redis().cli(&["XINFO", "GROUPS", "tracker:traffic"]);
                (groups.contains("ztorrent") && groups.contains("activity")).then_some(())
            });
            std::thread::sleep(std::time::Duration::from_millis(100 * round));
        }
        site.wait_logged(&["consumer group does not exist", "ledger"]);
        site.wait_logged(&["consumer group does not exist", "activity"]);
    });
    assert_nothing_lost(&mut population, &site);
}
