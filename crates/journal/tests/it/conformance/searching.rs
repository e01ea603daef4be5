//! Search for the entries of one user.

use domain::{InfoHash, Passkey, TorrentId, UserId};
use journal::{EntryFilter, SearchBounds, SearchResult, TorrentFilter};

use super::*;

const NO_BOUNDS: SearchBounds = SearchBounds { found_max: ALL, scanned_max: ALL };

fn filter(user: u64) -> EntryFilter {
    EntryFilter { user: UserId::new(user), ..EntryFilter::default() }
}

/// Every tenth entry is user 7's, the others are user 1's.
fn entries_of_two_users(numbers: impl IntoIterator<Item = u64>) -> Vec<Fields> {
    let entry_of = |number: u64| {
        let mut fields = entry(number);
        fields.push("user", if number.is_multiple_of(10) { "7" } else { "1" });
        fields.push_text("torrent", number % 3 + 1);
        fields
    };
    numbers.into_iter().map(entry_of).collect()
}

async fn crowded<F: Fixture>(count: u64) -> (F, Arc<dyn Journal>) {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    journal.append(Lane::Traffic, &entries_of_two_users(1..=count), &token("filler", 1)).await.unwrap();
    (fixture, journal)
}

async fn search(
    journal: &Arc<dyn Journal>,
    before: EntryId,
    filter: &EntryFilter,
    bounds: SearchBounds,
) -> SearchResult {
    let found = journal.search(Lane::Traffic, before, filter, bounds).await.unwrap();
    assert!(found.entries.len() <= bounds.found_max && found.scanned <= bounds.scanned_max);
    found
}

/// All results, search by search, and the number of searches.
async fn walk(journal: &Arc<dyn Journal>, filter: &EntryFilter, bounds: SearchBounds) -> (Vec<u64>, usize) {
    let (mut seen, mut before, mut searches) = (Vec::new(), EntryId::MAX, 0);
    loop {
        let found = search(journal, before, filter, bounds).await;
        seen.extend(numbers(&found.entries));
        searches += 1;
        match found.next {
            Some(next) => {
                assert!(next < before, "it continues");
                before = next;
            }
            None => return (seen, searches),
        }
    }
}

pub async fn a_search_finds_every_entry_of_a_user_once_newest_first<F: Fixture>() {
    let (_fixture, journal) = crowded::<F>(2500).await;
    let expected: Vec<u64> = (1..=250).rev().map(|number| number * 10).collect();
    let all = search(&journal, EntryId::MAX, &filter(7), NO_BOUNDS).await;
    assert_eq!((numbers(&all.entries), all.scanned, all.next), (expected.clone(), 2500, None));
    for (found_max, scanned_max) in [(60, ALL), (ALL, 999), (ALL, 1000), (ALL, 1001), (30, 400), (250, 2500)]
    {
        let bounds = SearchBounds { found_max, scanned_max };
        assert_eq!(walk(&journal, &filter(7), bounds).await.0, expected, "{bounds:?}");
    }
    let (_fixture, journal) = crowded::<F>(21).await;
    let one_by_one = SearchBounds { found_max: 1, scanned_max: 1 };
    assert_eq!(walk(&journal, &filter(7), one_by_one).await.0, [20, 10]);
}

pub async fn a_search_scans_no_more_than_its_bound<F: Fixture>() {
    let (_fixture, journal) = crowded::<F>(2500).await;
    let stored = ids(&all(&journal, Lane::Traffic).await);
    let few =
        search(&journal, EntryId::MAX, &filter(7), SearchBounds { found_max: 2, scanned_max: ALL }).await;
    assert_eq!((numbers(&few.entries), few.scanned), (vec![2500, 2490], 11));
    assert_eq!(few.next, Some(stored[2489]));
    let no_match =
        search(&journal, EntryId::MAX, &filter(9), SearchBounds { found_max: 5, scanned_max: 1200 }).await;
    assert_eq!((no_match.entries.len(), no_match.scanned, no_match.next), (0, 1200, Some(stored[1300])));
    let nothing = SearchBounds { found_max: 0, scanned_max: 0 };
    assert_eq!(search(&journal, stored[5], &filter(7), nothing).await.next, Some(stored[5]));
    let end = search(&journal, EntryId::ZERO, &filter(7), NO_BOUNDS).await;
    assert_eq!((end.entries.len(), end.scanned, end.next), (0, 0, None));
}

pub async fn a_search_continues_while_entries_are_appended_and_trimmed<F: Fixture>() {
    let (_fixture, journal) = crowded::<F>(100).await;
    let bounds = SearchBounds { found_max: 3, scanned_max: ALL };
    let first = search(&journal, EntryId::MAX, &filter(7), bounds).await;
    assert_eq!(numbers(&first.entries), [100, 90, 80]);
    journal.append(Lane::Traffic, &entries_of_two_users(101..=120), &token("filler", 2)).await.unwrap();
    let second = search(&journal, first.next.unwrap(), &filter(7), bounds).await;
    assert_eq!(numbers(&second.entries), [70, 60, 50], "what came meanwhile is newer");
    // All but the newest few are trimmed, including the entry before which the search continues.
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let given = read(&journal, Lane::Traffic, ("g", "c"), ALL).await;
    journal.acknowledge(Lane::Traffic, "g", &ids(&given)).await.unwrap();
    journal.trim(Lane::Traffic, given[90].id).await.unwrap();
    let third = search(&journal, second.next.unwrap(), &filter(7), bounds).await;
    assert_eq!((third.entries.len(), third.next), (0, None));
    let again = walk(&journal, &filter(7), bounds).await.0;
    assert_eq!(again, [120, 110, 100]);
}

pub async fn a_search_respects_its_lane_and_filter<F: Fixture>() {
    let (_fixture, journal) = crowded::<F>(60).await;
    assert_eq!(journal.search(Lane::Risk, EntryId::MAX, &filter(7), NO_BOUNDS).await.unwrap().entries, []);
    let on_one = EntryFilter {
        torrent: Some(TorrentFilter { id: TorrentId::new(1).unwrap(), info_hashes: Vec::new() }),
        ..filter(7)
    };
    assert_eq!(walk(&journal, &on_one, NO_BOUNDS).await.0, [60, 30]);
    // Of another producer: a passkey and an infohash, no ids.
    let passkey: Passkey = "0123456789abcdef".parse().unwrap();
    let mut foreign = entry(61);
    foreign.push_text("passkey", passkey);
    journal.append(Lane::Traffic, &[foreign, Fields::new()], &token("foreigner", 1)).await.unwrap();
    let info_hash: InfoHash = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d".parse().unwrap();
    let by_names = EntryFilter {
        passkey: Some(passkey),
        torrent: Some(TorrentFilter { id: TorrentId::new(1).unwrap(), info_hashes: vec![info_hash] }),
        ..filter(7)
    };
    assert_eq!(walk(&journal, &by_names, NO_BOUNDS).await.0, [61, 60, 30]);
    assert_eq!(walk(&journal, &filter(7), NO_BOUNDS).await.0[0], 60);
}
