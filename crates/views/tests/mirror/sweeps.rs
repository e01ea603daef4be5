//! The sweep mends what somebody broke, and says how much; peers that fell silent end by an entry in the journal.

use domain::{AnnounceEvent, Cause, Seconds, TorrentId};
use journal::{EntryId, Lane, TrafficEntry};
use views::MirrorSettings;
use views::mirror::ReapTrigger;

use super::fixture::{Announce, Fixture, Layout, Place, REAP, info_hash, leeches, peer_id, seeds};

async fn swept(fixture: &Fixture) -> u64 {
    let mut mended = 0;
    loop {
        let step = fixture.mirror.reconcile_step().await.unwrap();
        mended += step.repaired;
        if step.is_round_complete {
            return mended;
        }
    }
}

async fn told(fixture: &Fixture) -> Vec<TrafficEntry> {
    let stored = fixture.journal.list(Lane::Traffic, EntryId::ZERO, 1000).await.unwrap();
    stored.iter().map(|stored| TrafficEntry::parse(&stored.fields).unwrap()).collect()
}

fn two_torrents() -> Vec<Announce> {
    let crowd = (1..=6).flat_map(|user| [leeches(user, 1, 0), seeds(user, 2, 0)]);
    crowd.chain([leeches(1, 1, 10).completes(), leeches(2, 1, 20).stops()]).collect()
}

#[tokio::test]
async fn whatever_is_broken_is_mended_and_counted() {
    for place in [Place::single(), Place::cluster()] {
        let is_cluster = matches!(place, Place::Cluster(_));
        let spell = |single: String, cluster: String| if is_cluster { cluster } else { single };
        let fixture = Fixture::on(place);
        fixture.hear(&two_torrents()).await;
        let right: Layout = fixture.place.layout().await;
        assert_eq!(swept(&fixture).await, 0, "nothing to mend");

        let hash = info_hash(1);
        let counts = spell(format!("t:t:{hash}"), format!("t:t:{{1}}:{hash}"));
        let members = spell(format!("t:tpeers:{hash}"), format!("t:tpeers:{{1}}:{hash}"));
        let active = spell("t:u:3:active".to_owned(), "t:u:{3}:active".to_owned());
        let left_early = spell("t:u:2:hnr".to_owned(), "t:u:{2}:hnr".to_owned());
        let of_all = |name: &str| spell(format!("t:{name}"), format!("{{t}}:{name}"));
        for command in [
            &["HSET", &counts, "seeders", "77"][..],
            &["SADD", &members, "somebody"],
            &["SREM", &members, &peer_id(3001).to_string()],
            &["SREM", &active, "1"],
            &["DEL", &left_early],
            &["INCRBY", &of_all("stats:leechers"), "5"],
            &["ZADD", &of_all("i:snatches"), "9", "2"],
        ] {
            fixture.place.cli(command);
            assert_ne!(fixture.place.layout().await, right, "{command:?}");
            assert_eq!(swept(&fixture).await, 1, "{command:?}");
            assert_eq!(fixture.place.layout().await, right, "{command:?}");
        }
        fixture.place.cli(&["DEL", &counts]);
        swept(&fixture).await;
        assert_eq!(fixture.place.layout().await, right, "the counts are gone");
        assert!(fixture.mirror.counters().repaired >= 8);
        assert_eq!(swept(&fixture).await, 0);
    }
}

