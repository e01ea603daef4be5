//! The queue and the flusher, on a real journal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::clock::SystemClock;
use journal::{EntryId, Flusher, Journal, Lane, Queue, SqliteJournal};
use tokio::sync::oneshot;

use crate::events::{event, varied_event};

async fn stored_numbers(journal: &SqliteJournal) -> Vec<u64> {
    let entries = journal.list(Lane::Traffic, EntryId::ZERO, 100_000).await.unwrap();
    let number = |fields: &journal::Fields| String::from_utf8(fields.get("du").unwrap().to_vec()).unwrap();
    entries.iter().map(|entry| number(&entry.fields).parse().unwrap()).collect()
}

#[tokio::test]
async fn j1_events_of_many_full_batches_are_stored_once_in_order_before_their_callbacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Arc::new(SqliteJournal::open(&path, Arc::new(SystemClock)).await.unwrap());
    let queue = Arc::new(Queue::new(10_000));
    let told = Arc::new(Mutex::new(Vec::new()));
    let numbers: Vec<u64> = (0..4_321).collect();
    for number in &numbers {
        assert!(queue.reserve());
        let (told, number, watched) = (Arc::clone(&told), *number, Arc::clone(&queue));
        let on_stored = move |is_stored: bool| {
            assert!(is_stored);
            let stored: &AtomicU64 = &watched.counters().stored;
            assert!(stored.load(Ordering::Relaxed) > number, "called before it was stored");
            told.lock().unwrap().push(number);
        };
        queue.put(&event(number), Some(Box::new(on_stored)));
    }
    queue.close();
    Flusher::new(Arc::clone(&queue), Arc::<SqliteJournal>::clone(&journal), "test".to_owned()).run().await;
    assert_eq!(stored_numbers(&journal).await, numbers);
    assert_eq!(*told.lock().unwrap(), numbers);
    assert_eq!(queue.occupied(), 0);
    assert_eq!(queue.counters().batches.load(Ordering::Relaxed), 5);
}

/// A flusher on a fresh journal.
async fn running_flusher(queue: &Arc<Queue>) -> (tempfile::TempDir, Arc<SqliteJournal>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Arc::new(SqliteJournal::open(&path, Arc::new(SystemClock)).await.unwrap());
    let flusher = Flusher::new(Arc::clone(queue), Arc::<SqliteJournal>::clone(&journal), "test".to_owned());
    tokio::spawn(flusher.run());
    // The flusher sleeps.
    tokio::task::yield_now().await;
    (folder, journal)
}

fn notified(stored: oneshot::Sender<bool>) -> Option<journal::queue::OnStored> {
    Some(Box::new(move |is_stored| stored.send(is_stored).unwrap()))
}

/// What a thread enqueues in one turn is one batch, and a reply that waits does not wait for later events.
#[tokio::test]
async fn events_of_a_turn_are_one_batch() {
    let queue = Arc::new(Queue::new(1_000));
    let (_folder, journal) = running_flusher(&queue).await;
    for turn in 0..5 {
        let (on_stored, stored) = oneshot::channel();
        for number in turn * 10..turn * 10 + 10 {
            assert!(queue.reserve());
            queue.put_in_turn(&event(number), None);
        }
        assert!(queue.reserve());
        queue.put_in_turn(&event(1_000 + turn), notified(on_stored));
        queue.hand_over();
        assert!(stored.await.unwrap());
        assert_eq!(queue.counters().batches.load(Ordering::Relaxed), turn + 1);
    }
    assert_eq!(stored_numbers(&journal).await.len(), 55);
    assert_eq!(queue.occupied(), 0);
}

/// Without a reply that waits, and without a further turn, they are stored as well.
#[tokio::test]
async fn events_that_no_reply_waits_for_are_stored_after_a_rest() {
    let queue = Arc::new(Queue::new(1_000));
    let (_folder, journal) = running_flusher(&queue).await;
    for number in 0..100 {
        assert!(queue.reserve());
        queue.put_in_turn(&varied_event(number), None);
    }
    queue.hand_over();
    testkit::eventually_async("all to be stored", std::time::Duration::from_secs(20), async || {
        (queue.occupied() == 0).then_some(())
    })
    .await;
    assert_eq!(stored_numbers(&journal).await, (0..100).collect::<Vec<_>>());
}

/// A thread whose turn does not end, because it always has another request, hands over nevertheless.
#[tokio::test]
async fn a_turn_without_an_end_is_handed_over_in_parts() {
    let queue = Arc::new(Queue::new(1_000));
    let (_folder, _journal) = running_flusher(&queue).await;
    for number in 0..64 {
        assert!(queue.reserve());
        queue.put_in_turn(&event(number), None);
    }
    testkit::eventually_async("all to be stored", std::time::Duration::from_secs(20), async || {
        (queue.occupied() == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_abandoned_queue_tells_each_reply_that_waits() {
    let queue = Arc::new(Queue::new(10));
    let mut waiting = Vec::new();
    for number in 0..10 {
        let (on_stored, stored) = oneshot::channel();
        assert!(queue.reserve());
        queue.put_in_turn(&varied_event(number), notified(on_stored));
        waiting.push(stored);
    }
    assert!(!queue.reserve(), "the queue is full");
    queue.close();
    assert_eq!(queue.abandon(), 10);
    for stored in waiting {
        assert!(!stored.await.unwrap());
    }
    assert_eq!(queue.occupied(), 0);
}
