//! The queue and the flusher, on a real journal.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::clock::SystemClock;
use domain::{
    AnnounceEvent, Cause, ClientId, InfoHash, NodeId, PeerId, RunId, Seconds, SessionId, TorrentId,
    TrafficEvent, UnixTime, UserId,
};
use journal::{EntryId, Flusher, Journal, Lane, Queue, SqliteJournal};

fn event(number: u64) -> TrafficEvent {
    TrafficEvent {
        passkey: None,
        user: UserId::new(1).unwrap(),
        torrent: TorrentId::new(1),
        info_hash: InfoHash([1; 20]),
        peer_id: PeerId([2; 20]),
        port: 6881,
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        uploaded_delta: number,
        downloaded_delta: 0,
        left: Some(0),
        event: AnnounceEvent::None,
        at: UnixTime(1_800_000_000),
        steady: UnixTime(1_800_000_000),
        since_last: Seconds(0),
        interval: Seconds(1_800),
        min_interval: Seconds(900),
        node: NodeId(1),
        session: SessionId { client: ClientId(1), run: RunId(1) },
        uploaded_total: number,
        downloaded_total: 0,
        cause: Cause::Announce,
        key: domain::ClientKey::NONE,
        uncredited_upload: 0,
    }
}

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
