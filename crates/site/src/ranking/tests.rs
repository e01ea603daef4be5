//! Rankings, without a server.

use std::collections::BTreeSet;

use super::*;

fn ranked(id: u64, seeders: u32) -> Ranked {
    let counts = SwarmCounts { seeders, leechers: seeders % 3, snatches: 0 };
    Ranked { id: TorrentId::new(id).unwrap(), counts }
}

fn wanted(by: RankedBy, descending: bool, limit: usize) -> Wanted<'static> {
    Wanted { by, descending, after: None, among: None, limit }
}

/// All torrents of a ranking, page by page.
fn walk(ranking: &Ranking, mut wanted: Wanted<'_>) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let page = ranking.page(&wanted);
        assert!(page.torrents.len() <= wanted.limit);
        seen.extend(page.torrents.iter().map(|one| one.id.get()));
        match page.next {
            Some(next) => wanted.after = Some(next),
            None => return seen,
        }
    }
}

#[test]
fn pages_join_whatever_their_size_and_numbers_decide_ties() {
    let torrents: Vec<Ranked> = (1..=100).map(|id| ranked(id, (id % 7) as u32)).collect();
    let ranking = Ranking::new(5, torrents.clone(), true);
    let mut expected: Vec<(u32, u64)> =
        torrents.iter().map(|one| (one.counts.seeders, one.id.get())).collect();
    expected.sort_unstable();
    let ascending: Vec<u64> = expected.iter().map(|(_, id)| *id).collect();
    let descending: Vec<u64> = ascending.iter().rev().copied().collect();
    for limit in [1, 3, 50, 99, 100, 101] {
        assert_eq!(walk(&ranking, wanted(RankedBy::Seeders, false, limit)), ascending, "{limit}");
        assert_eq!(walk(&ranking, wanted(RankedBy::Seeders, true, limit)), descending, "{limit}");
    }
    // Nobody ever completed anything: only the numbers are left.
    assert_eq!(walk(&ranking, wanted(RankedBy::Snatches, false, 9)), (1..=100).collect::<Vec<_>>());
    let among: HashSet<TorrentId> = (1..=200).step_by(10).filter_map(TorrentId::new).collect();
    let found = walk(&ranking, Wanted { among: Some(&among), ..wanted(RankedBy::Seeders, true, 3) });
    let those: Vec<u64> = descending.into_iter().filter(|id| id % 10 == 1).collect();
    assert_eq!(found, those);
}

#[test]
fn a_place_that_nobody_was_given_is_a_place_all_the_same() {
    let ranking = Ranking::new(5, (1..=10).map(|id| ranked(id, id as u32)).collect(), true);
    let from = |value: u64, id: u64, descending: bool| {
        let after = Some(RankedPlace { made_ms: 1, value, id: TorrentId::new(id).unwrap() });
        let page = ranking.page(&Wanted { after, ..wanted(RankedBy::Seeders, descending, 3) });
        page.torrents.iter().map(|one| one.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(from(5, 99, false), [6, 7, 8]);
    assert_eq!(from(5, 99, true), [5, 4, 3]);
    assert_eq!(from(5, 1, true), [4, 3, 2]);
    assert_eq!(from(u64::MAX, 1, false), [0_u64; 0]);
    assert_eq!(from(u64::MAX, 1, true), [10, 9, 8]);
    assert_eq!(from(0, 1, true), [0_u64; 0]);
}

#[test]
fn an_empty_ranking_has_an_empty_page() {
    let ranking = Ranking::new(5, Vec::new(), true);
    assert!(ranking.is_empty());
    assert_eq!(walk(&ranking, wanted(RankedBy::Leechers, true, 10)), [0_u64; 0]);
}

#[tokio::test]
async fn rankings_with_readers_are_kept_within_bounds_and_the_others_are_not() {
    let rankings = Rankings::new(Source::of(Arc::default(), None, None));
    let first = rankings.for_place(None, 1000).await.unwrap();
    assert_eq!(rankings.for_place(None, 1999).await.unwrap().made_ms, 1000, "recent enough");
    let place = RankedPlace { made_ms: first.made_ms, value: 0, id: TorrentId::new(1).unwrap() };
    rankings.keep(&first);
    for second in 2..10 {
        rankings.for_place(None, second * 1000).await.unwrap();
    }
    assert_eq!(rankings.for_place(Some(place), 10_000).await.unwrap().made_ms, 1000);
    assert_eq!(rankings.kept.lock().len(), 2, "nobody was given a place in the others");
    for second in 20..60 {
        let one = rankings.for_place(None, second * 1000).await.unwrap();
        rankings.keep(&one);
    }
    let kept: BTreeSet<u64> = rankings.kept.lock().iter().map(|one| one.ranking.made_ms).collect();
    assert_eq!((kept.len(), kept.last()), (KEPT_MAX, Some(&59_000)));
    assert_eq!(rankings.late.get(), 0);
    let late = rankings.for_place(Some(place), 59_500).await.unwrap();
    assert_eq!((late.made_ms, rankings.late.get()), (59_000, 1), "by value and number, in the present one");
}

#[test]
fn all_that_is_kept_together_is_bounded() {
    let rankings = Rankings::new(Source::of(Arc::default(), None, None));
    let many: Vec<Ranked> = (1..=KEPT_TORRENTS_MAX as u64 / 3).map(|id| ranked(id, 0)).collect();
    for second in 1..=5 {
        let one = rankings.add(many.clone(), true, second * 1000);
        rankings.keep(&one);
    }
    assert_eq!(rankings.kept.lock().len(), 3);
}
