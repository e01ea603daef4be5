//! Activity in Redis as other programs read and change it.

use std::sync::Arc;

use domain::AnnounceEvent::Completed;
use domain::clock::ManualClock;
use journal::ViewError;
use keyspace::{FenceError, FencedSession, Redis, RedisSettings, read_reply, slot_of};
use testkit::{RedisCluster, RedisServer};
use views::{ActivitySettings, ViewsError};

use crate::activity::fixture::{
    Backend, Fixture, NOW, THRESHOLD, apply, info_hash, keys_on, leeches, on_redis, passkey, seeds, shown,
    stops,
};

fn fixture_on(server: &RedisServer) -> Fixture {
    let clock = ManualClock::at(NOW);
    let activity = on_redis(&server.url(), ActivitySettings::default(), Arc::new(clock.clone()));
    Fixture { activity, clock }
}

fn key(kind: &str, user: u32) -> String {
    format!("tracker:user:{kind}:{}", passkey(user))
}

fn evaluations(server: &RedisServer) -> String {
    let stats = server.cli(&["INFO", "commandstats"]);
    let calls = |name: &str| stats.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let count = |line: String| line.split(',').next().unwrap_or_default().to_owned();
    format!("{} {}", count(calls("cmdstat_eval:")), count(calls("cmdstat_evalsha:")))
}

#[tokio::test]
async fn a1_keys_and_values_match_the_requirement() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    fixture.apply(&[seeds(1, 1, -30), seeds(1, 2, -20), leeches(1, 3, -10)]).await;
    let seed = "tracker:user:seed:0000000000000001";
    let leech = "tracker:user:leech:0000000000000001";
    assert_eq!(server.cli(&["TYPE", seed]), "zset");
    let expected = format!("{}\n{}\n{}\n{}", info_hash(2), shown(-20), info_hash(1), shown(-30));
    assert_eq!(server.cli(&["ZREVRANGE", seed, "0", "-1", "WITHSCORES"]), expected);
    let expected = format!("{}\n{}", info_hash(3), shown(-10));
    assert_eq!(server.cli(&["ZREVRANGE", leech, "0", "-1", "WITHSCORES"]), expected);
    assert_eq!(server.cli(&["ZCARD", seed]), "2");
    fixture.apply(&[leeches(1, 3, -5).event(Completed), stops(1, 1, -5)]).await;
    assert_eq!(server.cli(&["EXISTS", leech]), "0");
    let expected = format!("{}\n{}", info_hash(3), info_hash(2));
    assert_eq!(server.cli(&["ZREVRANGE", seed, "0", "-1"]), expected);
    let ours = ["tracker:user:clients:0000000000000001", seed, "tracker:user:stopped:0000000000000001"];
    assert_eq!(keys_on(&server), [&ours[..], &["tracker:users:active"]].concat());
}

#[tokio::test]
async fn a2_a_heartbeat_that_changes_nothing_needs_no_script() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    let round = |at: i64| -> Vec<_> {
        let users = (0..300).flat_map(|user| [seeds(user, user, at), leeches(user, 1000, at)]);
        users.chain([seeds(7, 2000, at).by(1), leeches(8, 2000, at).fourteen_fields_only()]).collect()
    };
    fixture.apply(&round(-100)).await;
    let before = evaluations(&server);
    fixture.apply(&round(-90)).await;
    fixture.apply(&round(-80)).await;
    assert_eq!(evaluations(&server), before);
    assert_eq!(fixture.seeding(7).await.len(), 2);
    assert_eq!(fixture.seeding(299).await, [(299, shown(-80))]);
}

