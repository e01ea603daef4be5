//! Single rules.

use domain::{AnnounceEvent, Cause};
use journal::{TrafficEntry, ViewError};
use views::RedisMirrorSettings;

use super::fixture::{Announce, Backend, Fixture, REAP, apply_to, info_hash, leeches, peer_id, seeds};
use super::model::{Model, assert_same};

const DAY_S: u32 = 24 * 60 * 60;

fn counts(announces: u32, leechers: u32, seeders: u32, snatches: u32) -> Vec<String> {
    vec![
        format!("announces={announces}"),
        format!("leechers={leechers}"),
        format!("seeders={seeders}"),
        format!("snatches={snatches}"),
    ]
}

fn torrent_key(torrent: u64) -> String {
    format!("t:t:{}", info_hash(torrent))
}

fn peer_key(announce: &Announce) -> String {
    format!("t:p:{}:{}", announce.torrent, peer_id(announce.peer))
}

/// Applies batches one after the other, and compares all keys with the model after each.
async fn apply_and_compare(fixture: &Fixture, batches: &[&[Announce]]) {
    let mut model = Model::default();
    for batch in batches {
        fixture.clock.advance(domain::Seconds(3000));
        for announce in *batch {
            model.apply(&TrafficEntry::parse(&announce.fields(fixture.start)).unwrap());
        }
        fixture.apply(batch).await;
        assert_same(&fixture.backend.snapshot().await, &model.snapshot());
    }
}

#[tokio::test]
async fn m4_to_m10_a_peer_from_start_to_stop() {
    let fixture = Fixture::on(Backend::single());
    let life = leeches(7, 42, 0);
    apply_and_compare(&fixture, &[&[life.event(AnnounceEvent::Started)]]).await;
    assert_eq!(fixture.value_of(&torrent_key(42)).await, counts(1, 1, 0, 0));
    assert_eq!(fixture.value_of("t:u:7:active").await, ["42"]);
    assert_eq!(fixture.value_of("t:u:7:incomplete").await, ["42"]);
    let timeout = fixture.value_of(&format!("t:ptimeout:42:{}", peer_id(7042))).await;
    assert_eq!(timeout, ["1".to_owned(), format!("until {}", fixture.start.0 + REAP)]);

    let heartbeat = Announce { at: 100, ..life.transferring(1000, 2550, 100) };
    fixture.apply(&[heartbeat]).await;
    let peer = fixture.value_of(&peer_key(&life)).await;
    for word in ["speed_up=10", "speed_dn=25.5", "completed=0", "active=1", "total_time=100", "user_id=7"] {
        assert!(peer.contains(&word.to_owned()), "{word} in {peer:?}");
    }

    fixture.apply(&[Announce { at: 200, ..life.completes() }]).await;
    assert_eq!(fixture.value_of(&torrent_key(42)).await, counts(3, 0, 1, 1));
    assert_eq!(fixture.value_of("t:u:7:complete").await, ["42"]);
    assert_eq!(fixture.value_of("t:u:7:incomplete").await, [""; 0]);
    assert_eq!(fixture.value_of("t:i:seeders").await, ["42=1"]);
    assert_eq!(fixture.value_of("t:stats:seeders").await, ["1"]);

    fixture.apply(&[Announce { at: 300, ..seeds(7, 42, 0).stops() }]).await;
    assert_eq!(fixture.value_of(&torrent_key(42)).await, counts(4, 0, 0, 1));
    assert_eq!(fixture.value_of("t:u:7:active").await, [""; 0]);
    assert_eq!(fixture.value_of("t:u:7:hnr").await, ["42"], "active for five minutes of fourteen days");
    assert_eq!(fixture.value_of(&format!("t:ptimeout:42:{}", peer_id(7042))).await, [""; 0]);
    assert_eq!(fixture.value_of(&format!("t:tpeers:{}", info_hash(42))).await, [""; 0]);
    assert_eq!(fixture.value_of(&format!("t:p:{}:torrents", peer_id(7042))).await, [""; 0]);
    assert_eq!(fixture.value_of("t:stats:announces").await, ["4"]);

    fixture.apply(&[seeds(7, 42, 400)]).await;
    assert_eq!(fixture.value_of("t:u:7:hnr").await, [""; 0], "active again");
    assert_eq!(fixture.mirror.counters().applied.get(), 5);
}

