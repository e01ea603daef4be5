//! The sweep repairs and counts differences; overdue peers are ended by an entry in the journal.

use domain::{AnnounceEvent, Cause, Seconds, TorrentId};
use journal::{EntryId, Lane, TrafficEntry};
use views::RedisMirrorSettings;
use views::redis_mirror::ReapTrigger;

use super::fixture::{Announce, Backend, Fixture, REAP, Snapshot, info_hash, leeches, peer_id, seeds};

async fn sweep_round(fixture: &Fixture) -> u64 {
    let mut repaired = 0;
    loop {
        let step = fixture.mirror.reconcile_step().await.unwrap();
        repaired += step.repaired;
        if step.is_round_complete {
            return repaired;
        }
    }
}

async fn journal_entries(fixture: &Fixture) -> Vec<TrafficEntry> {
    let stored = fixture.journal.list(Lane::Traffic, EntryId::ZERO, 1000).await.unwrap();
    stored.iter().map(|stored| TrafficEntry::parse(&stored.fields).unwrap()).collect()
}

fn two_torrents() -> Vec<Announce> {
    let population = (1..=6).flat_map(|user| [leeches(user, 1, 0), seeds(user, 2, 0)]);
    population.chain([leeches(1, 1, 10).completes(), leeches(2, 1, 20).stops()]).collect()
}

#[tokio::test]
async fn every_difference_is_repaired_and_counted() {
    for backend in [Backend::single(), Backend::cluster()] {
        let is_cluster = matches!(backend, Backend::Cluster(_));
        let spell = |single: String, cluster: String| if is_cluster { cluster } else { single };
        let fixture = Fixture::on(backend);
        fixture.apply(&two_torrents()).await;
        let right: Snapshot = fixture.backend.snapshot().await;
        assert_eq!(sweep_round(&fixture).await, 0, "no differences");

        let hash = info_hash(1);
        let counts = spell(format!("t:t:{hash}"), format!("t:t:{{1}}:{hash}"));
        let members = spell(format!("t:tpeers:{hash}"), format!("t:tpeers:{{1}}:{hash}"));
        let active = spell("t:u:3:active".to_owned(), "t:u:{3}:active".to_owned());
        let left_early = spell("t:u:2:hnr".to_owned(), "t:u:{2}:hnr".to_owned());
        let of_all = |name: &str| spell(format!("t:{name}"), format!("{{t}}:{name}"));
        for command in [
            &["HSET", &counts, "seeders", "77"][..],
            &["SADD", &members, "unknown"],
            &["SREM", &members, &peer_id(3001).to_string()],
            &["SREM", &active, "1"],
            &["DEL", &left_early],
            &["INCRBY", &of_all("stats:leechers"), "5"],
            &["ZADD", &of_all("i:snatches"), "9", "2"],
        ] {
            fixture.backend.cli(command);
            assert_ne!(fixture.backend.snapshot().await, right, "{command:?}");
            assert_eq!(sweep_round(&fixture).await, 1, "{command:?}");
            assert_eq!(fixture.backend.snapshot().await, right, "{command:?}");
        }
        fixture.backend.cli(&["DEL", &counts]);
        sweep_round(&fixture).await;
        assert_eq!(fixture.backend.snapshot().await, right, "after deletion of the counts");
        assert!(fixture.mirror.counters().repaired.get() >= 8);
        assert_eq!(sweep_round(&fixture).await, 0);
    }
}

#[tokio::test]
async fn m5_foreign_writes_to_a_peer_key_are_repaired() {
    let fixture = Fixture::on(Backend::single());
    fixture.apply(&two_torrents()).await;
    let key = format!("t:p:1:{}", peer_id(3001));
    let right = fixture.backend.snapshot().await;
    let breaks: [&[&str]; 4] = [
        &["DEL", &key],
        &["HSET", &key, "active", "0"],
        &["HSET", &key, "user_id", "x", "last_announce", "never", "total_time", "1e99"],
        &["HDEL", &key, "last_announce", "user_id"],
    ];
    for command in breaks {
        fixture.backend.cli(command);
        assert_eq!(sweep_round(&fixture).await, 1, "{command:?}");
        assert_eq!(fixture.backend.snapshot().await, right, "{command:?}");
    }
    fixture.backend.cli(&["HSET", &key, "user_id", "x", "last_announce", "1e99"]);
    fixture.clock.advance(Seconds(100));
    fixture.apply(&[leeches(3, 1, 100)]).await;
    assert_eq!(sweep_round(&fixture).await, 0, "rewritten by the announce");
}

