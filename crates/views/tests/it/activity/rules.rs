//! A1 to A3: which list a torrent is in.

use std::collections::BTreeSet;

use domain::AnnounceEvent::{Completed, Started};

use crate::activity::fixture::{Announce, Backend, Listed, leeches, seeds, shown, stops};

pub async fn a1_a_list_has_torrents_with_the_time_of_their_last_announce(backend: Backend) {
    let fixture = backend.fixture().await;
    assert_eq!(fixture.counts(1).await, (0, 0));
    fixture.apply(&[seeds(1, 1, -30), leeches(1, 2, -20), seeds(2, 1, -10)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-30))]);
    assert_eq!(fixture.leeching(1).await, [(2, shown(-20))]);
    assert_eq!(fixture.seeding(2).await, [(1, shown(-10))]);
    fixture.apply(&[seeds(1, 1, -5)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-5))]);
    assert_eq!(fixture.counts(1).await, (1, 1));
}

pub async fn a2_completed_moves_a_torrent_from_leeching_to_seeding(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[leeches(1, 1, -30).event(Started)]).await;
    assert_eq!(fixture.counts(1).await, (0, 1));
    // A client may report `completed` with something left: the event counts.
    fixture.apply(&[leeches(1, 1, -10).event(Completed)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-10))]);
    assert_eq!(fixture.leeching(1).await, []);
}

pub async fn a2_left_decides_between_the_lists(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[leeches(1, 1, -50)]).await;
    fixture.apply(&[seeds(1, 1, -40)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![(1, shown(-40))], vec![]));
    // Newly selected files make a seeder a leecher again.
    fixture.apply(&[leeches(1, 1, -30)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![], vec![(1, shown(-30))]));
    // A client that does not report `left` is not a seeder.
    fixture.apply(&[Announce { left: None, ..seeds(1, 2, -20) }]).await;
    assert_eq!(fixture.leeching(1).await, [(2, shown(-20)), (1, shown(-30))]);
}

pub async fn a2_stopped_removes_from_both_lists(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -30), leeches(1, 2, -30)]).await;
    fixture.apply(&[stops(1, 1, -20), stops(1, 2, -20)]).await;
    assert_eq!(fixture.counts(1).await, (0, 0));
    // A stop of an unknown client changes nothing.
    fixture.apply(&[stops(1, 3, -10)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![], vec![]));
    // A client that starts again is listed again.
    fixture.apply(&[seeds(1, 1, -5).event(Started)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-5))]);
}

pub async fn a2_a_stopped_client_does_not_hide_another(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -50).by(1), seeds(1, 1, -40).by(2)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-40))]);
    fixture.apply(&[stops(1, 1, -30).by(1)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-40))]);
    fixture.apply(&[stops(1, 1, -20).by(2)]).await;
    assert_eq!(fixture.seeding(1).await, []);
    // The client with the later announce stops: the other's time is listed.
    fixture.apply(&[leeches(1, 2, -50).by(1), leeches(1, 2, -40).by(2), stops(1, 2, -10).by(2)]).await;
    assert_eq!(fixture.leeching(1).await, [(2, shown(-50))]);
}

pub async fn a2_a_seeding_client_hides_a_leeching_one_until_it_stops(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -50).by(1)]).await;
    fixture.apply(&[leeches(1, 1, -40).by(2)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![(1, shown(-50))], vec![]));
    fixture.apply(&[stops(1, 1, -30).by(1)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![], vec![(1, shown(-40))]));
    fixture.apply(&[seeds(1, 1, -20).by(2)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![(1, shown(-20))], vec![]));
}