#[tokio::test]
async fn m5_what_others_wrote_into_the_key_of_a_peer_harms_nobody_and_is_mended() {
    let fixture = Fixture::on(Place::single());
    fixture.hear(&two_torrents()).await;
    let key = format!("t:p:1:{}", peer_id(3001));
    let right = fixture.place.layout().await;
    let breaks: [&[&str]; 4] = [
        &["DEL", &key],
        &["HSET", &key, "active", "0"],
        &["HSET", &key, "user_id", "x", "last_announce", "never", "total_time", "1e99"],
        &["HDEL", &key, "last_announce", "user_id"],
    ];
    for command in breaks {
        fixture.place.cli(command);
        assert_eq!(swept(&fixture).await, 1, "{command:?}");
        assert_eq!(fixture.place.layout().await, right, "{command:?}");
    }
    fixture.place.cli(&["HSET", &key, "user_id", "x", "last_announce", "1e99"]);
    fixture.clock.advance(Seconds(100));
    fixture.hear(&[leeches(3, 1, 100)]).await;
    assert_eq!(swept(&fixture).await, 0, "an announce writes it anew");
}

#[tokio::test]
async fn m6_the_sweep_finds_silent_peers_and_ends_them_in_the_journal_once() {
    let fixture =
        Fixture::with(Place::single(), MirrorSettings { reconcile_torrents: 1, ..Default::default() });
    fixture.hear(&[leeches(1, 1, 0).moving(5, 5, 5), seeds(2, 1, 200), leeches(3, 2, 0).foreign()]).await;
    fixture.clock.advance(Seconds(REAP));
    swept(&fixture).await;
    assert_eq!(told(&fixture).await.len(), 0, "due now, and not before");
    fixture.clock.advance(Seconds(100));
    swept(&fixture).await;
    fixture.catch_up();
    swept(&fixture).await;
    let mut ended = told(&fixture).await;
    ended.sort_by_key(|entry| entry.user);
    assert_eq!(ended.len(), 2, "each once");
    for (entry, user) in ended.iter().zip([1, 3]) {
        assert_eq!((entry.event, entry.cause), (AnnounceEvent::Stopped, Cause::Timeout));
        assert_eq!((entry.uploaded_delta, entry.downloaded_delta, entry.totals), (0, 0, None));
        assert_eq!(
            (entry.at, entry.since_last),
            (fixture.start + Seconds(REAP), Some(Seconds(REAP))),
            "then, not now"
        );
        assert_eq!(entry.user.map(domain::UserId::get), Some(user));
        assert_eq!(entry.passkey, Some(super::fixture::passkey(user)));
        assert_eq!(entry.torrent.map(TorrentId::get), Some(if user == 1 { 1 } else { 2 }));
    }
    assert_eq!(fixture.mirror.counters().reaped_by_sweep, 2);
    // Should the entry have got lost, it is written again after a while.
    fixture.catch_up();
    fixture.clock.advance(Seconds(40));
    swept(&fixture).await;
    fixture.catch_up();
    swept(&fixture).await;
    assert_eq!(told(&fixture).await.len(), 4);
}

#[tokio::test]
async fn m6_a_message_ends_only_who_is_overdue_and_only_by_whoever_has_the_turn() {
    let fixture = Fixture::on(Place::single());
    fixture.hear(&[leeches(1, 1, 0), leeches(2, 1, 2000)]).await;
    fixture.clock.advance(Seconds(REAP));
    let torrent = TorrentId::new(1).unwrap();
    let all = [1001, 2001, 9999].map(|peer| (torrent, peer_id(peer)));
    assert_eq!(fixture.mirror.reap(&all, ReapTrigger::Notification).await.unwrap(), 1);
    assert_eq!(fixture.mirror.reap(&all, ReapTrigger::Notification).await.unwrap(), 0, "once");
    let ended = told(&fixture).await;
    assert_eq!(ended.iter().map(|entry| entry.peer_id).collect::<Vec<_>>(), [peer_id(1001)]);
    fixture.turn.lose();
    fixture.clock.advance(Seconds(REAP));
    assert_eq!(fixture.mirror.reap(&all, ReapTrigger::Notification).await.unwrap(), 0);
    assert_eq!(fixture.mirror.counters().reaped_by_message, 1);
}

