//! Appends are durable, atomic and idempotent.

use domain::TrafficEvent;
use journal::{PackedEvents, TrafficEntry};

use super::*;
use crate::events::varied_event;

pub async fn entries_are_kept_in_order_with_growing_ids<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Traffic, 100).await;
    journal.append(Lane::Traffic, &entries(101..=200), &token("filler", 2)).await.unwrap();
    let stored = all(&journal, Lane::Traffic).await;
    assert_eq!(numbers(&stored), (1..=200).collect::<Vec<_>>());
    assert_eq!(stored[0].fields, entry(1));
    assert!(ids(&stored).is_sorted_by(|a, b| a < b));
    assert!(stored[0].id > EntryId::ZERO);
}

pub async fn ids_rise_after_everything_was_deleted<F: Fixture>() {
    let (fixture, journal) = filled::<F>(Lane::Dead, 10).await;
    let first = ids(&all(&journal, Lane::Dead).await);
    assert_eq!(journal.delete(Lane::Dead, None, &first).await.unwrap(), 10);
    let reopened = fixture.open().await;
    reopened.append(Lane::Dead, &entries([11]), &token("filler", 2)).await.unwrap();
    let second = all(&reopened, Lane::Dead).await;
    assert_eq!(numbers(&second), [11]);
    assert!(second[0].id > first[9]);
}

pub async fn appended_entries_are_visible_to_every_handle<F: Fixture>() {
    let (fixture, journal) = filled::<F>(Lane::Traffic, 3).await;
    let other = fixture.open().await;
    assert_eq!(all(&other, Lane::Traffic).await, all(&journal, Lane::Traffic).await);
    drop((journal, other));
    assert_eq!(numbers(&all(&fixture.open().await, Lane::Traffic).await), [1, 2, 3]);
}

pub async fn lanes_are_separate<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    for (number, lane) in (1..).zip(Lane::ALL) {
        journal.append(lane, &entries([number]), &token("filler", 1)).await.unwrap();
    }
    for (number, lane) in (1..).zip(Lane::ALL) {
        assert_eq!(numbers(&all(&journal, lane).await), [number], "{lane:?}");
        assert_eq!(
            numbers(&journal.list_newest(lane, EntryId::MAX, ALL).await.unwrap()),
            [number],
            "{lane:?}"
        );
        journal.ensure_group(lane, "g", StartAt::Beginning).await.unwrap();
        assert_eq!(numbers(&read(&journal, lane, ("g", "c"), ALL).await), [number], "{lane:?}");
    }
}

pub async fn a_batch_sent_again_is_not_stored_twice<F: Fixture>() {
    let (fixture, journal) = filled::<F>(Lane::Traffic, 3).await;
    journal.append(Lane::Traffic, &entries(1..=3), &token("filler", 1)).await.unwrap();
    fixture.open().await.append(Lane::Traffic, &entries(1..=3), &token("filler", 1)).await.unwrap();
    assert_eq!(numbers(&all(&journal, Lane::Traffic).await), [1, 2, 3]);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().appended, 3);
}

pub async fn an_older_batch_that_arrives_late_is_not_stored_again<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Traffic, 1).await;
    journal.append(Lane::Traffic, &entries([2]), &token("filler", 2)).await.unwrap();
    journal.append(Lane::Traffic, &entries([1]), &token("filler", 1)).await.unwrap();
    journal.append(Lane::Traffic, &entries([3]), &token("filler", 3)).await.unwrap();
    assert_eq!(numbers(&all(&journal, Lane::Traffic).await), [1, 2, 3]);
}

pub async fn a_batch_sent_twice_at_once_is_stored_once<F: Fixture>() {
    let fixture = F::fresh().await;
    let (one, other) = (fixture.open().await, fixture.open().await);
    for round in 1..=20 {
        let (batch, token) = (entries([round]), token("filler", round));
        let (first, second) =
            tokio::join!(one.append(Lane::Risk, &batch, &token), other.append(Lane::Risk, &batch, &token));
        first.unwrap();
        second.unwrap();
    }
    assert_eq!(numbers(&all(&one, Lane::Risk).await), (1..=20).collect::<Vec<_>>());
}

pub async fn tokens_count_per_producer_and_lane<F: Fixture>() {
    let (_fixture, journal) = filled::<F>(Lane::Traffic, 1).await;
    journal.append(Lane::Traffic, &entries([2]), &token("another", 1)).await.unwrap();
    journal.append(Lane::Risk, &entries([3]), &token("filler", 1)).await.unwrap();
    assert_eq!(numbers(&all(&journal, Lane::Traffic).await), [1, 2]);
    assert_eq!(numbers(&all(&journal, Lane::Risk).await), [3]);
}

pub async fn an_empty_batch_stores_nothing<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    journal.append(Lane::Traffic, &[], &token("filler", 1)).await.unwrap();
    assert_eq!(all(&journal, Lane::Traffic).await, []);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().appended, 0);
    // An entry without fields is stored as well.
    journal.append(Lane::Traffic, &[Fields::new()], &token("filler", 2)).await.unwrap();
    assert_eq!(all(&journal, Lane::Traffic).await[0].fields, Fields::new());
}

/// The caller is cancelled before the reply; the same batch is sent again, as after a timeout.
pub async fn a_cancelled_append_is_atomic<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    for round in 0..20_u64 {
        let batch = entries(round * 200..(round + 1) * 200);
        let token = token("filler", round + 1);
        let patience = Duration::from_micros(round * 300);
        let _ = tokio::time::timeout(patience, journal.append(Lane::Traffic, &batch, &token)).await;
        let seen = all(&journal, Lane::Traffic).await.len();
        assert_eq!(seen % 200, 0, "a part of a batch is stored");
        journal.append(Lane::Traffic, &batch, &token).await.unwrap();
    }
    assert_eq!(numbers(&all(&journal, Lane::Traffic).await), (0..4_000).collect::<Vec<_>>());
}