#[tokio::test]
async fn a5_commands_of_other_programs_remove_and_read_the_same() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    fixture.apply(&[seeds(1, 1, -100), seeds(1, 2, 0)]).await;
    fixture.wait(THRESHOLD - 100);
    let expired = (NOW.0 - 100).to_string();
    assert_eq!(server.cli(&["ZREMRANGEBYSCORE", &key("seed", 1), "-inf", &expired]), "1");
    assert_eq!(server.cli(&["ZREVRANGE", &key("seed", 1), "0", "-1"]), info_hash(2).to_string());
    assert_eq!(fixture.seeding(1).await, [(2, shown(0))]);
    // Members added by other programs are removed by our reads when they expire.
    server.cli(&["ZADD", &key("leech", 1), &shown(10).to_string(), &info_hash(9).to_string()]);
    server.cli(&["ZADD", &key("leech", 1), &shown(20).to_string(), "no infohash"]);
    assert_eq!(fixture.leeching(1).await, [(9, shown(10))]);
    fixture.wait(200);
    assert_eq!(fixture.counts(1).await, (0, 0));
    while fixture.activity.sweep().await.unwrap().users > 0 {}
    assert_eq!(keys_on(&server), [""; 0]);
}

#[tokio::test]
async fn a4_removal_by_another_program_uncovers_a_second_client() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    fixture
        .apply(&[seeds(1, 1, -100).by(1), leeches(1, 1, 0).by(2), seeds(1, 2, 0), seeds(1, 3, -100)])
        .await;
    fixture.wait(THRESHOLD - 100);
    let expired = (NOW.0 - 100).to_string();
    assert_eq!(server.cli(&["ZREMRANGEBYSCORE", &key("seed", 1), "-inf", &expired]), "2");
    assert_eq!(
        (fixture.seeding(1).await, fixture.leeching(1).await),
        (vec![(2, shown(0))], vec![(1, shown(0))])
    );
    assert_eq!(server.cli(&["HLEN", &key("clients", 1)]), "2", "expired clients are removed");
}

#[tokio::test]
async fn a_deleted_list_is_restored_by_the_next_announce() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    for kind in ["seed", "clients"] {
        fixture.apply(&[seeds(1, 1, -30), seeds(1, 2, -30)]).await;
        server.cli(&["DEL", &key(kind, 1)]);
        fixture.apply(&[seeds(1, 1, -20), seeds(1, 2, -20)]).await;
        assert_eq!(fixture.counts(1).await, (2, 0), "{kind}");
        server.cli(&["FLUSHALL"]);
    }
    // Without the index no sweep finds the user; any change adds the user again.
    fixture.apply(&[seeds(1, 1, -30)]).await;
    server.cli(&["DEL", "tracker:users:active"]);
    fixture.apply(&[leeches(1, 2, -20)]).await;
    assert_eq!(server.cli(&["ZRANGE", "tracker:users:active", "0", "-1"]), passkey(1).to_string());
}

#[tokio::test]
async fn one_users_wrong_typed_key_rejects_that_users_entries_only() {
    for kind in ["seed", "leech", "clients", "stopped"] {
        let server = RedisServer::start();
        let fixture = fixture_on(&server);
        server.cli(&["SET", &key(kind, 2), "something else"]);
        // Only stops write this key.
        let second = if kind == "stopped" { stops } else { seeds };
        let (bad, later) = (second(2, 1, -30), second(2, 1, -20));
        let announces = [seeds(1, 1, -30), bad, leeches(2, 2, -30), leeches(3, 1, -30), later];
        for _ in 0..2 {
            let rejected = fixture.try_apply(&announces).await.unwrap();
            let indices: Vec<_> = rejected.iter().map(|rejected| rejected.index).collect();
            assert_eq!(indices, [1, 2, 4], "{kind}");
            let reason = &rejected[0].reason;
            assert!(reason.contains(&format!("tracker:user:{kind}:<passkey>")), "{reason}");
            assert!(!reason.contains(&passkey(2).to_string()), "contains the passkey: {reason}");
        }
        assert_eq!(fixture.activity.counters().rejected.get(), 6);
        assert_eq!((fixture.counts(1).await, fixture.counts(3).await), ((1, 0), (0, 1)));
        let read = fixture.activity.counts(&passkey(2)).await;
        assert!(matches!(read, Err(ViewsError::WrongType { .. })), "{read:?}");
        // The sweep continues, and counts the damaged user.
        fixture.wait(THRESHOLD);
        let swept = fixture.activity.sweep().await.unwrap();
        assert_eq!((swept.users, swept.damaged), (3, 1));
    }
}