#[tokio::test]
async fn m6_nobody_is_silent_whose_word_may_still_be_on_its_way() {
    let fixture = Fixture::on(Place::single());
    fixture.hear(&[leeches(1, 1, 0)]).await;
    fixture.clock.advance(Seconds(REAP + 100));
    let token = journal::AppendToken { producer: "crowd".to_owned(), number: 1 };
    let waiting = [leeches(1, 1, 1800).fields(fixture.start)];
    fixture.journal.append(Lane::Traffic, &waiting, &token).await.unwrap();
    let peer = [(TorrentId::new(1).unwrap(), peer_id(1001))];
    let timeout = format!("t:ptimeout:1:{}", peer_id(1001));
    fixture.place.cli(&["DEL", &timeout]);
    assert_eq!(fixture.mirror.reap(&peer, ReapTrigger::Notification).await.unwrap(), 0);
    assert_eq!(fixture.mirror.counters().timeouts_deferred, 1);
    assert_ne!(fixture.holds(&timeout).await, [""; 0], "another message will come");
    fixture.catch_up();
    assert_eq!(fixture.mirror.reap(&peer, ReapTrigger::Notification).await.unwrap(), 1);
}

#[tokio::test]
async fn m6_the_end_of_a_client_bears_what_the_other_views_know_it_by() {
    let fixture = Fixture::on(Place::single());
    let heard = Announce { has_totals: true, at: 7, ..leeches(1, 1, 0) };
    fixture.hear(&[heard]).await;
    fixture.clock.advance(Seconds(REAP + 10));
    swept(&fixture).await;
    let [ended] = told(&fixture).await.try_into().unwrap();
    let said = TrafficEntry::parse(&heard.fields(fixture.start)).unwrap();
    assert_eq!((ended.node, ended.totals, ended.key), (said.node, said.totals, said.key));
    assert!(ended.totals.is_some() && ended.key.is_some() && ended.node.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_peers_that_are_ended_at_the_same_time_are_all_ended() {
    let fixture = Fixture::on(Place::single());
    let crowd: Vec<Announce> = (1..=60).map(|user| leeches(user, user, 0)).collect();
    fixture.hear(&crowd).await;
    fixture.clock.advance(Seconds(REAP + 10));
    let tasks: Vec<_> = crowd
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
    assert_eq!(told(&fixture).await.len() as u64, reaped, "whatever is counted is in the journal");
}

#[tokio::test]
async fn m6_a_peer_is_waited_for_as_long_as_it_was_told_to_stay_away() {
    let settings = MirrorSettings { reap_after: Seconds(100), peer_grace: Seconds(10), ..Default::default() };
    let fixture = Fixture::with(Place::single(), settings);
    fixture.hear(&[leeches(1, 1, 0)]).await;
    let timeout = fixture.holds(&format!("t:ptimeout:1:{}", peer_id(1001))).await;
    assert_eq!(timeout[1], format!("until {}", fixture.start.0 + 1810), "the entry says 1800");
    fixture.clock.advance(Seconds(1800));
    swept(&fixture).await;
    assert_eq!(told(&fixture).await.len(), 0);
    fixture.clock.advance(Seconds(11));
    swept(&fixture).await;
    assert_eq!(told(&fixture).await.len(), 1);
}

#[tokio::test]
async fn a_mirror_that_lost_its_turn_long_ago_is_not_undone_by_a_sweep() {
    // What is mended is mended only if nothing was applied since it was looked at: the script looks at the watermark.
    let fixture = Fixture::on(Place::single());
    fixture.hear(&two_torrents()).await;
    let redis = fixture.place.redis();
    let mut call = keyspace::scripts::MIRROR_REPAIR.call(&["t:m:1", "t:tpeers:x"]);
    call.arg("1-1").arg(1).arg("SADD").arg(2).arg("somebody");
    assert_eq!(redis.query::<i64>(&call).await.unwrap(), -1);
    assert_eq!(fixture.holds("t:tpeers:x").await, [""; 0]);
}
