//! Rankings without a server.

use std::collections::BTreeSet;

use super::*;

fn ranked(id: u64, seeders: u32) -> Ranked {
    let counts = SwarmCounts { seeders, leechers: seeders % 3, snatches: 0 };
    Ranked { id: TorrentId::new(id).unwrap(), counts }
}

fn request(by: RankedBy, descending: bool, limit: usize) -> PageRequest<'static> {
    PageRequest { by, descending, after: None, among: None, limit }
}

/// Torrent ids of all pages.
fn walk(ranking: &Ranking, mut request: PageRequest<'_>) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let page = ranking.page(&request);
        assert!(page.torrents.len() <= request.limit);
        seen.extend(page.torrents.iter().map(|one| one.id.get()));
        match page.next {
            Some(next) => request.after = Some(next),
            None => return seen,
        }
    }
}

#[test]
fn pages_are_contiguous_for_any_size_and_ties_are_broken_by_id() {
    let torrents: Vec<Ranked> = (1..=100).map(|id| ranked(id, (id % 7) as u32)).collect();
    let ranking = Ranking::new(5, torrents.clone(), true);
    let mut expected: Vec<(u32, u64)> =
        torrents.iter().map(|one| (one.counts.seeders, one.id.get())).collect();
    expected.sort_unstable();
    let ascending: Vec<u64> = expected.iter().map(|(_, id)| *id).collect();
    let descending: Vec<u64> = ascending.iter().rev().copied().collect();
    for limit in [1, 3, 50, 99, 100, 101] {
        assert_eq!(walk(&ranking, request(RankedBy::Seeders, false, limit)), ascending, "{limit}");
        assert_eq!(walk(&ranking, request(RankedBy::Seeders, true, limit)), descending, "{limit}");
    }
    // No completions: sorted by id.
    assert_eq!(walk(&ranking, request(RankedBy::Snatches, false, 9)), (1..=100).collect::<Vec<_>>());
    let among: HashSet<TorrentId> = (1..=200).step_by(10).filter_map(TorrentId::new).collect();
    let found = walk(&ranking, PageRequest { among: Some(&among), ..request(RankedBy::Seeders, true, 3) });
    let those: Vec<u64> = descending.into_iter().filter(|id| id % 10 == 1).collect();
    assert_eq!(found, those);
}

