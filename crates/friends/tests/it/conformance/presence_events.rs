//! Presence history and its cursors.

use friends::{EventFilter, FriendsError, PresenceEvent, PresenceEventId, PresenceEventKind};
use presence::{Cause, DeviceId, Status};

use testkit::on_every_database;

use crate::conformance::fixture::{Fixture, OpenStore, user};

fn arrived(number: u64, at_ms: u64) -> PresenceEvent {
    PresenceEvent { user: user(number), at_ms, kind: PresenceEventKind::Arrived, cause: None, device: None }
}

fn went_away(number: u64, at_ms: u64) -> PresenceEvent {
    let kind = PresenceEventKind::Transition { from: Status::Online, to: Status::Away };
    let device = DeviceId::new("phone-1");
    PresenceEvent { user: user(number), at_ms, kind, cause: Some(Cause::Silence), device }
}

async fn events_are_read_in_order_and_by_user(fixture: Fixture) {
    let store = fixture.store().await;
    assert_eq!(store.newest_event().await.unwrap(), PresenceEventId(0));
    store.record(&[]).await.unwrap();
    let left = PresenceEvent { kind: PresenceEventKind::Left, ..arrived(1, 30) };
    let all = [arrived(1, 10), went_away(1, 20), arrived(2, 20), left.clone()];
    store.record(&all[..2]).await.unwrap();
    store.record(&all[2..]).await.unwrap();
    let recorded = store.events_after(PresenceEventId(0), EventFilter::All, 10).await.unwrap();
    assert_eq!(recorded.iter().map(|recorded| recorded.event.clone()).collect::<Vec<_>>(), all);
    assert_eq!(recorded.iter().map(|recorded| recorded.id.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(store.newest_event().await.unwrap(), PresenceEventId(4));
    let some = store.events_after(PresenceEventId(1), EventFilter::ArrivalsAndDepartures, 1).await.unwrap();
    assert_eq!(some.iter().map(|recorded| recorded.id.0).collect::<Vec<_>>(), [3]);

    let of_one = store.history(user(1), None, 2).await.unwrap();
    assert_eq!(of_one.iter().map(|recorded| recorded.id.0).collect::<Vec<_>>(), [4, 2], "newest first");
    let rest = store.history(user(1), Some(of_one[1].id), 2).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].event, all[0]);
}

async fn a_reader_after_the_last_id_misses_nothing(fixture: Fixture) {
    let mut writing = Vec::new();
    for number in 1..=4_u64 {
        let store = fixture.store().await;
        writing.push(tokio::spawn(async move {
            for at in 0..15_u64 {
                let batch: Vec<_> = (0..number).map(|_| arrived(number, at)).collect();
                store.record(&batch).await.unwrap();
            }
        }));
    }
    let store = fixture.store().await;
    let (mut known, mut seen) = (PresenceEventId(0), 0);
    let mut is_over = false;
    while !is_over {
        // Checked before the read, so that the last read follows the last write.
        is_over = writing.iter().all(|one| one.is_finished());
        for recorded in store.events_after(known, EventFilter::ArrivalsAndDepartures, 1000).await.unwrap() {
            assert_eq!(recorded.id.0, known.0 + 1, "without gaps");
            known = recorded.id;
            seen += 1;
        }
        tokio::task::yield_now().await;
    }
    for one in writing {
        one.await.unwrap();
    }
    assert_eq!(seen, 15 * (1 + 2 + 3 + 4));
}

async fn old_events_are_pruned_up_to_the_slowest_cursor(fixture: Fixture) {
    let store = fixture.store().await;
    let batch: Vec<_> = (1..=6).flat_map(|at| [went_away(1, at * 10), arrived(1, at * 10)]).collect();
    store.record(&batch).await.unwrap();
    let ids = async || {
        let all = store.events_after(PresenceEventId(0), EventFilter::All, 100).await.unwrap();
        all.iter().map(|recorded| recorded.id.0).collect::<Vec<_>>()
    };
    assert_eq!(store.cursor("webhook").await.unwrap(), None);
    store.set_cursor("webhook", PresenceEventId(4)).await.unwrap();
    store.set_cursor("webhook", PresenceEventId(3)).await.unwrap();
    assert_eq!(store.cursor("webhook").await.unwrap(), Some(PresenceEventId(4)), "never back");
    store.set_cursor("other", PresenceEventId(2)).await.unwrap();

    assert_eq!(store.prune_history(50, 3).await.unwrap(), 2 + 1, "of the three oldest");
    assert_eq!(ids().await, [4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(store.prune_history(50, 100).await.unwrap(), 2, "4, 6 and 8 are not passed by the cursor");
    assert_eq!(ids().await, [4, 6, 8, 9, 10, 11, 12]);
    store.drop_cursor("other").await.unwrap();
    assert_eq!(store.prune_history(50, 100).await.unwrap(), 1);
    store.drop_cursor("webhook").await.unwrap();
    assert_eq!(store.prune_history(50, 100).await.unwrap(), 2);
    assert_eq!(ids().await, [9, 10, 11, 12]);
    assert_eq!(store.prune_history(50, 100).await.unwrap(), 0);
    store.prune_history(u64::MAX, 100).await.unwrap();
    store.record(&[arrived(1, 1)]).await.unwrap();
    assert_eq!(ids().await, [13], "numbers go on");
    assert!(matches!(store.set_cursor("", PresenceEventId(1)).await, Err(FriendsError::CursorName)));
}

async fn thousands_of_events_are_recorded_at_once(fixture: Fixture) {
    let store = fixture.store().await;
    let batch: Vec<_> = (1..=5300).map(|number| went_away(number, number)).collect();
    store.record(&batch).await.unwrap();
    let last = store.events_after(PresenceEventId(5299), EventFilter::All, 10).await.unwrap();
    assert_eq!(last[0].event, batch[5299]);
    assert_eq!(fixture.raw().await.count("people_history").await, 5300);
}

on_every_database!(
    events_are_read_in_order_and_by_user,
    a_reader_after_the_last_id_misses_nothing,
    old_events_are_pruned_up_to_the_slowest_cursor,
    thousands_of_events_are_recorded_at_once,
);