#[tokio::test]
async fn m6_the_sweep_appends_one_timeout_entry_per_overdue_peer() {
    let fixture =
        Fixture::with(Backend::single(), RedisMirrorSettings { reconcile_torrents: 1, ..Default::default() });
    fixture
        .apply(&[
            leeches(1, 1, 0).transferring(5, 5, 5),
            seeds(2, 1, 200),
            leeches(3, 2, 0).fourteen_fields_only(),
        ])
        .await;
    fixture.clock.advance(Seconds(REAP));
    sweep_round(&fixture).await;
    assert_eq!(journal_entries(&fixture).await.len(), 0, "not yet overdue");
    fixture.clock.advance(Seconds(100));
    sweep_round(&fixture).await;
    fixture.catch_up();
    sweep_round(&fixture).await;
    let mut ended = journal_entries(&fixture).await;
    ended.sort_by_key(|entry| entry.user);
    assert_eq!(ended.len(), 2, "each once");
    for (entry, user) in ended.iter().zip([1, 3]) {
        assert_eq!((entry.event, entry.cause), (AnnounceEvent::Stopped, Cause::Timeout));
        assert_eq!((entry.uploaded_delta, entry.downloaded_delta, entry.totals), (0, 0, None));
        assert_eq!(
            (entry.at, entry.since_last),
            (fixture.start + Seconds(REAP), Some(Seconds(REAP))),
            "dated to the deadline"
        );
        assert_eq!(entry.user.map(domain::UserId::get), Some(user));
        assert_eq!(entry.passkey, Some(super::fixture::passkey(user)));
        assert_eq!(entry.torrent.map(TorrentId::get), Some(if user == 1 { 1 } else { 2 }));
    }
    assert_eq!(fixture.mirror.counters().reaped_by_sweep.get(), 2);
    // If the entry was lost, another one is appended after a while.
    fixture.catch_up();
    fixture.clock.advance(Seconds(40));
    sweep_round(&fixture).await;
    fixture.catch_up();
    sweep_round(&fixture).await;
    assert_eq!(journal_entries(&fixture).await.len(), 4);
}

#[tokio::test]
async fn m6_a_notification_ends_only_overdue_peers_and_only_with_the_lease() {
    let fixture = Fixture::on(Backend::single());
    fixture.apply(&[leeches(1, 1, 0), leeches(2, 1, 2000)]).await;
    fixture.clock.advance(Seconds(REAP));
    let torrent = TorrentId::new(1).unwrap();
    let all = [1001, 2001, 9999].map(|peer| (torrent, peer_id(peer)));
    assert_eq!(fixture.mirror.reap(&all, ReapTrigger::Notification).await.unwrap(), 1);
    assert_eq!(fixture.mirror.reap(&all, ReapTrigger::Notification).await.unwrap(), 0, "once");
    let ended = journal_entries(&fixture).await;
    assert_eq!(ended.iter().map(|entry| entry.peer_id).collect::<Vec<_>>(), [peer_id(1001)]);
    fixture.lease.lose();
    fixture.clock.advance(Seconds(REAP));
    assert_eq!(fixture.mirror.reap(&all, ReapTrigger::Notification).await.unwrap(), 0);
    assert_eq!(fixture.mirror.counters().reaped_by_message.get(), 1);
}

