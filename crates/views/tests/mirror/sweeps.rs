//! The sweep mends what somebody broke, and says how much; peers that fell silent end by an entry in the journal.

use domain::{AnnounceEvent, Cause, Seconds, TorrentId};
use journal::{EntryId, Lane, TrafficEntry};
use views::MirrorSettings;
use views::mirror::Found;

use super::rig::{Announce, Layout, Place, REAP, Rig, info_hash, leeches, peer_id, seeds};

async fn swept(rig: &Rig) -> u64 {
    let mut mended = 0;
    loop {
        let step = rig.mirror.reconcile_step().await.unwrap();
        mended += step.mended;
        if step.is_round_over {
            return mended;
        }
    }
}

async fn told(rig: &Rig) -> Vec<TrafficEntry> {
    let stored = rig.journal.list(Lane::Traffic, EntryId::ZERO, 1000).await.unwrap();
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
        let rig = Rig::on(place);
        rig.hear(&two_torrents()).await;
        let right: Layout = rig.place.layout().await;
        assert_eq!(swept(&rig).await, 0, "nothing to mend");

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
            rig.place.cli(command);
            assert_ne!(rig.place.layout().await, right, "{command:?}");
            assert_eq!(swept(&rig).await, 1, "{command:?}");
            assert_eq!(rig.place.layout().await, right, "{command:?}");
        }
        rig.place.cli(&["DEL", &counts]);
        swept(&rig).await;
        assert_eq!(rig.place.layout().await, right, "the counts are gone");
        assert!(rig.mirror.counters().mended >= 8);
        assert_eq!(swept(&rig).await, 0);
    }
}

#[tokio::test]
async fn a_peer_whose_key_is_gone_leaves_and_comes_back_by_its_next_announce() {
    let rig = Rig::on(Place::single());
    rig.hear(&two_torrents()).await;
    rig.place.cli(&["DEL", &format!("t:p:1:{}", peer_id(3001))]);
    assert!(swept(&rig).await > 0);
    let counts = rig.holds(&format!("t:t:{}", info_hash(1))).await;
    assert_eq!(counts, ["announces=8", "leechers=3", "seeders=1", "snatches=1"]);
    assert!(rig.holds("t:u:3:active").await == ["2"]);
    rig.hear(&[leeches(3, 1, 100)]).await;
    assert_eq!(swept(&rig).await, 0);
    assert!(rig.holds("t:u:3:active").await == ["1", "2"]);
}

#[tokio::test]
async fn m6_the_sweep_finds_silent_peers_and_ends_them_in_the_journal_once() {
    let rig = Rig::with(Place::single(), MirrorSettings { reconcile_torrents: 1, ..Default::default() });
    rig.hear(&[leeches(1, 1, 0).moving(5, 5, 5), seeds(2, 1, 100), leeches(3, 2, 0).foreign()]).await;
    rig.clock.advance(Seconds(REAP));
    swept(&rig).await;
    assert_eq!(told(&rig).await.len(), 0, "due now, and not before");
    rig.clock.advance(Seconds(1));
    swept(&rig).await;
    swept(&rig).await;
    let mut ended = told(&rig).await;
    ended.sort_by_key(|entry| entry.user);
    assert_eq!(ended.len(), 2, "each once");
    for (entry, user) in ended.iter().zip([1, 3]) {
        assert_eq!((entry.event, entry.cause), (AnnounceEvent::Stopped, Cause::Timeout));
        assert_eq!((entry.uploaded_delta, entry.downloaded_delta, entry.totals), (0, 0, None));
        assert_eq!(entry.since_last, Some(Seconds(REAP + 1)));
        assert_eq!(entry.user.map(domain::UserId::get), Some(user));
        assert_eq!(entry.passkey, Some(super::rig::passkey(user)));
        assert_eq!(entry.torrent.map(TorrentId::get), Some(if user == 1 { 1 } else { 2 }));
    }
    assert_eq!(rig.mirror.counters().reaped_by_sweep, 2);
    // Should the entry have got lost, it is written again after a while.
    rig.clock.advance(Seconds(40));
    swept(&rig).await;
    assert_eq!(told(&rig).await.len(), 4);
}

#[tokio::test]
async fn m6_a_message_ends_only_who_is_overdue_and_only_by_whoever_has_the_turn() {
    let rig = Rig::on(Place::single());
    rig.hear(&[leeches(1, 1, 0), leeches(2, 1, 2000)]).await;
    rig.clock.advance(Seconds(REAP));
    let torrent = TorrentId::new(1).unwrap();
    let all = [1001, 2001, 9999].map(|peer| (torrent, peer_id(peer)));
    assert_eq!(rig.mirror.reap(&all, Found::ByMessage).await.unwrap(), 1);
    assert_eq!(rig.mirror.reap(&all, Found::ByMessage).await.unwrap(), 0, "once");
    let ended = told(&rig).await;
    assert_eq!(ended.iter().map(|entry| entry.peer_id).collect::<Vec<_>>(), [peer_id(1001)]);
    rig.turn.lose();
    rig.clock.advance(Seconds(REAP));
    assert_eq!(rig.mirror.reap(&all, Found::ByMessage).await.unwrap(), 0);
    assert_eq!(rig.mirror.counters().reaped_by_message, 1);
}