#[tokio::test]
async fn the_later_announce_wins_in_any_order() {
    let fixture = Fixture::on(Backend::single());
    let life = leeches(1, 1, 500);
    apply_and_compare(
        &fixture,
        &[
            &[life, seeds(1, 1, 400), seeds(1, 1, 499).stops()],
            &[life.times_out(1), Announce { at: 3000, ..life.times_out(2600) }],
            &[Announce { at: 3000, ..life.times_out(2500) }, seeds(1, 1, 600).completes()],
            &[Announce { cause: Cause::Removal, ..seeds(1, 1, 599).stops() }],
            &[Announce { cause: Cause::Removal, ..seeds(1, 1, 601).stops() }],
            // Unknown peers.
            &[leeches(2, 1, 10).times_out(5), leeches(3, 1, 10).stops(), leeches(2, 2, 9).times_out(9)],
        ],
    )
    .await;
}

#[tokio::test]
async fn m8_two_clients_of_a_user_count_as_one_user_and_an_uploader_is_no_hit_and_run() {
    let settings =
        RedisMirrorSettings { hit_and_run_active: domain::Seconds(DAY_S), ..RedisMirrorSettings::default() };
    let fixture = Fixture::with(Backend::single(), settings);
    fixture.apply(&[seeds(1, 1, 0), leeches(2, 1, 0), leeches(2, 1, 0).by(99), leeches(3, 1, 0)]).await;
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(4, 3, 1, 0));
    fixture.apply(&[leeches(2, 1, 10).stops(), seeds(1, 1, 10).stops()]).await;
    assert_eq!(fixture.value_of("t:u:2:active").await, ["1"], "the other client is still active");
    assert_eq!(fixture.value_of("t:u:2:hnr").await, [""; 0]);
    assert_eq!(fixture.value_of("t:u:1:hnr").await, [""; 0], "it never leeched");
    fixture.apply(&[leeches(2, 1, 20).by(99).stops()]).await;
    assert_eq!(fixture.value_of("t:u:2:hnr").await, ["1"]);
    assert_eq!(fixture.value_of("t:u:2:incomplete").await, ["1"]);
    // Long enough for no hit and run.
    let hours: Vec<Announce> = (1..=50).map(|half| leeches(3, 1, half * 1800)).collect();
    fixture.clock.advance(domain::Seconds(50 * 1800));
    fixture.apply(&hours).await;
    fixture.apply(&[leeches(3, 1, 50 * 1800).stops()]).await;
    assert_eq!(fixture.value_of("t:u:3:hnr").await, [""; 0]);
    // Another user under the same peer id replaces the first.
    fixture.apply(&[seeds(4, 1, 50 * 1800).by(99)]).await;
    fixture.apply(&[seeds(5, 1, 50 * 1800 + 1).by(99), seeds(4, 1, 50 * 1800 + 2).by(99).stops()]).await;
    assert_eq!(fixture.value_of("t:u:4:active").await, [""; 0]);
    assert_eq!(fixture.value_of("t:u:5:active").await, ["1"]);
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(61, 0, 1, 0));
}