pub async fn a_batch_of_five_thousand_is_stored_whole<F: Fixture>() {
    let (_fixture, journal) = filled_for::<F>(Lane::Traffic, 5_000, &["g"]).await;
    assert_eq!(all(&journal, Lane::Traffic).await.len(), 5_000);
    let given = read(&journal, Lane::Traffic, ("g", "c"), 5_000).await;
    assert_eq!(numbers(&given), (1..=5_000).collect::<Vec<_>>());
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 5_000);
    journal.acknowledge(Lane::Traffic, "g", &ids(&given)).await.unwrap();
    assert_eq!(pending(&journal, Lane::Traffic, "g").await, 0);
}

pub async fn j3_unusual_fields_round_trip<F: Fixture>() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let batch = [
        Fields::new(),
        [("", "value of a nameless field"), ("empty", "")].into_iter().collect(),
        [("same", "1"), ("same", "2"), ("same", "1")].into_iter().collect(),
        [(every_byte.clone(), every_byte.clone()), (vec![0xff, 0xfe], vec![0])].into_iter().collect(),
        [("crlf", "a\r\nb\0c"), ("quotes", "'\";--"), ("unicode", "日本語 🧲")].into_iter().collect(),
        [("large", "x".repeat(1 << 20))].into_iter().collect(),
        (0..1_000).map(|number| (format!("name{number}"), format!("value{number}"))).collect(),
    ];
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    journal.append(Lane::Traffic, &batch, &token("filler", 1)).await.unwrap();
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let given = read(&journal, Lane::Traffic, ("g", "c"), ALL).await;
    assert_eq!(given.len(), batch.len());
    for (stored, written) in given.iter().zip(&batch) {
        assert!(stored.fields == *written, "{:.200}", format!("{:?} is not {written:?}", stored.fields));
        assert_eq!(journal.get(Lane::Traffic, stored.id).await.unwrap().as_ref(), Some(stored));
    }
    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &transfers(&given)).await.unwrap(), 7);
    let moved = all(&journal, Lane::Dead).await;
    assert!(moved.iter().map(|stored| &stored.fields).eq(&batch), "moved dead letters keep their fields");
}

pub async fn producers_append_at_once_without_mixing_their_batches<F: Fixture>() {
    const PRODUCERS: u64 = 4;
    const BATCHES: u64 = 10;
    const LENGTH: u64 = 25;
    let fixture = F::fresh().await;
    let mut tasks = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        let journal = fixture.open().await;
        tasks.spawn(async move {
            for batch in 0..BATCHES {
                let first = (producer * BATCHES + batch) * LENGTH;
                let token = token(&format!("producer {producer}"), batch + 1);
                journal.append(Lane::Traffic, &entries(first..first + LENGTH), &token).await.unwrap();
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let stored = numbers(&all(&fixture.open().await, Lane::Traffic).await);
    let batches: Vec<&[u64]> = stored.chunks(LENGTH as usize).collect();
    for batch in &batches {
        assert!(
            batch.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "a batch is not in one piece: {batch:?}"
        );
    }
    for producer in 0..PRODUCERS {
        let own = batches.iter().map(|batch| batch[0] / LENGTH).filter(|batch| batch / BATCHES == producer);
        assert!(
            own.eq(producer * BATCHES..(producer + 1) * BATCHES),
            "batches of a producer keep their order"
        );
    }
}

pub async fn j2_events_are_stored_with_the_fields_of_the_contract<F: Fixture>() {
    let fixture = F::fresh().await;
    let journal = fixture.open().await;
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    let events: Vec<TrafficEvent> = (0..500).map(varied_event).collect();
    let packed = packed(&events);
    for _ in 0..2 {
        journal.append_events(&packed[..3], &token("tracker", 1)).await.unwrap();
    }
    journal.append(Lane::Traffic, &[entry(1)], &token("script", 1)).await.unwrap();
    journal.append_events(&packed[3..], &token("tracker", 2)).await.unwrap();
    journal.append_events(&[], &token("tracker", 3)).await.unwrap();

    let given = read(&journal, Lane::Traffic, ("g", "c"), ALL).await;
    assert_eq!(given, all(&fixture.open().await, Lane::Traffic).await);
    let mut fields: Vec<&Fields> = given.iter().map(|stored| &stored.fields).collect();
    let first_batch = packed[..3].iter().map(PackedEvents::len).sum();
    assert_eq!(fields.remove(first_batch), &entry(1));
    let written: Vec<Fields> = events.iter().map(TrafficEntry::fields_of).collect();
    assert!(fields.iter().copied().eq(&written));
    for (read, written) in fields.iter().zip(&written) {
        assert_eq!(TrafficEntry::parse(read).unwrap(), TrafficEntry::parse(written).unwrap());
    }
    // A move keeps the fields as well.
    let moved = transfers(&given[..20]);
    assert_eq!(journal.transfer(Lane::Traffic, Lane::Dead, Some("g"), &moved).await.unwrap(), 20);
    let dead = all(&journal, Lane::Dead).await;
    assert!(dead.iter().map(|stored| &stored.fields).eq(given[..20].iter().map(|stored| &stored.fields)));
}

fn packed(events: &[TrafficEvent]) -> Vec<PackedEvents> {
    let mut lists: Vec<PackedEvents> = Vec::new();
    for event in events {
        if !lists.last_mut().is_some_and(|last| last.push(event)) {
            lists.push(PackedEvents::of(event));
        }
    }
    lists
}
