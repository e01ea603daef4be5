//! How fast activity takes entries, as a share of what Redis itself can do with them. Ignored by default: it measures
//! and prints, and a busy machine would make any verdict a lie.
//!
//! `cargo test --release -p views --test activity_speed -- --ignored --nocapture`
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "figures are what this is for")]

#[path = "activity/rig.rs"]
#[allow(dead_code, reason = "the conformance suite uses the rest")]
mod rig;

use std::sync::Arc;

use domain::clock::{ManualClock, Stopwatch};
use fastrand::Rng;
use journal::{Arrival, Batch, Lane, View};
use keyspace::{Redis, RedisSettings};
use redis::Pipeline;
use rig::{NOW, info_hash, on_redis, passkey, seeds};
use testkit::RedisServer;
use views::{Activity, ActivitySettings};

const ROUNDS: i64 = 4;

/// A population that announces in random order.
struct Workload {
    users: u32,
    torrents_each: u32,
    batch: usize,
}

impl Workload {
    fn round(&self, round: i64) -> Vec<Arrival> {
        let count = self.users * self.torrents_each;
        let mut announces: Vec<u32> = (0..count).collect();
        Rng::with_seed(round as u64).shuffle(&mut announces);
        let arrival =
            |number: u32| seeds(number % self.users, number / self.users, round * 100 - 2000).arrival();
        announces.into_iter().map(arrival).collect()
    }
}

/// Seconds of processor time that Redis has used.
fn server_seconds(server: &RedisServer) -> f64 {
    let info = server.cli(&["INFO", "cpu"]);
    let used = |name: &str| {
        let line = info.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap().parse::<f64>().unwrap()
    };
    used("used_cpu_user:") + used("used_cpu_sys:")
}

async fn raw(redis: &Redis, arrivals: &[Arrival]) {
    let mut pipeline = Pipeline::with_capacity(2 * arrivals.len());
    for arrival in arrivals {
        let passkey = arrival.entry.passkey.unwrap();
        let info_hash = arrival.entry.info_hash.to_string();
        let seed = format!("tracker:user:seed:{passkey}");
        pipeline.cmd("ZADD").arg(seed).arg(arrival.entry.at.0).arg(&info_hash);
        pipeline.cmd("ZREM").arg(format!("tracker:user:leech:{passkey}")).arg(&info_hash);
    }
    for reply in redis.pipeline(&pipeline).await {
        reply.unwrap();
    }
}

async fn ours(activity: &Activity, arrivals: &[Arrival]) {
    let batch = Batch { lane: Lane::Traffic, consumer: "c1", taken_from: None, is_retry: false, arrivals };
    assert_eq!(activity.apply(&batch).await.unwrap(), []);
}

async fn measure(name: &str, workload: &Workload) {
    let (raw_server, our_server) = (RedisServer::start(), RedisServer::start());
    let redis = Redis::new(RedisSettings::from_url(&raw_server.url()).unwrap()).unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    let activity = on_redis(&our_server.url(), ActivitySettings::default(), clock);
    println!("{name}, batches of {}", workload.batch);
    for round in 0..ROUNDS {
        let arrivals = workload.round(round);
        let before = (server_seconds(&raw_server), server_seconds(&our_server));
        let watch = Stopwatch::start();
        for batch in arrivals.chunks(workload.batch) {
            raw(&redis, batch).await;
        }
        let raw_time = watch.elapsed().as_secs_f64();
        let watch = Stopwatch::start();
        for batch in arrivals.chunks(workload.batch) {
            ours(&activity, batch).await;
        }
        let our_time = watch.elapsed().as_secs_f64();
        let after = (server_seconds(&raw_server), server_seconds(&our_server));
        let kind = if round == 0 { "first announces" } else { "heartbeats" };
        println!(
            "  {kind}: {:.0} entries/s, raw {:.0}, ratio {:.2}; of Redis's processor time {:.2}",
            arrivals.len() as f64 / our_time,
            arrivals.len() as f64 / raw_time,
            raw_time / our_time,
            (after.0 - before.0) / (after.1 - before.1),
        );
    }
    assert_eq!(activity.counts(&passkey(0)).await.unwrap().seeding, u64::from(workload.torrents_each));
    assert!(
        our_server
            .cli(&["ZSCORE", &format!("tracker:user:seed:{}", passkey(0)), &info_hash(0).to_string()])
            .parse::<u32>()
            .is_ok()
    );
}

#[tokio::test]
#[ignore = "it measures"]
async fn activity_against_raw_pairs() {
    measure("100,000 users with 1 torrent", &Workload { users: 100_000, torrents_each: 1, batch: 1000 })
        .await;
    measure("5,000 users with 20 torrents", &Workload { users: 5_000, torrents_each: 20, batch: 1000 }).await;
    measure("1,000 users with 100 torrents", &Workload { users: 1_000, torrents_each: 100, batch: 1000 })
        .await;
    measure("1,000 users with 100 torrents", &Workload { users: 1_000, torrents_each: 100, batch: 5000 })
        .await;
}
