//! A4 and A5: expiry, and pages of lists.

use views::activity::Counts;
use views::{ActivitySettings, Cursor, Page};

use crate::activity::fixture::{
    Announce, Backend, NOW, THRESHOLD, info_hash, leeches, number_of, passkey, seeds, shown, stops,
};

/// More sweeps than needed to check every due user.
const SWEEPS_MAX: usize = 100;

pub async fn a4_expired_reports_are_removed_before_a_read(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -100), leeches(1, 2, -50), seeds(1, 3, 0)]).await;
    fixture.wait(THRESHOLD - 101);
    assert_eq!(fixture.counts(1).await, (2, 1));
    fixture.wait(1);
    assert_eq!(fixture.counts(1).await, (1, 1), "the first announced exactly interval + grace ago");
    fixture.wait(50);
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![(3, shown(0))], vec![]));
    fixture.wait(50);
    assert_eq!(fixture.counts(1).await, (0, 0));
}

pub async fn a4_an_expired_seeder_uncovers_a_leecher(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -1000).by(1), leeches(1, 1, -10).by(2)]).await;
    fixture.wait(THRESHOLD - 1000);
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![], vec![(1, shown(-10))]));
    // The same, by the next announce instead of a read.
    fixture.apply(&[seeds(2, 1, 0).by(1), leeches(2, 1, 500).by(2)]).await;
    fixture.wait(1001);
    fixture.apply(&[leeches(2, 1, 1500).by(2)]).await;
    assert_eq!((fixture.seeding(2).await, fixture.leeching(2).await), (vec![], vec![(1, shown(1500))]));
}

pub async fn a4_a_sweep_removes_expired_reports_without_reads(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -100), seeds(1, 2, 0), leeches(2, 1, -100), stops(3, 1, -100)]).await;
    // A store may check new users once, to compute their next check.
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 0, "nothing is due yet");
    assert_eq!(fixture.activity.sweep().await.unwrap().users, 0);
    fixture.wait(THRESHOLD - 100);
    let swept = fixture.activity.sweep().await.unwrap();
    assert_eq!((swept.users, swept.torrents, swept.is_behind), (3, 3, false));
    fixture.wait(99);
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 0);
    fixture.wait(1);
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 1);
    let counters = fixture.activity.counters();
    assert_eq!((counters.swept_torrents.get(), counters.sweeps_behind.get()), (4, 0));
}

pub async fn a4_a_sweep_is_bounded_and_reports_whether_it_is_behind(backend: Backend) {
    let fixture =
        backend.fixture_with(ActivitySettings { sweep_users_max: 4, ..ActivitySettings::default() }).await;
    let announces: Vec<_> = (0..10).map(|user| seeds(user, 1, -i64::from(user))).collect();
    fixture.apply(&announces).await;
    fixture.wait(THRESHOLD);
    let mut users = Vec::new();
    for _ in 0..3 {
        let swept = fixture.activity.sweep().await.unwrap();
        users.push((swept.users, swept.is_behind));
    }
    assert_eq!(users, [(4, true), (4, true), (2, false)]);
    assert_eq!(fixture.activity.sweep().await.unwrap().users, 0);
    assert_eq!(fixture.activity.counters().sweeps_behind.get(), 2);
}

pub async fn a4_stopped_clients_expire_once_no_older_report_is_valid(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -50)]).await;
    fixture.apply(&[stops(1, 1, -40)]).await;
    fixture.wait(THRESHOLD - 41);
    fixture.apply(&[seeds(1, 1, -41)]).await;
    assert_eq!(fixture.counts(1).await, (0, 0), "the stop is still stored, and the replay is older");
    fixture.wait(1);
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 1);
    assert!(backend.is_empty().await, "nothing is stored");
    fixture.apply(&[seeds(1, 1, -41)]).await;
    assert_eq!(fixture.counts(1).await, (0, 0), "the replay itself has expired");
}

pub async fn a4_a_sweep_keeps_clients_that_announce(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, 0), leeches(2, 1, 0)]).await;
    for round in 1..=6_i64 {
        fixture.wait(1800);
        fixture.apply(&[seeds(1, 1, round * 1800)]).await;
        for _ in 0..SWEEPS_MAX {
            if fixture.activity.sweep().await.unwrap().users == 0 {
                break;
            }
        }
        assert_eq!(fixture.seeding(1).await, [(1, shown(round * 1800))]);
    }
    fixture.wait(THRESHOLD);
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 1, "the user is still in the index");
    assert_eq!(fixture.activity.counters().swept_torrents.get(), 2);
}