#[tokio::test]
async fn m6_a_peer_with_an_unread_announce_is_not_ended() {
    let fixture = Fixture::on(Backend::single());
    fixture.apply(&[leeches(1, 1, 0)]).await;
    fixture.clock.advance(Seconds(REAP + 100));
    let token = journal::AppendToken { producer: "population".to_owned(), number: 1 };
    let waiting = [leeches(1, 1, 1800).fields(fixture.start)];
    fixture.journal.append(Lane::Traffic, &waiting, &token).await.unwrap();
    let peer = [(TorrentId::new(1).unwrap(), peer_id(1001))];
    let timeout = format!("t:ptimeout:1:{}", peer_id(1001));
    fixture.backend.cli(&["DEL", &timeout]);
    assert_eq!(fixture.mirror.reap(&peer, ReapTrigger::Notification).await.unwrap(), 0);
    assert_eq!(fixture.mirror.counters().timeouts_deferred.get(), 1);
    assert_ne!(fixture.value_of(&timeout).await, [""; 0], "the timeout was renewed");
    fixture.catch_up();
    assert_eq!(fixture.mirror.reap(&peer, ReapTrigger::Notification).await.unwrap(), 1);
}

#[tokio::test]
async fn m6_a_timeout_entry_identifies_the_client_to_other_views() {
    let fixture = Fixture::on(Backend::single());
    let announce = Announce { has_totals: true, at: 7, ..leeches(1, 1, 0) };
    fixture.apply(&[announce]).await;
    fixture.clock.advance(Seconds(REAP + 10));
    sweep_round(&fixture).await;
    let [ended] = journal_entries(&fixture).await.try_into().unwrap();
    let expected = TrafficEntry::parse(&announce.fields(fixture.start)).unwrap();
    assert_eq!((ended.node, ended.totals, ended.key), (expected.node, expected.totals, expected.key));
    assert!(ended.totals.is_some() && ended.key.is_some() && ended.node.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_concurrent_timeouts_are_all_appended() {
    let fixture = Fixture::on(Backend::single());
    let population: Vec<Announce> = (1..=60).map(|user| leeches(user, user, 0)).collect();
    fixture.apply(&population).await;
    fixture.clock.advance(Seconds(REAP + 10));
    let tasks: Vec<_> = population
        .iter()
        .map(|announce| {
            let mirror = std::sync::Arc::clone(&fixture.mirror);
            let peer = (TorrentId::new(announce.torrent).unwrap(), peer_id(announce.peer));
            tokio::spawn(async move { mirror.reap(&[peer], ReapTrigger::Notification).await.unwrap() })
        })
        .collect();
    let mut reaped = 0;
    for task in tasks {
        reaped += task.await.unwrap();
    }
    assert!(reaped > 0);
    assert_eq!(journal_entries(&fixture).await.len() as u64, reaped, "every counted peer is in the journal");
}

#[tokio::test]
async fn m6_a_peer_expires_after_its_interval_and_the_grace() {
    let settings =
        RedisMirrorSettings { reap_after: Seconds(100), peer_grace: Seconds(10), ..Default::default() };
    let fixture = Fixture::with(Backend::single(), settings);
    fixture.apply(&[leeches(1, 1, 0)]).await;
    let timeout = fixture.value_of(&format!("t:ptimeout:1:{}", peer_id(1001))).await;
    assert_eq!(timeout[1], format!("until {}", fixture.start.0 + 1810), "interval 1800 + grace 10");
    fixture.clock.advance(Seconds(1800));
    sweep_round(&fixture).await;
    assert_eq!(journal_entries(&fixture).await.len(), 0);
    fixture.clock.advance(Seconds(11));
    sweep_round(&fixture).await;
    assert_eq!(journal_entries(&fixture).await.len(), 1);
}

#[tokio::test]
async fn a_repair_does_nothing_if_the_watermark_has_moved() {
    // A repair is applied only if the watermark has not moved since the keys were read.
    let fixture = Fixture::on(Backend::single());
    fixture.apply(&two_torrents()).await;
    let redis = fixture.backend.redis();
    let mut call = keyspace::scripts::REDIS_MIRROR_REPAIR.call(&["t:m:1", "t:tpeers:x"]);
    call.arg("1-1").arg(1).arg("SADD").arg(2).arg("unknown");
    assert_eq!(redis.query::<i64>(&call).await.unwrap(), -1);
    assert_eq!(fixture.value_of("t:tpeers:x").await, [""; 0]);
}