#[tokio::test]
async fn entries_rejected_for_a_wrong_typed_key_can_be_replayed_after_its_deletion() {
    for kind in ["seed", "leech", "clients"] {
        let server = RedisServer::start();
        let fixture = fixture_on(&server);
        fixture.apply(&[leeches(2, 1, -50), seeds(2, 2, -50)]).await;
        server.cli(&["DEL", &key(kind, 2)]);
        server.cli(&["SET", &key(kind, 2), "something else"]);
        let announces = [seeds(2, 1, -30).event(Completed), leeches(2, 2, -30)];
        assert_eq!(fixture.try_apply(&announces).await.unwrap().len(), 2);
        server.cli(&["DEL", &key(kind, 2)]);
        fixture.apply(&announces).await;
        assert_eq!(fixture.seeding(2).await, [(1, shown(-30))], "{kind}");
        assert_eq!(fixture.leeching(2).await, [(2, shown(-30))], "{kind}");
    }
}

#[tokio::test]
async fn a_wrong_typed_index_is_a_transient_error_with_its_name() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    server.cli(&["SET", "tracker:users:active", "something else"]);
    match fixture.try_apply(&[seeds(1, 1, -30)]).await {
        Err(ViewError::Transient { reason }) => assert!(reason.contains("tracker:users:active"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(fixture.activity.sweep().await, Err(ViewsError::WrongType { .. })));
    server.cli(&["DEL", "tracker:users:active"]);
    fixture.apply(&[seeds(1, 1, -30)]).await;
    assert_eq!(fixture.counts(1).await, (1, 0));
}

#[tokio::test]
async fn an_unreachable_full_or_read_only_redis_rejects_nothing() {
    let mut server = RedisServer::start();
    let fixture = fixture_on(&server);
    fixture.apply(&[seeds(1, 1, -30)]).await;
    let announces = [seeds(1, 1, -20), leeches(1, 2, -20)];
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(matches!(fixture.try_apply(&announces).await, Err(ViewError::Transient { .. })));
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    assert!(matches!(fixture.try_apply(&announces).await, Err(ViewError::Transient { .. })));
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    server.kill();
    assert!(matches!(fixture.try_apply(&announces).await, Err(ViewError::Transient { .. })));
    server.restart();
    // Redis has lost data and scripts; announces restore them.
    fixture.apply(&announces).await;
    assert_eq!(fixture.counts(1).await, (1, 1));
    assert_eq!(fixture.activity.counters().rejected.get(), 0);
}

#[tokio::test]
async fn a4_two_concurrent_sweeps_remove_each_report_once() {
    let server = RedisServer::start();
    let fixture = fixture_on(&server);
    let announces: Vec<_> = (0..400).map(|user| seeds(user, 1, 0)).collect();
    fixture.apply(&announces).await;
    fixture.wait(THRESHOLD);
    server.cli(&["ZADD", "tracker:users:active", "0", "no passkey"]);
    let other = on_redis(&server.url(), ActivitySettings::default(), Arc::new(fixture.clock.clone()));
    let (first, second) = tokio::join!(fixture.activity.sweep(), other.sweep());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(first.torrents + second.torrents <= 400);
    assert_eq!(keys_on(&server), [""; 0]);
}

/// Both consider themselves the only writer: neither overwrites the other with what it has in memory.
#[tokio::test]
async fn a2_of_two_writers_the_one_that_claimed_first_reads_again() {
    let server = RedisServer::start();
    let backends = [Backend::Redis(Box::new(server)), Backend::Cluster(Arc::new(RedisCluster::start()))];
    for backend in backends {
        let fixture = backend.fixture().await;
        let other = backend.open(ActivitySettings::default(), &fixture.clock).await;
        fixture.apply(&[seeds(1, 1, -50), seeds(1, 2, -50), leeches(1, 3, -50).by(1)]).await;
        let entries = [stops(1, 1, -40), leeches(1, 2, -40), seeds(1, 3, -40).by(2)];
        assert_eq!(apply(&other, &entries).await.unwrap(), []);
        // The first has the torrents as they were. A heartbeat of another client must not restore them.
        fixture.apply(&[seeds(1, 1, -45), leeches(1, 3, -30).by(1), seeds(1, 4, -30)]).await;
        let (seeding, leeching) = (fixture.seeding(1).await, fixture.leeching(1).await);
        assert_eq!(seeding, [(4, shown(-30)), (3, shown(-40))]);
        assert_eq!(leeching, [(2, shown(-40))]);
        assert_eq!(apply(&other, &[stops(1, 3, -20).by(2)]).await.unwrap(), []);
        assert_eq!(fixture.leeching(1).await, [(3, shown(-30)), (2, shown(-40))]);
        assert!(fixture.activity.times_superseded() > 0 && other.times_superseded() > 0);
    }
}

/// A write of a writer that was replaced meanwhile arrives late, such as after a suspension.
#[tokio::test]
async fn a_late_write_of_a_replaced_writer_is_not_executed() {
    let server = RedisServer::start();
    let cluster = RedisCluster::start();
    let urls = [server.url(), format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port())];
    for url in urls {
        let redis = Redis::new(RedisSettings::from_url(&url).unwrap()).unwrap();
        let set = |value: &str| vec![redis::cmd("SET").arg("{user}:list").arg(value).to_owned()];
        let read = redis::pipe().cmd("GET").arg("{user}:list").to_owned();
        let mut late = FencedSession::begin(&redis, "fence").await.unwrap();
        late.read(&read).await.unwrap();
        late.write(set("first")).await.unwrap();
        let mut next = FencedSession::begin(&redis, "fence").await.unwrap();
        let found = next.read(&read).await.unwrap().remove(0);
        assert_eq!(read_reply::<String>(found).unwrap(), "first");
        assert!(matches!(late.write(set("late")).await, Err(FenceError::Superseded)));
        next.write(set("second")).await.unwrap();
        next.write(set("third")).await.unwrap();
        // Redis loses what it had.
        let value: String = redis.query(redis::cmd("GET").arg("{user}:list")).await.unwrap();
        assert_eq!(value, "third");
        server.cli(&["FLUSHALL"]);
        (0..3).for_each(|node| drop(cluster.node(node).cli(&["FLUSHALL"])));
        assert!(matches!(next.write(set("fourth")).await, Err(FenceError::Superseded)));
    }
}