pub async fn a5_lists_are_paged_newest_first(backend: Backend) {
    let fixture = backend.fixture().await;
    // Ten torrents in each of three seconds, so that pages end within a second.
    let announces: Vec<_> = (0..30).map(|torrent| seeds(1, torrent, -i64::from(torrent % 3))).collect();
    fixture.apply(&announces).await;
    let mut expected: Vec<_> = (0..30).map(|torrent| (NOW.0 - torrent % 3, info_hash(torrent))).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let expected: Vec<_> = expected.iter().map(|(at, hash)| (number_of(hash), *at)).collect();
    assert_eq!(fixture.seeding(1).await, expected, "read three at a time");
    let whole = fixture.activity.seeding(&passkey(1), &Page::first(30)).await.unwrap();
    assert_eq!((whole.torrents.len(), whole.next), (30, None));
    let all_but_one = fixture.activity.seeding(&passkey(1), &Page::first(29)).await.unwrap();
    let last = all_but_one.torrents[28];
    assert_eq!(all_but_one.next, Some(Cursor { at: last.at, info_hash: last.info_hash }));
    let text = all_but_one.next.unwrap().to_string();
    assert_eq!(text.parse::<Cursor>().ok(), all_but_one.next);
    // Limits out of range are clamped.
    let clamped = fixture.activity.seeding(&passkey(1), &Page::first(0)).await.unwrap();
    assert_eq!(clamped.torrents.len(), 1);
    let clamped = fixture.activity.seeding(&passkey(1), &Page::first(usize::MAX)).await.unwrap();
    assert_eq!(clamped.torrents.len(), 30);
}

pub async fn a5_a_cursor_stays_valid_when_the_list_changes(backend: Backend) {
    let fixture = backend.fixture().await;
    let announces: Vec<_> = (0..10).map(|torrent| seeds(1, torrent, -60)).collect();
    fixture.apply(&announces).await;
    let first = fixture.activity.seeding(&passkey(1), &Page::first(4)).await.unwrap();
    let rest = fixture.activity.seeding(&passkey(1), &Page { after: first.next, limit: 10 }).await.unwrap();
    // The last torrent of the first page stops, another announces again: neither is in the second page.
    let numbers: Vec<_> = first.torrents.iter().map(|found| number_of(&found.info_hash)).collect();
    fixture.apply(&[stops(1, numbers[3], -10), seeds(1, numbers[0], -10)]).await;
    let again = fixture.activity.seeding(&passkey(1), &Page { after: first.next, limit: 10 }).await.unwrap();
    assert_eq!(again, rest);
    assert_eq!(again.torrents.len(), 6);
}

pub async fn a4_a_client_with_a_longer_interval_expires_after_it_and_the_grace(backend: Backend) {
    let fixture = backend.fixture().await;
    let foreign = seeds(1, 1, 0).with_interval(7200).fourteen_fields_only();
    fixture
        .apply(&[foreign, seeds(1, 2, 0), leeches(1, 3, 0).with_interval(7200).fourteen_fields_only()])
        .await;
    fixture.wait(THRESHOLD);
    // The list has the last announce, for programs that use only that.
    assert_eq!(fixture.seeding(1).await, [(1, shown(0))]);
    assert_eq!(fixture.leeching(1).await, [(3, shown(0))]);
    assert_eq!(fixture.activity.sweep().await.unwrap().torrents, 0, "nothing has expired");
    assert_eq!(fixture.activity.sweep().await.unwrap().users, 0, "no user is due");
    // A heartbeat renews the expiry, and a stop takes effect at once.
    let again = Announce { at: 3000, ..foreign };
    fixture.wait(3000 - THRESHOLD);
    fixture
        .apply(&[again, Announce { at: 3000, ..stops(1, 3, 0).with_interval(7200).fourteen_fields_only() }])
        .await;
    assert_eq!(fixture.counts(1).await, (1, 0));
    fixture.apply(&[leeches(1, 3, 2999).with_interval(7200).fourteen_fields_only()]).await;
    assert_eq!(fixture.counts(1).await, (1, 0), "an older entry does not restore it");
    fixture.wait(7800 - 1);
    assert_eq!(fixture.seeding(1).await, [(1, shown(3000))]);
    fixture.wait(1);
    assert_eq!(fixture.counts(1).await, (0, 0));
    fixture.activity.sweep().await.unwrap();
    assert!(backend.is_empty().await);

    // With the usual interval it expires as usual.
    let now = 3000 + 7800;
    fixture.apply(&[seeds(1, 1, now).with_interval(7200).fourteen_fields_only()]).await;
    fixture.wait(10);
    fixture.apply(&[seeds(1, 1, now + 10).fourteen_fields_only()]).await;
    fixture.wait(THRESHOLD);
    assert_eq!(fixture.counts(1).await, (0, 0));
}

pub async fn a5_counts_of_many_users_and_all_active_users(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, 0), seeds(1, 2, 0), leeches(2, 1, -100), stops(3, 1, 0)]).await;
    let users: Vec<_> = [2, 9, 1, 3].map(passkey).into();
    let counts = fixture.activity.counts_of(&users).await.unwrap();
    assert_eq!(
        counts,
        [(0, 1), (0, 0), (2, 0), (0, 0)].map(|(seeding, leeching)| Counts { seeding, leeching })
    );
    let active = fixture.activity.active_users().await.unwrap();
    assert_eq!(active.len(), 2, "{active:?}");
    assert_eq!(active[&passkey(1)], Counts { seeding: 2, leeching: 0 });
    assert_eq!(active[&passkey(2)], Counts { seeding: 0, leeching: 1 });
    fixture.wait(THRESHOLD - 100);
    assert_eq!(fixture.activity.counts_of(&users).await.unwrap()[0], Counts::default(), "expired");
    while fixture.activity.sweep().await.unwrap().users > 0 {}
    assert_eq!(fixture.activity.active_users().await.unwrap().len(), 1, "removed by the sweep");
}