#[tokio::test]
async fn a_repeated_batch_counts_once() {
    for backend in [Backend::single(), Backend::cluster()] {
        let fixture = Fixture::on(backend);
        fixture.clock.advance(domain::Seconds(90));
        let announces: Vec<Announce> = (1..=20)
            .flat_map(|user| [leeches(user, user % 3 + 1, 0), leeches(user, user % 5 + 1, 60).completes()])
            .chain((1..=20).step_by(3).map(|user| leeches(user, user % 3 + 1, 90).stops()))
            .collect();
        let mut model = Model::default();
        for announce in &announces {
            model.apply(&TrafficEntry::parse(&announce.fields(fixture.start)).unwrap());
        }
        let arrivals = fixture.arrivals(&announces);
        // The first attempt loses the lease after the first phase: users and indexes are not written yet.
        fixture.lease.lose();
        assert!(matches!(fixture.try_apply(&arrivals).await, Err(ViewError::Fenced)));
        assert_eq!(fixture.value_of("t:u:1:active").await, [""; 0]);
        let other = fixture.another();
        for _ in 0..3 {
            apply_to(&other, &arrivals).await.unwrap();
            assert_same(&fixture.backend.snapshot().await, &model.snapshot());
        }
        // In other batches, and only a part.
        apply_to(&other, &arrivals[10..30]).await.unwrap();
        assert_same(&fixture.backend.snapshot().await, &model.snapshot());
        assert_eq!(other.counters().applied.get(), 0);
        assert_eq!(other.counters().repeated.get(), 3 * 47 + 20);
    }
}

#[tokio::test]
async fn j3_entries_of_other_producers_are_resolved_and_unknown_ones_skipped() {
    let fixture = Fixture::on(Backend::single());
    let unknown_user = Announce { user: 5000, ..leeches(1, 1, 0).fourteen_fields_only() };
    let nothing = Announce { torrent: 5000, ..leeches(1, 1, 0).fourteen_fields_only() };
    let ahead = leeches(1, 1, 1000);
    fixture.apply(&[leeches(7, 1, 0).fourteen_fields_only(), unknown_user, nothing, ahead]).await;
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(1, 1, 0, 0));
    assert_eq!(fixture.value_of("t:u:7:active").await, ["1"]);
    let counters = fixture.mirror.counters();
    assert_eq!(
        (counters.unknown_user.get(), counters.unknown_torrent.get(), counters.ahead.get()),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn a_wrong_typed_key_affects_its_torrent_only() {
    let fixture = Fixture::on(Backend::single());
    fixture.backend.cli(&["SET", &torrent_key(1), "mine"]);
    fixture.backend.cli(&["SET", "t:u:2:active", "mine"]);
    fixture.apply(&[leeches(1, 1, 0), leeches(2, 2, 0)]).await;
    assert_eq!(fixture.value_of(&torrent_key(2)).await, counts(1, 1, 0, 0));
    assert_eq!(fixture.value_of("t:u:2:incomplete").await, ["2"]);
    let counters = fixture.mirror.counters();
    assert_eq!((counters.applied.get(), counters.damaged.get(), counters.damaged_sets.get()), (1, 1, 1));
    // Damage of a global key is a transient error.
    fixture.backend.cli(&["RENAME", "t:i:seeders", "kept"]);
    fixture.backend.cli(&["SET", "t:i:seeders", "many"]);
    let arrivals = fixture.arrivals(&[seeds(3, 3, 0)]);
    assert!(matches!(fixture.try_apply(&arrivals).await, Err(ViewError::Transient { .. })));
    fixture.backend.cli(&["RENAME", "kept", "t:i:seeders"]);
    fixture.backend.cli(&["SET", "t:stats:seeders", "many"]);
    assert!(matches!(fixture.try_apply(&arrivals).await, Err(ViewError::Transient { .. })));
    fixture.backend.cli(&["DEL", "t:stats:seeders"]);
    fixture.try_apply(&arrivals).await.unwrap();
    assert_eq!(fixture.value_of("t:i:seeders").await, ["2=0", "3=1"]);
}

#[tokio::test]
async fn more_entries_of_one_torrent_than_one_script_call() {
    let fixture = Fixture::on(Backend::single());
    let announces: Vec<Announce> = (1..=900).map(|user| leeches(user, 1, 0)).collect();
    fixture.apply(&announces).await;
    fixture.apply(&announces.iter().map(|announce| announce.stops()).collect::<Vec<_>>()).await;
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(1800, 0, 0, 0));
    assert_eq!(fixture.value_of("t:stats:leechers").await, ["0"]);
}

