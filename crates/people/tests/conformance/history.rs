//! Who came, who went, whose status changed.

use people::{Kinds, Occurrence, OccurrenceId, OccurrenceKind, PeopleError};
use presence::{Cause, DeviceId, Status};

use crate::fixture::{Fixture, on_every_database, user};

fn arrived(number: u64, at_ms: u64) -> Occurrence {
    Occurrence { user: user(number), at_ms, kind: OccurrenceKind::Arrived, cause: None, device: None }
}

fn went_away(number: u64, at_ms: u64) -> Occurrence {
    let kind = OccurrenceKind::Transition { from: Status::Online, to: Status::Away };
    let device = DeviceId::new("phone-1");
    Occurrence { user: user(number), at_ms, kind, cause: Some(Cause::Silence), device }
}

async fn what_happened_is_told_in_its_order_and_by_person(fixture: Fixture) {
    let people = fixture.people().await;
    assert_eq!(people.newest_occurrence().await.unwrap(), OccurrenceId(0));
    people.record(&[]).await.unwrap();
    let left = Occurrence { kind: OccurrenceKind::Left, ..arrived(1, 30) };
    let all = [arrived(1, 10), went_away(1, 20), arrived(2, 20), left.clone()];
    people.record(&all[..2]).await.unwrap();
    people.record(&all[2..]).await.unwrap();
    let told = people.occurrences_after(OccurrenceId(0), Kinds::All, 10).await.unwrap();
    assert_eq!(told.iter().map(|told| told.occurrence.clone()).collect::<Vec<_>>(), all);
    assert_eq!(told.iter().map(|told| told.id.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(people.newest_occurrence().await.unwrap(), OccurrenceId(4));
    let some = people.occurrences_after(OccurrenceId(1), Kinds::ComingsAndGoings, 1).await.unwrap();
    assert_eq!(some.iter().map(|told| told.id.0).collect::<Vec<_>>(), [3]);

    let of_one = people.history(user(1), None, 2).await.unwrap();
    assert_eq!(of_one.iter().map(|told| told.id.0).collect::<Vec<_>>(), [4, 2], "newest first");
    let rest = people.history(user(1), Some(of_one[1].id), 2).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].occurrence, all[0]);
}

async fn whoever_reads_behind_the_last_number_misses_nothing(fixture: Fixture) {
    let mut writing = Vec::new();
    for number in 1..=4_u64 {
        let people = fixture.people().await;
        writing.push(tokio::spawn(async move {
            for at in 0..15_u64 {
                let batch: Vec<_> = (0..number).map(|_| arrived(number, at)).collect();
                people.record(&batch).await.unwrap();
            }
        }));
    }
    let people = fixture.people().await;
    let (mut known, mut seen) = (OccurrenceId(0), 0);
    let mut is_over = false;
    while !is_over {
        // Looked at before the reading, so that the last reading comes after the last writing.
        is_over = writing.iter().all(|one| one.is_finished());
        for told in people.occurrences_after(known, Kinds::ComingsAndGoings, 1000).await.unwrap() {
            assert_eq!(told.id.0, known.0 + 1, "without gaps");
            known = told.id;
            seen += 1;
        }
        tokio::task::yield_now().await;
    }
    for one in writing {
        one.await.unwrap();
    }
    assert_eq!(seen, 15 * (1 + 2 + 3 + 4));
}

async fn what_is_old_is_forgotten_but_not_what_is_still_to_be_told(fixture: Fixture) {
    let people = fixture.people().await;
    let batch: Vec<_> = (1..=6).flat_map(|at| [went_away(1, at * 10), arrived(1, at * 10)]).collect();
    people.record(&batch).await.unwrap();
    let ids = async || {
        let all = people.occurrences_after(OccurrenceId(0), Kinds::All, 100).await.unwrap();
        all.iter().map(|told| told.id.0).collect::<Vec<_>>()
    };
    assert_eq!(people.cursor("webhook").await.unwrap(), None);
    people.set_cursor("webhook", OccurrenceId(4)).await.unwrap();
    people.set_cursor("webhook", OccurrenceId(3)).await.unwrap();
    assert_eq!(people.cursor("webhook").await.unwrap(), Some(OccurrenceId(4)), "never back");
    people.set_cursor("other", OccurrenceId(2)).await.unwrap();

    assert_eq!(people.prune_history(50, 3).await.unwrap(), 2 + 1, "of the three oldest");
    assert_eq!(ids().await, [4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(people.prune_history(50, 100).await.unwrap(), 2, "4, 6 and 8 are still to be told");
    assert_eq!(ids().await, [4, 6, 8, 9, 10, 11, 12]);
    people.drop_cursor("other").await.unwrap();
    assert_eq!(people.prune_history(50, 100).await.unwrap(), 1);
    people.drop_cursor("webhook").await.unwrap();
    assert_eq!(people.prune_history(50, 100).await.unwrap(), 2);
    assert_eq!(ids().await, [9, 10, 11, 12]);
    assert_eq!(people.prune_history(50, 100).await.unwrap(), 0);
    people.prune_history(u64::MAX, 100).await.unwrap();
    people.record(&[arrived(1, 1)]).await.unwrap();
    assert_eq!(ids().await, [13], "numbers go on");
    assert!(matches!(people.set_cursor("", OccurrenceId(1)).await, Err(PeopleError::CursorName)));
}

async fn thousands_of_occurrences_are_recorded_at_once(fixture: Fixture) {
    let people = fixture.people().await;
    let batch: Vec<_> = (1..=5300).map(|number| went_away(number, number)).collect();
    people.record(&batch).await.unwrap();
    let last = people.occurrences_after(OccurrenceId(5299), Kinds::All, 10).await.unwrap();
    assert_eq!(last[0].occurrence, batch[5299]);
    assert_eq!(fixture.raw().await.count("people_history").await, 5300);
}

on_every_database!(
    what_happened_is_told_in_its_order_and_by_person,
    whoever_reads_behind_the_last_number_misses_nothing,
    what_is_old_is_forgotten_but_not_what_is_still_to_be_told,
    thousands_of_occurrences_are_recorded_at_once,
);