pub async fn a2_a_replayed_entry_neither_restores_nor_removes(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -50), seeds(1, 2, -50)]).await;
    fixture.apply(&[stops(1, 1, -30)]).await;
    fixture.apply(&[seeds(1, 1, -50), seeds(1, 1, -40), leeches(1, 1, -31)]).await;
    assert_eq!(fixture.seeding(1).await, [(2, shown(-50))], "a replay must not restore a stopped client");
    fixture.apply(&[stops(1, 2, -60), leeches(1, 2, -55)]).await;
    assert_eq!(fixture.seeding(1).await, [(2, shown(-50))], "a replay must not remove a newer state");
    // A stop that arrives before its client's first announce.
    fixture.apply(&[stops(1, 3, -10)]).await;
    fixture.apply(&[leeches(1, 3, -20).event(Started)]).await;
    assert_eq!(fixture.leeching(1).await, []);
}

pub async fn a2_within_a_second_the_later_entry_decides(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture.apply(&[seeds(1, 1, -10).event(Started).seq(5)]).await;
    fixture.apply(&[stops(1, 1, -10).seq(4)]).await;
    assert_eq!(fixture.counts(1).await, (1, 0));
    fixture.apply(&[stops(1, 1, -10).seq(6)]).await;
    assert_eq!(fixture.counts(1).await, (0, 0));
    fixture.apply(&[leeches(1, 1, -10).event(Started).seq(u64::MAX)]).await;
    assert_eq!(fixture.counts(1).await, (0, 1));
    fixture.apply(&[seeds(1, 1, -10).event(Started).seq(u64::MAX - 1)]).await;
    assert_eq!(fixture.counts(1).await, (0, 1));
}

pub async fn a2_within_a_second_the_later_entry_counts_in_any_order_of_arrival(backend: Backend) {
    let fixture = backend.fixture().await;
    // For each torrent two entries of one second, in the order of their numbers.
    let stop_then_start =
        |torrent| [stops(1, torrent, -10).seq(1), seeds(1, torrent, -10).seq(2).in_same_second()];
    let heartbeat_then_stop = |torrent| [seeds(1, torrent, -10).seq(1), stops(1, torrent, -10).seq(2)];
    let seeds_then_leeches =
        |torrent| [seeds(1, torrent, -10).seq(1), leeches(1, torrent, -10).seq(2).in_same_second()];
    let completed_then_leeches = |torrent| {
        let completed = seeds(1, torrent, -10).event(Completed).seq(1);
        [completed, leeches(1, torrent, -10).seq(2).in_same_second()]
    };
    let all: [fn(u32) -> [Announce; 2]; 4] =
        [stop_then_start, heartbeat_then_stop, seeds_then_leeches, completed_then_leeches];
    let mut torrent = 0;
    for is_reversed in [false, true] {
        for pair in all {
            torrent += 1;
            // Known before, so that an unchanged heartbeat is a plain command.
            fixture.apply(&[seeds(1, torrent, -20)]).await;
            let mut entries: Vec<_> = pair(torrent).to_vec();
            if is_reversed {
                entries.reverse();
            }
            for announce in entries {
                fixture.apply(&[announce]).await;
            }
        }
    }
    let torrents = |list: Listed| list.into_iter().map(|(torrent, _)| torrent).collect::<BTreeSet<_>>();
    assert_eq!(torrents(fixture.seeding(1).await), BTreeSet::from([1, 5]));
    assert_eq!(torrents(fixture.leeching(1).await), BTreeSet::from([3, 4, 7, 8]));
}

pub async fn j3_entries_with_fourteen_fields_identify_their_client_by_peer_id(backend: Backend) {
    let fixture = backend.fixture().await;
    fixture
        .apply(&[
            seeds(1, 1, -50).fourteen_fields_only().by(1),
            seeds(1, 1, -45).fourteen_fields_only().by(2),
        ])
        .await;
    fixture.apply(&[stops(1, 1, -40).fourteen_fields_only().by(2)]).await;
    assert_eq!(fixture.seeding(1).await, [(1, shown(-50))]);
    // A client of our tracker has another id, although the peer id is the same.
    fixture.apply(&[leeches(1, 1, -30).by(1)]).await;
    fixture.apply(&[stops(1, 1, -20).fourteen_fields_only().by(1)]).await;
    assert_eq!((fixture.seeding(1).await, fixture.leeching(1).await), (vec![], vec![(1, shown(-30))]));
}