#[tokio::test]
async fn m5_two_users_under_one_peer_id_are_counted_separately() {
    let fixture = Fixture::on(Backend::single());
    let (one, other) = (leeches(1, 1, 0).by(77), seeds(2, 1, 0).by(77));
    let at = |at: u32, announce: Announce| Announce { at, ..announce };
    apply_and_compare(
        &fixture,
        &[
            &[one, at(10, other), at(600, one)],
            &[at(1200, other), at(1300, one), at(1310, leeches(3, 1, 0).by(77).stops())],
            &[at(1400, one.stops())],
            &[at(1500, other.times_out(300)), at(1600, one)],
        ],
    )
    .await;
    // Repeated entries return their users again.
    let arrivals = fixture.arrivals(&[at(1700, other), at(1710, one)]);
    fixture.try_apply(&arrivals).await.unwrap();
    let right = fixture.backend.snapshot().await;
    fixture.backend.cli(&["DEL", "t:u:1:active", "t:u:2:active"]);
    fixture.try_apply(&arrivals).await.unwrap();
    assert_same(&fixture.backend.snapshot().await, &right);
}

#[tokio::test]
async fn malformed_values_affect_their_torrent_only() {
    let fixture = Fixture::on(Backend::single());
    fixture.clock.advance(domain::Seconds(90));
    fixture.apply(&[leeches(1, 1, 0), seeds(2, 2, 0)]).await;
    fixture.backend.cli(&[
        "HSET",
        &torrent_key(1),
        "seeders",
        "many",
        "leechers",
        "-5",
        "announces",
        "1e400",
    ]);
    let peer = peer_key(&leeches(1, 1, 0));
    fixture.backend.cli(&["HDEL", &peer, "last_announce", "user_id"]);
    fixture.backend.cli(&["HSET", &peer, "total_time", "for ever", "first_announce", "inf"]);
    fixture.backend.cli(&["HSET", &peer_key(&leeches(3, 1, 0)), "active", "1", "user_id", "x"]);
    fixture.apply(&[leeches(1, 1, 60), leeches(3, 1, 60), seeds(2, 2, 60)]).await;
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(3, 2, 0, 0));
    assert_eq!(fixture.value_of(&torrent_key(2)).await, counts(2, 0, 1, 0));
    assert!(fixture.value_of(&peer).await.contains(&"total_time=60".to_owned()));
    // A wrong type of the state key: the torrent's entries are skipped and counted.
    fixture.backend.cli(&["DEL", "t:m:1"]);
    fixture.backend.cli(&["SET", "t:m:1", "mine"]);
    fixture.apply(&[leeches(1, 1, 90), seeds(2, 2, 90)]).await;
    assert_eq!(fixture.mirror.counters().damaged.get(), 1);
    assert_eq!(fixture.value_of(&torrent_key(2)).await, counts(3, 0, 1, 0));
    let peer = (domain::TorrentId::new(1).unwrap(), peer_id(1001));
    assert_eq!(
        fixture.mirror.reap(&[peer], views::redis_mirror::ReapTrigger::Notification).await.unwrap(),
        0
    );
    assert!(fixture.mirror.reconcile_step().await.is_ok());
}

#[tokio::test]
async fn m8_stopped_without_left_keeps_the_completeness() {
    let fixture = Fixture::on(Backend::single());
    let unknown = |announce: Announce| Announce { left: u64::MAX, ..announce.stops() };
    apply_and_compare(
        &fixture,
        &[&[seeds(1, 1, 0), leeches(2, 1, 0)], &[unknown(seeds(1, 1, 10)), unknown(seeds(2, 1, 10))]],
    )
    .await;
    assert_eq!(fixture.value_of("t:u:1:complete").await, ["1"]);
    assert_eq!(fixture.value_of("t:u:1:hnr").await, [""; 0], "it never leeched");
    assert!(fixture.value_of(&peer_key(&seeds(1, 1, 0))).await.contains(&"completed=1".to_owned()));
}