#[tokio::test]
async fn a1_on_a_cluster_keys_of_a_user_share_a_slot_and_users_are_distributed() {
    let cluster = RedisCluster::start();
    let backend = Backend::Cluster(Arc::new(cluster));
    let fixture = backend.fixture().await;
    let announces: Vec<_> = (0..60).map(|user| seeds(user, 1, -10)).collect();
    fixture.apply(&announces).await;
    fixture.apply(&announces.iter().map(|announce| leeches(announce.user, 2, -5)).collect::<Vec<_>>()).await;
    let Backend::Cluster(cluster) = &backend else { unreachable!("it is one") };
    let seed = format!("tracker:user:seed:{{{}}}", passkey(1));
    let leech = format!("tracker:user:leech:{{{}}}", passkey(1));
    assert_eq!(slot_of(seed.as_bytes()), slot_of(leech.as_bytes()));
    let expected = format!("{}\n{}", info_hash(1), shown(-10));
    assert_eq!(cluster.cli(&["ZREVRANGE", &seed, "0", "-1", "WITHSCORES"]), expected);
    assert_eq!(cluster.cli(&["ZREVRANGE", &leech, "0", "-1"]), info_hash(2).to_string());
    for node in 0..3 {
        let keys = keys_on(cluster.node(node)).len();
        assert!(keys > 20, "node {node} has {keys} of 240 keys");
    }
    assert_eq!(cluster.cli(&["ZCARD", "tracker:users:active"]), "60");
    // A damaged user does not affect others.
    cluster.cli(&["DEL", &seed]);
    cluster.cli(&["SET", &seed, "something else"]);
    let round: Vec<_> = (0..60).map(|user| seeds(user, 1, 0)).collect();
    let rejected = apply(&fixture.activity, &round).await.unwrap();
    assert_eq!(rejected.iter().map(|rejected| rejected.index).collect::<Vec<_>>(), [1]);
    assert_eq!(fixture.seeding(2).await, [(1, shown(0))]);
}