#[test]
fn a_cursor_that_was_never_issued_is_accepted() {
    let ranking = Ranking::new(5, (1..=10).map(|id| ranked(id, id as u32)).collect(), true);
    let from = |value: i64, id: u64, descending: bool| {
        let after = Some(RankingCursor { made_ms: 1, value, id: TorrentId::new(id).unwrap() });
        let page = ranking.page(&PageRequest { after, ..request(RankedBy::Seeders, descending, 3) });
        page.torrents.iter().map(|one| one.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(from(5, 99, false), [6, 7, 8]);
    assert_eq!(from(5, 99, true), [5, 4, 3]);
    assert_eq!(from(5, 1, true), [4, 3, 2]);
    assert_eq!(from(i64::MAX, 1, false), [0_u64; 0]);
    assert_eq!(from(i64::MAX, 1, true), [10, 9, 8]);
    assert_eq!(from(0, 1, true), [0_u64; 0]);
}

#[test]
fn an_empty_ranking_has_an_empty_page() {
    let ranking = Ranking::new(5, Vec::new(), true);
    assert!(ranking.is_empty());
    assert_eq!(walk(&ranking, request(RankedBy::Leechers, true, 10)), [0_u64; 0]);
}

/// Adds a ranking that is fresh for a second.
fn add_to(rankings: &Rankings, torrents: Vec<Ranked>, now_ms: u64) -> Arc<Ranking> {
    let cache = &rankings.cache;
    cache.add(Ranking::new(cache.unused_ms(now_ms), torrents, true), 1000, now_ms)
}

#[tokio::test]
async fn rankings_with_issued_cursors_stay_cached_within_bounds() {
    let rankings = Rankings::new(RankingSource::of(Arc::default(), None, None));
    let add = |ms: u64| add_to(&rankings, Vec::new(), ms);
    let first = add(1000);
    assert_eq!(rankings.for_cursor(None, None, 1999).await.unwrap().made_ms, 1000, "recent enough");
    let cursor = RankingCursor { made_ms: first.made_ms, value: 0, id: TorrentId::new(1).unwrap() };
    rankings.keep(&first);
    (2..10).for_each(|second| drop(add(second * 1000)));
    assert_eq!(rankings.for_cursor(Some(cursor), None, 10_000).await.unwrap().made_ms, 1000);
    assert_eq!(rankings.cache.kept.lock().len(), 2, "the others have no cursors");
    (20..60).for_each(|second| rankings.keep(&add(second * 1000)));
    let kept: BTreeSet<u64> = rankings.cache.kept.lock().iter().map(|one| one.ranking.made_ms).collect();
    assert_eq!((kept.len(), kept.last()), (KEPT_MAX, Some(&59_000)));
    assert_eq!(rankings.expired_cursors.get(), 0);
    let late = rankings.for_cursor(Some(cursor), None, 59_500).await.unwrap();
    assert_eq!(
        (late.made_ms, rankings.expired_cursors.get()),
        (59_000, 1),
        "by value and id, in the current one"
    );
    let next = rankings.for_cursor(None, None, 60_000).await.unwrap();
    assert_eq!((next.made_ms, next.has_counts), (60_000, false), "computed again, without counts");
    assert_ne!(add(60_000).made_ms, 60_000, "ids are unique");
}

#[tokio::test]
async fn a_ranking_is_finished_and_cached_when_the_request_is_cancelled() {
    let rankings = Rankings::new(RankingSource::of(Arc::default(), None, None));
    {
        let mut asking = std::pin::pin!(rankings.for_cursor(None, None, 1000));
        let first =
            std::future::poll_fn(|context| std::task::Poll::Ready(asking.as_mut().poll(context))).await;
        assert!(first.is_pending(), "it is being computed");
    }
    assert!(rankings.making.try_lock().is_err(), "no second computation starts");
    drop(rankings.making.lock().await);
    assert_eq!(rankings.cache.kept.lock().len(), 1);
    assert_eq!(rankings.for_cursor(None, None, 1500).await.unwrap().made_ms, 1000);
}

#[test]
fn the_cache_is_bounded() {
    let rankings = Rankings::new(RankingSource::of(Arc::default(), None, None));
    let many: Vec<Ranked> = (1..=KEPT_TORRENTS_MAX as u64 / 3).map(|id| ranked(id, 0)).collect();
    for second in 1..=5 {
        let one = add_to(&rankings, many.clone(), second * 1000);
        rankings.keep(&one);
    }
    assert_eq!(rankings.cache.kept.lock().len(), 3);
}

/// A tracker with many torrents and peers.
mod many_torrents {
    use std::net::IpAddr;

    use access::Gate;
    use domain::clock::ManualClock;
    use domain::{
        Announce, AnnounceEvent, ClientKey, Families, InfoHash, PeerId, RateCeiling, Seconds, UnixTime,
        UserId,
    };
    use journal::Queue;
    use swarm::{PeerLists, Rules, SlotLimits, Terms};
    use tracker::settings::LiveSettings;
    use tracker::{Secrets, Tracker};

    use super::*;

    const NOW: UnixTime = UnixTime(1_750_000_000);
    const TORRENTS: u64 = 100_000;
    const RULES: Rules = Rules {
        silence_max: Seconds(2400),
        min_interval: Seconds(0),
        clients_per_user_max: 5,
        ceiling: RateCeiling::DEFAULT,
        peer_ids_per_hour_max: 30,
        credit_upload_without_leechers: true,
    };

    fn info_hash(torrent: u64) -> InfoHash {
        let mut bytes = [7; 20];
        bytes[..8].copy_from_slice(&torrent.to_be_bytes());
        InfoHash(bytes)
    }

    fn announce(tracker: &Tracker, torrent: u64, user: u64, left: u64, event: AnnounceEvent) {
        let mut peer_id = *b"-TT0001-------------";
        peer_id[12..].copy_from_slice(&user.to_be_bytes());
        let announce = Announce {
            info_hash: info_hash(torrent),
            passkey: None,
            peer_id: PeerId(peer_id),
            key: ClientKey::NONE,
            ip: IpAddr::from([10, 0, 0, 1]),
            port: 6881,
            uploaded: 0,
            downloaded: 0,
            left: Some(left),
            event,
            numwant: None,
            families: Families::Both,
            now: NOW,
        };
        let user = UserId::new(user).unwrap();
        let terms = Terms { user, wanted: 0, slots: SlotLimits::default(), rules: RULES };
        tracker.swarms().announce(&announce, &terms, &mut PeerLists::default()).unwrap();
    }

    fn populated_tracker() -> (Arc<Gate>, Arc<Tracker>) {
        let gate = Arc::new(Gate::default());
        let sink = Arc::new(Queue::new(10));
        let secrets = Secrets::draw().unwrap();
        let clock = Arc::new(ManualClock::at(NOW));
        let tracker = Tracker::new(Arc::clone(&gate), clock, sink, LiveSettings::default(), &secrets);
        for torrent in 1..=TORRENTS {
            gate.put_torrent(TorrentId::new(torrent).unwrap(), info_hash(torrent), None, true);
            // Every eighth torrent has no peers.
            for user in 1..=torrent % 8 {
                let event = AnnounceEvent::Completed;
                announce(&tracker, torrent, user, if user % 3 == 0 { 9 } else { 0 }, event);
            }
        }
        (gate, Arc::new(tracker))
    }

    #[tokio::test]
    async fn m10_pages_of_a_hundred_thousand_torrents_are_contiguous_while_swarms_change() {
        let (gate, tracker) = populated_tracker();
        let rankings = Rankings::new(RankingSource::of(gate, Some(Arc::clone(&tracker)), None));
        let mut now_ms = 1_750_000_000_000;
        rankings.for_cursor(None, None, now_ms).await.unwrap();
        for (by, descending) in
            [(RankedBy::Seeders, true), (RankedBy::Leechers, false), (RankedBy::Snatches, true)]
        {
            let mut seen = Vec::new();
            let mut after = None;
            let mut pages = 0;
            loop {
                let ranking = rankings.for_cursor(after, Some(by), now_ms).await.unwrap();
                let page = ranking.page(&PageRequest { after, ..request(by, descending, 1000) });
                rankings.keep(&ranking);
                seen.extend(page.torrents.iter().map(|one| (by.value(&one.counts), one.id)));
                pages += 1;
                // Peers come and go on listed and other torrents, and further rankings are computed.
                for torrent in (pages..TORRENTS).step_by(997) {
                    announce(&tracker, torrent, 50 + pages % 7, pages % 2, AnnounceEvent::Started);
                    announce(&tracker, torrent, 1, 0, AnnounceEvent::Stopped);
                }
                now_ms += 100;
                rankings.for_cursor(None, None, now_ms).await.unwrap();
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            assert_eq!(pages, TORRENTS / 1000);
            let is_in_order = seen.is_sorted_by(|one, next| if descending { one > next } else { one < next });
            assert!(is_in_order, "none twice, none out of order: {by:?}");
            assert_eq!(seen.len() as u64, TORRENTS, "none is missing: {by:?}");
        }
        assert_eq!(rankings.expired_cursors.get(), 0);
        let present = rankings.for_cursor(None, None, now_ms + FRESH_MS_MAX).await.unwrap();
        let swarms = tracker.swarms();
        for torrent in (1..=TORRENTS).step_by(500) {
            let id = TorrentId::new(torrent).unwrap();
            assert_eq!(present.counts_of(id), Some(swarms.scrape(&info_hash(torrent))));
        }
    }
}