#[tokio::test]
async fn ids_beyond_lua_numbers_are_distinguished() {
    let fixture = Fixture::on(Backend::single());
    let mut arrivals = fixture.arrivals(&[leeches(1, 1, 0), leeches(1, 1, 1), leeches(1, 1, 2)]);
    let seqs = [u64::MAX - 2, u64::MAX - 1, u64::MAX];
    for (arrival, seq) in arrivals.iter_mut().zip(seqs) {
        arrival.id = journal::EntryId { ms: 9_007_199_254_740_993, seq };
    }
    for arrival in &arrivals {
        fixture.try_apply(std::slice::from_ref(arrival)).await.unwrap();
    }
    fixture.try_apply(&arrivals).await.unwrap();
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(3, 1, 0, 0));
    assert_eq!((fixture.mirror.counters().applied.get(), fixture.mirror.counters().repeated.get()), (3, 3));
}

#[tokio::test]
async fn entries_below_the_watermark_of_another_journal_are_applied() {
    let fixture = Fixture::on(Backend::single());
    let mut before = fixture.arrivals(&[leeches(1, 1, 0), leeches(2, 2, 0)]);
    for arrival in &mut before {
        arrival.id.ms = 9_000_000_000_000;
    }
    fixture.try_apply(&before).await.unwrap();
    let announce = seeds(3, 1, 10);
    let token = journal::AppendToken { producer: "population".to_owned(), number: 1 };
    fixture.journal.append(journal::Lane::Traffic, &[announce.fields(fixture.start)], &token).await.unwrap();
    let stored = fixture.journal.list(journal::Lane::Traffic, journal::EntryId::ZERO, 1).await.unwrap();
    let mut arrivals = fixture.arrivals(&[announce]);
    arrivals[0].id = stored[0].id;
    assert!(matches!(fixture.try_apply(&arrivals).await, Err(ViewError::Transient { .. })));
    for _ in 0..2 {
        fixture.try_apply(&arrivals).await.unwrap();
        assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(2, 1, 1, 0));
    }
    assert_eq!(fixture.mirror.counters().watermarks_reset.get(), 1);
}

/// Both consider themselves the only writer, and apply what they read in turn: each entry counts once, and neither
/// overwrites the other with what it has in memory.
#[tokio::test]
async fn two_writers_that_both_hold_the_lease_end_as_one() {
    for backend in [Backend::single(), Backend::cluster()] {
        let fixture = Fixture::on(backend);
        let other = fixture.another();
        let mut model = Model::default();
        for round in 0..12_u32 {
            fixture.clock.advance(domain::Seconds(60));
            let at = round * 60;
            let batch: Vec<Announce> = (1..=12)
                .map(|user| match (user + u64::from(round)) % 4 {
                    0 => Announce { at, ..leeches(user, user % 3 + 1, 0).stops() },
                    1 => Announce { at, ..leeches(user, user % 3 + 1, 0).completes() },
                    _ => Announce { at, dt: 60, ..leeches(user, user % 3 + 1, 0) },
                })
                .collect();
            for announce in &batch {
                model.apply(&TrafficEntry::parse(&announce.fields(fixture.start)).unwrap());
            }
            let arrivals = fixture.arrivals(&batch);
            // The first is replaced after a part of the batch, and repeats the whole of it.
            fixture.try_apply(&arrivals[..7]).await.unwrap();
            apply_to(&other, &arrivals).await.unwrap();
            fixture.try_apply(&arrivals).await.unwrap();
            assert_same(&fixture.backend.snapshot().await, &model.snapshot());
        }
        let superseded = (fixture.mirror.counters().superseded.get(), other.counters().superseded.get());
        assert!(superseded.0 > 0 && superseded.1 > 0, "{superseded:?}");
    }
}

#[tokio::test]
async fn a_redis_that_lost_its_data_is_read_again() {
    let fixture = Fixture::on(Backend::single());
    fixture.apply(&[leeches(1, 1, 0), seeds(2, 1, 0)]).await;
    fixture.backend.cli(&["FLUSHALL"]);
    fixture.apply(&[leeches(1, 1, 30)]).await;
    assert_eq!(fixture.value_of(&torrent_key(1)).await, counts(1, 1, 0, 0));
    assert_eq!(fixture.value_of("t:u:1:active").await, ["1"]);
    assert_eq!(fixture.value_of("t:stats:leechers").await, ["1"]);
}
